"""From typed expressions to isl: quasi-affine functions, conditions, iteration domains and access relations.

Sizes and scalars that are still symbolic become isl parameters; iterators are the dimensions of a tuple that
carries the statement's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import assert_never

import islpy as isl

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.extent import Choice, Extent
from tc.language.program.guards import GuardedRead
from tc.language.program.program import (
    Binary,
    Call,
    Cast,
    Expression,
    InRange,
    IteratorReference,
    Literal,
    Owned,
    Read,
    ScalarReference,
    Select,
    SizeReference,
    Statement,
    Unary,
)
from tc.language.program.specialization import Sizes


def isl_name(name: str) -> str:
    """The name of a tensor, iterator or size in isl, which refuses names that begin with a digit."""
    return f"'{name}" if name[0].isdigit() else name


def parameter_name(name: str) -> str:
    """The name of a size or scalar as a parameter of isl, where no iterator of ours or of isl's is called so."""
    return f"size_{name}"


@dataclass(frozen=True)
class Frame:
    """The space in which expressions become isl objects: parameters, and the iterators of one statement.

    ``sizes``: parameters that are known to be positive, each with its greatest value; they follow the ``parameters`` of
    which nothing is known.  ``within``: where functions are asked for; outside, they may be anything.
    """

    context: isl.Context
    statement: str
    iterators: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    sizes: Sizes = ()
    within: isl.Set | None = None
    _space: isl.Space = field(init=False, repr=False, compare=False)
    _local: isl.LocalSpace = field(init=False, repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all parameters, in isl."""
        return tuple(parameter_name(name) for name in (*self.parameters, *(name for name, _ in self.sizes)))

    def space(self) -> isl.Space:
        """The space of the statement's tuple, its dimensions named after the iterators."""
        return self._space

    def __post_init__(self) -> None:
        # Asked for again and again.
        object.__setattr__(self, "_space", self._named_space())
        object.__setattr__(self, "_local", isl.LocalSpace.from_space(self._space))

    def _named_space(self) -> isl.Space:
        names = self.names
        space = isl.Space.set_alloc(self.context, len(names), len(self.iterators))
        for position, name in enumerate(names):
            space = space.set_dim_name(isl.dim_type.param, position, name)
        for position, name in enumerate(self.iterators):
            space = space.set_dim_name(isl.dim_type.set, position, isl_name(name))
        return space.set_tuple_name(isl.dim_type.set, self.statement)

    def constant(self, value: int) -> isl.PwAff:
        """The function that has one value everywhere."""
        return isl.PwAff.from_aff(isl.Aff.val_on_domain(self._local, isl.Val.int_from_si(self.context, value)))

    def variable(self, name: str) -> isl.PwAff | None:
        """The iterator called ``name``, or the parameter that isl calls so; None if the frame has none."""
        for sort, names in ((isl.dim_type.set, self.iterators), (isl.dim_type.param, self.names)):
            if name in names:
                return isl.PwAff.from_aff(isl.Aff.var_on_domain(self._local, sort, names.index(name)))
        return None

    def require(self, name: str) -> isl.PwAff:
        """``variable``; KeyError if the frame has none."""
        found = self.variable(name)
        if found is None:
            raise KeyError(name)
        return found

    def possible(self) -> isl.Set:
        """All points, for all values that the sizes may have."""
        points = self.universe()
        for position, (_, most) in enumerate(self.sizes, len(self.parameters)):
            points = points.lower_bound_val(isl.dim_type.param, position, isl.Val.one(self.context))
            points = points.upper_bound_val(isl.dim_type.param, position, isl.Val.int_from_si(self.context, most))
        return points

    def universe(self) -> isl.Set:
        """All points of the space."""
        return isl.Set.universe(self.space())


def _is_constant(function: isl.PwAff) -> bool:
    return bool(function.is_cst())


def affine_function(expression: Expression, frame: Frame) -> isl.PwAff | None:
    """The expression as a piecewise quasi-affine function of the frame; None where it is not one.

    ``/`` and ``%`` truncate towards zero, as in the language, and need a constant divisor other than 0.
    Casts between integer types are taken as the identity: subscripts are proven to lie inside a tensor, hence
    inside INT64, and narrower casts are refused.
    """
    match expression:
        case Literal(value, type):
            # Some of uint64 are no indices.
            return None if type.is_floating or value > ScalarType.INT64.maximum else frame.constant(int(value))
        case IteratorReference(name):
            return frame.variable(name)
        case SizeReference(name) | ScalarReference(name, _):
            return frame.variable(parameter_name(name))
        case Unary(UnaryOperator.NEGATE, operand):
            function = affine_function(operand, frame)
            return None if function is None else function.neg()
        case Unary():
            return None
        case Cast(operand, type):
            return affine_function(operand, frame) if type is ScalarType.INT64 and operand.type.is_integer else None
        case Binary(operator, left, right):
            return _affine_binary(operator, left, right, frame)
        case Select(condition, then, otherwise):
            chosen = affine_condition(condition, frame)
            first, second = affine_function(then, frame), affine_function(otherwise, frame)
            if chosen is None or first is None or second is None:
                return None
            return first.intersect_domain(chosen).union_add(second.intersect_domain(chosen.complement()))
        case Call("min" | "max" as name, (left, right)):
            first, second = affine_function(left, frame), affine_function(right, frame)
            if first is None or second is None:
                return None
            return first.min(second) if name == "min" else first.max(second)
        case Call() | Read() | InRange():
            return None
        case _:
            assert_never(expression)


def _affine_binary(operator: BinaryOperator, left: Expression, right: Expression, frame: Frame) -> isl.PwAff | None:
    first, second = affine_function(left, frame), affine_function(right, frame)
    if first is None or second is None:
        return None
    match operator:
        case BinaryOperator.ADD:
            return first.add(second)
        case BinaryOperator.SUBTRACT:
            return first.sub(second)
        case BinaryOperator.MULTIPLY:
            return first.mul(second) if _is_constant(first) or _is_constant(second) else None
        case BinaryOperator.DIVIDE | BinaryOperator.REMAINDER:
            return _divide(operator, first, right, frame)
        case _:
            return None


def _divide(operator: BinaryOperator, dividend: isl.PwAff, divisor: Expression, frame: Frame) -> isl.PwAff | None:
    """Truncated division by a literal; isl's ``tdiv_q`` wants a positive divisor."""
    if not isinstance(divisor, Literal) or divisor.value == 0:
        return None
    value = int(divisor.value)
    magnitude = isl.Val.int_from_si(frame.context, abs(value))
    if _is_nonnegative(dividend, frame):  # one piece, where the truncated one has two
        if operator is BinaryOperator.REMAINDER:
            return dividend.mod_val(magnitude)
        quotient = dividend.scale_down_val(magnitude).floor()
    else:
        divided = isl.PwAff.from_aff(isl.Aff.val_on_domain(isl.LocalSpace.from_space(frame.space()), magnitude))
        if operator is BinaryOperator.REMAINDER:
            return dividend.tdiv_r(divided)
        quotient = dividend.tdiv_q(divided)
    return quotient if value > 0 else quotient.neg()


def _is_nonnegative(function: isl.PwAff, frame: Frame) -> bool:
    """Whether it is known to be so wherever it is asked for."""
    return frame.within is not None and bool(frame.within.is_subset(function.nonneg_set()))


def affine_condition(expression: Expression, frame: Frame) -> isl.Set | None:
    """The points where a BOOL expression is true; None where it is not affine."""
    match expression:
        case Literal(value):
            return frame.universe() if value else frame.universe().complement()
        case Unary(UnaryOperator.NOT, operand):
            inside = affine_condition(operand, frame)
            return None if inside is None else inside.complement()
        case Binary(BinaryOperator.AND | BinaryOperator.OR as operator, left, right):
            first, second = affine_condition(left, frame), affine_condition(right, frame)
            if first is None or second is None:
                return None
            return first.intersect(second) if operator is BinaryOperator.AND else first.union(second)
        case Binary(operator, left, right) if left.type.is_integer:
            return _comparison(operator, left, right, frame)
        case Cast(operand, ScalarType.BOOL) if operand.type.is_integer:
            function = affine_function(operand, frame)
            return None if function is None else function.ne_set(frame.constant(0))
        case _:
            return None


def _comparison(operator: BinaryOperator, left: Expression, right: Expression, frame: Frame) -> isl.Set | None:
    first, second = affine_function(left, frame), affine_function(right, frame)
    if first is None or second is None:
        return None
    match operator:
        case BinaryOperator.EQUAL:
            return first.eq_set(second)
        case BinaryOperator.NOT_EQUAL:
            return first.ne_set(second)
        case BinaryOperator.LESS:
            return first.lt_set(second)
        case BinaryOperator.LESS_EQUAL:
            return first.le_set(second)
        case BinaryOperator.GREATER:
            return first.gt_set(second)
        case BinaryOperator.GREATER_EQUAL:
            return first.ge_set(second)
        case _:
            return None


def frame_of(statement: Statement, context: isl.Context, parameters: Sequence[str] = (), sizes: Sizes = ()) -> Frame:
    """The frame of a statement."""
    names = tuple(iterator.name for iterator in statement.iterators)
    return Frame(context, statement.name, names, tuple(parameters), sizes)


def iteration_domain(statement: Statement, frame: Frame) -> isl.Set | None:
    """All instances of the statement; None if a bound or a condition is not affine."""
    domain = frame.possible()
    for iterator in statement.iterators:
        bounded = between(domain, iterator.name, iterator.begin, iterator.end, frame)
        if bounded is None:
            return None
        domain = bounded
    for condition in statement.conditions:
        inside = affine_condition(condition, frame)
        if inside is None:
            return None
        domain = domain.intersect(inside)
    return domain.coalesce()


def between(domain: isl.Set, name: str, begin: Expression, end: Expression, frame: Frame) -> isl.Set | None:
    """The points at which an iterator of the frame is from ``begin`` on and before ``end``.

    None where these are not affine.  Numbers, with which most ranges begin, need no functions.
    """
    position, variable = frame.iterators.index(name), frame.require(name)
    match begin:
        case Literal(value=int(value)):
            least = isl.Val.int_from_si(frame.context, value)
            domain = domain.lower_bound_val(isl.dim_type.set, position, least)
        case _:
            first = affine_function(begin, frame)
            if first is None:
                return None
            domain = domain.intersect(first.le_set(variable))
    match end:
        case Literal(value=int(value)):
            return domain.upper_bound_val(isl.dim_type.set, position, isl.Val.int_from_si(frame.context, value - 1))
        case _:
            last = affine_function(end, frame)
            return None if last is None else domain.intersect(variable.lt_set(last))


def guard_domain(read: GuardedRead, frame: Frame) -> isl.Set:
    """Where a read may be evaluated: guards that are not affine are ignored, which only enlarges the set."""
    domain = frame.universe()
    for guard, wanted in read.guards:
        for condition, value in _conjuncts(guard, wanted):
            inside = affine_condition(condition, frame)
            if inside is not None:
                domain = domain.intersect(inside if value else inside.complement())
    return domain


def _conjuncts(condition: Expression, value: bool) -> Iterator[tuple[Expression, bool]]:
    """Conditions that all have the given values where ``condition`` has ``value``."""
    match condition:
        case Unary(UnaryOperator.NOT, operand):
            yield from _conjuncts(operand, not value)
        case Binary(BinaryOperator.AND | BinaryOperator.OR as operator, left, right) if value is (
            operator is BinaryOperator.AND
        ):
            yield from _conjuncts(left, value)
            yield from _conjuncts(right, value)
        case _:
            yield condition, value


def extent_function(extent: Extent, frame: Frame) -> isl.PwAff:
    """An extent as a function of the frame's sizes."""
    total = frame.constant(extent.constant)
    for (name, _), factor in zip(frame.sizes, extent.factors, strict=True):
        total = total.add(frame.require(parameter_name(name)).mul(frame.constant(factor)))
    for term in extent.terms:
        choose = isl.PwAff.min if term.choice is Choice.LEAST else isl.PwAff.max
        chosen = reduce(choose, (extent_function(operand, frame) for operand in term.operands))
        total = total.add(chosen.mul(frame.constant(term.factor)))
    return total.scale_down_val(isl.Val.int_from_si(frame.context, extent.divisor)).floor()


def access_relation(
    tensor: str, subscripts: Sequence[Expression], extents: Sequence[int | Extent | None], frame: Frame
) -> isl.Map:
    """``{ statement[iterators] -> tensor[subscripts] }``.

    A subscript that is not affine (a gather) may touch the whole dimension: ``0 <= x < extent`` where the extent is
    known, anything otherwise.
    """
    relation = isl.Map.from_domain(frame.universe())
    for subscript, extent in zip(subscripts, extents, strict=True):
        function = affine_function(subscript, frame)
        if function is not None:
            relation = relation.flat_range_product(isl.Map.from_pw_aff(function))
        elif isinstance(extent, Extent):
            relation = relation.flat_range_product(_below(extent_function(extent, frame)))
        else:
            relation = relation.add_dims(isl.dim_type.out, 1)
            if extent is not None:
                last = relation.dim(isl.dim_type.out) - 1
                relation = relation.lower_bound_val(isl.dim_type.out, last, isl.Val.zero(frame.context))
                relation = relation.upper_bound_val(
                    isl.dim_type.out, last, isl.Val.int_from_si(frame.context, extent - 1)
                )
    return relation.set_tuple_name(isl.dim_type.out, isl_name(tensor))


def _below(extent: isl.PwAff) -> isl.Map:
    """Every point with all numbers from 0 to its extent."""
    inside = isl.Map.read_from_str(extent.get_ctx(), "{ [e] -> [x] : 0 <= x < e }")
    return isl.Map.from_pw_aff(extent).apply_range(inside)


def owned_elements(relation: isl.Map, owned: Owned | None, frame: Frame) -> isl.Map:
    """What instances of the frame write of the elements that data may choose: those that they own."""
    if owned is None:
        return relation
    width = relation.dim(isl.dim_type.out)
    for bound, order in ((owned.begin, ">="), (owned.end, "<")):
        function = affine_function(bound, frame)
        assert function is not None, "compilers make affine ones"
        beyond = isl.Map.read_from_str(frame.context, f"{{ [b] -> [x] : x {order} b }}")
        bounded = isl.Map.from_pw_aff(function).apply_range(beyond)
        bounded = bounded.insert_dims(isl.dim_type.out, 0, owned.dimension)
        bounded = bounded.add_dims(isl.dim_type.out, width - owned.dimension - 1)
        name = relation.get_tuple_name(isl.dim_type.out)
        relation = relation.intersect(bounded.set_tuple_name(isl.dim_type.out, name) if name else bounded)
    return relation


def access_function(tensor: str, subscripts: Sequence[Expression], frame: Frame) -> isl.Map | None:
    """``access_relation`` where it is one function of all points, in one piece; None where it may be anything else."""
    space = frame.space()
    values = isl.AffList.alloc(frame.context, len(subscripts))
    for subscript in subscripts:
        function = affine_function(subscript, frame)
        if function is None or not function.isa_aff():
            return None
        values = values.add(function.as_aff())
    space = space.from_domain().add_dims(isl.dim_type.out, len(subscripts))
    relation = isl.Map.from_multi_aff(isl.MultiAff.from_aff_list(space, values))
    return relation.set_tuple_name(isl.dim_type.out, isl_name(tensor))
