"""The way from a specialization to proven loops: one literal list of passes, run with timing and proofs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import islpy as isl

from tc.errors import CompileError
from tc.language.session import MAX_OPERATIONS, is_out_of_operations, isl_context
from tc.language.specialization import Specialization
from tc.options import CpuOptions
from tc.polyhedral.defaults import default_sizes
from tc.polyhedral.execution import loop_execution, tree_execution
from tc.polyhedral.generate import generate_loops
from tc.polyhedral.localize import NotAffineError, localize_loops
from tc.polyhedral.loops import LoopProgram, LoopTree, StatementBody
from tc.polyhedral.microkernel import VectorUnit
from tc.polyhedral.parallelize import parallelize_tree
from tc.polyhedral.promote import Room, promote_tree
from tc.polyhedral.register_tile import default_tile, explicit_tile, register_tile_tree
from tc.polyhedral.schedule import schedule_scop, untransformed_tree
from tc.polyhedral.scop import Scop, build_scop
from tc.polyhedral.strides import accesses
from tc.polyhedral.tile import explicit_sizes, tile_tree
from tc.polyhedral.tree import ScheduleTree, tree_text
from tc.polyhedral.unroll import unroll_tree
from tc.polyhedral.vectorize import vectorize_tree
from tc.polyhedral.verify import Proof, prove


@dataclass(frozen=True, slots=True)
class Stage:
    """One step that was run: its name, its duration in seconds, and what it made, as text."""

    name: str
    seconds: float
    text: str


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


@dataclass(frozen=True, slots=True)
class Machine:
    """What the passes know of the processor: its vector registers, and how many cores there are to keep busy."""

    vectors: VectorUnit
    cores: int


# Promotion adds statements to the scop, so passes hand both on.
State: TypeAlias = tuple[ScheduleTree, Scop]
Pass: TypeAlias = Callable[[ScheduleTree, Scop, CpuOptions, Machine], State]


def _register_tile(tree: ScheduleTree, scop: Scop, options: CpuOptions, machine: Machine) -> State:
    sizes = options.register_tile
    if sizes is None:
        choose = default_tile(scop, machine.vectors, packs=options.packed > 0)
    else:
        choose = explicit_tile(scop, sizes, options.lane)
    return register_tile_tree(tree, scop, choose, lanes=options.vectorize), scop


def _tile(tree: ScheduleTree, scop: Scop, options: CpuOptions, _machine: Machine) -> State:
    sizes = options.schedule.tile
    chosen = default_sizes(scop, packs=options.packed > 0) if sizes is None else explicit_sizes(sizes)
    return tile_tree(tree, chosen), scop


def _vectorize(tree: ScheduleTree, scop: Scop, options: CpuOptions, machine: Machine) -> State:
    return vectorize_tree(tree, scop, machine.vectors.bytes, mark=options.vectorize), scop


def _parallelize(tree: ScheduleTree, scop: Scop, options: CpuOptions, machine: Machine) -> State:
    if options.threads == 1:
        return tree, scop
    return parallelize_tree(tree, scop, options.threads or machine.cores, options.packed), scop


def _promote(tree: ScheduleTree, scop: Scop, options: CpuOptions, _machine: Machine) -> State:
    room = Room(options.accumulators, options.packed, options.local, lanes=options.vectorize)
    return promote_tree(tree, scop, room)


def _unroll(tree: ScheduleTree, scop: Scop, options: CpuOptions, _machine: Machine) -> State:
    return unroll_tree(tree, options.schedule.unroll), scop


PASSES: Final[tuple[tuple[str, Pass], ...]] = (
    ("register tile", _register_tile),
    ("tile", _tile),
    ("vectorize", _vectorize),
    ("parallelize", _parallelize),
    ("promote", _promote),
    ("unroll", _unroll),
)


def map_program(
    specialization: Specialization,
    options: CpuOptions,
    machine: Machine,
    *,
    verify_every_pass: bool = False,
    max_operations: int = MAX_OPERATIONS,
) -> MappedProgram:
    """Schedule, transform, prove, generate, and prove what was generated.

    The final tree and the generated loops are always proven; ``verify_every_pass`` proves the tree after every pass.
    Where scheduling exhausts isl's budget the program keeps its order, untransformed.  CompileError if a proof or the
    generation exhausts it, too; VerificationError if a proof fails.
    """
    with isl_context(max_operations) as context:
        try:
            return _Run(context, options, machine, verify_every_pass).map(specialization)
        except isl.Error as error:
            if not is_out_of_operations(error):
                raise
            name = specialization.program.name
            raise CompileError(
                f"{name}: the proof or the generation of its loops exceeds isl's budget of {max_operations} "
                "operations; split the definition into several"
            ) from error


class _Run:
    """One run of the pipeline, collecting stages."""

    def __init__(self, context: isl.Context, options: CpuOptions, machine: Machine, verify_every_pass: bool) -> None:
        self.context = context
        self.options = options
        self.machine = machine
        self.verify_every_pass = verify_every_pass
        self.stages: list[Stage] = []
        self.started = time.perf_counter()

    def done(self, name: str, text: str) -> None:
        now = time.perf_counter()
        self.stages.append(Stage(name, now - self.started, text))
        self.started = time.perf_counter()

    def map(self, specialization: Specialization) -> MappedProgram:
        scop = build_scop(specialization, self.context)
        self.done("scop", "\n".join(f"{s.name}: {s.domain}" for s in scop.statements))
        tree = self.schedule(scop)
        self.done("schedule", tree_text(tree))
        # Statements without instances are not scheduled, and there is nothing to prove of them.
        scop = replace(scop, statements=tuple(s for s in scop.statements if not s.domain.is_empty()))
        for name, run in PASSES:
            tree, scop = run(tree, scop, self.options, self.machine)
            self.done(name, tree_text(tree))
            if self.verify_every_pass:
                prove(scop, tree_execution(tree, self.context), f"schedule after {name}")
        prove(scop, tree_execution(tree, self.context), "schedule")
        self.done("verify schedule", "")
        root = generate_loops(tree, self.context, [promotion.buffer for promotion in scop.promotions])
        try:
            root = localize_loops(root, scop)
        except NotAffineError:
            plain = replace(self.options, accumulators=0, packed=0, local=0)
            return _Run(self.context, plain, self.machine, self.verify_every_pass).map(specialization)
        self.done("generate", "")
        dimensions = {s.name: s.domain.dim(isl.dim_type.set) for s in scop.statements}
        proof = prove(scop, loop_execution(root, dimensions, self.context), "generated code")
        self.done("verify code", str(proof))
        return MappedProgram(self.loop_program(specialization, scop, root), proof, tuple(self.stages))

    def schedule(self, scop: Scop) -> ScheduleTree:
        """isl's schedule if half of the budget suffices for it, else the program's own order."""
        budget = self.context.get_max_operations()
        self.context.reset_operations()
        self.context.set_max_operations(budget // 2)
        try:
            tree = schedule_scop(scop, self.options.schedule.fusion)
        except isl.Error as error:
            if not is_out_of_operations(error):
                raise
            tree = None
        self.context.reset_operations()
        self.context.set_max_operations(budget)
        return untransformed_tree(scop) if tree is None else tree

    def loop_program(self, specialization: Specialization, scop: Scop, root: LoopTree) -> LoopProgram:
        program = specialization.program
        return LoopProgram(
            name=program.name,
            buffers=scop.buffers,
            temporaries=tuple(t for t in scop.temporaries if any(_mentions(s.body, t.name) for s in scop.statements)),
            scalars=tuple((scalar.name, scalar.type) for scalar in program.scalars),
            bodies=tuple(statement.body for statement in scop.statements),
            root=root,
            checked=self.options.check_indices,
            prefetch=self.options.prefetch,
            promoted=tuple(promotion.buffer for promotion in scop.promotions),
        )


def _mentions(body: StatementBody, tensor: str) -> bool:
    """Whether the statement touches the tensor itself, and not only a buffer that stands for it."""
    return any(name == tensor for name, _ in accesses(body))
