"""The stream that the caller has chosen for the calls of a thread."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tc.runtime.views.view import Stream

_STREAM: Final[contextvars.ContextVar[Stream | None]] = contextvars.ContextVar("tc_stream", default=None)


def chosen_stream() -> Stream | None:
    """That of the innermost ``choosing`` around; None outside of all of them."""
    return _STREAM.get()


@contextmanager
def choosing(stream: Stream) -> Iterator[None]:
    """In the block, calls of this thread run on the stream."""
    token = _STREAM.set(stream)
    try:
        yield
    finally:
        _STREAM.reset(token)
