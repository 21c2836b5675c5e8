"""The statements of a specialization with reductions split, and their schedules: what compilations of it share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

import islpy as isl

from tc.base.dots import Dot
from tc.base.errors import OptionsError, VerificationError
from tc.language.isl.session import budget_told, is_out_of_operations
from tc.language.program.specialization import Specialization
from tc.polyhedral.gpu.mapping.join_reread_rows import join_reread_rows
from tc.polyhedral.gpu.mapping.recompute import handed_over, recompute
from tc.polyhedral.gpu.mapping.split_plan import Plan, Whose
from tc.polyhedral.ir.chained import Recomputed
from tc.polyhedral.ir.contractions import Contraction
from tc.polyhedral.ir.counterexample import Counterexample
from tc.polyhedral.ir.dotted import Dots
from tc.polyhedral.ir.hoisted import FactoredOut, Hoisted
from tc.polyhedral.ir.pulled import PulledStatement
from tc.polyhedral.ir.recurrences import LinearRecurrence
from tc.polyhedral.ir.relaid import CollapsedTensor, CopiedOperand
from tc.polyhedral.ir.scans import Grown
from tc.polyhedral.ir.scop import Scop, build_scop
from tc.polyhedral.ir.splits import Split
from tc.polyhedral.ir.tree import ScheduleTree
from tc.polyhedral.needed_operations import needed_operations
from tc.polyhedral.operands.collapse_dimensions import collapse_dimensions
from tc.polyhedral.operands.dot_products import dot_products
from tc.polyhedral.operands.sample_operands import sample_operands
from tc.polyhedral.operands.transpose_operands import transpose_operands
from tc.polyhedral.proof.rewrites.verify_collapsed import find_wrong_collapse
from tc.polyhedral.proof.rewrites.verify_contraction import find_wrong_contraction
from tc.polyhedral.proof.rewrites.verify_copied_operands import find_wrong_copy
from tc.polyhedral.proof.rewrites.verify_dots import find_wrong_dots
from tc.polyhedral.proof.rewrites.verify_factored import find_wrong_factoring
from tc.polyhedral.proof.rewrites.verify_hoisted import find_wrong_hoisting
from tc.polyhedral.proof.rewrites.verify_pulled import find_wrong_pull
from tc.polyhedral.proof.rewrites.verify_recomputed import find_wrong_recomputation
from tc.polyhedral.proof.verify_initialization import prove_initialization
from tc.polyhedral.proof.verify_recurrences import prove_recurrences
from tc.polyhedral.proof.verify_scans import prove_scans
from tc.polyhedral.proof.verify_shares import prove_shares
from tc.polyhedral.proof.verify_split import prove_split
from tc.polyhedral.schedule.contract import contracted, contractions
from tc.polyhedral.schedule.counted import with_counts
from tc.polyhedral.schedule.factor_out import factor_out_sums
from tc.polyhedral.schedule.hoist import hoist_invariants
from tc.polyhedral.schedule.join_dimensions import join_dimensions
from tc.polyhedral.schedule.join_terms import join_terms
from tc.polyhedral.schedule.linear_recurrences import part_recurrences
from tc.polyhedral.schedule.pull import pull_reductions
from tc.polyhedral.schedule.scan import Scanning, scan_reductions
from tc.polyhedral.schedule.scatter import share_scatters
from tc.polyhedral.schedule.schedule import schedule_scop, untransformed_tree
from tc.polyhedral.schedule.split import Dealing, split_reductions
from tc.polyhedral.schedule.steps_in_chunks import chunk_contractions, steps_in_chunks
from tc.targets.options import Fusion

# What of a plan the rewritten program follows from, before reductions are split.
_Rewriting: TypeAlias = tuple[
    bool, bool, bool, int, bool, Scanning | None, Scanning | None, tuple[Dot, ...], tuple[Recomputed, ...]
]


def _rewriting(plan: Plan) -> _Rewriting:
    counted = plan.transposes, plan.pulls, plan.joins, plan.rereads
    return *counted, plan.hoists, plan.recurrences, plan.scans, plan.dots, plan.again


def _recounting(plan: Plan) -> Iterator[Callable[[Specialization], Iterator[tuple[Specialization, PulledStatement]]]]:
    """The rewritings that count the instances of statements in another way, in order."""
    if plan.pulls:
        yield pull_reductions
    if plan.joins:
        yield from (join_terms, join_dimensions)
    if plan.rereads:
        yield partial(join_reread_rows, least=plan.rereads)


_Made = TypeVar("_Made")


def _proven(
    found: Specialization,
    rewritten: Iterator[tuple[Specialization, _Made]],
    find_wrong: Callable[[Specialization, Specialization, _Made], Counterexample | None],
) -> tuple[Specialization, tuple[_Made, ...]]:
    """The last of the programs that a rewriting makes one after the other, and what was done; each step is proven."""
    every = list[_Made]()
    for changed, made in rewritten:
        wrong = find_wrong(found, changed, made)
        if wrong is not None:
            raise VerificationError(f"the rewriting of {made} is not proven correct: {wrong}")
        found, every = changed, [*every, made]
    return found, tuple(every)


class Schedules:
    """The scop of every way in which reductions are split, and the schedule of every fusion strategy of each.

    They are made when first asked for, of the isl context that they are first asked with.  ``max_operations``: of isl
    for what follows; by default as many as the statements need.  ``factored``: what was done to the program before.
    """

    def __init__(
        self, specialization: Specialization, max_operations: int | None, factored: tuple[FactoredOut, ...] = ()
    ) -> None:
        self.specialization: Final = specialization
        self.factored: Final = factored
        if max_operations is None:
            self.max_operations, self._to_schedule = needed_operations(specialization)
        else:
            self.max_operations, self._to_schedule = max_operations, max_operations // 2
        self._scops: dict[Plan, tuple[Specialization, Scop]] = {}
        self._splits: dict[Plan, tuple[Split, ...]] = {}
        self._initialized: set[Plan] = set()
        self._schedules: dict[tuple[Fusion, Plan], ScheduleTree] = {}
        self._with_parts: dict[_Rewriting, tuple[Specialization, tuple[LinearRecurrence, ...]]] = {}
        self._with_scans: dict[_Rewriting, tuple[Specialization, tuple[Grown, ...]]] = {}
        self._with_contractions: dict[_Rewriting, tuple[Specialization, tuple[Contraction, ...]]] = {}
        self._with_transposed: dict[_Rewriting, tuple[Specialization, tuple[CopiedOperand, ...]]] = {}
        self._with_dots: dict[_Rewriting, tuple[Specialization, tuple[Dots, ...]]] = {}
        self._with_hoisted: dict[_Rewriting, tuple[Specialization, tuple[Hoisted, ...]]] = {}
        self._with_collapsed: dict[_Rewriting, tuple[Specialization, tuple[CollapsedTensor, ...]]] = {}
        self._with_sampled: dict[_Rewriting, tuple[Specialization, tuple[CopiedOperand, ...]]] = {}
        self._with_pulled: dict[_Rewriting, tuple[Specialization, tuple[PulledStatement, ...]]] = {}
        self._unscheduled: set[tuple[Fusion, Plan]] = set()

    @classmethod
    def rescaled(cls, specialization: Specialization, max_operations: int | None) -> Schedules:
        """Of the program with weights of a softmax that are divided behind products, each of them proven."""
        found, factored = _proven(specialization, factor_out_sums(specialization), find_wrong_factoring)
        return cls(found, max_operations, factored)

    def scop(self, context: isl.Context, plan: Plan) -> Scop:
        """The statements, with reductions split; ``context`` must be the one that was entered."""
        specialization, scop = self._built(context, plan)
        if plan not in self._initialized:
            prove_initialization(specialization, scop)
            self._initialized.add(plan)
        return scop

    def _built(self, context: isl.Context, plan: Plan) -> tuple[Specialization, Scop]:
        """The program that the statements are of, and these, of which it is not proven yet where sums begin."""
        if plan not in self._scops:
            specialization, between_kernels, parts, threads = self._split(plan, context)
            if plan.counts:
                specialization = with_counts(specialization)
            if plan.shares:
                specialization, shared = share_scatters(unshared := specialization, plan.shares)
                prove_shares(unshared, specialization, shared, context, deterministic=plan.deterministic)
            for made in plan.chunks:
                specialization = contracted(whole := specialization, made)
                wrong = find_wrong_contraction(whole, specialization, made, context)
                if wrong is not None:
                    raise VerificationError(f"{made.tensor} in chunks of steps is not proven correct: {wrong}")
            scop = build_scop(specialization, context, plan.wide)
            scop = replace(
                scop, between_kernels=between_kernels, shared_parts=parts, row_threads=threads, chain=plan.chain
            )
            self._scops[plan] = specialization, scop
        return self._scops[plan]

    def _split(
        self, plan: Plan, context: isl.Context
    ) -> tuple[Specialization, frozenset[str], MappingProxyType[str, str], MappingProxyType[str, int]]:
        """The program with reductions split, step by step, each of them proven; what passes between kernels; and, by
        statement, what counts the blocks that share a reduction, and the threads that share its partial results.
        """
        between_kernels = frozenset[str]()
        parts: dict[str, str] = {}
        threads: dict[str, int] = {}
        every_split: tuple[Split, ...] = ()
        found = self._computed_again(plan, context)
        missing: dict[str, int] = {}
        for group in plan.groups:
            every = (statement.name for statement in found.program.statements)
            whose = {Whose.REDUCTIONS: frozenset(every) if group.among is None else group.among}
            for step in group.steps:
                changed, splits = split_reductions(found, step.parts, whose[step.whose], step.dealing)
                if step.required:
                    name = "split_k_blocks" if step.dealing is Dealing.RUNS else "split_k_threads"
                    missing[name] = 0 if splits else missing.get(name, step.parts)
                prove_split(found.program, changed.program, splits, context)
                found, every_split = changed, (*every_split, *splits)
                totals = frozenset(done.total for done in splits)
                if step.whose is Whose.REDUCTIONS and step.dealing is Dealing.TURNS and not step.required:
                    threads |= {done.statement: step.parts for done in splits}
                threads |= {done.total: threads[done.statement] for done in splits if done.statement in threads}
                if step.dealing is Dealing.RUNS:
                    whose[Whose.ACROSS_BLOCKS] = totals
                    names = {done.statement for done in splits}
                    between_kernels |= {s.target for s in found.program.statements if s.name in names}
                    parts |= {done.statement: done.part for done in splits}
                else:
                    whose[Whose.TOTALS] = totals
                    parts |= {done.total: parts[done.statement] for done in splits if done.statement in parts}
        for name, asked in missing.items():
            if asked:
                raise OptionsError(
                    f"{name} asks for {asked} partial results, but no reduction of {found.program.name} has a loop "
                    "that always has more iterations than that; make it smaller, or leave it out"
                )
        if plan.chain is not None:
            reductions = plan.chain.reductions
            combining = [done.total for done in every_split if done.statement in reductions]
            found = _proven(found, handed_over(found, combining), find_wrong_hoisting)[0]
        self._splits[plan] = every_split
        return found, between_kernels, MappingProxyType(parts), MappingProxyType(threads)

    def _sampled(self, plan: Plan) -> Specialization:
        """The program with copies of what products read in steps, where each read is proven to find the same."""
        if not plan.transposes:
            return self.specialization
        key = _rewriting(plan)
        if key not in self._with_sampled:
            self._with_sampled[key] = _proven(
                self.specialization, sample_operands(self.specialization), find_wrong_copy
            )
        return self._with_sampled[key][0]

    def _pulled(self, plan: Plan, context: isl.Context) -> Specialization:
        """The program with reductions in pull form, and loops that are joined, each of them proven."""
        key = _rewriting(plan)
        if key not in self._with_pulled:
            found, every = self._sampled(plan), tuple[PulledStatement, ...]()
            prove = partial(find_wrong_pull, context=context)
            for rewrite in _recounting(plan):
                found, made = _proven(found, rewrite(found), prove)
                every += made
            self._with_pulled[key] = found, every
        return self._with_pulled[key][0]

    def _collapsed(self, plan: Plan, context: isl.Context) -> Specialization:
        """The program with dimensions as one that are counted together, each of them proven."""
        found = self._pulled(plan, context)
        if not plan.joins:
            return found
        key = _rewriting(plan)
        if key not in self._with_collapsed:
            self._with_collapsed[key] = _proven(found, collapse_dimensions(found), find_wrong_collapse)
        return self._with_collapsed[key][0]

    def _in_parts(self, plan: Plan, context: isl.Context) -> Specialization:
        """The program with linear recurrences in parts, proven."""
        found = self._collapsed(plan, context)
        if plan.recurrences is None:
            return found
        key = _rewriting(plan)
        if key not in self._with_parts:
            changed, made = part_recurrences(found, context, plan.recurrences)
            prove_recurrences(found, changed, made, context)
            self._with_parts[key] = changed, made
        return self._with_parts[key][0]

    def _scanned(self, plan: Plan, context: isl.Context) -> Specialization:
        """The program with scans, proven; what is carried between blocks of one may be the next."""
        found = self._in_parts(plan, context)
        if plan.scans is None:
            return found
        key = _rewriting(plan)
        if key not in self._with_scans:
            try:
                self._with_scans[key] = _with_scans(found, context, plan.scans)
            except isl.Error as error:
                if not is_out_of_operations(error):
                    raise
                # What takes isl too long to show is computed element by element.
                context.reset_operations()
                self._with_scans[key] = found, ()
        return self._with_scans[key][0]

    def _contracted(self, plan: Plan, context: isl.Context) -> Specialization:
        """The program with temporaries that hold the last steps only, where each read is proven to find the same."""
        key = _rewriting(plan)
        if key not in self._with_contractions:
            found, every = self._scanned(plan, context), list[Contraction]()
            for proposals in contractions(found):
                for proposed in proposals:
                    changed = contracted(found, proposed)
                    if find_wrong_contraction(found, changed, proposed, context) is None:
                        found, every = changed, [*every, proposed]
                        break
            self._with_contractions[key] = found, tuple(every)
        return self._with_contractions[key][0]

    def _hoisted(self, plan: Plan, context: isl.Context) -> Specialization:
        """The program with what many instances share computed once, each part of it proven."""
        found = self._contracted(plan, context)
        if not plan.hoists:
            return found
        key = _rewriting(plan)
        if key not in self._with_hoisted:
            self._with_hoisted[key] = _proven(found, hoist_invariants(found), find_wrong_hoisting)
        return self._with_hoisted[key][0]

    def _dotted(self, plan: Plan, context: isl.Context) -> Specialization:
        """The program with dot products of words, each of them proven."""
        found = self._hoisted(plan, context)
        if not plan.dots:
            return found
        key = _rewriting(plan)
        if key not in self._with_dots:
            self._with_dots[key] = _proven(found, dot_products(found, plan.dots), find_wrong_dots)
        return self._with_dots[key][0]

    def _transposed(self, plan: Plan, context: isl.Context) -> Specialization:
        """The program with transposed operands, where each read is proven to find the same."""
        found = self._dotted(plan, context)
        if not plan.transposes:
            return found
        key = _rewriting(plan)
        if key not in self._with_transposed:
            self._with_transposed[key] = _proven(found, transpose_operands(found), find_wrong_copy)
        return self._with_transposed[key][0]

    def _computed_again(self, plan: Plan, context: isl.Context) -> Specialization:
        """The program with statements that are computed once more, each of them proven."""
        found = self._transposed(plan, context)
        return _proven(found, recompute(found, plan.again), find_wrong_recomputation)[0] if plan.again else found

    def pulled(self, plan: Plan) -> tuple[PulledStatement, ...]:
        """Which reductions are in pull form, in the statements that were asked for before."""
        return self._with_pulled[_rewriting(plan)][1]

    def sampled(self, plan: Plan) -> tuple[CopiedOperand, ...]:
        """Of which operands there are copies of elements in steps, in the statements that were asked for before."""
        return self._with_sampled[_rewriting(plan)][1] if plan.transposes else ()

    def collapsed(self, plan: Plan) -> tuple[CollapsedTensor, ...]:
        """Which dimensions are one, in the statements that were asked for before."""
        return self._with_collapsed[_rewriting(plan)][1] if plan.joins else ()

    def hoisted(self, plan: Plan) -> tuple[Hoisted, ...]:
        """Which parts of values are computed once, in the statements that were asked for before."""
        return self._with_hoisted[_rewriting(plan)][1] if plan.hoists else ()

    def dots(self, plan: Plan) -> tuple[Dots, ...]:
        """Which sums are dot products of words, in the statements that were asked for before."""
        return self._with_dots[_rewriting(plan)][1] if plan.dots else ()

    def transposed(self, plan: Plan) -> tuple[CopiedOperand, ...]:
        """Which operands are transposed, in the statements that were asked for before."""
        return self._with_transposed[_rewriting(plan)][1] if plan.transposes else ()

    def contractions(self, plan: Plan) -> tuple[Contraction, ...]:
        """Which temporaries hold the last steps only, in the statements that were asked for before."""
        return (*self._with_contractions[_rewriting(plan)][1], *plan.chunks)

    def splits(self, plan: Plan) -> tuple[Split, ...]:
        """Which reductions have parts in statements of their own, in the statements that were asked for before."""
        return self._splits[plan]

    def scans(self, plan: Plan) -> tuple[Grown, ...]:
        """What is computed as a scan, in the statements that were asked for before."""
        return () if plan.scans is None else self._with_scans[_rewriting(plan)][1]

    def recurrences(self, plan: Plan) -> tuple[LinearRecurrence, ...]:
        """What is computed in parts, in the statements that were asked for before."""
        return () if plan.recurrences is None else self._with_parts[_rewriting(plan)][1]

    def schedule(self, fusion: Fusion, context: isl.Context, plan: Plan) -> ScheduleTree:
        """isl's schedule if its budget suffices for it, else the program's own order."""
        found = self._schedules.get((fusion, plan))
        if found is None:
            assert not plan.chunks, "chunks of steps are found once there is a schedule"
            _, scop = self._built(context, plan)
            scheduled = self._scheduled(scop, fusion, context)
            if scheduled is None:
                self._unscheduled.add((fusion, plan))
            found = self._schedules[fusion, plan] = untransformed_tree(scop) if scheduled is None else scheduled
        return found

    def needed(self, plan: Plan, context: isl.Context) -> Plan:
        """The plan without rewritings that change nothing: candidates with and without them share all that follows."""
        if plan.joins and self._pulled(plan, context) == self._pulled(replace(plan, joins=False), context):
            plan = replace(plan, joins=False)
        if plan.hoists:
            self._hoisted(plan, context)
            plan = plan if self.hoisted(plan) else replace(plan, hoists=False)
        return plan

    def in_chunks(self, fusion: Fusion, context: isl.Context, plan: Plan) -> Plan:
        """The plan in which what leaves blocks is computed for a chunk of their steps at a time, where it helps."""
        tree = self.schedule(fusion, context, plan)
        made = chunk_contractions(tree, self._built(context, plan)[1])
        if not made:
            return plan
        chunked = replace(plan, chunks=made)
        if (fusion, chunked) not in self._schedules:
            found = steps_in_chunks(tree, self._built(context, chunked)[1], made)
            if found is None:
                return plan
            self._schedules[fusion, chunked] = found
        return chunked

    def is_scheduled(self, fusion: Fusion, plan: Plan) -> bool:
        """Whether isl's budget sufficed for the schedule that was asked for before."""
        return (fusion, replace(plan, chunks=())) not in self._unscheduled

    def _scheduled(self, scop: Scop, fusion: Fusion, context: isl.Context) -> ScheduleTree | None:
        context.reset_operations()
        context.set_max_operations(self._to_schedule)
        try:
            with budget_told(context):
                tree = schedule_scop(scop, fusion)
        except isl.Error as error:
            if not is_out_of_operations(error):
                raise
            tree = None
        context.reset_operations()
        context.set_max_operations(self.max_operations)
        return tree


def _with_scans(
    specialization: Specialization, context: isl.Context, scanning: Scanning
) -> tuple[Specialization, tuple[Grown, ...]]:
    """The program with scans, proven, and what they are; isl.Error where that takes more than its budget."""
    found, every = specialization, list[Grown]()
    with budget_told(context):
        while True:
            changed, scans = scan_reductions(found, context, scanning)
            prove_scans(found, changed, scans, context)
            if not scans:
                return found, tuple(every)
            found, every = changed, [*every, *scans]
