"""Proof of scans: what is stored at every step is the reduction over the terms that the program has there.

It starts from the statement of the program, and asks nothing of the pass but which iterators became what:

1. The value does not depend on the iterator that the scan runs along, so a term is told by the other iterators.
2. The carry is a temporary of its own, and wide enough.  It is set to the neutral element before anything is added.
3. What is added, before the block or in a step of it, is the value of the program at the term that it stands for; no
   term is added twice.
4. Elements are stored once each, those that the program writes.  Up to then, in its block, the carry has had exactly
   the terms that the program reduces there: the base case and every step in one question to isl.

That the steps run in order is ``tc.polyhedral.proof.verify``.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import replace
from typing import TypeAlias, assert_never

import islpy as isl

from tc.base.errors import VerificationError
from tc.base.types import ScalarType
from tc.grammar.syntax import UnaryOperator
from tc.language.program.program import Program, Select, Statement, Unary, iterators_in
from tc.language.program.specialization import Specialization
from tc.language.program.written_elements import written_iterators
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.scans import Grown, Scan, StepSums
from tc.polyhedral.proof.scan_group import BlocksGroup, ScanGroup
from tc.polyhedral.proof.verify_initialization import is_neutral
from tc.polyhedral.proof.verify_step_sums import StepSumsGroup

# What ``GrowingGroup`` is made of.
_Group: TypeAlias = tuple[Specialization, Program, isl.Context, Statement, str, tuple[Statement, ...]]


def prove_scans(before: Specialization, after: Specialization, scans: Items[Grown], context: isl.Context) -> None:
    """VerificationError where ``after`` is not ``before`` with these reductions computed as scans."""
    found = find_wrong_scan(before, after, scans, context)
    if found is not None:
        raise VerificationError(f"the scans are not proven correct: {found}")


def find_wrong_scan(
    before: Specialization, after: Specialization, scans: Items[Grown], context: isl.Context
) -> Counterexample | None:
    """The first difference, or None.  It holds for all values of the sizes that are open."""
    by_name = {scan.statement: scan for scan in scans}
    left = list(after.program.statements)
    for statement in before.program.statements:
        scan = by_name.get(statement.name)
        if scan is None:
            if not left or left.pop(0) != statement:
                return Counterexample(Violation.CHANGED, statement.name)
            continue
        names = _names(scan)
        group, left = left[: len(names)], left[len(names) :]
        if tuple(own.name for own in group) != names:
            return Counterexample(Violation.CHANGED, f"the statements that stand for {statement.name}")
        own = _unmasked(statement) if scan.iterator in iterators_in((statement.value,)) else statement
        found = _wrong(scan, (before, after.program, context, own, scan.iterator, tuple(group)))
        if found is not None:
            return found
    kept = tuple(tensor for tensor in after.program.tensors if tensor in before.program.tensors)
    if left or kept != before.program.tensors:
        return Counterexample(Violation.CHANGED, "other statements or tensors")
    return None


def _names(grown: Grown) -> tuple[str, ...]:
    match grown:
        case Scan(blocks=None):
            return ScanGroup.names(grown)
        case Scan():
            return BlocksGroup.names(grown)
        case StepSums():
            return StepSumsGroup.names(grown)
        case _:
            assert_never(grown)


def _wrong(grown: Grown, group: _Group) -> Counterexample | None:
    match grown:
        case Scan(blocks=None):
            return ScanGroup(*group, grown).wrong()
        case Scan():
            return BlocksGroup(*group, grown).wrong()
        case StepSums():
            return StepSumsGroup(*group, grown).wrong()
        case _:
            assert_never(grown)


def _unmasked(statement: Statement) -> Statement:
    """The statement without the instances that add something neutral, where a condition of the value says so."""
    value, reduction = statement.value, statement.reduction
    written = {iterator.name for iterator in written_iterators(statement)}
    # A condition on written iterators alone would also say what is initialized.
    if not isinstance(value, Select) or reduction is None or iterators_in((value.condition,)) <= written:
        return statement
    condition = value.condition
    for kept, left_out, holds in ((value.then, value.otherwise, True), (value.otherwise, value.then, False)):
        if is_neutral(left_out, reduction, value.type):
            condition = condition if holds else Unary(UnaryOperator.NOT, condition, ScalarType.BOOL)
            return replace(statement, conditions=(*statement.conditions, condition), value=kept)
    return statement
