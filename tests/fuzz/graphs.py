"""``python -m tests.fuzz.graphs``: random graphs against NumPy: rewritten, partitioned at random, some compiled.

Every number is a small integer, so that results are compared bit by bit.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from tc.graph.ir.graph import Graph
from tc.graph.ir.graph_text import graph_text
from tc.graph.ir.parse_graph import parse
from tc.graph.memory.joins import Costs, joined
from tc.graph.memory.own_outputs import with_own_outputs
from tc.graph.memory.plan import MemoryPlan, needed_blocks, planned
from tc.graph.model import Model
from tc.graph.partition.compose import composed
from tc.graph.partition.edges import edges_of
from tc.graph.partition.partition import partition_of
from tc.graph.rewrite.constants import folded, laid_out
from tc.graph.rewrite.engine import rewritten
from tc.graph.rewrite.rules import RULES
from tc.graph.run.arrays import on_arrays
from tc.graph.run.evaluate import evaluate
from tc.graph.run.execute import Execution
from tc.graph.settings import Settings
from tests.fuzz.graph_memory import run_allocating, run_in_arena
from tests.fuzz.graph_programs import Drawn, drawn

# Of so many graphs, one is compiled.
COMPILED = 10
CHANCE = 0.3


def check(seed: int) -> str | None:
    """What is wrong with the graph of a seed; None if nothing is."""
    try:
        _check(seed)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a find
        return f"{seed}: {type(error).__name__}: {error}"
    return None


def _check(seed: int) -> None:
    case, chosen = drawn(seed), random.Random(seed)
    _compare(case, case.graph, "as drawn")
    rules = [rule for rule in RULES if chosen.random() > CHANCE]
    changed = rewritten(case.graph, rules, share=chosen.random() > CHANCE)[0]
    _compare(case, changed, "rewritten")
    constant = laid_out(folded(changed, lambda part: list(evaluate(part, {}).values())))
    _compare(case, constant, "with constants")
    for graph in (case.graph, constant):
        cuts = frozenset(edge for edge in edges_of(graph) if chosen.random() < CHANCE)
        kernels = composed(graph, partition_of(graph, cuts))
        _compare(case, kernels, "partitioned")
        plan = planned(kernels, in_place=chosen.random() > CHANCE)
        _compare(case, plan.graph, "in another order")
        text = graph_text(kernels)
        assert graph_text(parse(text, kernels.constants)) == text, "the text does not parse back"
    plan = _joined(case, chosen.choice((case.graph, constant)), chosen)
    if seed % COMPILED == 0:
        _run(case, chosen)
        made = Execution(plan, None).run(on_arrays(case.inputs), plan.graph.outputs)
        _expect(case, list(map(np.asarray, made)), "compiled with joins")


def _joined(case: Drawn, graph: Graph, chosen: random.Random) -> MemoryPlan:
    """The plan with as many joins as there can be, and what is checked of it."""
    in_place, reorder = (chosen.random() > CHANCE for _ in range(2))
    costs = Costs(kernel=0, row=chosen.choice((1, 16)))
    whole = joined(graph, lambda found: needed_blocks(found) if chosen.random() < CHANCE else (), costs)
    _compare(case, whole, "joined")
    kernels = with_own_outputs(composed(whole, partition_of(whole)))
    plan = planned(kernels, in_place=in_place, reorder=reorder)
    _compare(case, plan.graph, "joined and in another order")
    _expect(case, run_in_arena(plan, case.inputs), "in one arena")
    _expect(case, run_allocating(plan, case.inputs), "allocated and freed")
    return plan


def _expect(case: Drawn, found: Sequence[np.ndarray], what: str) -> None:
    for at, (array, wanted) in enumerate(zip(found, case.results, strict=True)):
        np.testing.assert_array_equal(array, wanted, f"{what}: {at}")


def _compare(case: Drawn, graph: Graph, what: str) -> None:
    found = evaluate(graph, case.inputs)
    for name, wanted in zip(graph.outputs, case.results, strict=True):
        np.testing.assert_array_equal(found[name], wanted, f"{what}: {name}")


def _run(case: Drawn, chosen: random.Random) -> None:
    """Twice, since the second call has the arena of the first."""
    flags = [chosen.random() > CHANCE for _ in range(5)]
    fuse, join, in_place, reorder, arena = flags
    rules = RULES if chosen.random() > CHANCE else ()
    settings = Settings(rules=rules, fuse=fuse, join=join, in_place=in_place, reorder=reorder, arena=arena)
    model = Model.of(case.graph, settings)
    for _ in range(2):
        found = model.run(model.outputs, case.inputs)
        for name, wanted in zip(model.outputs, case.results, strict=True):
            np.testing.assert_array_equal(found[name], wanted, f"compiled: {name}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Checks so many graphs, and prints those that are wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.graphs")
    parser.add_argument("--programs", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args(arguments)
    seeds = range(given.first, given.first + given.programs)
    with ProcessPoolExecutor(given.jobs) as pool:
        wrong = [found for found in pool.map(check, seeds, chunksize=20) if found is not None]
    print(f"{len(seeds)} graphs, {len(wrong)} wrong")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
