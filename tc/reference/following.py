"""Steps of blocks that go on from what a kernel gave, and not from what it should have given.

A bound of a recurrence grows with every step, by what the weights magnify at most; over hundreds of steps it says
nothing.  But where a result keeps the values of all steps, each step can be judged for itself: it is right if it
follows from the values before it, within the roundings of this step.  No correct kernel is refused, since the bound of
a step holds whatever values it begins with.  A kernel that is accepted is right in every step.

A value that a kernel stores may go on unrounded in a register, and what is read of it is off by one rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tc.base.errors import ArgumentError
from tc.base.types import ScalarType
from tc.language.program.program import Literal, Program, Statement
from tc.language.program.specialization import Specialization
from tc.reference.access import SubscriptForm, linear_form
from tc.reference.bounded import Array, Bounded, FloatArray, numpy_type, roundoff
from tc.reference.domain import positions
from tc.reference.order import block_ranges

# By dimension, the subscript that gives a step elements of its own.
_Forms: TypeAlias = Mapping[int, SubscriptForm]
# Of a tensor, one slice for each dimension.
_Part: TypeAlias = tuple[slice | EllipsisType, ...]

# Bytes of an element's bound, and of whether it is ambiguous.
_BOUND: Final = 8 + 1

Element = TypeVar("Element", bound=np.generic)


def followed(program: Program) -> dict[str, str]:
    """The results whose elements one step of a block writes and nothing changes later: of each, the last writer.

    So it is where all that write to one in the block have a subscript for each of its steps, the same ones, and nothing
    behind the block writes to it.
    """
    ranges = block_ranges(program)
    found: dict[str, str] = {}
    for name in program.results:
        writers = [number for number, statement in enumerate(program.statements) if statement.target == name]
        last = program.statements[writers[-1]]
        inside = [program.statements[number] for number in writers if number in ranges[writers[-1]]]
        forms = _forms(last)
        if forms and all(own.blocks == last.blocks and _forms(own) == forms for own in inside):
            found[name] = last.name
    return found


def bytes_kept(specialization: Specialization) -> int:
    """What the oracle keeps beside the results while it follows a kernel: what it found for them."""
    layouts = (specialization.layouts[name] for name in followed(specialization.program))
    return sum(layout.size * (numpy_type(layout.type).itemsize + _BOUND) for layout in layouts)


def _forms(statement: Statement) -> _Forms:
    """The subscripts that each depend on one step; nothing, unless each step has one."""
    found: dict[int, SubscriptForm] = {}
    places, steps = positions(statement), set(range(len(statement.sequence)))
    for dimension, subscript in enumerate(statement.subscripts):
        form = linear_form(subscript, places)
        if form is not None and len(form.factors) == 1 and form.factors.keys() <= steps:
            found[dimension] = form
    return found if {step for form in found.values() for step in form.factors} == steps else {}


@dataclass(frozen=True)
class Following:
    """What a kernel gave, by result, and what the oracle found for it on the way."""

    given: Mapping[str, Array]
    writers: Mapping[str, str]
    found: dict[str, list[tuple[_Part, Bounded]]] = field(default_factory=dict)

    @staticmethod
    def of(specialization: Specialization, given: Mapping[str, Array]) -> Following:
        """ArgumentError for a result that is missing, or of another type or shape."""
        program = specialization.program
        writers = followed(program)
        for name in writers:
            layout = specialization.layouts[name]
            array = given.get(name)
            if array is None or array.shape != layout.shape or array.dtype.name != layout.type.value:
                got = "nothing" if array is None else f"{array.dtype.name} of shape {array.shape}"
                raise ArgumentError(
                    f"{program.name}: what a call gave for {name} must be {layout.type} of shape {layout.shape}, "
                    f"got {got}; pass all results, in the order of the definition"
                )
        return Following(given, writers)

    def after(self, statement: Statement, tensor: Bounded, type: ScalarType) -> Bounded:
        """The target behind one step of a statement: with what was given, where nothing else is written any more."""
        name = statement.target
        if self.writers.get(name) != statement.name:
            return tensor
        part, value, error = _part(statement, tensor.value.ndim), tensor.value, _own(tensor.error, tensor.value.shape)
        found = tensor.part(part)
        kept = Bounded(found.value.copy(), found.error.copy(), found.ambiguous.copy())
        self.found.setdefault(name, []).append((part, kept))
        own = np.asarray(self.given[name][part]).astype(numpy_type(type))
        value[part], error[part] = own, stored_error(own, type)
        if not tensor.ambiguous.any():
            return Bounded(value, error)
        ambiguous = _own(tensor.ambiguous, value.shape)
        ambiguous[part] = False
        return Bounded(value, error, ambiguous)

    def results(self, name: str, tensor: Bounded) -> Bounded:
        """The tensor with all that was found for it."""
        if name not in self.found:
            return tensor
        shape = tensor.value.shape
        value, error, ambiguous = tensor.value, _own(tensor.error, shape), _own(tensor.ambiguous, shape)
        for part, found in self.found[name]:
            value[part], error[part], ambiguous[part] = found.value, found.error, found.ambiguous
        return Bounded(value, error, ambiguous)


def stored_error(given: Array, type: ScalarType) -> FloatArray:
    """How far what a kernel goes on with may be from what it stored; a zero that it stored is one."""
    if not type.is_floating:
        return np.zeros(())
    error = roundoff(type) * np.abs(given) + type.smallest_subnormal
    return np.where((given == 0) | ~np.isfinite(given), 0.0, error)


def _part(statement: Statement, dimensions: int) -> _Part:
    """The elements of the step that a statement is in: its iterators have one value there."""
    steps: list[int] = []
    for iterator in statement.sequence:
        assert isinstance(iterator.begin, Literal), "steps are run one by one"
        steps.append(int(iterator.begin.value))
    part: list[slice | EllipsisType] = [slice(None)] * dimensions
    for dimension, form in _forms(statement).items():
        index = form.constant + sum(factor * steps[step] for step, factor in form.factors.items())
        part[dimension] = slice(index, index + 1)
    return tuple(part)


def _own(array: npt.NDArray[Element], shape: tuple[int, ...]) -> npt.NDArray[Element]:
    """The array itself if it has the shape and can be written to, else one that does."""
    return array if array.shape == shape and array.flags.writeable else np.array(np.broadcast_to(array, shape))
