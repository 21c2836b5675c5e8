"""The steps of a schedule tree as rewrite rules: what was done to loops and memory between the definition and it.

All of it is read off the tree, the buffers and the loops that are proven, not off the options.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items

from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.loops import Loop, LoopTree
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.splits import Split
from tc.polyhedral.ir.tree import ScheduleTree
from tc.polyhedral.steps.fusion_steps import fusion_steps
from tc.polyhedral.steps.loop_steps import loop_steps
from tc.polyhedral.steps.loops_around import Nest, nests_of, tensors_of
from tc.polyhedral.steps.memory_steps import memory_steps
from tc.polyhedral.steps.step import Rule, Step
from tc.targets.machine import CpuMachine, Machine


def steps_of(
    tree: ScheduleTree, scop: Scop, machine: Machine, loops: LoopTree, splits: Items[Split]
) -> tuple[Step, ...]:
    """The steps, by rule in the order of ``Rule``.

    ``loops``: with sums in blocks, as they are printed.  ``splits``: of reductions whose parts are statements.
    """
    nests, tensors = nests_of(tree, scop), tensors_of(scop)
    vector_bytes = machine.vectors.bytes if isinstance(machine, CpuMachine) else 0
    steps = [*_in_loops(nests, vector_bytes), *fusion_steps(nests), *_parts(tensors, splits), *_blocks(loops, tensors)]
    steps += memory_steps(scop, grids=not isinstance(machine, CpuMachine))
    rules = list(Rule)
    return tuple(sorted(steps, key=lambda step: rules.index(step.rule)))


def _in_loops(nests: Items[Nest], vector_bytes: int) -> Iterator[Step]:
    """What is done to loops, once for all the tensors that it is done to."""
    whose: dict[tuple[Rule, str], dict[str, None]] = {}
    for nest in nests:
        for rule, what in loop_steps(nest, vector_bytes):
            # What begins a reduction has some of its loops.
            if not (nest.begins and rule is Rule.INTERCHANGE):
                whose.setdefault((rule, what), {})[nest.tensor] = None
    for (rule, what), tensors in whose.items():
        yield Step(rule, what, tuple(tensors))


def _parts(tensors: Mapping[str, str], splits: Items[Split]) -> Iterator[Step]:
    for split in splits:
        if split.statement in tensors and split.total in tensors:
            what = f"its parts along {split.part} are {tensors[split.statement]}"
            yield Step(Rule.PARTIAL_REDUCTION, what, (tensors[split.total],))


def _blocks(loops: LoopTree, tensors: Mapping[str, str]) -> Iterator[Step]:
    found = (step.totals for _, path in loop_paths(loops, ()) for step in path if isinstance(step, Loop))
    wide: dict[str, bool] = {}
    for total in (own for totals in found for own in totals):
        wide[total.statement] = wide.get(total.statement, False) or total.wide
    for name, is_wide in wide.items():
        what = f"sums of a few terms, added up in {'float64' if is_wide else 'float32'}"
        yield Step(Rule.PARTIAL_REDUCTION, what, (tensors[name],))
