"""How much memory the oracle needs for a call, which is known before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tc.base.counted import bytes_text
from tc.base.errors import TooLargeError
from tc.language.program.program import Read, Role, Statement, Tensor, walk
from tc.language.program.specialization import Layout, Specialization
from tc.reference.bounded import numpy_type
from tc.reference.domain import positions
from tc.reference.lifetimes import lifetimes, reads_elsewhere
from tc.reference.windows import MOST_SHARED, separate_forms

# Bytes of an element beside its value: its bound, and whether it is ambiguous.
_BOUND: Final = 8 + 1
# Of an element of a window whose elements several instances write, for the totals of a reduction and what they become.
_TOTALS: Final = 12 * 8
# Elements of the arrays that a step computes with, for an assignment and for a reduction, and bytes for each of them.
_STEP_ELEMENTS: Final = 1 << 18
_REDUCED_ELEMENTS: Final = 1 << 20
_STEP_BYTES: Final = 24 * 8


@dataclass(frozen=True, slots=True)
class Need:
    """``bytes`` that the oracle needs beside the arguments; ``largest``: the tensor most of it is for, in words."""

    bytes: int
    largest: str

    def require(self, most: int, program: str) -> None:
        """TooLargeError, before anything is computed, if it is more than ``most`` bytes."""
        if self.bytes > most:
            raise TooLargeError(
                f"{program}: the oracle, which computes what is right, needs {bytes_text(self.bytes)} of memory for "
                f"these sizes, and may take {bytes_text(most)} (a quarter of what there is, unless you say otherwise); "
                f"choose smaller sizes, those of {self.largest} first"
            )


def need_of(specialization: Specialization, *, bounds: bool = True) -> Need:
    """What the oracle needs for results and temporaries, while it has them, and for its steps.

    ``bounds``: as of ``evaluate``.
    """
    program, layouts = specialization.program, specialization.layouts
    spans = lifetimes(program, bounds=bounds)
    sizes = {
        tensor.name: layouts[tensor.name].size * _bytes_each(tensor, has_bounds=spans[tensor.name].bounds > 0)
        for tensor in program.tensors
        if tensor.role is not Role.INPUT
    }
    most = Need(0, "")
    for number, statement in enumerate(program.statements):
        held = {n: s for n, s in sizes.items() if n in program.arguments or spans[n].first <= number <= spans[n].last}
        total = sum(held.values()) + _step_bytes(statement, layouts)
        if reads_elsewhere(statement):
            total += sizes[statement.target]
        if total >= most.bytes:
            name = max(held, key=lambda name: held[name])
            shape = " x ".join(map(str, layouts[name].shape))
            most = Need(total, f"{name} ({shape})" if shape else name)
    return most


def _step_bytes(statement: Statement, layouts: Mapping[str, Layout]) -> int:
    """What a statement computes with at a time."""
    used = {statement.target, *(part.tensor for part in walk(statement.value) if isinstance(part, Read))}
    most = _STEP_ELEMENTS if statement.reduction is None else _REDUCED_ELEMENTS
    step = min(max(layouts[name].size for name in used), most) * _STEP_BYTES
    if statement.reduction is None or separate_forms(statement.subscripts, positions(statement)) is not None:
        return step
    return step + min(layouts[statement.target].size, MOST_SHARED) * _TOTALS


def _bytes_each(tensor: Tensor, *, has_bounds: bool) -> int:
    return numpy_type(tensor.type).itemsize + (_BOUND if has_bounds else 0)
