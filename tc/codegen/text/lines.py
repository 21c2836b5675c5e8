"""Lines of text: how deep they stand, and blocks of them."""

from __future__ import annotations

from collections.abc import Iterable


def indented(lines: Iterable[str]) -> list[str]:
    """The lines one level deeper."""
    return ["  " + line for line in lines]


def braced(header: str, lines: Iterable[str]) -> list[str]:
    """A block after a header, which may be empty."""
    return [f"{header} {{".lstrip(), *indented(lines), "}"]
