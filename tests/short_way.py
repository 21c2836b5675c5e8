"""Which way calls are made: those that were made before take a short one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tc.dispatch.arguments import Arguments
from tc.dispatch.kernel import Kernel


@contextmanager
def only_the_short_way() -> Iterator[None]:
    """Inside, nothing is made the thorough way."""

    def refuse(*_arguments: object) -> object:
        raise AssertionError("this call was made the thorough way")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "run", refuse)
        yield


@contextmanager
def the_thorough_way() -> Iterator[None]:
    """Inside, some call is made the thorough way."""
    calls: list[Arguments] = []

    def run(kernel: Kernel, bound: Arguments) -> object:
        calls.append(bound)
        return thorough(kernel, bound)

    thorough = Kernel.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "run", run)
        yield
    assert calls, "this call was made the short way"
