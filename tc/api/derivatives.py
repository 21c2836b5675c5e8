"""``Derivatives``: the programs that a definition derives, or those that its text gives instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from tc.base.errors import Diagnostic, GradientError
from tc.base.frozen import frozen

if TYPE_CHECKING:
    from tc.gradient.gradient import Derived
    from tc.gradient.pair import DerivedPair
    from tc.language.program.program import Program


class Definition(Protocol):
    """A comprehension."""

    @property
    def name(self) -> str:
        """What the text calls it."""

    @property
    def program(self) -> Program:
        """What it means."""


@frozen
class Derivatives:
    """``raw``: what is differentiated instead of the program of the definition, which means the same.

    ``own``: the gradient that the text gives it, or why it has none.
    """

    definition: Definition
    raw: Program | None
    own: Definition | str | None

    def gradient(self, names: Sequence[str], ties: str) -> Derived:
        """The gradient by the arguments named; OptionsError for unknown ties."""
        from tc.gradient.gradient import derived_gradient
        from tc.gradient.ties import ties_called

        own = self._own(names, ties)
        return derived_gradient(self._differentiated, names, ties_called(ties)) if own is None else own

    def pair(
        self, names: Sequence[str], ties: str, save: Sequence[str] | None, only: Sequence[str]
    ) -> DerivedPair | None:
        """The forward and its gradient that share values; None where the text gives the gradient."""
        from tc.gradient.pair import derived_pair
        from tc.gradient.ties import ties_called

        if self._own(names, ties, save) is not None:
            return None
        return derived_pair(self._differentiated, names, ties_called(ties), save, only)

    def jvp(self, names: Sequence[str], ties: str) -> Program:
        """The directional derivative by the arguments named."""
        from tc.gradient.forward_mode import directional
        from tc.gradient.ties import ties_called

        return directional(self._differentiated, names, ties_called(ties), self._own(names, ties))

    @property
    def _differentiated(self) -> Program:
        return self.definition.program if self.raw is None else self.raw

    def _own(self, names: Sequence[str], ties: str, save: Sequence[str] | None = None) -> Derived | None:
        if self.own is None:
            return None
        if isinstance(self.own, str):
            raise GradientError(Diagnostic(self.own))
        from tc.gradient.own import own_gradient

        if ties != "split" or save is not None:
            what = "ties" if ties != "split" else "save"
            message = f"`{self.definition.name}` has a gradient of its own, `{self.own.name}`, which takes no {what}"
            raise GradientError(Diagnostic(message))
        return own_gradient(self.definition.program, self.own.program, names)
