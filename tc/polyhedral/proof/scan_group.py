"""The statements that a scan consists of, and what a proof asks of them (``tc.polyhedral.proof.verify_scans``)."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import assert_never

import islpy as isl

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Cast,
    Expression,
    Literal,
    Read,
    Reduction,
    Statement,
    in_terms_of,
)
from tc.language.prove.written import initialization
from tc.polyhedral.ir.counterexample import Counterexample, Violation, point_text
from tc.polyhedral.ir.scans import Blocks, Scan
from tc.polyhedral.proof.growing_group import GrowingGroup
from tc.polyhedral.proof.verify_initialization import is_neutral


@dataclass(frozen=True)
class ScanGroup(GrowingGroup):
    """The statements that stand for one of the program."""

    scan: Scan

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
        return (
            statement.target == target
            and statement.reduction is self.statement.reduction
            and not statement.initialize
            and statement.value == self.term(values, self.after.tensor(target).type)
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
        names, elements = self.term_names, self.elements
        wanted = self.wanted()
        stored = self.instances_to(self.store, self.at(elements, {self.scan.iterator: self.scan.place}))
        carried = self.carries(self.store)
        if wanted is None or stored is None or carried is None:
            return Counterexample(Violation.CHANGED, self.store.name)
        given = self.given(self.statement)
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
        return self.different(reached, wanted)

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

    def up_to_its_step(self, pairs: isl.Map) -> isl.Map:
        """Pairs of a store and what is added in its step of the block, or before."""
        step = len(self.statement.blocks)
        return isl.Map.universe(pairs.get_space()).order_ge(isl.dim_type.in_, step, isl.dim_type.out, step)


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


@dataclass(frozen=True)
class BlocksGroup(ScanGroup):
    """The statements of a scan in blocks, each of which goes on from what all blocks before it have.

    What each block has by itself is cleared, and then adds up terms of the program, each of them once.  The carry of a
    block begins with a reduction of what others have; which terms these are follows from the two, and is what the steps
    of the block go on from.
    """

    @staticmethod
    def names(scan: Scan) -> tuple[str, ...]:
        """Of the statements, in order."""
        assert scan.blocks is not None
        return (scan.clear, scan.blocks.total, scan.blocks.before, scan.add, scan.store)

    @property
    def blocks(self) -> Blocks:
        """What became of the blocks."""
        assert self.scan.blocks is not None
        return self.scan.blocks

    @property
    def tensors(self) -> tuple[str, ...]:
        """Those that only these statements know."""
        return (self.scan.carry, self.blocks.partials)

    @property
    def first(self) -> None:
        """Nothing of the program is added before the block."""
        return

    @property
    def total(self) -> Statement:
        """What adds up each block."""
        return self.group[1]

    @property
    def earlier(self) -> Statement:
        """What combines all blocks before one."""
        return self.group[2]

    def wrong_carry(self) -> Counterexample | None:
        """Unless what blocks have is cleared, and every carry that is touched begins with some of that."""
        partials, carry = self.blocks.partials, self.scan.carry
        value, types = self.earlier.value, {self.after.tensor(name).type for name in self.tensors}
        begins = (
            self.adds(self.total, self.scan.values, partials)
            and (self.earlier.target, self.earlier.reduction) == (carry, self.statement.reduction)
            and self.earlier.initialize
            and isinstance(value, Read)
            and value.tensor == partials
            and len(types) == 1
        )
        given = self.instances_to(initialization(self.earlier), self.earlier.subscripts)
        if not begins or given is None:
            return Counterexample(Violation.CHANGED, self.earlier.name)
        touched = [self.instances_to(self.total, self.total.subscripts), self.read()]
        own = [self.carries(statement) for statement in (self.add, self.store)]
        return self.wrong_clear(partials, touched) or self.wrong_elements(carry, given, own)

    def read(self) -> isl.Map | None:
        """``{ instance of what combines blocks -> [what a block has] }``."""
        value = self.earlier.value
        assert isinstance(value, Read)
        return self.instances_to(self.earlier, value.subscripts)

    def begun(self, names: Items[str]) -> isl.Map | Counterexample:
        """``{ [carry] -> [term] }``: what the carries of blocks begin with, each term once; ``names``: of terms."""
        terms = self.instances_to(self.total, self.at(names, self.scan.values))
        parts, read = self.instances_to(self.total, self.total.subscripts), self.read()
        carries = self.carries(self.earlier)
        if terms is None or parts is None or read is None or carries is None:
            return Counterexample(Violation.CHANGED, self.total.name)
        # No block twice in one carry, no term twice in one block, and none in two blocks of one carry.
        blocks, of_block = carries.reverse().apply_range(read), parts.reverse().apply_range(terms)
        begun = blocks.apply_range(of_block)
        once = self.is_once(carries, read) and self.is_once(parts, terms) and self.are_apart(blocks, of_block)
        return begun if once else Counterexample(Violation.REPEATED, f"a term of {self.statement.name}")

    def are_apart(self, blocks: isl.Map, of_block: isl.Map) -> bool:
        """Whether no two blocks of one carry have one term: ``{ [carry] -> [block] }``, ``{ [block] -> [term] }``."""
        together = blocks.reverse().apply_range(blocks)  # { block -> block } of one carry
        sharing = of_block.apply_range(of_block.reverse())  # { block -> block } with one term
        both = together.intersect(sharing)
        return bool(both.is_subset(isl.Map.identity(both.get_space())))
