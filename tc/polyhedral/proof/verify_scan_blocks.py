"""Proof of scans in blocks: every block goes on from what all blocks before it have.

Beside what ``tc.polyhedral.proof.verify_scans`` shows of every scan: what each block has by itself is cleared, and then
adds up terms of the program, each of them once.  The carry of a block begins with a reduction of what others have;
which terms these are follows from the two, and is what the steps of the block go on from.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass

import islpy as isl

from tc.language.program.program import Read, Statement
from tc.language.prove.written import initialization
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.scans import Blocks, Scan
from tc.polyhedral.proof.scan_group import ScanGroup


@dataclass(frozen=True)
class BlocksGroup(ScanGroup):
    """The statements of a scan in blocks."""

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
