"""Whether a statement reaches all elements of a tensor, so that it may begin them with 0 itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl

from tc.language.isl.affine import Frame, access_relation, affine_function, frame_of, isl_name, iteration_domain
from tc.language.isl.expressions import conditions_of
from tc.language.isl.parameters import integer_parameters, possible_parameters
from tc.language.isl.session import is_out_of_operations, isl_context
from tc.language.program.program import (
    INDEX_TYPE,
    Expression,
    IteratorReference,
    Literal,
    Program,
    Select,
    Statement,
    Tensor,
    iterators_in,
    walk,
)
from tc.language.program.written_elements import scatters
from tc.language.prove.written import initialization


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
                frame = frame_of(begun, context, names)
                domain = iteration_domain(begun, frame)
                if domain is None or any(affine_function(s, frame) is None for s in begun.subscripts):
                    return False
                extents: Sequence[None] = [None] * len(begun.subscripts)
                image = access_relation(tensor.name, begun.subscripts, extents, frame).intersect_domain(domain).range()
                reached = reached.union(image)
            return bool(missing.is_subset(reached))
    except isl.Error as error:
        if not is_out_of_operations(error):
            raise
        return False


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
    statement: Statement, tensor: Tensor, names: Sequence[str], program: Program
) -> tuple[Expression, ...] | None:
    """Conditions on the subscripts, which are called so, of the elements that a step of a statement does not write.

    None where isl cannot tell, or the elements depend on the step.
    """
    inner = replace(statement, iterators=statement.iterators[len(statement.blocks) :], blocks=())
    try:
        with isl_context() as context:
            sizes = integer_parameters(program)
            frame, elements = (
                frame_of(inner, context, sizes),
                Frame(context, isl_name(tensor.name), tuple(names), sizes),
            )
            domain, box = iteration_domain(inner, frame), _elements(tensor, elements)
            if domain is None or box is None or any(affine_function(s, frame) is None for s in inner.subscripts):
                return None
            extents: Sequence[None] = [None] * len(inner.subscripts)
            image = access_relation(tensor.name, inner.subscripts, extents, frame).intersect_domain(domain).range()
            rest = box.subtract(image).gist(box)
            found = conditions_of(rest, tuple(names), sizes)
            # What no iterator is in would be asked of the call.
            return found if all(iterators_in((condition,)) for condition in found) else None
    except isl.Error as error:
        if not is_out_of_operations(error):
            raise
        return None


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
