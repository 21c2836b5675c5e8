"""Steps that wait for each other: each launched on its own where one block would take longer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tc
from tc.artifact.packing import assemble, describe, variant_options
from tc.base.errors import VerificationError
from tc.base.grid import MOST_LAUNCHES, Steps, launches
from tc.polyhedral.gpu.mapping.map_to_grid import map_to_grid
from tc.polyhedral.ir.loops import Loop, LoopKind, LoopTree
from tc.polyhedral.ir.tree import Band, Node, ScheduleTree, Sequence
from tc.polyhedral.pipeline import map_program
from tc.reference.compare import compare
from tc.targets.machine import GENERIC_GPU
from tests.opencl import missing
from tests.polyhedral.gpu.mapping.launched import HEAT, PATHS, RNN, STEPS
from tests.polyhedral.support import specialized
from tests.translated import translated
from tests.turns import one_in

NEEDS_OPENCL = pytest.mark.skipif(missing() is not None, reason=str(missing()))
BATCH = """
def batch(float(T,B,H) x, float(H) v) -> (h) {
    h(0,b,i) = x(0,b,i)
    for t in 0:T { h(t+1,b,i) = v(i) * h(t,b,H-1-i) + x(t,b,i) }
}"""


def kinds(root: LoopTree) -> list[LoopKind]:
    """Of the outermost loops, as far as they are alone in each other."""
    found: list[LoopKind] = []
    while isinstance(root, Loop):
        found.append(root.kind)
        root = root.body
    return found


@one_in(3)
@pytest.mark.parametrize("target", ["emulator", pytest.param("opencl", marks=NEEDS_OPENCL)])
@pytest.mark.parametrize("name", sorted(STEPS))
def test_values(name: str, target: str) -> None:
    text, shapes = STEPS[name]
    definition = tc.define(text).single()
    random = np.random.default_rng(5)
    arrays = [0.1 * random.standard_normal(shape).astype(np.float32) for shape in shapes]
    found = definition(*arrays, target=target)
    assert compare(list(definition.oracle(*arrays).values())[-1], np.asarray(found)).ok


@pytest.mark.parametrize("name", sorted(STEPS))
def test_steps_are_launched(name: str) -> None:
    text, shapes = STEPS[name]
    source = translated(tc.define(text).single(), *shapes, target="cuda:sm_90").source
    (steps,) = source.steps
    assert len(steps.values) == shapes[-1][-1 if name == "paths" else 0] if name in ("heat", "paths") else shapes[0][0]
    for number, grid in enumerate(source.grids):
        inside = steps.first <= number <= steps.last
        assert (grid.grid[0] > 1) or not inside
    assert "c0_step" in source.text


def test_every_pass_is_proven() -> None:
    for text, shapes in STEPS.values():
        map_program(specialized(text, shapes), tc.GpuOptions(), GENERIC_GPU, verify_every_pass=True)


MEASURED = """
def measured(float(N) u0, float(T) f) -> (u, m, c) {
    u(0,i) = u0(i)
    for t in 0:T {
        u(t+1,i) = 0.5 * u(t,N-1-i) + f(t)
        m(t) max=! u(t+1,i)
        c(t) = 2 * m(t) + u(t,0)
    }
}"""


@one_in(4)
@pytest.mark.parametrize("fusion", list(tc.Fusion))
@pytest.mark.parametrize(("text", "shapes"), [(PATHS, ((131, 131),)), (MEASURED, ((17001,), (3,)))])
def test_steps_of_several_kernels(text: str, shapes: tuple[tuple[int, ...], ...], fusion: tc.Fusion) -> None:
    definition = tc.define(text).single()
    arrays = [np.random.default_rng(1).standard_normal(shape).astype(np.float32) for shape in shapes]
    options = tc.GpuOptions(schedule=tc.ScheduleOptions(fusion=fusion))
    kernel = definition.compile(*arrays, target="opencl", options=options) if missing() is None else None
    assert kernel is None or kernel.executable.convention.steps
    found: Any = definition(*arrays, target="emulator", options=options)
    results = found if isinstance(found, tuple) else (found,)
    for result, bound in zip(results, definition.oracle(*arrays).values(), strict=True):
        assert compare(bound, np.asarray(result)).ok


def test_small_steps_stay_in_one_block() -> None:
    source = translated(tc.define(HEAT).single(), (1000,), (50,), target="cuda:sm_90").source
    assert source.steps == ()
    assert [grid.grid for grid in source.grids][-1] == (1, 1, 1)


def test_independent_rows_are_shared_by_blocks() -> None:
    source = translated(tc.define(BATCH).single(), (9, 300, 70), (70,), target="cuda:sm_90").source
    assert source.steps == ()
    assert source.grids[-1].grid[0] > 1


@pytest.mark.parametrize("options", [tc.GpuOptions(schedule=tc.ScheduleOptions(tile=(1, 64)))])
def test_sizes_of_tiles_are_those_of_steps_too(options: tc.GpuOptions) -> None:
    source = translated(tc.define(HEAT).single(), (17001,), (5,), target="cuda:sm_90", options=options).source
    assert source.steps == ()


def test_blocks_and_grids_are_those_of_launches() -> None:
    options = tc.GpuOptions(block=(128,), grid=(7,))
    definition = tc.define(HEAT).single()
    source = translated(definition, (17001,), (5,), target="cuda:sm_90", options=options).source
    assert [(grid.grid[0], grid.block[0]) for grid in source.grids] == [(7, 128)] * 2
    with pytest.raises(tc.OptionsError, match="at most 1 loop of a nest can be shared by blocks"):
        translated(definition, (17001,), (5,), target="cuda:sm_90", options=replace(options, grid=(7, 2)))


def test_explanations_say_how_often_kernels_are_launched() -> None:
    text, shapes = STEPS["rnn"]
    said = tc.define(text).single().explain(*(np.zeros(s, np.float32) for s in shapes), target="cuda:sm_90")
    assert "launched 3 times, for each step: one block would take longer for it than a launch" in said


def _changed(node: Node, kind: LoopKind) -> Node:
    match node:
        case Band(members, _, child):
            members = tuple(replace(m, kind=kind) if m.kind is LoopKind.LAUNCH else m for m in members)
            return replace(node, members=members, child=_changed(child, kind))
        case Sequence(filters):
            return Sequence(tuple(replace(f, child=_changed(f.child, kind)) for f in filters))
        case _:
            return node


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (LoopKind.SEQUENTIAL, "do not run a statement as the loops over them say"),
        (LoopKind.PARALLEL, "as the loops over them say|concurrent|order|same time"),
    ],
)
@pytest.mark.parametrize("name", ["heat", "rnn"])
def test_steps_that_run_otherwise_are_refused(
    name: str, kind: LoopKind, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(tree: ScheduleTree, *arguments: Any, **keywords: Any) -> ScheduleTree:
        mapped = map_to_grid(tree, *arguments, **keywords)
        return replace(mapped, root=_changed(mapped.root, kind))

    monkeypatch.setattr("tc.polyhedral.grid_passes.map_to_grid", mistaken)
    text, shapes = STEPS[name]
    with pytest.raises(VerificationError, match=message):
        map_program(specialized(text, shapes), tc.GpuOptions(), GENERIC_GPU)


# --- what is launched, as data


def test_the_order_of_launches() -> None:
    assert list(launches(2, ())) == [(0, ()), (1, ())]
    found = list(launches(4, (Steps(1, 2, 0, 6, 3),)))
    assert found == [(0, ()), (1, (0,)), (2, (0,)), (1, (3,)), (2, (3,)), (3, ())]
    assert list(launches(2, (Steps(1, 1, 0, 1, 1), Steps(0, 0, 5, 6, 1)))) == [(0, (5,)), (1, (0,))]
    assert Steps(0, 1, 0, 3, 1).moved(2) == Steps(2, 3, 0, 3, 1)


@pytest.mark.parametrize(
    "steps",
    [(-1, 0, 0, 3, 1), (1, 0, 0, 3, 1), (0, 0, 0, 3, 0), (0, 0, 0, MOST_LAUNCHES + 1, 1), (0, 0, 0, 1 << 80, 1)],
)
def test_steps_that_no_compiler_made(steps: tuple[int, int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="cannot be launched for range"):
        Steps(*steps)


@pytest.mark.parametrize("steps", [(Steps(0, 2, 0, 3, 1),), (Steps(0, 1, 0, 3, 1), Steps(1, 1, 0, 3, 1))])
def test_steps_of_kernels_that_there_are_not(steps: tuple[Steps, ...]) -> None:
    with pytest.raises(ValueError, match="cannot be launched for steps"):
        list(launches(2, steps))


@NEEDS_OPENCL
def test_descriptions_have_the_steps() -> None:
    kernel = tc.define(PATHS).single().compile((131, 131), target="opencl")
    executable = kernel.executable
    text = describe(executable)
    parts = variant_options(executable), executable.source, executable.binary.code
    assert assemble(text, *parts).convention.steps == executable.convention.steps
    data = json.loads(text)
    data["convention"]["steps"][0]["end"] = 1 << 40
    with pytest.raises(ValueError, match="cannot be launched"):
        assemble(json.dumps(data), *parts)


def test_two_recurrences_of_a_program() -> None:
    text = RNN[:-1] + "    g(0,i) = h(T,i)\n    for s in 0:T { g(s+1,i) = 0.5 * g(s,H-1-i) }\n}"
    text = text.replace("-> (h)", "-> (h, g)")
    definition = tc.define(text).single()
    random = np.random.default_rng(5)
    arrays = [0.1 * random.standard_normal(shape).astype(np.float32) for shape in ((3, 143), (143, 143), (143,))]
    results: Any = definition(*arrays, target="emulator")
    for result, bound in zip(results, definition.oracle(*arrays).values(), strict=True):
        assert compare(bound, np.asarray(result)).ok
