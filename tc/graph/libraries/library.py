"""``Library``: what computes some nodes in our place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tc.graph.ir.nodes import HostFunction
    from tc.graph.libraries.form import Form


class Library(Protocol):
    """A library on this machine."""

    @property
    def title(self) -> str:
        """Name, version and threads: what the time of a call depends on."""

    def function(self, form: Form) -> HostFunction | None:
        """What computes a node of this form; None where the library cannot."""
