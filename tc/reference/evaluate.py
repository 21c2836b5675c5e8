"""The oracle: what a specialized program means, with a bound on what any correct kernel may compute instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tc.base.errors import ArgumentError
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import (
    Binary,
    Cast,
    Expression,
    Reduction,
    Role,
    Tensor,
    float32_term,
    is_product_of_two,
    iterators_in,
)
from tc.language.program.specialization import Layout, Specialization
from tc.reference import decisions
from tc.reference.access import Box, extents, volume
from tc.reference.accumulate import Accumulator, FloatSum, accumulator
from tc.reference.bounded import (
    CERTAIN,
    EXACT,
    Array,
    BoolArray,
    Bounded,
    FloatArray,
    collapse,
    constant,
    numpy_type,
    settle,
)
from tc.reference.contract import absorb_product, largest_intermediate
from tc.reference.domain import bounding_box, fills_box, initialized, instances, pieces, positions
from tc.reference.expressions import ALWAYS, Frame, is_product, unknown
from tc.reference.expressions import evaluate as evaluate_expression
from tc.reference.lifetimes import lifetimes, reads_elsewhere
from tc.reference.placement import Placement, placement
from tc.reference.windows import Window, windows

ElementType = TypeVar("ElementType", bound=np.generic)

# Elements of the arrays that one step computes with: a dozen of them stay near the cache, or below 256 MB.
_STEP = 1 << 18
_CONTRACTION_STEP = 1 << 21


@dataclass(frozen=True, slots=True)
class Result:
    """What a tensor must hold after a call.

    ``values``: the declared type for integers and booleans; float64, not rounded, for floating types.
    ``error``: per element, how far a correct kernel may be from it; ``inf`` where anything is correct.
    ``ambiguous``: a comparison, a conversion to integer or an overflow lay within its bound, and all its outcomes
    are accepted.
    """

    type: ScalarType
    values: Array
    error: FloatArray
    ambiguous: BoolArray


def evaluate(
    specialization: Specialization,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, bool | int | float] | None = None,
    *,
    check_indices: bool = True,
    temporaries: bool = False,
    bounds: bool = True,
) -> dict[str, Result]:
    """The results of a call, by name of the output or in-out tensor, in the order in which callers get them.

    ``arrays``: the input and in-out tensors, in their declared types and shapes.  ``scalars``: the scalar arguments.
    ``check_indices``: an index that leaves its tensor is an ArgumentError; otherwise anything may be read there.
    ``temporaries``: give those too, behind the results.  ``bounds``: whether errors and ambiguity of the results are
    asked for, which take as much memory as their values; without, they are arrays of zeros without memory of their own.
    """
    program = specialization.program
    spans = lifetimes(program, bounds=bounds, temporaries=temporaries)
    with np.errstate(all="ignore"):
        tensors = {t.name: _initial(t, specialization.layouts[t.name], arrays, program.name) for t in program.tensors}
        values = {s.name: constant(_scalar(s.name, scalars or {}, program.name), s.type) for s in program.scalars}
        for number, statement in enumerate(program.statements):
            frame = Frame(program, statement, positions(statement), (), tensors, values, check_indices)
            keeps = number < spans[statement.target].bounds
            type = specialization.layouts[statement.target].type
            tensors[statement.target] = _run(frame, type, keeps_bounds=keeps)
            for name in [n for n in tensors if spans[n].last <= number]:
                del tensors[name]
        further = [t.name for t in program.tensors if temporaries and t.role is Role.TEMPORARY]
        wanted = (*program.results, *further)
        return {name: _result(tensors.pop(name), program.tensor(name).type, bounds) for name in dict.fromkeys(wanted)}


def _initial(tensor: Tensor, layout: Layout, arrays: Mapping[str, Array], program: str) -> Bounded:
    """The contents before the first statement: given, or unknown."""
    if tensor.role in (Role.OUTPUT, Role.TEMPORARY):
        return Bounded(np.zeros(layout.shape, numpy_type(layout.type)), np.asarray(unknown(layout.type)), ALWAYS)
    if tensor.name not in arrays:
        raise ArgumentError(f"{program}: argument {tensor.name} is missing; pass an array of shape {layout.shape}")
    array = np.asarray(arrays[tensor.name])
    if array.shape != layout.shape or array.dtype.name != layout.type.value:
        raise ArgumentError(
            f"{program}: argument {tensor.name} must be {layout.type} of shape {layout.shape}, "
            f"got {array.dtype.name} of shape {array.shape}"
        )
    # Arguments are only read, and results that come in are written to.
    return Bounded(array if tensor.role is Role.INPUT else array.astype(numpy_type(layout.type)))


def _scalar(name: str, scalars: Mapping[str, bool | int | float], program: str) -> bool | int | float:
    if name not in scalars:
        raise ArgumentError(f"{program}: scalar argument {name} is missing; pass its value")
    return scalars[name]


def _result(tensor: Bounded, type: ScalarType, bounds: bool) -> Result:
    shape = tensor.value.shape
    if not bounds:
        return Result(type, tensor.value, np.broadcast_to(EXACT, shape), np.broadcast_to(CERTAIN, shape))
    whole = _Whole.of(tensor)
    ambiguous, error = whole.ambiguous.reshape(-1), whole.error.reshape(-1)
    for start in range(0, error.size, _STEP):
        part = slice(start, start + _STEP)
        ambiguous[part] |= np.isinf(error[part])
    return Result(type, whole.value, whole.error, whole.ambiguous)


# --- statements ----------------------------------------------------------------------------------------------


def _run(frame: Frame, type: ScalarType, *, keeps_bounds: bool) -> Bounded:
    """The target after the statement, in the same memory; ``keeps_bounds``: whether anybody asks for its bounds."""
    box = bounding_box(frame)
    frame = replace(frame, box=box)
    before = frame.tensors[frame.statement.target]
    if reads_elsewhere(frame.statement):
        before = Bounded(np.array(before.value), np.array(before.error), np.array(before.ambiguous))
    after = _Whole.of(before) if keeps_bounds else _Whole.without_bounds(before)
    reduction = frame.statement.reduction
    if reduction is None:
        _assign(frame, after, type)
    else:
        _reduce(frame, reduction, before, after, type)
    return after.compact() if keeps_bounds else Bounded(after.value)


@dataclass(frozen=True, slots=True)
class _Whole:
    """Arrays that are written to: of a tensor's shape, or, without bounds, its values alone.

    Those of a tensor that is written already are its own: a statement reads of its target what it then replaces.
    """

    value: Array
    error: FloatArray
    ambiguous: BoolArray

    @staticmethod
    def of(tensor: Bounded) -> _Whole:
        shape = tensor.value.shape
        return _Whole(tensor.value, _own(tensor.error, shape), _own(tensor.ambiguous, shape))

    @staticmethod
    def without_bounds(tensor: Bounded) -> _Whole:
        return _Whole(tensor.value, EXACT, CERTAIN)

    @property
    def has_bounds(self) -> bool:
        return self.error is not EXACT

    def assign(self, terms: Bounded, place: Placement) -> None:
        """Writes terms over a box."""
        place.assign(self.value, terms.value)
        if self.has_bounds:
            place.assign(self.error, terms.error)
            place.assign(self.ambiguous, terms.ambiguous)

    def replace(self, window: Window, found: Bounded, changed: BoolArray) -> None:
        """Writes the elements of a window that change."""
        part = window.slices
        np.copyto(self.value[part], found.value, where=changed)
        if self.has_bounds:
            np.copyto(self.error[part], found.error, where=changed)
            np.copyto(self.ambiguous[part], found.ambiguous, where=changed)

    def compact(self) -> Bounded:
        """The same without arrays of zeros, so that what is computed from exact values stays cheap."""
        return Bounded(
            self.value,
            self.error if self.error.any() else EXACT,
            self.ambiguous if self.ambiguous.any() else CERTAIN,
        )


def _own(array: npt.NDArray[ElementType], shape: tuple[int, ...]) -> npt.NDArray[ElementType]:
    """The array itself if it has the shape and can be written to, else one that does."""
    if array.shape == shape and array.flags.writeable:
        return array
    if array.ndim == 0 and not array:
        return np.zeros(shape, array.dtype)  # takes no memory before it is written to
    return np.array(np.broadcast_to(array, shape))


def _assign(frame: Frame, after: _Whole, type: ScalarType) -> None:
    for piece in pieces(frame.box, frozenset(), _fits_step):
        here = replace(frame, box=piece)
        mask = instances(here)
        if not mask.any():
            continue
        terms = collapse(evaluate_expression(frame.statement.value, here, mask), type)
        after.assign(terms, placement(here, mask, after.value.shape))


def _fits_step(box: Box) -> bool:
    return volume(box) <= _STEP


def _reduce(frame: Frame, reduction: Reduction, before: Bounded, after: _Whole, type: ScalarType) -> None:
    statement, summed = frame.statement, type
    if type.is_half and isinstance(statement.value, Cast):
        summed = ScalarType.FLOAT32
        frame = replace(frame, statement=replace(statement, value=float32_term(statement.value)))
    for window in windows(frame, before.value.shape):
        found, changed = _reduce_window(window.restricted(frame), reduction, window, before, summed)
        if summed is not type:
            found = decisions.convert(settle(found, summed), summed, type)
        after.replace(window, collapse(found, type), changed)


def _reduce_window(
    frame: Frame, reduction: Reduction, window: Window, before: Bounded, type: ScalarType
) -> tuple[Bounded, BoolArray]:
    """The elements of one window of the target, whose instances are those in the frame's box, and which of them change.

    ``type``: in which terms are combined.
    """
    statement = frame.statement
    total = accumulator(reduction, window.shape, type, is_product(statement.value), is_product_of_two(statement.value))
    touched = np.zeros(window.shape, np.bool_)
    factors = _factors(statement.value)
    if isinstance(total, FloatSum) and len(factors) > 1 and fills_box(statement):
        _contract(frame, factors, total, touched, window)
    else:
        _absorb(frame, total, touched, window)
    fresh = _fresh(frame, window) if statement.initialize else CERTAIN
    part = window.slices
    old = Bounded(
        before.value[part],
        before.error[part] if before.error.ndim else before.error,
        before.ambiguous[part] if before.ambiguous.ndim else before.ambiguous,
    )
    return total.finish(old, fresh), np.asarray(np.logical_or(touched, fresh))


def _absorb(frame: Frame, total: Accumulator, touched: BoolArray, window: Window) -> None:
    """Folds the terms of the frame's box into the accumulator, and marks the elements that it touches."""
    for piece in pieces(frame.box, frozenset(), _fits_step):
        here = replace(frame, box=piece)
        mask = instances(here)
        if mask.any():
            place = placement(here, mask, window.shape, window.origin, window.whole)
            total.absorb(evaluate_expression(frame.statement.value, here, mask), place)
            place.fold(np.logical_or, touched, ALWAYS, ~ALWAYS)


def _contract(
    frame: Frame, factors: tuple[Expression, ...], total: FloatSum, touched: BoolArray, window: Window
) -> None:
    """As ``_absorb`` for a box of products, by matrix multiplication wherever that is possible."""
    used = [frozenset(frame.positions[name] for name in iterators_in((factor,))) for factor in factors]
    kept = frozenset(frame.positions[name] for name in iterators_in(frame.statement.subscripts))

    def fits(box: Box) -> bool:
        return largest_intermediate(used, kept, extents(box)) <= _CONTRACTION_STEP

    for piece in pieces(frame.box, kept, fits):
        here = replace(frame, box=piece)
        place = placement(here, ALWAYS, window.shape, window.origin, window.whole)
        operands = [settle(evaluate_expression(factor, here, ALWAYS), factor.type) for factor in factors]
        grids = [_open(operand, len(piece)) for operand in operands]
        if place.forms is not None and absorb_product(total, grids, place):
            place.fold(np.logical_or, touched, ALWAYS, ~ALWAYS)
        else:
            _absorb(here, total, touched, window)


def _open(operand: Bounded, dimensions: int) -> Bounded:
    """A constant as an open grid."""
    if operand.value.ndim:
        return operand
    return Bounded(operand.value.reshape((1,) * dimensions), operand.error, operand.ambiguous)


def _factors(expression: Expression) -> tuple[Expression, ...]:
    """The operands of a product of products."""
    match expression:
        case Binary(BinaryOperator.MULTIPLY, left, right):
            return (*_factors(left), *_factors(right))
        case _:
            return (expression,)


def _fresh(frame: Frame, window: Window) -> BoolArray:
    """The elements of a window that an initializing statement sets to the neutral element first."""
    statement = initialized(frame.statement)
    here = replace(frame, statement=statement, positions=positions(statement))
    here = window.restricted(replace(here, box=bounding_box(here)))
    fresh = np.zeros(window.shape, np.bool_)
    for piece in pieces(here.box, frozenset(), _fits_step):
        mask = instances(replace(here, box=piece))
        if mask.any():
            place = placement(replace(here, box=piece), mask, window.shape, window.origin, window.whole)
            place.fold(np.logical_or, fresh, ALWAYS, ~ALWAYS)
    return fresh
