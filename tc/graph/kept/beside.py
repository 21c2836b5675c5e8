"""``Beside``: a value that a thread makes while its caller does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

Value = TypeVar("Value")


class Beside(Generic[Value]):
    """Calls ``make`` in a thread of its own, from now on, or when the value is asked for if there can be none.

    The pool of ``concurrent.futures`` does more, and takes 10 ms to import, which each start of a program would pay.
    """

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make: Final = make
        self._made: list[Value] = []
        self._failed: BaseException | None = None
        self._thread: threading.Thread | None = threading.Thread(target=self._run, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # there are as many threads as there may be
            self._thread = None

    def wait(self) -> None:
        """Until the thread has ended."""
        if self._thread is not None:
            self._thread.join()

    def value(self) -> Value:
        """What was made, once it is; raises what ``make`` has raised."""
        self.wait()
        if not self._made and self._failed is None:
            self._run()
        if self._failed is not None:
            raise self._failed
        return self._made[0]

    def _run(self) -> None:
        try:
            self._made.append(self._make())
        except BaseException as error:  # noqa: BLE001  # raised in the thread that asks
            self._failed = error
