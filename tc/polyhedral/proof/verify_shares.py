"""Proof of shared scatters: owners divide the elements among them, parts the terms.

With owners, the statement is the program's but for a loop over them; every element that data may choose has one owner.
In parts, the instances correspond to the program's, one for one; each partial result is begun with the neutral element,
and comes once to its element.  Atomic updates are those of the program, or of parts, which may come in any order: the
operator gives the same bits then, and no term needs an element of the target.  That nothing else touches an element
meanwhile is for ``tc.polyhedral.proof.verify``.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.base.errors import VerificationError
from tc.base.types import Kind, computation_type
from tc.language.isl.affine import Frame, affine_function, frame_of, iteration_domain, owned_elements
from tc.language.program.program import (
    Expression,
    IteratorReference,
    Program,
    Read,
    Reduction,
    Role,
    Statement,
    in_terms_of,
    iterators_in,
    touches,
    walk,
)
from tc.language.program.specialization import Sizes, Specialization
from tc.language.program.terms import float32_term
from tc.language.program.written_elements import over_elements, scatters, written_iterators
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.splits import Shared


def prove_shares(
    specialization: Specialization,
    changed: Specialization,
    shares: Items[Shared],
    context: isl.Context,
    *,
    deterministic: bool = True,
) -> None:
    """VerificationError where ``changed`` is not the program with these scatters shared.

    ``deterministic``: atomic updates have to give the same bits in any order.
    """
    found = find_wrong_share(specialization, changed, shares, context, deterministic=deterministic)
    if found is not None:
        raise VerificationError(f"the sharing of scatters is not proven correct: {found}")


def find_wrong_share(
    specialization: Specialization,
    changed: Specialization,
    shares: Items[Shared],
    context: isl.Context,
    *,
    deterministic: bool = True,
) -> Counterexample | None:
    """The first difference, or None."""
    by_name = {share.statement: share for share in shares}
    left = list(changed.program.statements)
    for statement in specialization.program.statements:
        share = by_name.get(statement.name)
        count = 2 if share is not None and share.values else 1
        found, left = left[:count], left[count:]
        if len(found) < count:
            return Counterexample(Violation.CHANGED, statement.name)
        if share is None:
            right = found[0] == statement
        elif share.atomic and not _may_be_atomic(statement, changed, deterministic=deterministic):
            right = False
        elif count == 2:
            right = found[0].atomic == share.atomic and _are_parts(
                statement, (found[0], found[1]), share.values, changed, context
            )
        elif share.atomic:
            right = found[0] == replace(statement, atomic=True)
        else:
            right = _are_owners(statement, found[0], changed, context)
        if not right:
            return Counterexample(Violation.CHANGED, found[0].name)
    own = {tensor.name: tensor for tensor in specialization.program.tensors}
    kept = {tensor.name: tensor for tensor in changed.program.tensors if tensor.name in own}
    return Counterexample(Violation.CHANGED, "other statements or tensors") if left or kept != own else None


def _may_be_atomic(statement: Statement, changed: Specialization, *, deterministic: bool) -> bool:
    """Whether the order of the terms is of no importance, or need not be."""
    storage = dict(changed.signature.aliases)
    target = storage.get(statement.target, statement.target)
    read = (
        part.tensor
        for expression in (statement.value, *statement.subscripts, *statement.counts)
        for part in walk(expression)
        if isinstance(part, Read)
    )
    kind = computation_type(changed.layouts[statement.target].type).kind
    return (
        not statement.atomic
        and statement.owned is None
        and not any(storage.get(name, name) == target for name in read)
        and statement.reduction in (_SAME_IN_ANY_ORDER if deterministic else _IN_ANY_ORDER).get(kind, ())
    )


# Integers wrap around.  Of numbers that are rounded, only the least and the greatest are the same in any order, where
# zeros have an order, and what is no number stays as it is (``tc/codegen/prelude/atomics.h``).
_SAME_IN_ANY_ORDER: Final = {
    Kind.SIGNED: tuple(Reduction),
    Kind.UNSIGNED: tuple(Reduction),
    Kind.FLOATING: (Reduction.MINIMUM, Reduction.MAXIMUM),
}
_IN_ANY_ORDER: Final = {**_SAME_IN_ANY_ORDER, Kind.FLOATING: tuple(Reduction)}


def _are_owners(statement: Statement, shared: Statement, changed: Specialization, context: isl.Context) -> bool:
    """Whether one loop more is all that is new, and its iterations own every element, each of them another one."""
    owned, names = shared.owned, {iterator.name for iterator in statement.iterators}
    added = [iterator for iterator in shared.iterators if iterator.name not in names]
    if owned is None or len(added) != 1 or statement.owned is not None:
        return False
    (owner,) = added
    without = tuple(iterator for iterator in shared.iterators if iterator is not owner)
    if replace(shared, iterators=without, owned=None) != statement or not scatters(
        statement.subscripts[owned.dimension]
    ):
        return False
    if iterators_in((owner.begin, owner.end)) or not iterators_in((owned.begin, owned.end)) <= {owner.name}:
        return False
    frame = Frame(context, "owners", (owner.name,))
    alone = replace(statement, iterators=(owner,), conditions=(), subscripts=(statement.subscripts[owned.dimension],))
    domain = iteration_domain(alone, frame)
    if domain is None:
        return False
    extent = changed.layouts[statement.target].shape[owned.dimension]
    elements = isl.Set.read_from_str(context, f"{{ [e] : 0 <= e < {extent} }}")
    everything = isl.Map.from_domain_and_range(domain, elements)
    share = owned_elements(everything, replace(owned, dimension=0), frame)
    return bool(share.is_injective() and share.range().is_equal(elements))


def _are_parts(
    statement: Statement,
    pair: tuple[Statement, Statement],
    replaced: Mapping[str, Expression],
    changed: Specialization,
    context: isl.Context,
) -> bool:
    """Whether partial results of the same terms are begun, and combined into the elements of the statement.

    ``pair``: what makes them, and what combines them.
    """
    partial, total = pair
    program = changed.program
    whole = over_elements(statement, program.tensor(statement.target).shape)
    part = partial.subscripts[0] if partial.subscripts else None
    if not isinstance(part, IteratorReference) or not total.iterators:
        return False
    counted = total.iterators[-1]
    kept = tuple(IteratorReference(iterator.name) for iterator in written_iterators(statement))
    elements = (own for own, old in zip(whole.subscripts, statement.subscripts, strict=True) if scatters(old))
    type = computation_type(changed.layouts[statement.target].type)
    wanted = replace(
        whole,
        name=total.name,
        iterators=(*whole.iterators, counted),
        value=Read(partial.target, (part, *elements, *kept), type),
        required=(),
    )
    return (
        total == wanted
        and counted.name == part.name
        and counted in partial.iterators
        and not iterators_in((counted.begin, counted.end))
        and part.name not in iterators_in([*whole.subscripts, *kept])
        and _is_alone(program, partial, total)
        and _same_terms(statement, partial, (part, *kept), replaced, changed.sizes, context)
    )


def _is_alone(program: Program, partial: Statement, total: Statement) -> bool:
    """Whether the partial results are a temporary of these statements alone."""
    uses = all(touches(own, partial.target) == (own is partial or own is total) for own in program.statements)
    return uses and program.tensor(partial.target).role is Role.TEMPORARY


def _same_terms(
    statement: Statement,
    partial: Statement,
    kept: tuple[IteratorReference, ...],
    replaced: Mapping[str, Expression],
    sizes: Sizes,
    context: isl.Context,
) -> bool:
    """Whether the instances are those of the statement, one for one, with the same values at the same indices."""
    values = {i.name: replaced.get(i.name, IteratorReference(i.name)) for i in statement.iterators}
    if replaced.keys() & {iterator.name for iterator in written_iterators(statement)}:
        return False
    frame = frame_of(partial, context, sizes=sizes)
    inside = iteration_domain(partial, frame)
    wanted = iteration_domain(statement, frame_of(statement, context, sizes=sizes))
    if inside is None or wanted is None:
        return False
    stands_for = isl.Map.from_domain(inside)
    for iterator in statement.iterators:
        function = affine_function(values[iterator.name], frame)
        if function is None:
            return False
        stands_for = stands_for.flat_range_product(isl.Map.from_pw_aff(function))
    stands_for = stands_for.set_tuple_name(isl.dim_type.out, statement.name)
    part, *written = kept
    value = in_terms_of(statement.value, values)
    chosen = (in_terms_of(subscript, values) for subscript in statement.subscripts if scatters(subscript))
    return bool(
        partial.subscripts == (part, *chosen, *written)
        and partial.reduction is statement.reduction
        and partial.initialize
        and partial.owned is None
        and partial.value == (float32_term(value) if value.type.is_half else value)
        and stands_for.is_bijective()
        and stands_for.range().is_equal(wanted)
    )
