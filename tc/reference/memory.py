"""How much memory the oracle needs for a call, which is known before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tc.counted import bytes_text
from tc.errors import TooLargeError
from tc.language.program import Role, Tensor
from tc.language.specialization import Specialization
from tc.reference.bounded import numpy_type
from tc.reference.domain import positions
from tc.reference.windows import separate_forms

# Bytes of an element beside its value: its bound, and whether it is ambiguous.
_BOUND: Final = 8 + 1
# Of an element of a target that has no windows, for the totals of a reduction and what they become.
_TOTALS: Final = 12 * 8
# What a step computes with: arrays of at most a million elements.
_STEP_ELEMENTS: Final = 1 << 20
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


def need_of(specialization: Specialization) -> Need:
    """What the oracle needs for results, for copies of the arguments in its own types, and for its steps."""
    program, layouts = specialization.program, specialization.layouts
    scattered = {
        statement.target
        for statement in program.statements
        if statement.reduction is not None and separate_forms(statement.subscripts, positions(statement)) is None
    }
    sizes = {
        tensor.name: layouts[tensor.name].size * _bytes_each(tensor, tensor.name in scattered)
        for tensor in program.tensors
    }
    name = max(sizes, key=lambda name: sizes[name])
    elements = max(layouts[tensor.name].size for tensor in program.tensors)
    shape = " x ".join(map(str, layouts[name].shape))
    steps = min(elements, _STEP_ELEMENTS) * _STEP_BYTES
    return Need(sum(sizes.values()) + steps, f"{name} ({shape})" if shape else name)


def _bytes_each(tensor: Tensor, scattered: bool) -> int:
    value = numpy_type(tensor.type).itemsize
    if tensor.role is Role.INPUT:
        return value
    # Statements that read what they write see it as it was before.
    return 2 * value + _BOUND + (_TOTALS if scattered else 0)
