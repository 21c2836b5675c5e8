"""Warnings of a command: lines like its other ones, for no line of a program has a part in them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def warned(say: Callable[[str], None]) -> Iterator[None]:
    """Says what is warned of while the block runs; filters of warnings hold as ever."""

    def show(message: Warning | str, *_where: object, **_more: object) -> None:
        say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
