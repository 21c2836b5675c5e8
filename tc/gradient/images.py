"""Whether a statement reaches all elements of a tensor, so that it may begin them with 0 itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import map_statement
from tc.language.isl.affine import Frame, access_relation, affine_function, frame_of, isl_name, iteration_domain
from tc.language.isl.expressions import conditions_of
from tc.language.isl.parameters import integer_parameters, possible_parameters
from tc.language.isl.session import is_out_of_operations, isl_context
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Select,
    SizeReference,
    Statement,
    Tensor,
    iterators_in,
    rebuild,
    walk,
)
from tc.language.program.written_elements import scatters
from tc.language.prove.written import initialization

# Sizes from here on are not small.
_USUAL: Final = 8
# The conditions of no elements.
NOTHING: Final[tuple[Expression, ...]] = (Literal(value=False, type=ScalarType.BOOL),)


def reaches_all(statement: Statement, tensor: Tensor, program: Program) -> bool:
    """Whether a sum gives every element of its target a value if it initializes, for all sizes of the program.

    False where isl cannot tell, and where a condition on scalars may make a number of what data choose.
    """
    return is_everything(statement, tensor) or reach_all((statement,), tensor, program)


def reach_all(statements: Sequence[Statement], tensor: Tensor, program: Program) -> bool:
    """As ``reaches_all``, of several statements together."""
    chosen = (part for s in statements for own in s.subscripts if scatters(own) for part in walk(own))
    if any(isinstance(part, Select) for part in chosen):
        return False
    try:
        with isl_context() as context:
            names = integer_parameters(program)
            possible = possible_parameters(program, context, names, 0)
            missing = _elements(tensor, Frame(context, isl_name(tensor.name), _dimensions(tensor), names))
            if missing is None:
                return False
            missing = missing.intersect_params(possible)
            reached = isl.Set.empty(missing.get_space())
            for statement in statements:
                begun = initialization(replace(statement, initialize=True), tensor.shape)
                image = _written_by(begun, names, context)
                if image is None:
                    return False
                reached = reached.union(image)
            return bool(missing.is_subset(reached))
    except isl.Error as error:
        if not is_out_of_operations(error):
            raise
        return False


def _written_by(statement: Statement, parameters: tuple[str, ...], context: isl.Context) -> isl.Set | None:
    """The elements that a statement writes; None where these are not affine."""
    frame = frame_of(statement, context, parameters)
    domain = iteration_domain(statement, frame)
    if domain is None or any(affine_function(s, frame) is None for s in statement.subscripts):
        return None
    extents: Sequence[None] = [None] * len(statement.subscripts)
    return access_relation(statement.target, statement.subscripts, extents, frame).intersect_domain(domain).range()


def _dimensions(tensor: Tensor) -> tuple[str, ...]:
    return tuple(f"d{number}" for number in range(len(tensor.shape)))


def _elements(tensor: Tensor, frame: Frame) -> isl.Set | None:
    """All elements of a tensor; None where an extent is not affine."""
    found = frame.universe()
    for extent, name in zip(tensor.shape, frame.iterators, strict=True):
        end = affine_function(extent, frame)
        if end is None:
            return None
        index = frame.require(name)
        found = found.intersect(index.ge_set(frame.constant(0))).intersect(index.lt_set(end))
    return found


def missed(
    statements: Sequence[Statement],
    tensor: Tensor,
    names: Sequence[str],
    program: Program,
    steps: Sequence[IterationVariable] = (),
) -> tuple[Expression, ...] | None:
    """Conditions on the subscripts, which are called so, of the elements that no statement writes; or ``NOTHING``.

    ``steps``: the first iterators of all statements, of each value of which the elements are asked for.  None where isl
    cannot tell.
    """
    fixed = tuple(iterator.name for iterator in steps)
    try:
        with isl_context() as context:
            sizes = (*integer_parameters(program), *fixed)
            found = _rest(statements, tensor, names, sizes, steps, context)
            if found is None:
                return None
            rest, box = found
            if rest.is_empty():
                return NOTHING
            conditions = conditions_of(rest.gist(box).coalesce(), tuple(names), sizes)
            own = tuple(_with_iterators(condition, fixed) for condition in conditions)
            # What no iterator is in would be asked of the call.
            return own if all(iterators_in((condition,)) for condition in own) else None
    except isl.Error as error:
        if not is_out_of_operations(error):
            raise
        return None


def always_misses(statements: Sequence[Statement], tensor: Tensor, program: Program) -> bool:
    """Whether no statement writes some element of a tensor, for all sizes that are not small."""
    try:
        with isl_context() as context:
            sizes = integer_parameters(program)
            found = _rest(statements, tensor, _dimensions(tensor), sizes, (), context)
            usual = possible_parameters(program, context, sizes, _USUAL)
            return found is not None and not usual.is_empty() and bool(usual.is_subset(found[0].params()))
    except isl.Error as error:
        if not is_out_of_operations(error):
            raise
        return False


def _rest(
    statements: Sequence[Statement],
    tensor: Tensor,
    names: Sequence[str],
    sizes: tuple[str, ...],
    steps: Sequence[IterationVariable],
    context: isl.Context,
) -> tuple[isl.Set, isl.Set] | None:
    """The elements that no statement writes, and all of them; None where that is not affine."""
    fixed = tuple(iterator.name for iterator in steps)
    box = _elements(tensor, Frame(context, isl_name(tensor.name), tuple(names), sizes))
    ranges = Statement("", tuple(steps), (), "", (), None, False, Literal(0, INDEX_TYPE), (), tensor.origin)
    within = iteration_domain(_at(ranges, fixed), Frame(context, "", (), sizes))
    if box is None or within is None:
        return None
    box = box.intersect_params(within.params())
    rest = box
    for statement in statements:
        image = _written_by(_at(statement, fixed), sizes, context)
        if image is None:
            return None
        rest = rest.subtract(image)
    return rest, box


def _at(statement: Statement, fixed: Sequence[str]) -> Statement:
    """The statement for one value of each of its first iterators, which are sizes then."""

    def changed(expression: Expression) -> Expression:
        if isinstance(expression, IteratorReference) and expression.name in fixed:
            return SizeReference(expression.name)
        return rebuild(expression, changed)

    found = map_statement(statement, changed)
    # Their own ranges are conditions.
    ranges = [
        Binary(operator, left, right, ScalarType.BOOL)
        for iterator in found.iterators[: len(fixed)]
        for operator, left, right in (
            (BinaryOperator.LESS_EQUAL, iterator.begin, SizeReference(iterator.name)),
            (BinaryOperator.LESS, SizeReference(iterator.name), iterator.end),
        )
    ]
    return replace(found, iterators=found.iterators[len(fixed) :], conditions=(*found.conditions, *ranges), blocks=())


def _with_iterators(expression: Expression, names: Sequence[str]) -> Expression:
    if isinstance(expression, SizeReference) and expression.name in names:
        return IteratorReference(expression.name)
    return rebuild(expression, lambda child: _with_iterators(child, names))


def is_one_to_one(statement: Statement) -> bool:
    """Whether surely no two instances write one element: each iterator is a subscript by itself."""
    alone = {s.name for s in statement.subscripts if isinstance(s, IteratorReference)}
    return {iterator.name for iterator in statement.iterators} <= alone


def is_everything(statement: Statement, tensor: Tensor) -> bool:
    """Whether its subscripts are iterators over whole dimensions, one for each, as they are written."""
    ranges = {iterator.name: iterator for iterator in statement.iterators}
    names = [own.name for own in statement.subscripts if isinstance(own, IteratorReference)]
    return (
        not statement.conditions
        and len(set(names)) == len(statement.subscripts)
        and all(
            (ranges[name].begin, ranges[name].end) == (Literal(0, INDEX_TYPE), extent)
            for name, extent in zip(names, tensor.shape, strict=True)
        )
    )
