"""The oracle: what a specialized program means, with a bound on what any correct kernel may compute instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tc.errors import ArgumentError
from tc.grammar.syntax import BinaryOperator
from tc.language.program import Binary, Cast, Expression, Reduction, Role, Tensor, float32_term, iterators_in
from tc.language.specialization import Layout, Specialization
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
from tc.reference.placement import placement
from tc.reference.windows import Window, windows
from tc.types import ScalarType

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
) -> dict[str, Result]:
    """The results of a call, by name of the output or in-out tensor, in the order in which callers get them.

    ``arrays``: the input and in-out tensors, in their declared types and shapes.  ``scalars``: the scalar arguments.
    ``check_indices``: an index that leaves its tensor is an ArgumentError; otherwise anything may be read there.
    ``temporaries``: give those too, behind the results.
    """
    program = specialization.program
    with np.errstate(all="ignore"):
        tensors = {t.name: _initial(t, specialization.layouts[t.name], arrays, program.name) for t in program.tensors}
        values = {s.name: constant(_scalar(s.name, scalars or {}, program.name), s.type) for s in program.scalars}
        for statement in program.statements:
            frame = Frame(program, statement, positions(statement), (), tensors, values, check_indices)
            tensors[statement.target] = _run(frame, specialization.layouts[statement.target].type)
        further = [t.name for t in program.tensors if temporaries and t.role is Role.TEMPORARY]
        return {name: _result(tensors[name], program.tensor(name).type) for name in (*program.results, *further)}


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
    return Bounded(array.astype(numpy_type(layout.type)))


def _scalar(name: str, scalars: Mapping[str, bool | int | float], program: str) -> bool | int | float:
    if name not in scalars:
        raise ArgumentError(f"{program}: scalar argument {name} is missing; pass its value")
    return scalars[name]


def _result(tensor: Bounded, type: ScalarType) -> Result:
    whole = _Whole.of(tensor)
    np.logical_or(whole.ambiguous, np.isinf(whole.error), out=whole.ambiguous)
    return Result(type, whole.value, whole.error, whole.ambiguous)


# --- statements ----------------------------------------------------------------------------------------------


def _run(frame: Frame, type: ScalarType) -> Bounded:
    """The target after the statement."""
    box = bounding_box(frame)
    frame = replace(frame, box=box)
    before = frame.tensors[frame.statement.target]
    reduction = frame.statement.reduction
    return _assign(frame, before, type) if reduction is None else _reduce(frame, reduction, before, type)


@dataclass(frozen=True, slots=True)
class _Whole:
    """Arrays of a tensor's shape that are written to: they belong to nobody else."""

    value: Array
    error: FloatArray
    ambiguous: BoolArray

    @staticmethod
    def of(tensor: Bounded) -> _Whole:
        shape = tensor.value.shape
        return _Whole(
            np.array(tensor.value),
            np.array(np.broadcast_to(tensor.error, shape)),
            np.array(np.broadcast_to(tensor.ambiguous, shape)),
        )

    def compact(self) -> Bounded:
        """The same without arrays of zeros, so that what is computed from exact values stays cheap."""
        return Bounded(
            self.value,
            self.error if self.error.any() else EXACT,
            self.ambiguous if self.ambiguous.any() else CERTAIN,
        )


def _assign(frame: Frame, before: Bounded, type: ScalarType) -> Bounded:
    shape = before.value.shape
    after = _Whole.of(before)
    for piece in pieces(frame.box, frozenset(), _fits_step):
        here = replace(frame, box=piece)
        mask = instances(here)
        if not mask.any():
            continue
        terms = collapse(evaluate_expression(frame.statement.value, here, mask), type)
        place = placement(here, mask, shape)
        place.assign(after.value, terms.value)
        place.assign(after.error, terms.error)
        place.assign(after.ambiguous, terms.ambiguous)
    return after.compact()


def _fits_step(box: Box) -> bool:
    return volume(box) <= _STEP


def _reduce(frame: Frame, reduction: Reduction, before: Bounded, type: ScalarType) -> Bounded:
    statement, summed = frame.statement, type
    if type.is_half and isinstance(statement.value, Cast):
        summed = ScalarType.FLOAT32
        frame = replace(frame, statement=replace(statement, value=float32_term(statement.value)))
    after = _Whole.of(before)
    for window in windows(frame, before.value.shape):
        found, changed = _reduce_window(window.restricted(frame), reduction, window, before, summed)
        if summed is not type:
            found = decisions.convert(settle(found, summed), summed, type)
        found, part = collapse(found, type), window.slices
        np.copyto(after.value[part], found.value, where=changed)
        np.copyto(after.error[part], found.error, where=changed)
        np.copyto(after.ambiguous[part], found.ambiguous, where=changed)
    return after.compact()


def _reduce_window(
    frame: Frame, reduction: Reduction, window: Window, before: Bounded, type: ScalarType
) -> tuple[Bounded, BoolArray]:
    """The elements of one window of the target, whose instances are those in the frame's box, and which of them change.

    ``type``: in which terms are combined.
    """
    statement = frame.statement
    total = accumulator(reduction, window.shape, type, contracted=is_product(statement.value))
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
            place = placement(here, mask, window.shape, window.origin)
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
        place = placement(here, ALWAYS, window.shape, window.origin)
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
            place = placement(replace(here, box=piece), mask, window.shape, window.origin)
            place.fold(np.logical_or, fresh, ALWAYS, ~ALWAYS)
    return fresh
