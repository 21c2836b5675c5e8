"""The statements that a scan consists of, and what a proof asks of them (``tc.polyhedral.proof.verify_scans``)."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import assert_never

import islpy as isl

from tc.base.types import ScalarType, computation_type
from tc.grammar.syntax import BinaryOperator
from tc.language.isl.affine import Frame, affine_function, frame_of, iteration_domain
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Cast,
    Expression,
    IteratorReference,
    Literal,
    Program,
    Read,
    Reduction,
    Role,
    Statement,
    in_terms_of,
    iterators_in,
    reads_in,
    touches,
)
from tc.language.program.specialization import Sizes, Specialization
from tc.language.program.terms import float32_term
from tc.language.program.written_elements import written_iterators
from tc.language.prove.written import initialization
from tc.polyhedral.ir.counterexample import Counterexample, Violation, point_text
from tc.polyhedral.ir.scans import Scan
from tc.polyhedral.proof.verify_initialization import is_neutral


@dataclass(frozen=True)
class ScanGroup:
    """The statements that stand for one of the program."""

    before: Specialization
    after: Program
    context: isl.Context
    statement: Statement
    scan: Scan
    group: tuple[Statement, ...]

    @staticmethod
    def names(scan: Scan) -> tuple[str, ...]:
        """Of the statements, in order."""
        return (scan.clear, *(() if scan.first is None else (scan.first,)), scan.add, scan.store)

    @property
    def tensors(self) -> tuple[str, ...]:
        """Those that only these statements know."""
        return (self.scan.carry,)

    @property
    def clear(self) -> Statement:
        """What sets carries to the neutral element."""
        return self.group[0]

    @property
    def first(self) -> Statement | None:
        """What adds to carries before the block, if anything does."""
        return None if self.scan.first is None else self.group[1]

    @property
    def add(self) -> Statement:
        """What adds to carries in every step."""
        return self.group[-2]

    @property
    def store(self) -> Statement:
        """What stores carries in every step."""
        return self.group[-1]

    @property
    def sizes(self) -> Sizes:
        """Those that are open."""
        return self.before.sizes

    def wrong(self) -> Counterexample | None:
        """What is wrong with them, or None."""
        if not self.is_independent():
            return Counterexample(Violation.CHANGED, f"{self.statement.name} depends on {self.scan.iterator}")
        for name in self.tensors:
            if not self.is_own(name):
                return Counterexample(Violation.CHANGED, f"{name} is not of {self.statement.name} alone")
        if not self.is_block():
            return Counterexample(Violation.CHANGED, f"the block of {self.statement.name}")
        for statement, values in self.adding():
            if not self.adds(statement, values, self.scan.carry):
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

    def is_own(self, name: str) -> bool:
        """Whether nothing else touches a tensor, and its type holds what the program computes with."""
        found = [tensor for tensor in self.after.tensors if tensor.name == name]
        if len(found) != 1 or any(tensor.name == name for tensor in self.before.program.tensors):
            return False
        computed = computation_type(self.before.layouts[self.statement.target].type)
        wider = ScalarType.FLOAT64 if computed.is_floating else computed
        return (
            found[0].role is Role.TEMPORARY
            and found[0].type in (computed, wider)
            and all(not touches(own, name) or own in self.group for own in self.after.statements)
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

    def adds(self, statement: Statement, values: Mapping[str, Expression], target: str) -> bool:
        """Whether the statement combines terms of the program into ``target``."""
        value = in_terms_of(self.statement.value, values)
        if self.statement.value.type.is_half:
            value = float32_term(value)
        carried = self.after.tensor(target).type
        return (
            statement.target == target
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
        """Unless every carry that is touched is set to the neutral element first."""
        return self.wrong_clear(self.scan.carry, [self.carries(own) for own in self.group[1:]])

    def wrong_clear(self, tensor: str, touched: Items[isl.Map | None]) -> Counterexample | None:
        """Unless all of a tensor that is ``touched`` is set to the neutral element first."""
        clear, reduction = self.clear, self.statement.reduction
        assert reduction is not None
        right = clear.target == tensor and (clear.reduction, clear.initialize) == (None, False)
        cleared = self.instances_to(clear, clear.subscripts)
        if not right or not is_neutral(clear.value, reduction, self.after.tensor(tensor).type) or cleared is None:
            return Counterexample(Violation.NOT_INITIALIZED, clear.name)
        return self.wrong_elements(tensor, cleared, touched)

    def wrong_elements(self, tensor: str, given: isl.Map, touched: Items[isl.Map | None]) -> Counterexample | None:
        """Unless all elements that are ``touched`` are among those that are ``given`` something."""
        for own in touched:
            if own is None:
                return Counterexample(Violation.CHANGED, tensor)
            if not own.range().is_subset(given.range()):
                missing = own.range().subtract(given.range()).set_tuple_name(tensor)
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
        begun = self.begun(names)
        terms, carries = self.instances_to(self.add, self.at(names, self.scan.values)), self.carries(self.add)
        if terms is None or carries is None:
            return Counterexample(Violation.CHANGED, self.add.name)
        if isinstance(begun, Counterexample):
            return begun
        if not self.is_once(carries, terms) or not begun.is_disjoint(carries.reverse().apply_range(terms)):
            return Counterexample(Violation.REPEATED, f"a term of {self.statement.name}")
        earlier = carried.apply_range(carries.reverse())  # { store -> add } to one carry
        earlier = earlier.intersect(self.up_to_its_step(earlier))
        reached = stored.reverse().apply_range(carried.apply_range(begun).union(earlier.apply_range(terms)))
        if reached.is_equal(wanted):
            return None
        for more, less, violation in ((wanted, reached, Violation.MISSING), (reached, wanted, Violation.FOREIGN)):
            different = more.subtract(less)
            if not different.is_empty():
                return Counterexample(violation, f"a term of {self.statement.name}: {_pair(different)}")
        return None

    def begun(self, names: Items[str]) -> isl.Map | Counterexample:
        """``{ [carry] -> [term] }``: what carries have before the block, each term once; ``names``: of terms."""
        first = self.first or replace(self.clear, conditions=(Literal(value=False, type=ScalarType.BOOL),))
        values = {} if self.first is not None else dict.fromkeys(names, Literal(0, INDEX_TYPE))
        terms, carries = self.instances_to(first, self.at(names, values)), self.carries(first)
        if terms is None or carries is None:
            return Counterexample(Violation.CHANGED, first.name)
        if not self.is_once(carries, terms):
            return Counterexample(Violation.REPEATED, f"a term of {self.statement.name}")
        return carries.reverse().apply_range(terms)

    def is_once(self, carries: isl.Map, terms: isl.Map) -> bool:
        """Whether no two instances combine the same term into the same carry."""
        return bool(carries.range_product(terms).is_injective())

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
        """The iterators called so, some of them by their values."""
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
