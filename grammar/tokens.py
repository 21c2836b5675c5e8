"""``Token``: a piece of a text and where it stands, as Lark's own has it, without Lark."""

from __future__ import annotations

from typing import Protocol


class Placed(Protocol):
    """What has a place in a text: our tokens, and those of Lark, which has some that are in no text."""

    @property
    def start_pos(self) -> int | None:
        """The offset of the first character."""

    def __len__(self) -> int: ...


class Token(str):
    """``start_pos``: the offset of the first character."""

    __slots__ = ("start_pos",)
    start_pos: int

    def __new__(cls, text: str, start_pos: int) -> Token:
        """The piece ``text``, which begins at ``start_pos``."""
        made = super().__new__(cls, text)
        made.start_pos = start_pos
        return made
