"""Sanitizes foreign text for a terminal: no control sequences."""

from __future__ import annotations

from collections.abc import Sequence


def printable(text: str, kept: str = "") -> str:
    """The text with control characters, and whatever else is invisible, as escapes; ``kept`` stays as it is."""
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode("ascii") for c in text)


def shortened(text: str, longest: int) -> str:
    """``printable`` text of at most so many characters."""
    # A character has at most ten in its place, so no more than these can be seen.
    shown = printable(text[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lines of cells in columns under their headings; cells are printable already."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (headings, *rows)
    )
