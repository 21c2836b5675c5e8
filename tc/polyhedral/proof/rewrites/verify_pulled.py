"""Proof of pull forms: the instances are those of the program, each of them once, counted in another way.

A map takes each new instance to the one of the program that it is.  By isl it is a bijection between the iteration
domains, and instances write the same elements.  The values are the same expressions in terms of the map.  A reduction
combines its terms in any order, and other instances write elements of their own, so elements get what they get in the
program.  Where instances write elements of their own, each may read its own, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import islpy as isl

from tc.language.algebra.single_values import settled
from tc.language.isl.affine import access_relation, affine_function, frame_of, iteration_domain
from tc.language.program.program import Expression, Statement, in_terms_of, reads_in
from tc.language.program.specialization import Specialization
from tc.language.program.written_elements import over_elements
from tc.polyhedral.ir.counterexample import Counterexample, Violation, point_text
from tc.polyhedral.ir.pulled import PulledStatement


def find_wrong_pull(
    before: Specialization, after: Specialization, made: PulledStatement, context: isl.Context
) -> Counterexample | None:
    """The first difference, or None."""
    old = next(own for own in before.program.statements if own.name == made.name)
    new = next(own for own in after.program.statements if own.name == made.name)
    statements = tuple(new if own is old else own for own in before.program.statements)
    same = replace(before, program=replace(before.program, statements=statements))
    if same.program != after.program or same.layouts != after.layouts:
        return Counterexample(Violation.CHANGED, f"another statement than {made.name}")
    order_matters = old.blocks or set(made.iterators) != {own.name for own in old.iterators}
    same_value = any(_same_value(old, new, made, form) for form in (in_terms_of, settled))
    if order_matters or _reads_others(old) or not same_value:
        return Counterexample(Violation.CHANGED, f"what the instances of {made.name} compute")
    return _wrong_instances(before, after, old, new, made, context)


def _reads_others(statement: Statement) -> bool:
    """Whether instances read elements of the target that others may write."""
    inside = [read for read in reads_in(statement.value) if read.tensor == statement.target]
    own = statement.reduction is None and all(read.subscripts == statement.subscripts for read in inside)
    placed = any(read.tensor == statement.target for part in statement.subscripts for read in reads_in(part))
    return placed or not (own or not inside)


def _same_value(
    old: Statement,
    new: Statement,
    made: PulledStatement,
    counted: Callable[[Expression, Mapping[str, Expression]], Expression],
) -> bool:
    """Whether values are the same; ``counted``: an expression in terms of the new iterators."""
    changed = replace(
        old,
        iterators=new.iterators,
        conditions=new.conditions,
        subscripts=new.subscripts,
        value=counted(old.value, made.iterators),
        required=tuple(
            replace(own, subscripts=tuple(counted(part, made.iterators) for part in own.subscripts))
            for own in old.required
        ),
    )
    return changed == new


def _initialized(specialization: Specialization, statement: Statement, context: isl.Context) -> isl.Set:
    """The elements that a statement sets before it adds to them; its subscripts are affine."""
    whole = over_elements(statement, specialization.program.tensor(statement.target).shape)
    frame = frame_of(whole, context, sizes=specialization.sizes)
    domain = iteration_domain(whole, frame)
    assert domain is not None
    nothing = (None,) * len(whole.subscripts)
    return access_relation(statement.target, whole.subscripts, nothing, frame).intersect_domain(domain).range()


def _wrong_instances(
    before: Specialization,
    after: Specialization,
    old: Statement,
    new: Statement,
    made: PulledStatement,
    context: isl.Context,
) -> Counterexample | None:
    old_frame, new_frame = (
        frame_of(old, context, sizes=before.sizes),
        frame_of(new, context, sizes=after.sizes),
    )
    old_domain, new_domain = iteration_domain(old, old_frame), iteration_domain(new, new_frame)
    values = tuple(made.iterators[own.name] for own in old.iterators)
    functions = [(own, new_frame) for own in (*values, *new.subscripts)] + [(own, old_frame) for own in old.subscripts]
    if old_domain is None or new_domain is None or any(affine_function(*own) is None for own in functions):
        return Counterexample(Violation.CHANGED, f"the instances of {made.name} are not affine")
    instances = access_relation(made.name, values, (None,) * len(values), new_frame).intersect_domain(new_domain)
    reached = instances.range()
    wrong = reached.subtract(old_domain).union(old_domain.subtract(reached))
    if not wrong.is_empty():
        return Counterexample(Violation.MISSING, point_text(isl.UnionSet.from_set(wrong)))
    if not instances.is_injective():
        return Counterexample(Violation.REPEATED, f"instances of {made.name}")
    nothing = (None,) * len(old.subscripts)
    written = access_relation(old.target, new.subscripts, nothing, new_frame).intersect_domain(new_domain)
    wanted = instances.apply_range(access_relation(old.target, old.subscripts, nothing, old_frame))
    if not written.is_equal(wanted):
        return Counterexample(Violation.CHANGED, f"the elements that {made.name} writes")
    if old.initialize and not _initialized(before, old, context).is_equal(_initialized(after, new, context)):
        return Counterexample(Violation.CHANGED, f"the elements that {made.name} begins with")
    if old.reduction is None and not written.is_injective():
        return Counterexample(Violation.REORDERED, f"instances of {made.name} that write the same element")
    return None
