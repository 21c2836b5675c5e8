"""Proof of split reductions: reductions in two steps compute those of the program.

The instances that make partial results correspond to the program's, one for one, with the same values; every partial
result is initialized with the neutral element, and combined exactly once into the element of the program's instances.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence as Items

import islpy as isl

from tc.base.errors import VerificationError
from tc.base.types import computation_type
from tc.language.isl.affine import access_relation, affine_function, frame_of, iteration_domain
from tc.language.program.program import (
    Expression,
    IteratorReference,
    Literal,
    Program,
    Read,
    Role,
    Statement,
    in_terms_of,
    iterators_in,
    touches,
)
from tc.language.program.terms import float32_term
from tc.language.program.written_elements import initial_conditions, written_iterators
from tc.language.prove.written import initialization
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.splits import Split


def prove_split(program: Program, changed: Program, splits: Items[Split], context: isl.Context) -> None:
    """VerificationError where ``changed`` is not ``program`` with these reductions split."""
    found = find_wrong_split(program, changed, splits, context)
    if found is not None:
        raise VerificationError(f"the split of reductions is not proven correct: {found}")


def find_wrong_split(
    program: Program, changed: Program, splits: Items[Split], context: isl.Context
) -> Counterexample | None:
    """The first difference, or None.  It holds for all values of the sizes that are left."""
    by_name = {split.statement: split for split in splits}
    left = list(changed.statements)
    for statement in program.statements:
        if left and left[0] == statement:
            left.pop(0)
            continue
        split = by_name.get(statement.name)
        names = [own.name for own in left]
        if split is None or split.total not in names[1:]:
            return Counterexample(Violation.CHANGED, statement.name)
        total = left.pop(names.index(split.total))
        partial, *between = left[: names.index(split.total)]
        if any(touches(own, statement.target) for own in between):
            return Counterexample(Violation.CHANGED, f"{total.name} comes too late")
        left.pop(0)
        alone = all(touches(s, partial.target) == (s is partial or s is total) for s in changed.statements)
        kind = changed.tensor(partial.target)
        fresh = all(tensor.name != partial.target for tensor in program.tensors) and kind.role is Role.TEMPORARY
        wanted = computation_type(program.tensor(statement.target).type)
        if not (alone and fresh and kind.type is wanted):
            return Counterexample(Violation.CHANGED, f"{statement.name}: its partial results are not its own")
        combined = _combined(changed, statement, partial, total, context)
        if combined is None:
            return Counterexample(Violation.CHANGED, total.name)
        if not _is_partial(statement, partial, split, program.sizes, combined):
            return Counterexample(Violation.CHANGED, partial.name)
    kept = tuple(tensor for tensor in changed.tensors if any(tensor == own for own in program.tensors))
    if left or kept != program.tensors:
        return Counterexample(Violation.CHANGED, "other statements or tensors")
    return None


def _is_partial(
    statement: Statement, partial: Statement, split: Split, sizes: tuple[str, ...], combined: isl.Map
) -> bool:
    """Whether the instances that make what is combined are those of the statement, one for one, and do the same."""
    values: dict[str, Expression] = {i.name: IteratorReference(i.name) for i in statement.iterators}
    values |= split.values
    if split.values.keys() & iterators_in(statement.subscripts):
        return False
    context = combined.get_ctx()
    frame = frame_of(partial, context, sizes)
    functions = [f for value in values.values() if (f := affine_function(value, frame)) is not None]
    inside = iteration_domain(partial, frame)
    wanted = iteration_domain(statement, frame_of(statement, context, sizes))
    if inside is None or wanted is None or len(functions) < len(values):
        return False
    made = access_relation("parts", partial.subscripts, [None] * len(partial.subscripts), frame)
    needed = made.intersect_range(combined.range()).domain()
    stands_for = _vector(functions, inside.intersect(needed), statement.name)
    same = in_terms_of(statement.value, values)
    return bool(
        partial.reduction is statement.reduction
        and partial.initialize
        # What is added up of halves is rounded once, when all of it is there.
        and partial.value == (float32_term(same) if same.type.is_half else same)
        and stands_for.is_bijective()
        and stands_for.range().is_equal(wanted)
    )


def _combined(
    program: Program, statement: Statement, partial: Statement, total: Statement, context: isl.Context
) -> isl.Map | None:
    """``{ instance of total -> partial result }``; None unless each goes once where the statement's own results go.

    All of them have been begun.
    """
    names = tuple(e.name for e in partial.subscripts if isinstance(e, IteratorReference))
    # In a block, each step has partial results of its own, also where it writes the same elements as the one before.
    own = iterators_in(statement.subscripts) | {iterator.name for iterator in written_iterators(statement)}
    # Which of the subscripts is the number of the partial result.
    numbers = [position for position, name in enumerate(names) if name not in own]
    value = total.value
    if len(names) < len(partial.subscripts) or not isinstance(value, Read) or value.tensor != partial.target:
        return None
    if len(numbers) != 1 or len(value.subscripts) != len(names):
        return None
    kept = [position for position in range(len(names)) if position not in numbers]
    elements = functools.partial(_elements, shape=_shape(program, partial.target), sizes=program.sizes, context=context)
    begun = elements(initialization(partial), subscripts=partial.subscripts)
    combined = elements(total, subscripts=value.subscripts)
    if begun is None or combined is None:
        return None
    right = (
        total.reduction is statement.reduction
        and total.blocks == partial.blocks == statement.blocks
        and (total.target, total.subscripts) == (statement.target, statement.subscripts)
        and own <= {names[position] for position in kept}
        and all(value.subscripts[position] == partial.subscripts[position] for position in kept)
        and total.initialize == statement.initialize
        and written_iterators(total) == written_iterators(statement)
        and initial_conditions(total) == initial_conditions(statement)
        and combined.is_injective()
        and combined.range().is_subset(begun.range())
    )
    return combined if right else None


def _shape(program: Program, tensor: str) -> tuple[int, ...]:
    return tuple(int(e.value) for e in program.tensor(tensor).shape if isinstance(e, Literal))


def _elements(
    statement: Statement,
    *,
    subscripts: tuple[Expression, ...],
    shape: tuple[int, ...],
    sizes: tuple[str, ...],
    context: isl.Context,
) -> isl.Map | None:
    """``{ instance -> element of the partial results }``."""
    frame = frame_of(statement, context, sizes)
    domain = iteration_domain(statement, frame)
    if domain is None or not iterators_in(subscripts) <= {i.name for i in statement.iterators}:
        return None
    return access_relation("parts", subscripts, shape, frame).intersect_domain(domain)


def _vector(functions: Items[isl.PwAff], domain: isl.Set, name: str) -> isl.Map:
    """``{ instance -> name[values of the functions] }``."""
    values = isl.Map.from_domain(domain)
    for function in functions:
        values = values.flat_range_product(isl.Map.from_pw_aff(function))
    return values.set_tuple_name(isl.dim_type.out, name)
