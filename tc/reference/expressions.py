"""Evaluation of an expression at all points of a box at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial, reduce
from typing import assert_never

import numpy as np

from tc.base.counted import counted
from tc.base.errors import ArgumentError, line_and_column
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.program import (
    Binary,
    Call,
    Cast,
    DerivedOrigin,
    Expression,
    InRange,
    IteratorReference,
    Literal,
    Origin,
    Program,
    PythonOrigin,
    Read,
    Role,
    ScalarReference,
    Select,
    SizeReference,
    Statement,
    TextOrigin,
    Unary,
    children,
    walk,
)
from tc.reference import arithmetic, decisions, integers
from tc.reference.access import Box, Window, grid, inside, linear_forms, shifted, strided_view, whole_window
from tc.reference.bounded import (
    EXACT,
    Array,
    BoolArray,
    Bounded,
    any_ambiguous,
    collapse,
    constant,
    hull,
    numpy_type,
    settle,
    span,
    unsigned_zeros,
)
from tc.reference.functions import call, logistic_argument, over_logistic
from tc.reference.intervals import read_window

ALWAYS: BoolArray = np.ones((), dtype=np.bool_)
ALWAYS.flags.writeable = False


@frozen
class Frame:
    """What an expression of a statement may refer to, at the points of one box.

    ``parts``: of tensors that are not held whole, what there is of them.
    """

    program: Program
    statement: Statement
    positions: Mapping[str, int]
    box: Box
    tensors: Mapping[str, Bounded]
    scalars: Mapping[str, Bounded]
    check_indices: bool
    parts: Mapping[str, Sequence[tuple[Window, Bounded]]] = field(default_factory=dict)


def evaluate(expression: Expression, frame: Frame, mask: BoolArray) -> Bounded:
    """The expression where ``mask`` holds, before its consumer settles it; elsewhere the result means nothing."""
    match expression:
        case Literal(value, type):
            return constant(value, type)
        case IteratorReference(name):
            return Bounded(grid(frame.box, frame.positions[name]))
        case ScalarReference(name, _):
            return frame.scalars[name]
        case SizeReference(name):
            raise ValueError(f"size {name} is still symbolic: only specialized programs can be evaluated")
        case Read():
            return _read(expression, frame, mask)
        case Unary(operator, operand, type):
            return _unary(operator, settled(operand, frame, mask), type)
        case Binary():
            return _binary(expression, frame, mask)
        case Select(condition, then, otherwise):
            return _select(condition, then, otherwise, frame, mask)
        case Cast(operand, type):
            return decisions.convert(settled(operand, frame, mask), operand.type, type)
        case Call():
            return _call(expression, frame, mask)
        case InRange():
            return _in_range(expression, frame, mask)
        case _:
            assert_never(expression)


def settled(expression: Expression, frame: Frame, mask: BoolArray) -> Bounded:
    """The value as an operation that consumes it sees it."""
    return settle(evaluate(expression, frame, mask), expression.type)


def _unary(operator: UnaryOperator, operand: Bounded, type: ScalarType) -> Bounded:
    match operator:
        case UnaryOperator.NOT:
            return decisions.negation(operand)
        case UnaryOperator.NEGATE if type.is_floating:
            return arithmetic.negate(operand)
        case UnaryOperator.NEGATE:
            return integers.binary(BinaryOperator.SUBTRACT, constant(0, type), operand, type)
        case _:
            assert_never(operator)


def _select(condition: Expression, then: Expression, otherwise: Expression, frame: Frame, mask: BoolArray) -> Bounded:
    chosen = settled(condition, frame, mask)
    first = evaluate(then, frame, np.logical_and(mask, chosen.value))
    second = evaluate(otherwise, frame, np.logical_and(mask, np.logical_not(chosen.value)))
    return decisions.select(chosen, first, second)


def _binary(expression: Binary, frame: Frame, mask: BoolArray) -> Bounded:
    left = evaluate(expression.left, frame, mask)
    first = settle(left, expression.left.type)
    match expression.operator:
        case BinaryOperator.AND:
            return decisions.conjunction(first, settled(expression.right, frame, np.logical_and(mask, first.value)))
        case BinaryOperator.OR:
            taken = np.logical_and(mask, np.logical_not(first.value))
            return decisions.disjunction(first, settled(expression.right, frame, taken))
        case _:
            pass
    type = expression.left.type
    argument = logistic_argument(expression.right) if expression.operator is BinaryOperator.DIVIDE else None
    if argument is not None and type.is_floating:
        return over_logistic(first, settled(argument, frame, mask), type)
    right = evaluate(expression.right, frame, mask)
    second = settle(right, expression.right.type)
    match expression.operator:
        case BinaryOperator.ADD | BinaryOperator.SUBTRACT if type.is_floating:
            combine = arithmetic.add if expression.operator is BinaryOperator.ADD else arithmetic.subtract
            result = combine(first, second, type)
            # A product that overflows by itself need not do so inside a fused multiply-add.
            fused_left = left if is_product(expression.left) else first
            fused_right = right if is_product(expression.right) else second
            if fused_left is not first or fused_right is not second:
                result = hull(result, collapse(combine(fused_left, fused_right, type), type), ALWAYS)
            return result
        case BinaryOperator.MULTIPLY if type.is_floating:
            return arithmetic.multiply(first, second, type)
        case BinaryOperator.DIVIDE if type.is_floating:
            return arithmetic.divide(first, _signed(expression.right, second, frame), type)
        case BinaryOperator.REMAINDER if type.is_floating:
            return call("fmod", (first, second), type)
        case (
            BinaryOperator.ADD
            | BinaryOperator.SUBTRACT
            | BinaryOperator.MULTIPLY
            | BinaryOperator.DIVIDE
            | BinaryOperator.REMAINDER
        ):
            return integers.binary(expression.operator, first, second, type)
        case _ if isinstance(expression.left, Read) and expression.left == expression.right:
            # An element equals itself, whatever its error, unless it may be NaN.
            known = Bounded(first.value, np.where(np.isinf(first.error), np.inf, 0.0), first.ambiguous)
            return decisions.decide(expression.operator, known, known)
        case _:
            return decisions.decide(expression.operator, first, second)


def is_product(expression: Expression) -> bool:
    """Whether an addition may be contracted with the expression."""
    return isinstance(expression, Binary) and expression.operator is BinaryOperator.MULTIPLY


# Functions whose value jumps where an operand passes from -0 to 0, and the position of that operand.
_JUMPS_AT_ZERO = {"atan2": 0, "copysign": 1, "fdivide": 1, "pow": 0, "rcbrt": 0, "rsqrt": 0, "tgamma": 0}


def _call(expression: Call, frame: Frame, mask: BoolArray) -> Bounded:
    name, type = expression.function, expression.type
    # A map of a partial costs no Python frame: nests may be deep.
    arguments = list(map(partial(settled, frame=frame, mask=mask), expression.arguments))
    if name in _JUMPS_AT_ZERO:
        position = _JUMPS_AT_ZERO[name]
        arguments[position] = _signed(expression.arguments[position], arguments[position], frame)
    if type.is_floating:
        return call(name, tuple(arguments), type)
    match name, arguments:
        case "min", [left, right]:
            return _integer_extremum(np.minimum, left, right)
        case "max", [left, right]:
            return _integer_extremum(np.maximum, left, right)
        case "abs", [operand]:
            value = np.abs(operand.value)  # the least value of a signed type wraps to itself
            return Bounded(value, integers.within_type(value, operand.error, type), operand.ambiguous)
        case _:
            raise ValueError(f"{name} has no integer result")


def _signed(expression: Expression, operand: Bounded, frame: Frame) -> Bounded:
    """The operand of an operation that tells -0 from 0: only given zeros, or converted ones, have a certain sign."""
    match expression:
        case Literal() | ScalarReference():
            return operand
        case Cast(given):
            return _signed(given, operand, frame) if given.type.is_floating else operand
        case Read(name, _) if frame.program.tensor(name).role is Role.INPUT:
            return operand
        case _:
            return unsigned_zeros(operand)


def _integer_extremum(choose: np.ufunc, left: Bounded, right: Bounded) -> Bounded:
    value = np.asarray(choose(left.value, right.value))
    error = EXACT if left.is_exact and right.is_exact else np.maximum(left.error, right.error)
    return Bounded(value, error, any_ambiguous(left, right))


def _in_range(inside: InRange, frame: Frame, mask: BoolArray) -> Bounded:
    index, begin, end, extent = (settled(part, frame, mask) for part in children(inside))
    bounds: list[Bounded] = []
    for bound in (begin, end):
        outside = np.logical_or(bound.value < 0, bound.value > extent.value)
        if frame.check_indices:
            _require_bounds(inside, bound.value, outside & ~(bound.error > 0) & mask, frame)
        bounds.append(Bounded(np.where(outside, 0, bound.value), bound.error, bound.ambiguous))
    first = decisions.decide(BinaryOperator.LESS_EQUAL, bounds[0], index)
    return decisions.conjunction(first, decisions.decide(BinaryOperator.LESS, index, bounds[1]))


# --- reads ---------------------------------------------------------------------------------------------------


def _read(read: Read, frame: Frame, mask: BoolArray) -> Bounded:
    window, tensor = _read_from(read, frame)
    shape = tensor.value.shape
    forms = linear_forms(read.subscripts, frame.positions)
    if forms is not None and inside(forms := shifted(forms, window.origin), shape, frame.box):
        return Bounded(
            _held(strided_view(tensor.value, forms, frame.box), read.type),
            strided_view(tensor.error, forms, frame.box) if tensor.error.ndim else tensor.error,
            strided_view(tensor.ambiguous, forms, frame.box) if tensor.ambiguous.ndim else tensor.ambiguous,
        )
    indices = tuple(map(partial(evaluate, frame=frame, mask=mask), read.subscripts))
    outside = np.zeros((), np.bool_)
    uncertain = np.zeros((), np.bool_)
    for dimension, (index, extent) in enumerate(zip(indices, window.whole, strict=True)):
        beyond = np.logical_or(index.value < 0, index.value >= extent)
        wavering = index.error > 0
        if frame.check_indices or not _is_gather(read.subscripts[dimension]):
            require_inside(read, dimension, extent, index.value, beyond & ~wavering & mask, frame)
        outside, uncertain = outside | beyond, uncertain | wavering
    if tensor.value.size == 0:
        return Bounded(np.zeros(outside.shape, numpy_type(read.type)), np.asarray(unknown(read.type)))
    clamped = tuple(
        np.clip(index.value - interval.start, 0, len(interval) - 1)
        for index, interval in zip(indices, window.elements, strict=True)
    )
    return _gathered(tensor, clamped, np.asarray(outside | uncertain), any_ambiguous(*indices), read.type)


def _read_from(read: Read, frame: Frame) -> tuple[Window, Bounded]:
    """The tensor, or the part of it that has all that is read over the frame's box."""
    parts = frame.parts.get(read.tensor)
    if parts is None:
        tensor = frame.tensors[read.tensor]
        return whole_window(tensor.value.shape), tensor
    wanted = read_window(read, frame.positions, frame.box, parts[0][0].whole)
    return next(part for part in parts if part[0].holds(wanted))


def _gathered(
    tensor: Bounded, indices: tuple[Array, ...], open_: BoolArray, ambiguous: BoolArray, type: ScalarType
) -> Bounded:
    """The elements at ``indices``; nothing is known where another index could have been meant."""
    value = _held(np.asarray(tensor.value[indices]), type)
    error = tensor.error[indices] if tensor.error.ndim else tensor.error
    if tensor.ambiguous.ndim:
        ambiguous = np.logical_or(ambiguous, tensor.ambiguous[indices])
    if open_.any():
        return Bounded(value, np.where(open_, unknown(type), error), np.logical_or(ambiguous, open_))
    return Bounded(value, error, ambiguous)


def _held(value: Array, type: ScalarType) -> Array:
    """As the oracle computes with it: arguments keep their own types until they are read."""
    return value.astype(numpy_type(type), copy=False)


def unknown(type: ScalarType) -> float:
    """The error of a value of which nothing is known."""
    return float("inf") if type.is_floating else span(type)


def _is_gather(subscript: Expression) -> bool:
    return any(isinstance(part, Read) for part in walk(subscript))


def _require_bounds(inside: InRange, bound: Array, wrong: BoolArray, frame: Frame) -> None:
    """ArgumentError that shows the first instance whose range leaves that of its iterator."""
    if wrong.any():
        point, at = _instance(wrong, frame)
        value = int(np.broadcast_to(bound, tuple(len(interval) for interval in frame.box))[point])
        names = [part.tensor for side in (inside.begin, inside.end) for part in walk(side) if isinstance(part, Read)]
        raise ArgumentError(
            f"{frame.program.name}: {_place(frame)}{names[0]} gives {value} as a bound of a range{at}; bounds must be "
            f"at least 0 and at most {int(settled(inside.extent, frame, ALWAYS).value)}"
        )


def _instance(wrong: BoolArray, frame: Frame) -> tuple[tuple[int, ...], str]:
    """The first point of the frame's box that is wrong, and how a message shows it."""
    shape = tuple(len(interval) for interval in frame.box)
    point = tuple(int(p) for p in np.argwhere(np.broadcast_to(wrong, shape))[0])
    at = ", ".join(f"{name} = {frame.box[p].start + point[p]}" for name, p in frame.positions.items())
    return point, f", at {at}" if at else ""


def require_inside(read: Read, dimension: int, extent: int, index: Array, wrong: BoolArray, frame: Frame) -> None:
    """ArgumentError that shows the first instance whose index leaves the tensor."""
    if not wrong.any():
        return
    point, at = _instance(wrong, frame)
    value = int(np.broadcast_to(index, tuple(len(interval) for interval in frame.box))[point])
    names = [part.tensor for part in walk(read.subscripts[dimension]) if isinstance(part, Read)]
    what = f"index tensor {names[0]}" if names else "the subscript"
    raise ArgumentError(
        f"{frame.program.name}: {_place(frame)}{what} gives {value} for dimension {dimension} of {read.tensor}, "
        f"which has {counted(extent, 'element')}{at}; indices must be at least 0 and less "
        f"than {extent}"
    )


def _place(frame: Frame) -> str:
    """Line and column of the statement, where its text is known."""

    def text(origin: Origin) -> str:
        match origin:
            case TextOrigin(found):
                source = frame.program.source
                return "" if source is None else "{}:{}: ".format(*line_and_column(source, found.start))
            case PythonOrigin(file, line):
                return f"{file}:{line}: "
            case DerivedOrigin(_, source):
                return text(source)
            case _:
                assert_never(origin)

    return text(frame.statement.origin)


def all_of(conditions: list[BoolArray]) -> BoolArray:
    """Where all conditions hold; everywhere if there are none."""
    return reduce(np.logical_and, conditions, ALWAYS)
