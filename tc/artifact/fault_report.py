"""Translates the fault number of a run into an error for the caller."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NoReturn

from tc.artifact.convention import Convention
from tc.base.errors import ArgumentError, DeviceError
from tc.base.faults import BOUND, DIVERGED, MISALIGNED, OUTSIDE, TWICE, UNKNOWN, Check
from tc.runtime.loaded_kernel import NO_MEMORY

_MISTAKES: Final[Mapping[int, str]] = MappingProxyType(
    {
        DIVERGED: "threads of a block wait at different barriers",
        OUTSIDE: "an access left its buffer",
        MISALIGNED: "an access to several elements is not aligned",
    }
)


def report_fault(convention: Convention, fault: int) -> NoReturn:
    """Raises the error for what a kernel found while it ran."""
    name = convention.interface.name
    if fault == NO_MEMORY:
        memory = convention.memory
        raise MemoryError(
            f"{name}: no memory for temporaries ({memory.shared} bytes) and packed operands ({memory.scratch} bytes "
            "for every thread); use fewer threads or smaller tiles"
        )
    if fault in _MISTAKES:
        raise DeviceError(
            f"{name}: {_MISTAKES[fault]}; the compiler made a mistake, please report it with the definition"
        )
    check = convention.checks[fault - 1]
    raise ArgumentError(f"{name}: {check_said(check)} (statement {check.statement}); the results are undefined")


def check_said(check: Check) -> str:
    """What is wrong where a check fails."""
    if check.dimension == TWICE:
        return f"indices in {check.tensor} are declared distinct, and two of them are the same"
    if check.dimension == BOUND:
        allowed = "its iterator's range" if check.extent == UNKNOWN else f"0..{check.extent}"
        return f"{check.tensor} gives a bound of a range that is outside of {allowed}"
    allowed = "its extent" if check.extent == UNKNOWN else f"0:{check.extent}"
    return f"an index into dimension {check.dimension} of {check.tensor} is outside of {allowed}"
