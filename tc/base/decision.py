"""``Decision``: something that was made otherwise than it was asked for, or that was left open, with the reason."""

from __future__ import annotations

from enum import Enum

from tc.base.frozen import frozen


@frozen
class Decision:
    """One choice of the compiler.

    ``option``: the name of an option, or of a choice that no option has, such as ``accumulator``.  ``asked``: its value
    in the options that were asked for, or what would have been made; None where it was left open.  ``taken``: what was
    made.  ``reason``: why, in words that may follow "since".
    """

    option: str
    asked: object
    taken: object
    reason: str

    def __str__(self) -> str:
        taken, asked = _said(self.taken), _said(self.asked)
        if self.asked is not None:
            taken = f"{taken} instead of {asked}"
        return f"{self.option}: {taken}, since {self.reason}"


def _said(value: object) -> str:
    """As in JSON, but for lists, which are written as they are in Python."""
    return str(value.value if isinstance(value, Enum) else value)
