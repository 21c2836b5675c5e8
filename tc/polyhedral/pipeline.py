"""The way from a specialization to proven loops: one literal list of passes, run with timing and proofs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Final, assert_never

import islpy as isl

from tc.base.errors import CompileError, OptionsError
from tc.base.proof import Proof
from tc.base.stage import Stage
from tc.language.isl.affine import parameter_name
from tc.language.isl.session import MAX_OPERATIONS, is_out_of_operations, isl_context
from tc.language.program.specialization import Specialization
from tc.polyhedral.analysis.ranges import Range
from tc.polyhedral.analysis.strides import accesses
from tc.polyhedral.cpu.surplus import refuse_surplus_sizes
from tc.polyhedral.execution.loop_execution import loop_execution
from tc.polyhedral.execution.tree_execution import member_values, tree_execution
from tc.polyhedral.generate.block_sums import block_sums
from tc.polyhedral.generate.constant_guards import without_constant_guards
from tc.polyhedral.generate.constant_trip_counts import constant_trip_counts
from tc.polyhedral.generate.constant_unroll_bounds import constant_unroll_bounds
from tc.polyhedral.generate.describe_kernels import describe_kernels
from tc.polyhedral.generate.describe_sums import describe_sums
from tc.polyhedral.generate.generate import generate_loops
from tc.polyhedral.generate.guard_nests import guard_nests
from tc.polyhedral.generate.join_kernels import Limits, join_kernels
from tc.polyhedral.generate.localize import NotAffineError, localize_loops
from tc.polyhedral.generate.missing_instances import has_missing_instances
from tc.polyhedral.generate.separate import separate_tiles
from tc.polyhedral.generate.separate_counts import separate_counts
from tc.polyhedral.generate.unroll_copies import count_copies, unroll_copies
from tc.polyhedral.gpu.feasibility.fewer_buffers import fewer_buffers
from tc.polyhedral.gpu.mapping.map_to_grid import refuse_surplus_dimensions
from tc.polyhedral.gpu.mapping.split_plan import Plan, Whose, plan_split
from tc.polyhedral.ir.loops import LoopProgram, LoopTree, StatementBody
from tc.polyhedral.ir.scop import Scop, build_scop
from tc.polyhedral.ir.tree import ScheduleTree, tree_text
from tc.polyhedral.passes import GRID_PASSES, JOINING_ROWS, PASSES, Machine, grid_of, streamed_by, tiles_of
from tc.polyhedral.proof.demands import demands_of
from tc.polyhedral.proof.verify import prove
from tc.polyhedral.proof.verify_copies import prove_copies
from tc.polyhedral.proof.verify_initialization import prove_initialization
from tc.polyhedral.proof.verify_split import prove_split
from tc.polyhedral.proof.verify_statements import prove_statements
from tc.polyhedral.schedule.schedule import schedule_scop, untransformed_tree
from tc.polyhedral.schedule.split import Dealing, split_reductions
from tc.polyhedral.transform.mark_split_loops import mark_split_loops
from tc.polyhedral.transform.sums import divided_sums, keep_sums_whole
from tc.targets.options import CpuOptions, Fusion, GpuOptions, Options


@dataclass(frozen=True, slots=True)
class MappedProgram:
    """Loops that are proven, with the trees they came from as text."""

    loops: LoopProgram
    proof: Proof
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

    ``max_operations``: of isl; by default so many for each statement.
    The final tree and the generated loops are always proven; ``verify_every_pass`` proves the tree after every pass.
    Where scheduling exhausts isl's budget the program keeps its order, untransformed.  CompileError if a proof or the
    generation exhausts it, too; VerificationError if a proof fails.
    """
    prepared = Prepared(specialization, max_operations=max_operations)
    with prepared.generated(options, machine, verify_every_pass=verify_every_pass) as generated:
        return generated.proven()


@dataclass(frozen=True, slots=True)
class Generated:
    """Loops that may be printed, and must be proven before they run."""

    loops: LoopProgram
    stages: tuple[Stage, ...]
    prove_schedule: Callable[[], Proof]
    prove_loops: Callable[[], Proof]

    def proven(self) -> MappedProgram:
        """The loops once the schedule that they came from and they themselves are proven; VerificationError if not."""
        schedule = _timed("verify schedule", self.prove_schedule)[1]
        proof, code = _timed("verify code", self.prove_loops)
        return MappedProgram(self.loops, proof, (*self.stages, schedule, code))


def _timed(name: str, prove: Callable[[], Proof]) -> tuple[Proof, Stage]:
    started = time.perf_counter()
    proof = prove()
    return proof, Stage(name, time.perf_counter() - started, str(proof))


_WHOLE: Final = Plan()


# Two to four seconds of isl's work: to learn that options are refused must not take longer.
_PER_STATEMENT: Final = 4_000_000
# To schedule takes longer, and is the same for all options with one fusion strategy.
_TO_SCHEDULE: Final = 6_000_000


def _budget(specialization: Specialization, each: int) -> int:
    """Operations for something that isl does for a compilation; ``each``: for every statement."""
    return min(MAX_OPERATIONS, each * max(1, len(specialization.program.statements)))


class Prepared:
    """What all compilations of a specialization share: its scop, and the schedule of every fusion strategy.

    Both are made when first asked for.  Safe from many threads, of which one at a time is inside; the isl context lives
    as long as this object.
    """

    def __init__(self, specialization: Specialization, *, max_operations: int | None = None) -> None:
        self.specialization: Final = specialization
        if max_operations is None:
            self.max_operations = _budget(specialization, _PER_STATEMENT)
            self._to_schedule = _budget(specialization, _TO_SCHEDULE)
        else:
            self.max_operations, self._to_schedule = max_operations, max_operations // 2
        self._context = isl.Context()
        self._scops: dict[Plan, Scop] = {}
        self._schedules: dict[tuple[Fusion, Plan], ScheduleTree] = {}

    @contextmanager
    def generated(self, options: Options, machine: Machine, *, verify_every_pass: bool = False) -> Iterator[Generated]:
        """The loops for one choice of options, to be proven before the block ends; errors are ``map_program``'s."""
        with isl_context(self.max_operations, self._context) as context:
            try:
                yield _Run(context, self, options, machine, verify_every_pass).generate()
            except isl.Error as error:
                if not is_out_of_operations(error):
                    raise
                name = self.specialization.program.name
                raise CompileError(
                    f"{name}: the proof or the generation of its loops exceeds isl's budget of {self.max_operations} "
                    "operations; choose other tiles, or split the definition into several"
                ) from error

    def scop(self, context: isl.Context, plan: Plan = _WHOLE) -> Scop:
        """The statements, with reductions split; ``context`` must be the one that was entered."""
        if plan not in self._scops:
            specialization, between_kernels, parts = self._split(plan, context)
            scop = build_scop(specialization, context, plan.wide)
            prove_initialization(specialization, scop)
            self._scops[plan] = replace(scop, between_kernels=between_kernels, shared_parts=parts)
        return self._scops[plan]

    def _split(
        self, plan: Plan, context: isl.Context
    ) -> tuple[Specialization, frozenset[str], MappingProxyType[str, str]]:
        """The program with reductions split, step by step, each of them proven; what passes between kernels; and, by
        statement, what counts the blocks that share a reduction.
        """
        between_kernels = frozenset[str]()
        parts: dict[str, str] = {}
        found = self.specialization
        among = frozenset(s.name for s in found.program.statements) if plan.among is None else plan.among
        whose = {Whose.REDUCTIONS: among}
        for step in plan.steps:
            changed, splits = split_reductions(found, step.parts, whose[step.whose], step.dealing)
            if step.required and not splits:
                name = "across" if step.dealing is Dealing.RUNS else "split"
                raise OptionsError(
                    f"{name} asks for {step.parts} partial results, but no reduction of {found.program.name} has a "
                    "loop that always has more iterations than that; make it smaller, or leave it out"
                )
            prove_split(found.program, changed.program, splits, context)
            found = changed
            totals = frozenset(done.total for done in splits)
            if step.dealing is Dealing.RUNS:
                whose[Whose.ACROSS_BLOCKS] = totals
                names = {done.statement for done in splits}
                between_kernels = frozenset(s.target for s in found.program.statements if s.name in names)
                parts = {done.statement: done.part for done in splits}
            else:
                whose[Whose.TOTALS] = totals
                parts |= {done.total: parts[done.statement] for done in splits if done.statement in parts}
        return found, between_kernels, MappingProxyType(parts)

    def schedule(self, fusion: Fusion, context: isl.Context, plan: Plan = _WHOLE) -> ScheduleTree:
        """isl's schedule if its budget suffices for it, else the program's own order."""
        found = self._schedules.get((fusion, plan))
        if found is None:
            found = self._schedules[fusion, plan] = self._scheduled(self.scop(context, plan), fusion, context)
        return found

    def plan(self, options: Options) -> Plan:
        """Which reductions are split."""
        return _WHOLE if isinstance(options, CpuOptions) else plan_split(self.specialization, options)

    def _scheduled(self, scop: Scop, fusion: Fusion, context: isl.Context) -> ScheduleTree:
        context.reset_operations()
        context.set_max_operations(self._to_schedule)
        try:
            tree = schedule_scop(scop, fusion)
        except isl.Error as error:
            if not is_out_of_operations(error):
                raise
            tree = None
        context.reset_operations()
        context.set_max_operations(self.max_operations)
        return untransformed_tree(scop) if tree is None else tree


# As many as the largest ``unroll`` allows in one loop.  To print and compile the text of several such loops takes too
# long.
_MOST_COPIES: Final = 4096

# Instances of a nest that a GPU goes through in about the time in which it starts a few kernels.
_SHORT: Final = 1 << 22


class _Run:
    """One run of the pipeline, collecting stages."""

    def __init__(
        self,
        context: isl.Context,
        prepared: Prepared,
        options: Options,
        machine: Machine,
        verify_every_pass: bool,
        plan: Plan | None = None,
        *,
        whole_sums: bool = False,
    ) -> None:
        self.context = context
        self.prepared = prepared
        self.options = options
        self.machine = machine
        self.verify_every_pass = verify_every_pass
        self.plan = plan
        self.whole_sums = whole_sums
        self.stages: list[Stage] = []
        self.started = time.perf_counter()

    def done(self, name: str, text: str) -> None:
        now = time.perf_counter()
        self.stages.append(Stage(name, now - self.started, text))
        self.started = time.perf_counter()

    def generate(self) -> Generated:
        plan = self.prepared.plan(self.options) if self.plan is None else self.plan
        scop = self.prepared.scop(self.context, plan)
        self.done("scop", "\n".join(f"{s.name}: {s.domain}" for s in scop.statements))
        tree = self.prepared.schedule(self.options.schedule.fusion, self.context, plan)
        self.done("schedule", tree_text(tree))
        tree = mark_split_loops(tree, scop)
        # Statements without instances are not scheduled, and there is nothing to prove of them.
        scheduled = tuple(s for s in scop.statements if not s.domain.is_empty())
        if len(scheduled) == len(scop.statements):  # else there may be loops at other sizes
            refuse_surplus_sizes(tree, scop, self.options)
            if isinstance(self.options, GpuOptions):
                refuse_surplus_dimensions(tree, tiles_of(self.options, scop), grid_of(self.options))
        scop = program = replace(scop, statements=scheduled)
        if self.whole_sums:
            tree = keep_sums_whole(tree)
        for name, changed, promoted in self.passes(tree, scop):
            tree, scop = changed, promoted
            self.done(name, tree_text(tree))
            if self.verify_every_pass:
                prove(scop, tree_execution(tree, self.context, scop.barrier_names), f"schedule after {name}")
        found = self.loops(tree, scop)
        if isinstance(found, CpuOptions | GpuOptions):
            return self.again(found, self.plan)
        if not self.whole_sums and has_missing_instances(found, scop, divided_sums(tree)):
            return self.again(self.options, self.plan, whole_sums=True)
        self.done("generate", "")
        root = found
        if isinstance(self.options, GpuOptions):
            root, kernels = self.joined(root, scop, self.options)
            self.done("kernels", kernels)
        copies = self.unrolled(root)
        loops = self.loop_program(scop, copies)
        blocked = block_sums(loops)
        if blocked.left:
            return self.again(self.options, replace(plan, wide=plan.wide | blocked.left))
        sums = describe_sums(blocked.root, plan.wide)
        if sums:
            self.done("sums", sums)

        demands = cache(lambda: demands_of(scop))

        def prove_schedule() -> Proof:
            prove_statements(program, scop)
            return prove(scop, tree_execution(tree, self.context, scop.barrier_names), "schedule", demands())

        def prove_loops() -> Proof:
            dimensions = {s.name: s.domain.dim(isl.dim_type.set) for s in scop.statements}
            dimensions |= {barrier.get_tuple_name(): barrier.dim(isl.dim_type.set) for barrier in scop.barriers}
            prove_copies(root, copies)
            values = member_values(tree)
            execution = loop_execution(root, dimensions, self.context, scop.barrier_names, scop.sizes, values)
            return prove(scop, execution, "generated code", demands())

        return Generated(loops, tuple(self.stages), prove_schedule, prove_loops)

    def again(self, options: Options, plan: Plan | None, *, whole_sums: bool = False) -> Generated:
        """With other options, with reductions split in another way, or with loops that isl generates rightly."""
        whole = self.whole_sums or whole_sums
        run = _Run(self.context, self.prepared, options, self.machine, self.verify_every_pass, plan, whole_sums=whole)
        return run.generate()

    def loops(self, tree: ScheduleTree, scop: Scop) -> LoopTree | Options:
        """The loops of the tree; or the options to take instead, with which there are better ones, or any at all."""
        buffers = [promotion.buffer for promotion in scop.promotions]
        root = generate_loops(tree, self.context, buffers, scop.sizes, scop.barrier_names)
        try:
            root = separate_tiles(localize_loops(root, scop), self.context, scop.sizes, scop.barrier_names)
        except NotAffineError:
            return _without_buffers(self.options)
        ranges = {parameter_name(name): Range(1, most) for name, most in scop.sizes}
        root = constant_unroll_bounds(root, ranges, self.options.schedule.unroll)
        match self.options:
            case CpuOptions():
                return root
            case GpuOptions() as options:
                root = guard_nests(without_constant_guards(root, ranges))
                root = separate_counts(constant_trip_counts(root, scop), scop.barrier_names)
                return fewer_buffers(root, scop, options, self.prepared.specialization.program.name) or root
            case _:
                assert_never(self.options)

    def unrolled(self, root: LoopTree) -> LoopTree:
        """The loops with copies in the place of those that are unrolled; OptionsError where these are too many."""
        count = count_copies(root)
        unroll = self.options.schedule.unroll
        if unroll > 1 and count > _MOST_COPIES:
            raise OptionsError(
                f"unroll={unroll} writes out {count} statements and conditions for "
                f"{self.prepared.specialization.program.name}, more than {_MOST_COPIES}, the most that a kernel may "
                "hold; make it smaller"
            )
        return unroll_copies(root)

    def joined(self, root: LoopTree, scop: Scop, options: GpuOptions) -> tuple[LoopTree, str]:
        """The loops in as few kernels as the options allow, and what these are."""
        fusion = options.schedule.fusion
        longest = _SHORT if fusion is Fusion.PRESERVE_PARALLEL else None
        limits = Limits(longest, options.shared, self.machine.branches)
        ranges = {parameter_name(name): Range(1, most) for name, most in scop.sizes}
        if fusion is not Fusion.MINIMAL and options.grid is None:
            root = join_kernels(root, scop, ranges, limits)
        return root, "\n".join(describe_kernels(root, scop, ranges, options, limits))

    def passes(self, tree: ScheduleTree, scop: Scop) -> Iterator[tuple[str, ScheduleTree, Scop]]:
        """What every pass of the target made, by name."""
        match self.options:
            case CpuOptions() as options:
                for name, run in PASSES:
                    tree, scop = run(tree, scop, options, self.machine)
                    yield name, tree, scop
            case GpuOptions() as options:
                for name, map_or_tile in GRID_PASSES:
                    if self.whole_sums and name == JOINING_ROWS:
                        continue
                    tree, scop = map_or_tile(tree, scop, options)
                    yield name, tree, scop
            case _:
                assert_never(self.options)

    def loop_program(self, scop: Scop, root: LoopTree) -> LoopProgram:
        program = self.prepared.specialization.program
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
            barriers=scop.barrier_names,
            copied_ahead=frozenset(scop.awaits),
            pending=_pending(scop),
            copied_for=_copied_for(scop),
        )
        if isinstance(self.options, GpuOptions):
            return replace(loops, resident=self.options.resident)
        return replace(
            loops,
            prefetch=self.options.prefetch,
            ahead=self.options.ahead,
            streamed=streamed_by(scop, self.options, self.machine),
        )


def _copied_for(scop: Scop) -> dict[str, str]:
    return {
        promotion.loads: statement.name
        for promotion in scop.promotions
        if promotion.gathered is not None and promotion.loads is not None
        for statement in scop.statements
        if any(access.buffer == promotion.buffer.name and access.reads for access in statement.promoted)
    }


def _pending(scop: Scop) -> dict[str, int]:
    """For every barrier that copies are awaited at, how many groups of them it may leave unfinished."""
    found: dict[str, int] = {}
    for awaited in scop.awaits.values():
        found[awaited.barrier] = min(awaited.pending, found.get(awaited.barrier, awaited.pending))
    return found


def _without_buffers(options: Options) -> Options:
    """For programs whose buffers would have subscripts that are no functions of the loops."""
    match options:
        case CpuOptions():
            return replace(options, accumulators=0, packed=0, local=0, streamed=0)
        case GpuOptions():
            return replace(options, private=0, shared=0, fragments=0, shuffles=False)
        case _:
            assert_never(options)


def _mentions(body: StatementBody, tensor: str) -> bool:
    """Whether the statement touches the tensor itself, and not only a buffer that stands for it."""
    return any(name == tensor for name, _ in accesses(body))
