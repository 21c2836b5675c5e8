"""The way from a specialization to proven loops: one literal list of passes, run with timing and proofs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Final

import islpy as isl

from tc.base.errors import CompileError, OptionsError
from tc.base.frozen import frozen
from tc.base.proof import Proof
from tc.base.remembered import Remembered
from tc.base.stage import Stage
from tc.language.isl.session import is_out_of_operations, isl_context
from tc.language.program.specialization import Specialization
from tc.polyhedral.analysis.ranges import size_ranges
from tc.polyhedral.analysis.reads import accesses
from tc.polyhedral.attempts import Attempt, first_attempt, next_attempt
from tc.polyhedral.completed import completed
from tc.polyhedral.cpu.surplus import refuse_surplus_sizes
from tc.polyhedral.execution.tree_execution import tree_execution
from tc.polyhedral.generate.block_sums import block_sums
from tc.polyhedral.generate.describe_kernels import describe_kernels
from tc.polyhedral.generate.describe_sums import describe_sums
from tc.polyhedral.generate.generate import generate_loops
from tc.polyhedral.generate.leaves import leaves_of
from tc.polyhedral.generate.localize import NotAffineError
from tc.polyhedral.generate.long_sums import long_sums
from tc.polyhedral.generate.missing_instances import has_missing_instances
from tc.polyhedral.generate.obstacles import DivergentSteps, InBuffers, LongSums, MissingInstances, Obstacle
from tc.polyhedral.generate.outermost_nests import OutermostNest, outermost_nests
from tc.polyhedral.generate.unroll_copies import unroll_copies
from tc.polyhedral.gpu.feasibility.infeasible_buffers import infeasible_buffers
from tc.polyhedral.gpu.feasibility.unused_warp_tiles import unused_warp_tiles
from tc.polyhedral.gpu.mapping.map_to_grid import refuse_surplus_dimensions
from tc.polyhedral.gpu.mapping.split_plan import Plan
from tc.polyhedral.grid_passes import (
    GRID_LOOP_PASSES,
    GRID_PASSES,
    JOINING_ROWS,
    LAST_GRID_LOOP_PASSES,
    MAP,
    PROMOTING_RESULTS,
    grid_of,
    joined_limits,
    launches_steps,
    tiles_of,
)
from tc.polyhedral.ir.copies import count_copies
from tc.polyhedral.ir.loop_text import loop_text
from tc.polyhedral.ir.loops import LoopProgram, LoopTree, StatementBody
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import ScheduleTree, tree_text
from tc.polyhedral.outcome import Facts, settled
from tc.polyhedral.passes import run_passes
from tc.polyhedral.processor_passes import LOOP_PASSES, PASSES, PREFETCH_PASSES, REGISTER_TILE, panels_of, streamed_by
from tc.polyhedral.proof.demands import demands_of
from tc.polyhedral.proof.printed.verify_surplus import prove_surplus
from tc.polyhedral.proof.verify import prove
from tc.polyhedral.proof.verify_copies import prove_copies
from tc.polyhedral.proof.verify_statements import prove_statements
from tc.polyhedral.prove_passes import execution_of, prove_loops_after, prove_tree_after
from tc.polyhedral.schedules import Schedules
from tc.polyhedral.steps.step import steps_text
from tc.polyhedral.steps.steps_of import steps_of
from tc.polyhedral.transform.chosen_sizes import RegisterTile, Sizes, register_tiles, tile_sizes
from tc.polyhedral.transform.mark_split_loops import mark_split_loops
from tc.polyhedral.transform.sums import divided_sums, keep_sums_whole
from tc.targets.machine import CpuMachine, GpuMachine, Machine
from tc.targets.options import CpuOptions, Fusion, GpuOptions, Options


@frozen
class MappedProgram:
    """Loops that are proven, with what they are made with, and the trees they came from as text."""

    loops: LoopProgram
    proof: Proof
    attempt: Attempt
    stages: tuple[Stage, ...]

    def stage(self, name: str) -> Stage:
        """The stage called ``name``; KeyError if there is none."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(name)


def map_program(
    specialization: Specialization,
    options: Options,
    machine: Machine,
    *,
    verify_every_pass: bool = False,
    max_operations: int | None = None,
) -> MappedProgram:
    """Schedule, transform, generate, and prove the schedule and what was generated.

    ``max_operations``: of isl; by default as many as the statements need.
    The final tree and the generated loops are always proven; ``verify_every_pass`` proves what every pass
    makes, which takes several times as long.
    Where scheduling exhausts isl's budget the program keeps its order, untransformed.  CompileError if a proof or the
    generation exhausts it, too; VerificationError if a proof fails.
    """
    prepared = Prepared(specialization, max_operations=max_operations)
    with prepared.generated(options, machine, verify_every_pass=verify_every_pass) as generated:
        return generated.proven()


@frozen
class Generated:
    """Loops that may be printed, and must be proven before they run; ``attempt``: what they are made with, and why."""

    loops: LoopProgram
    attempt: Attempt
    stages: tuple[Stage, ...]
    prove_schedule: Callable[[], Proof]
    prove_loops: Callable[[], Proof]

    def proven(self) -> MappedProgram:
        """The loops once the schedule that they came from and they themselves are proven; VerificationError if not."""
        schedule = _timed("verify schedule", self.prove_schedule)[1]
        proof, code = _timed("verify code", self.prove_loops)
        return MappedProgram(self.loops, proof, self.attempt, (*self.stages, schedule, code))


def _timed(name: str, prove: Callable[[], Proof]) -> tuple[Proof, Stage]:
    started = time.perf_counter()
    proof = prove()
    return proof, Stage(name, time.perf_counter() - started, str(proof))


class Prepared:
    """What all compilations of a specialization share: its scop, and the schedule of every fusion strategy.

    Both are made when first asked for.  Safe from many threads, of which one at a time is inside; the isl context lives
    as long as this object.
    """

    def __init__(self, specialization: Specialization, *, max_operations: int | None = None) -> None:
        self.specialization: Final = specialization
        self._schedules: Final = Schedules(specialization, max_operations)
        self._rescaled: Final = cache(lambda: Schedules.rescaled(specialization, max_operations))
        self._context = isl.Context()

    @property
    def max_operations(self) -> int:
        """Of isl, for one compilation."""
        return self._schedules.max_operations

    @contextmanager
    def generated(self, options: Options, machine: Machine, *, verify_every_pass: bool = False) -> Iterator[Generated]:
        """The loops for one choice of options, to be proven before the block ends; errors are ``map_program``'s."""
        schedules = self._rescaled() if options.numerics.rescaled_softmax else self._schedules
        try:
            with isl_context(schedules.max_operations, self._context) as context:
                yield _attempted(context, schedules, options, machine, verify_every_pass)
        except isl.Error as error:
            if not is_out_of_operations(error):
                raise
            name = self.specialization.program.name
            raise CompileError(
                f"{name}: the proof or the generation of its loops exceeds isl's budget of {schedules.max_operations} "
                "operations; choose other tiles, or split the definition into several"
            ) from error


def _attempted(
    context: isl.Context, schedules: Schedules, options: Options, machine: Machine, verify_every_pass: bool
) -> Generated:
    """The loops of the first attempt that meets no obstacle."""
    specialization, started = schedules.specialization, time.perf_counter()
    if isinstance(machine, GpuMachine):
        machine = machine.with_products(options.numerics.products)
    attempt, first = first_attempt(specialization, options, machine), True
    while True:
        begun = time.perf_counter()
        found = _Run(context, schedules, attempt, machine, verify_every_pass).generate()
        if isinstance(found, Generated):
            return found if first else replace(found, stages=(*found.stages, _earlier(begun - started, attempt)))
        attempt, first = next_attempt(specialization, machine, attempt, found), False


def _earlier(seconds: float, attempt: Attempt) -> Stage:
    return Stage("earlier attempts", seconds, "\n".join(map(str, attempt.decisions)))


# As many as the largest ``unroll`` allows in one loop.  To print and compile the text of several such loops takes too
# long.
_MOST_COPIES: Final = 4096


_MISMATCH: Final = "the options are those of the machine"


class _Run:
    """One run of the pipeline, collecting stages."""

    def __init__(
        self,
        context: isl.Context,
        schedules: Schedules,
        attempt: Attempt,
        machine: Machine,
        verify_every_pass: bool,
    ) -> None:
        self.context = context
        self.schedules = schedules
        self.attempt = attempt
        self.options = attempt.options
        self.machine = machine
        self.verify_every_pass = verify_every_pass
        self.stages: list[Stage] = []
        self.texts = Remembered[str]()
        self.changed: list[tuple[str, LoopTree]] = []  # by which pass, to be proven
        self.started = time.perf_counter()

    def done(self, name: str, made: str | Callable[[], str]) -> None:
        now = time.perf_counter()
        self.stages.append(Stage(name, now - self.started, made))
        self.started = time.perf_counter()

    def done_to_statements(self, plan: Plan) -> None:
        """Says what became of those that are computed in another way."""
        done = (
            ("softmax", self.schedules.factored),
            ("sampled operands", self.schedules.sampled(plan)),
            ("pull forms", self.schedules.pulled(plan)),
            ("collapsed dimensions", self.schedules.collapsed(plan)),
            ("recurrences", self.schedules.recurrences(plan)),
            ("scans", self.schedules.scans(plan)),
            ("contractions", self.schedules.contractions(plan)),
            ("invariants", self.schedules.hoisted(plan)),
            ("dot products", self.schedules.dots(plan)),
            ("transposed operands", self.schedules.transposed(plan)),
            ("scatters", plan.shares),
        )
        for name, rewritten in done:
            if rewritten:
                self.done(name, "\n".join(map(str, rewritten)))

    def generate(self) -> Generated | Obstacle:
        """The loops, or why there are none to take."""
        fusion, plan = self.options.schedule.fusion, self.plan()
        scop = replace(self.schedules.scop(self.context, plan), products=self.options.numerics.products)
        self.done_to_statements(plan)
        self.done("scop", "\n".join(f"{s.name}: {s.domain}" for s in scop.statements))
        tree = self.schedules.schedule(fusion, self.context, plan)
        self.done("schedule", tree_text(tree, self.texts))
        tree = mark_split_loops(tree, scop)
        # Statements without instances are not scheduled, and there is nothing to prove of them.
        scheduled = tuple(s for s in scop.statements if not s.domain.is_empty())
        complete = len(scheduled) == len(scop.statements)
        if complete:  # else there may be loops at other sizes
            self.refuse_surplus(tree, scop)
        scop = program = replace(scop, statements=scheduled)
        if self.attempt.whole_sums:
            tree = keep_sums_whole(tree)
        trees: dict[str, ScheduleTree] = {}
        for name, changed, promoted in self.passes(tree, scop):
            tree, scop = changed, promoted
            trees[name] = tree
            self.done(name, tree_text(tree, self.texts))
            if self.verify_every_pass:
                prove_tree_after(name, tree, scop, self.machine)
            if name in PROMOTING_RESULTS and (long := long_sums(tree, scop)):
                return unused_warp_tiles(tree, scop, None) or LongSums(long)
        found = self.loops(tree, scop)
        if isinstance(found, InBuffers | DivergentSteps):
            return unused_warp_tiles(tree, scop, found) or found
        root, printed = found
        if (unused := unused_warp_tiles(tree, scop, root)) is not None:
            return unused
        if not self.attempt.whole_sums and has_missing_instances(root, scop, divided_sums(tree)):
            return MissingInstances()
        nests = self.nests(root, scop)
        copies = self.unrolled(printed)
        loops = self.loop_program(scop, self.prefetching(copies, scop))
        blocked = block_sums(loops)
        if blocked.left:
            return LongSums(blocked.left)
        loops = replace(loops, blocked=blocked.root)
        sums = describe_sums(blocked.root, plan.wide)
        if sums:
            self.done("sums", sums)
        steps = steps_of(tree, scop, self.machine, blocked.root, self.schedules.splits(plan))
        self.done("steps", steps_text(steps))

        demands = cache(lambda: demands_of(scop))

        def prove_schedule() -> Proof:
            prove_statements(program, scop)
            return prove(scop, tree_execution(tree, self.context, scop.barrier_names), "schedule", demands())

        def prove_loops() -> Proof:
            prove_surplus(root, printed, scop)
            prove_copies(printed, loops.root)
            return prove(scop, execution_of(root, tree, scop), "generated code", demands())

        in_budget = self.schedules.is_scheduled(fusion, plan)
        for name, loop_tree in self.changed:
            prove_loops_after(name, loop_tree, tree, scop, demands())
        facts = Facts(loops.root, scop, in_budget, complete, nests, *self.tiles(trees, program))
        return Generated(loops, settled(self.attempt, facts), tuple(self.stages), prove_schedule, prove_loops)

    def plan(self) -> Plan:
        """What is done to reductions, and on a processor to what blocks leave outside."""
        plan, schedule = self.schedules.needed(self.attempt.plan, self.context), self.options.schedule
        # Explicit sizes of tiles are those of the loops of the program.
        chunks = (
            isinstance(self.options, CpuOptions) and schedule.tile is None and schedule.fusion is not Fusion.MINIMAL
        )
        return self.schedules.in_chunks(schedule.fusion, self.context, plan) if chunks else plan

    def refuse_surplus(self, tree: ScheduleTree, scop: Scop) -> None:
        """OptionsError for sizes that no loop is left for."""
        refuse_surplus_sizes(tree, scop, self.options)
        match self.options, self.machine:
            case GpuOptions() as options, GpuMachine() as machine:
                tiles, grid = tiles_of(options, scop, machine), grid_of(options, scop, machine)
                refuse_surplus_dimensions(tree, tiles, grid, launched_steps=launches_steps(options))

    def tiles(self, trees: Mapping[str, ScheduleTree], scop: Scop) -> tuple[Sizes, Mapping[str, RegisterTile]]:
        """By statement, the sizes of its tiles and of its register tile."""
        match self.options, self.machine:
            case CpuOptions() as options, CpuMachine():
                tree = trees[REGISTER_TILE]
                return tile_sizes(tree, panels_of(options, scop)), register_tiles(tree, scop)
            case GpuOptions() as options, GpuMachine() as machine:
                return tile_sizes(trees[MAP], tiles_of(options, scop, machine)), {}
            case _:
                raise AssertionError(_MISMATCH)

    def nests(self, root: LoopTree, scop: Scop) -> tuple[OutermostNest, ...]:
        """What becomes the kernels of a GPU."""
        match self.options, self.machine:
            case GpuOptions() as options, GpuMachine() as machine:
                found = tuple(outermost_nests(root, scop, size_ranges(scop.sizes)))
                limits = joined_limits(options, machine)
                self.done("kernels", "\n".join(describe_kernels(found, scop, options, limits)))
                return found
            case _:
                return ()

    def loops(self, tree: ScheduleTree, scop: Scop) -> tuple[LoopTree, LoopTree] | InBuffers | DivergentSteps:
        """The loops of the tree, and those that are printed, or what is wrong or keeps them from being made."""
        buffers = [promotion.buffer for promotion in scop.promotions]
        leaves = leaves_of(scop, self.streamed(scop))
        root = generate_loops(tree, self.context, buffers, scop.sizes, leaves)
        self.done("generate", partial(loop_text, root))
        try:
            match self.options, self.machine:
                case CpuOptions() as options, CpuMachine() as machine:
                    root = self.timed(root, run_passes(LOOP_PASSES, root, scop, options, machine))
                    return root, root
                case GpuOptions() as options, GpuMachine() as machine:
                    root = self.timed(root, run_passes(GRID_LOOP_PASSES, root, scop, options, machine))
                    proven = self.timed(root, run_passes(LAST_GRID_LOOP_PASSES, root, scop, options, machine))
                    name = self.schedules.specialization.program.name
                    wrong = infeasible_buffers(proven, scop, options, name)
                    return wrong or (proven, self.noted(completed(root, proven, scop, options, machine), proven))
                case _:
                    raise AssertionError(_MISMATCH)
        except NotAffineError:
            return InBuffers.NOT_AFFINE

    def timed(self, root: LoopTree, made: Iterator[tuple[str, LoopTree, Scop]]) -> LoopTree:
        """The last of the loops that passes make of these."""
        for name, changed, _ in made:
            self.done(name, "" if changed is root else partial(loop_text, changed))
            if self.verify_every_pass and changed is not root:
                self.changed.append((name, changed))
            root = changed
        return root

    def noted(self, printed: LoopTree, proven: LoopTree) -> LoopTree:
        """The loops that are printed, as a stage."""
        self.done("complete tiles", "" if printed is proven else partial(loop_text, printed))
        return printed

    def unrolled(self, root: LoopTree) -> LoopTree:
        """The loops with copies in the place of those that are unrolled; OptionsError where these are too many."""
        count = count_copies(root)
        unroll = self.options.schedule.unroll
        if unroll > 1 and count > _MOST_COPIES:
            raise OptionsError(
                f"unroll={unroll} writes out {count} statements, conditions and loops for "
                f"{self.schedules.specialization.program.name}, more than {_MOST_COPIES}, the most that a kernel may "
                "hold; make it smaller"
            )
        return unroll_copies(root)

    def passes(self, tree: ScheduleTree, scop: Scop) -> Iterator[tuple[str, ScheduleTree, Scop]]:
        """What every pass of the target made, by name."""
        match self.options, self.machine:
            case CpuOptions() as options, CpuMachine() as machine:
                return run_passes(PASSES, tree, scop, options, machine)
            case GpuOptions() as options, GpuMachine() as machine:
                passes = tuple(own for own in GRID_PASSES if own[0] != JOINING_ROWS or not self.attempt.whole_sums)
                return run_passes(passes, tree, scop, options, machine)
            case _:
                raise AssertionError(_MISMATCH)

    def prefetching(self, root: LoopTree, scop: Scop) -> LoopTree:
        """The loops with prefetches, on a processor."""
        match self.options, self.machine:
            case CpuOptions() as options, CpuMachine() as machine:
                return self.timed(root, run_passes(PREFETCH_PASSES, root, scop, options, machine))
            case _:
                return root

    def streamed(self, scop: Scop) -> frozenset[str]:
        """The results that are stored with non-temporal stores."""
        match self.options, self.machine:
            case CpuOptions() as options, CpuMachine() as machine:
                return streamed_by(scop, options, machine)
            case _:
                return frozenset()

    def loop_program(self, scop: Scop, root: LoopTree) -> LoopProgram:
        program = self.schedules.specialization.program
        loops = LoopProgram(
            name=program.name,
            buffers=scop.buffers,
            temporaries=tuple(t for t in scop.temporaries if any(_mentions(s.body, t.name) for s in scop.statements)),
            scalars=tuple((scalar.name, scalar.type) for scalar in program.scalars),
            sizes=scop.sizes,
            bodies=tuple(statement.body for statement in scop.statements),
            root=root,
            checked=self.options.check_indices,
            promoted=tuple(promotion.buffer for promotion in scop.promotions),
        )
        match self.options, self.machine:
            case GpuOptions() as options, GpuMachine() as machine:
                resident = options.min_blocks_per_multiprocessor
                return replace(loops, resident=resident, multiprocessors=machine.multiprocessors)
            case _:
                return loops


def _mentions(body: StatementBody, tensor: str) -> bool:
    """Whether the statement touches the tensor itself, and not only a buffer that stands for it."""
    return any(name == tensor for name, _ in accesses(body))
