"""Proof of steps that add several terms: what each step adds is reduced first, and then over the steps so far.

It starts from the statement of the program.  The sums of steps are a temporary of these two statements alone, and wide
enough.  Each sum has terms of the program, each once, and all sums that are read have a value.  The terms of all sums
of an element are those that the program reduces there, and no term is in two of them: one question to isl for all
elements.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from tc.language.program.program import Read, Statement
from tc.language.prove.written import initialization
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.scans import StepSums
from tc.polyhedral.proof.growing_group import GrowingGroup


@dataclass(frozen=True)
class StepSumsGroup(GrowingGroup):
    """The two statements that stand for one of the program."""

    done: StepSums

    @staticmethod
    def names(done: StepSums) -> tuple[str, ...]:
        """Of the statements, in order."""
        return done.each, done.total

    @property
    def each(self) -> Statement:
        """What reduces the terms of every step."""
        return self.group[0]

    @property
    def total(self) -> Statement:
        """What reduces these over the steps so far."""
        return self.group[1]

    def wrong(self) -> Counterexample | None:
        """What is wrong with them, or None."""
        if not self.is_independent():
            return Counterexample(Violation.CHANGED, f"{self.statement.name} depends on {self.iterator}")
        if not self.is_own(self.done.sums):
            return Counterexample(Violation.CHANGED, f"{self.done.sums} is not of {self.statement.name} alone")
        for own, right in ((self.each, self.adds_terms()), (self.total, self.adds_sums())):
            in_order = (own.blocks, own.sequence) == (self.statement.blocks, self.statement.sequence)
            if not (right and in_order and own.owned is None and own.reduction is self.statement.reduction):
                return Counterexample(Violation.CHANGED, own.name)
        return self.wrong_terms()

    def adds_terms(self) -> bool:
        """Whether terms of the program are reduced into sums, which begin with the neutral element."""
        each, sums = self.each, self.done.sums
        term = self.term(self.done.values, self.after.tensor(sums).type)
        return each.target == sums and each.initialize and each.value == term

    def adds_sums(self) -> bool:
        """Whether sums are reduced into the elements of the program, as it does."""
        total, wanted = self.total, self.statement
        return (
            (total.target, total.subscripts, total.initialize) == (wanted.target, wanted.subscripts, wanted.initialize)
            and isinstance(total.value, Read)
            and total.value.tensor == self.done.sums
        )

    def wrong_terms(self) -> Counterexample | None:
        """Unless elements have the terms of the program, each of them once."""
        each, total, repeated = (
            self.each,
            self.total,
            Counterexample(Violation.REPEATED, f"a term of {self.statement.name}"),
        )
        wanted, elements, written = self.wanted(), self.given(self.statement), self.given(total)
        sums, read = self.sums(), self.sums_read()
        if wanted is None or elements is None or written is None or read is None:
            return Counterexample(Violation.CHANGED, total.name)
        if sums is None:
            return Counterexample(Violation.CHANGED, each.name)
        if not elements.is_injective():
            return repeated
        if not written.is_equal(elements):
            return Counterexample(Violation.CHANGED, total.name)
        begun, added, terms = sums
        places, parts = read
        if not self.is_once(added, terms) or not self.is_once(places, parts):
            return repeated
        if not parts.range().is_subset(begun.range()):
            return Counterexample(Violation.NOT_INITIALIZED, self.done.sums)
        of_element, of_sum = places.reverse().apply_range(parts), added.reverse().apply_range(terms)
        # { [sum] -> [[element] -> [term]] }: no element has a term of two sums.
        if not of_element.reverse().range_product(of_sum).is_injective():
            return repeated
        return self.different(of_element.apply_range(of_sum), wanted)

    def sums(self) -> tuple[isl.Map, isl.Map, isl.Map] | None:
        """``{ instance -> [sum] }`` of what begins sums and of what adds to them, and ``{ instance -> [term] }``."""
        begun = self.instances_to(initialization(self.each), self.each.subscripts)
        added = self.instances_to(self.each, self.each.subscripts)
        terms = self.instances_to(self.each, self.at(self.term_names, self.done.values))
        return None if begun is None or added is None or terms is None else (begun, added, terms)

    def sums_read(self) -> tuple[isl.Map, isl.Map] | None:
        """``{ instance -> [element's iterators] }`` and ``{ instance -> [sum] }`` of what reduces sums."""
        assert isinstance(self.total.value, Read)
        places = self.instances_to(self.total, self.at(self.elements, {}))
        parts = self.instances_to(self.total, self.total.value.subscripts)
        return None if places is None or parts is None else (places, parts)
