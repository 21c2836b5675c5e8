"""Options that are left open: what the machine makes of them, where that is one value for a whole kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from tc.base.decision import Decision
from tc.base.errors import OptionsError
from tc.targets.machine import GpuMachine
from tc.targets.options import GpuOptions

Value = TypeVar("Value")


def resolved(options: GpuOptions, machine: GpuMachine, *, matrices: bool = False) -> Iterator[Decision]:
    """What the machine makes of ``shared_memory``, ``register_accumulators``, ``shuffles`` and ``stages`` that are
    None.

    ``stages`` stay open where there may be several.  ``matrices``: matrix instructions may be used.  OptionsError for
    shuffles where the machine has none.
    """
    if options.shuffles and not machine.shuffles:
        raise OptionsError("shuffles=True cannot be had: threads of this target exchange no registers; leave it out")
    if options.shared_memory is None:
        yield Decision("shared_memory", None, machine.block_shared, "two such blocks fit a multiprocessor")
    if options.register_accumulators is None:
        elements, part = (machine.warp_elements, "half") if matrices else (machine.thread_elements, "a quarter")
        reason = f"that is {part} of the registers of a thread"
        yield Decision("register_accumulators", None, elements, reason)
    if options.shuffles is None:
        reason = "lanes exchange what is in registers" if machine.shuffles else "the target has no warp shuffles"
        yield Decision("shuffles", None, machine.shuffles, reason)
    if options.stages is None and machine.stages == 1:
        reason = "the target copies nothing asynchronously, so that more tiles would only take room"
        yield Decision("stages", None, 1, reason)


def known(value: Value | None) -> Value:
    """The value of an option that ``resolved`` leaves open nowhere."""
    assert value is not None, "the options are resolved first"
    return value
