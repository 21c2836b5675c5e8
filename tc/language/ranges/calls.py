"""Inlining: the statements of a called definition, with the caller's tensors, sizes and scalars put in."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.grammar.syntax_builder import MAXIMUM_DEPTH
from tc.language.algebra.fold import fold_keeping_reads, substitute
from tc.language.algebra.polynomial import Atoms, Polynomial
from tc.language.algebra.rewriting import fresh_name, map_statement, rename
from tc.language.draft.draft import CallDraft
from tc.language.draft.requirements import Requirements
from tc.language.program.program import (
    Binary,
    DerivedOrigin,
    Expression,
    Literal,
    Role,
    ScalarReference,
    SizeReference,
    Statement,
    children,
)
from tc.language.ranges.range_errors import RangeErrors
from tc.language.text.expression_text import expression_text

# A scalar argument that doubles from call to call would otherwise fill the memory.
_MAXIMUM_OPERATIONS = 100_000


@frozen
class BoundCall:
    """A call whose sizes are known.  ``values``: what the callee's sizes and scalars are in the caller.

    ``extents``: of every tensor that the callee writes, under its name in the caller.
    """

    call: CallDraft
    values: Mapping[Expression, Expression]
    extents: Mapping[str, tuple[Polynomial, ...]]


def bind_call(
    call: CallDraft,
    shapes: Mapping[str, tuple[Polynomial, ...]],
    atoms: Atoms,
    requirements: Requirements,
    errors: RangeErrors,
) -> BoundCall | None:
    """Binds the callee's sizes to the extents of the arguments (``shapes``, by the callee's names).

    The first argument that has a size gives it; the others must agree: a difference that is certain is an error,
    any other becomes a precondition, as are the callee's own.  None for a call that makes expressions too large.
    """
    callee = call.callee
    values: dict[Expression, Expression] = {
        ScalarReference(s.name, s.type): call.scalars[s.name] for s in callee.scalars
    }
    for name in callee.arguments:
        for dimension, extent in enumerate(shapes.get(name, ())):
            declared = callee.tensor(name).shape[dimension]
            if isinstance(declared, SizeReference) and declared not in values:
                values[declared] = atoms.expression(extent)
    if _grows_too_much(call, values):
        errors.impossible_call(
            call,
            f"the call of `{callee.name}` makes an expression of more than {_MAXIMUM_OPERATIONS} operations or "
            f"{MAXIMUM_DEPTH} levels",
        )
        return None

    origin = DerivedOrigin(f"call of {callee.name}", call.origin)

    def in_caller(expression: Expression) -> Expression:
        return substitute(rename(expression, call.tensors, {}), values)

    for tensor in callee.tensors:
        for dimension, extent in enumerate(shapes.get(tensor.name, ())):
            expected = atoms.polynomial(in_caller(tensor.shape[dimension]))
            difference = (expected - extent).constant
            needed = _Equality(f"{call.tensors[tensor.name]}.{dimension}", extent, expected)
            if difference is None:
                requirements.add(needed.condition(atoms), needed.message(callee.name, atoms), origin)
            elif difference != 0:
                errors.impossible_call(call, needed.message(callee.name, atoms))
    for precondition in callee.preconditions:
        condition = in_caller(precondition.condition)
        if condition == Literal(False, ScalarType.BOOL):
            errors.impossible_call(call, precondition.message)
        elif not isinstance(condition, Literal):
            requirements.add(condition, f"`{callee.name}`: {precondition.message}", origin)
    extents = {
        call.tensors[tensor.name]: tuple(atoms.polynomial(in_caller(e)) for e in tensor.shape)
        for tensor in callee.tensors
        if tensor.role is not Role.INPUT
    }
    return BoundCall(call, values, extents)


def _grows_too_much(call: CallDraft, values: Mapping[Expression, Expression]) -> bool:
    """Whether sizes and scalars that stand for expressions make one of the callee's too large or too deep."""
    known = {leaf: _measure(value, {}) for leaf, value in values.items()}
    for statement in call.callee.statements:
        bounds = [e for iterator in statement.iterators for e in (iterator.begin, iterator.end)]
        for expression in (*bounds, *statement.conditions, *statement.subscripts, statement.value):
            operations, depth = _measure(expression, known)
            if operations > _MAXIMUM_OPERATIONS or depth > MAXIMUM_DEPTH:
                return True
    return False


def _measure(expression: Expression, known: Mapping[Expression, tuple[int, int]]) -> tuple[int, int]:
    """Number and depth of the operations of an expression whose leaves may stand for ``known`` ones."""
    if isinstance(expression, SizeReference | ScalarReference) and expression in known:
        return known[expression]
    parts = [_measure(child, known) for child in children(expression)]
    return 1 + sum(part[0] for part in parts), 1 + max((part[1] for part in parts), default=0)


@frozen
class _Equality:
    """What a call needs of an extent of the caller, which has it at a ``place`` such as ``A.0``."""

    place: str
    extent: Polynomial
    expected: Polynomial

    def condition(self, atoms: Atoms) -> Expression:
        left, right = atoms.expression(self.extent), atoms.expression(self.expected)
        return Binary(BinaryOperator.EQUAL, left, right, ScalarType.BOOL)

    def message(self, callee: str, atoms: Atoms) -> str:
        is_now, needed = (expression_text(atoms.expression(one)) for one in (self.extent, self.expected))
        known = "" if is_now == self.place else f", it is {is_now}"
        return f"`{callee}` needs `{self.place}` to be {needed}{known}"


def inlined_statements(bound: BoundCall, taken: Collection[str]) -> Iterator[Statement]:
    """The callee's statements in the caller's terms; iterators whose names are ``taken`` there get others."""
    call = bound.call
    origin = DerivedOrigin(f"call of {call.callee.name}", call.origin)
    every = {iterator.name for statement in call.callee.statements for iterator in statement.iterators}
    for statement in call.callee.statements:
        used = {iterator.name for iterator in statement.iterators}
        # Iterators of a block have one name in all its statements.
        iterators = {i.name: fresh_name(i.name, {*taken, *every}) for i in statement.sequence if i.name in taken}
        used |= set(iterators.values())
        for name in (i.name for i in statement.iterators if i.name in taken and i.name not in iterators):
            iterators[name] = fresh_name(name, {*taken, *used})
            used.add(iterators[name])

        def change(expression: Expression, iterators: Mapping[str, str] = iterators) -> Expression:
            return substitute(rename(expression, call.tensors, iterators), bound.values, fold_keeping_reads)

        renamed = tuple(replace(i, name=iterators.get(i.name, i.name)) for i in statement.iterators)
        target = call.tensors[statement.target]
        yield map_statement(replace(statement, iterators=renamed, target=target, origin=origin), change)
