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

from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import assert_never

import islpy as isl

from tc.base.errors import VerificationError
from tc.base.types import ScalarType, computation_type
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.isl.affine import Frame, affine_function, frame_of, iteration_domain
from tc.language.program.program import (
    Binary,
    Call,
    Cast,
    Expression,
    IteratorReference,
    Program,
    Read,
    Reduction,
    Role,
    Select,
    Statement,
    Unary,
    float32_term,
    in_terms_of,
    iterators_in,
    reads_in,
    touches,
    written_iterators,
)
from tc.language.program.specialization import Sizes, Specialization
from tc.language.prove.written import initialization
from tc.polyhedral.ir.counterexample import Counterexample, Violation, point_text
from tc.polyhedral.ir.scans import Scan
from tc.polyhedral.proof.verify_initialization import is_neutral


def prove_scans(before: Specialization, after: Specialization, scans: Items[Scan], context: isl.Context) -> None:
    """VerificationError where ``after`` is not ``before`` with these reductions computed as scans."""
    found = find_wrong_scan(before, after, scans, context)
    if found is not None:
        raise VerificationError(f"the scans are not proven correct: {found}")


def find_wrong_scan(
    before: Specialization, after: Specialization, scans: Items[Scan], context: isl.Context
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
        names = (scan.clear, *(() if scan.first is None else (scan.first,)), scan.add, scan.store)
        group, left = left[: len(names)], left[len(names) :]
        if tuple(own.name for own in group) != names:
            return Counterexample(Violation.CHANGED, f"the statements that stand for {statement.name}")
        own = _unmasked(statement) if scan.iterator in iterators_in((statement.value,)) else statement
        found = _Group(before, after.program, context, own, scan, tuple(group)).wrong()
        if found is not None:
            return found
    kept = tuple(tensor for tensor in after.program.tensors if tensor in before.program.tensors)
    if left or kept != before.program.tensors:
        return Counterexample(Violation.CHANGED, "other statements or tensors")
    return None


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


@dataclass(frozen=True)
class _Group:
    """The statements that stand for one of the program."""

    before: Specialization
    after: Program
    context: isl.Context
    statement: Statement
    scan: Scan
    group: tuple[Statement, ...]

    @property
    def clear(self) -> Statement:
        return self.group[0]

    @property
    def first(self) -> Statement | None:
        return None if self.scan.first is None else self.group[1]

    @property
    def add(self) -> Statement:
        return self.group[-2]

    @property
    def store(self) -> Statement:
        return self.group[-1]

    @property
    def sizes(self) -> Sizes:
        return self.before.sizes

    def wrong(self) -> Counterexample | None:
        """What is wrong with them, or None."""
        if not self.is_independent():
            return Counterexample(Violation.CHANGED, f"{self.statement.name} depends on {self.scan.iterator}")
        if not self.is_own_carry():
            return Counterexample(Violation.CHANGED, f"{self.scan.carry} is not of {self.statement.name} alone")
        if not self.is_block():
            return Counterexample(Violation.CHANGED, f"the block of {self.statement.name}")
        for statement, values in self.adding():
            if not self.adds(statement, values):
                return Counterexample(Violation.CHANGED, statement.name)
        if not self.stores():
            return Counterexample(Violation.CHANGED, self.store.name)
        return self.wrong_carry() or self.wrong_terms()

    def adding(self) -> tuple[tuple[Statement, Mapping[str, Expression]], ...]:
        """The statements that add terms, and what the iterators of the program are there."""
        add = (self.add, self.scan.values)
        return (add,) if self.first is None else ((self.first, {}), add)

    # --- what the statements do

    def is_independent(self) -> bool:
        """Whether a term is the same for all elements, and no sum of what the statement itself writes."""
        statement = self.statement
        written = {iterator.name for iterator in written_iterators(statement)}
        steps = {iterator.name for iterator in statement.sequence}
        return (
            statement.reduction is not None
            and self.scan.iterator in written - steps
            and self.scan.iterator not in iterators_in((statement.value,))
            and all(read.tensor != statement.target for read in reads_in(statement.value))
        )

    def is_own_carry(self) -> bool:
        """Whether nothing else touches the carry, and its type holds what the program computes with."""
        found = [tensor for tensor in self.after.tensors if tensor.name == self.scan.carry]
        if len(found) != 1 or any(tensor.name == self.scan.carry for tensor in self.before.program.tensors):
            return False
        computed = computation_type(self.before.layouts[self.statement.target].type)
        wider = ScalarType.FLOAT64 if computed.is_floating else computed
        return (
            found[0].role is Role.TEMPORARY
            and found[0].type in (computed, wider)
            and all(not touches(own, self.scan.carry) or own in self.group for own in self.after.statements)
        )

    def is_block(self) -> bool:
        """Whether adding and storing take turns in a block of their own, right behind what begins the carry."""
        outer = self.statement.blocks
        depth = len(outer) + 1
        blocks, begun = self.add.blocks, self.group[:-2]
        others = [own for own in self.after.statements if own is not self.add and own is not self.store]
        steps = {own.sequence[-1:] for own in (self.add, self.store)}
        return (
            len(blocks) == depth
            and blocks[:-1] == outer
            and self.store.blocks == blocks
            and len(steps) == 1
            and all(own.blocks == outer for own in begun)
            and all(blocks[-1] not in own.blocks for own in others)
            and all(own.sequence[: depth - 1] == self.statement.sequence for own in self.group)
        )

    def adds(self, statement: Statement, values: Mapping[str, Expression]) -> bool:
        """Whether the statement combines terms of the program into the carry."""
        value = in_terms_of(self.statement.value, values)
        if self.statement.value.type.is_half:
            value = float32_term(value)
        carried = self.after.tensor(self.scan.carry).type
        return (
            statement.target == self.scan.carry
            and statement.reduction is self.statement.reduction
            and not statement.initialize
            and statement.value == (value if value.type is carried else Cast(value, carried))
        )

    def stores(self) -> bool:
        """Whether the carry goes to the element, or is combined with it, as the program says."""
        statement, store = self.statement, self.store
        place = {self.scan.iterator: self.scan.place}
        carried = self.stored()
        return (
            store.target == statement.target
            and store.subscripts == tuple(in_terms_of(subscript, place) for subscript in statement.subscripts)
            and (store.reduction, store.initialize) == (None, False)
            and carried is not None
            and carried.tensor == self.scan.carry
            and store.value.type is self.before.layouts[statement.target].type
        )

    def stored(self) -> Read | None:
        """The carry that is stored as it is, or combined with what the element holds where the program updates it."""
        value = self.store.value.operand if isinstance(self.store.value, Cast) else self.store.value
        if self.statement.initialize:
            return value if isinstance(value, Read) else None
        reduction = self.statement.reduction
        assert reduction is not None
        match value:
            case Call(name, (old, Read() as carried)) if name == reduction.value:
                pass
            case Binary(operator, old, Read() as carried) if operator is _operator(reduction, value.type):
                pass
            case _:
                return None
        element = old.operand if isinstance(old, Cast) else old
        own = isinstance(element, Read) and (element.tensor, element.subscripts) == (
            self.store.target,
            self.store.subscripts,
        )
        return carried if own and old.type is carried.type else None

    # --- where they do it

    def wrong_carry(self) -> Counterexample | None:
        """Unless every carry that is touched is set to the neutral element first, and to nothing else."""
        clear, reduction = self.clear, self.statement.reduction
        carried = self.after.tensor(self.scan.carry).type
        assert reduction is not None
        right = clear.target == self.scan.carry and (clear.reduction, clear.initialize) == (None, False)
        cleared = self.instances_to(clear, clear.subscripts)
        others = [self.carries(own) for own in self.group[1:]]
        if not right or not is_neutral(clear.value, reduction, carried) or cleared is None:
            return Counterexample(Violation.NOT_INITIALIZED, clear.name)
        for own in others:
            if own is None:
                return Counterexample(Violation.CHANGED, self.scan.carry)
            if not own.range().is_subset(cleared.range()):
                missing = own.range().subtract(cleared.range()).set_tuple_name(self.scan.carry)
                return Counterexample(Violation.NOT_INITIALIZED, point_text(isl.UnionSet.from_set(missing)))
        return None

    def carries(self, statement: Statement) -> isl.Map | None:
        """``{ instance -> [carry] }``."""
        if statement is not self.store:
            return self.instances_to(statement, statement.subscripts)
        carried = self.stored()
        return None if carried is None else self.instances_to(statement, carried.subscripts)

    def wrong_terms(self) -> Counterexample | None:
        """Unless what is stored has had the terms of the program, each of them once."""
        names = [iterator.name for iterator in self.statement.iterators if iterator.name != self.scan.iterator]
        elements = [iterator.name for iterator in written_iterators(self.statement)]
        wanted = self.through(self.statement, elements, names, {}, {})
        stored = self.instances_to(self.store, self.at(elements, {self.scan.iterator: self.scan.place}))
        carried = self.carries(self.store)
        if wanted is None or stored is None or carried is None:
            return Counterexample(Violation.CHANGED, self.store.name)
        given = self.given(elements)
        if given is None or not given.is_injective() or not stored.is_injective():
            return Counterexample(Violation.WRITTEN_TWICE, self.statement.name)
        if not stored.range().is_equal(given.domain()):
            return Counterexample(Violation.CHANGED, self.store.name)
        reached = isl.Map.empty(wanted.get_space())
        seen: isl.Map | None = None
        for statement, values in self.adding():
            terms, carries = self.instances_to(statement, self.at(names, values)), self.carries(statement)
            if terms is None or carries is None:
                return Counterexample(Violation.CHANGED, statement.name)
            added = carries.range_product(terms)
            of_carry = added.range().unwrap()
            if not added.is_injective() or (seen is not None and not seen.is_disjoint(of_carry)):
                return Counterexample(Violation.REPEATED, f"a term of {self.statement.name}")
            seen = of_carry
            earlier = carried.apply_range(carries.reverse())  # { store -> add } to one carry
            if statement is self.add:
                earlier = earlier.intersect(self.up_to_its_step(earlier))
            reached = reached.union(stored.reverse().apply_range(earlier).apply_range(terms))
        if reached.is_equal(wanted):
            return None
        for more, less, violation in ((wanted, reached, Violation.MISSING), (reached, wanted, Violation.FOREIGN)):
            different = more.subtract(less)
            if not different.is_empty():
                return Counterexample(violation, f"a term of {self.statement.name}: {_pair(different)}")
        return None

    def given(self, elements: Items[str]) -> isl.Map | None:
        """``{ [written iterators] -> [element] }`` of all that the program writes."""
        statement = initialization(self.statement)
        if not self.statement.initialize:
            statement = self.statement
        places = self.instances_to(statement, self.at(elements, {}))
        written = self.instances_to(statement, statement.subscripts)
        return None if places is None or written is None else places.reverse().apply_range(written)

    def up_to_its_step(self, pairs: isl.Map) -> isl.Map:
        """Pairs of a store and what is added in its step of the block, or before."""
        step = len(self.statement.blocks)
        return isl.Map.universe(pairs.get_space()).order_ge(isl.dim_type.in_, step, isl.dim_type.out, step)

    def at(self, names: Items[str], values: Mapping[str, Expression]) -> tuple[Expression, ...]:
        return tuple(values.get(name, IteratorReference(name)) for name in names)

    def through(
        self,
        statement: Statement,
        first: Items[str],
        second: Items[str],
        values: Mapping[str, Expression],
        others: Mapping[str, Expression],
    ) -> isl.Map | None:
        """``{ [first] -> [second] }`` over the instances of the statement."""
        left = self.instances_to(statement, self.at(first, values))
        right = self.instances_to(statement, self.at(second, others))
        return None if left is None or right is None else left.reverse().apply_range(right)

    def instances_to(self, statement: Statement, values: Items[Expression]) -> isl.Map | None:
        """``{ instance -> [values] }``."""
        frame: Frame = frame_of(statement, self.context, sizes=self.sizes)
        domain = iteration_domain(statement, frame)
        if domain is None:
            return None
        found = isl.Map.from_domain(domain)
        for value in values:
            function = affine_function(value, frame)
            if function is None:
                return None
            found = found.flat_range_product(isl.Map.from_pw_aff(function))
        return found.intersect_domain(domain)


def _pair(terms: isl.Map) -> str:
    """An element and one of its terms."""
    element = terms.reset_tuple_id(isl.dim_type.in_).reset_tuple_id(isl.dim_type.out).wrap().flatten().sample_point()
    values = [int(element.get_coordinate_val(isl.dim_type.set, n).to_python()) for n in range(_width(terms))]
    count = terms.dim(isl.dim_type.in_)
    return f"{values[:count]} has {values[count:]}"


def _width(terms: isl.Map) -> int:
    return int(terms.dim(isl.dim_type.in_) + terms.dim(isl.dim_type.out))


def _operator(reduction: Reduction, type: ScalarType) -> BinaryOperator | None:
    """The operator that combines two values as the reduction does; None where that is a function."""
    logic = type is ScalarType.BOOL
    match reduction:
        case Reduction.ADD:
            return BinaryOperator.OR if logic else BinaryOperator.ADD
        case Reduction.MULTIPLY:
            return BinaryOperator.AND if logic else BinaryOperator.MULTIPLY
        case Reduction.MINIMUM:
            return BinaryOperator.AND if logic else None
        case Reduction.MAXIMUM:
            return BinaryOperator.OR if logic else None
        case _:
            assert_never(reduction)
