"""Nests in a row share one parallel loop where what they exchange stays in a chunk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tc
from tc.polyhedral.ir.loops import Loop, LoopKind
from tc.polyhedral.pipeline import map_program
from tc.targets.machine import CpuMachine
from tc.targets.options import CpuOptions, Fusion, ScheduleOptions
from tests.polyhedral.mutants import nodes
from tests.polyhedral.support import LAYERS, MACHINE, specialized
from tests.turns import one_in


def regions(
    text: str, *shapes: tuple[int, ...], options: CpuOptions | None = None, machine: CpuMachine = MACHINE
) -> int:
    """How many parallel loops a program has; every pass is proven."""
    options = CpuOptions() if options is None else options
    root = map_program(specialized(text, shapes), options, machine, verify_every_pass=True).loops.root
    return sum(isinstance(node, Loop) and node.kind is LoopKind.PARALLEL for node in nodes(root))


def layers(batch: int, width: int = 64) -> tuple[tuple[int, ...], ...]:
    """Shapes of two layers."""
    return (batch, width), (width, width), (width,), (width, width)


@pytest.mark.parametrize("batch", [128, 130, 97])
def test_layers_of_a_network_are_one_region(batch: int) -> None:
    assert regions(LAYERS, *layers(batch)) == 1


@one_in(2)
@pytest.mark.parametrize(("batch", "expected"), [(97, 2), (100, 1), (128, 1), (130, 1)])
def test_nests_whose_tiles_would_unbalance_the_chunks_stay_apart(batch: int, expected: int) -> None:
    # Of 97 rows, tiles of 6 and 8 would give one of two cores 72 and the other 25.
    text = """def f(float(B,M) I, float(N,M) U, float(P,N) V, float(Q,P) W) -> (X, Y, Z) {
        X(b,n) +=! I(b,m) * U(n,m)
        Y(b,p) +=! X(b,n) * V(p,n)
        Z(b,q) +=! Y(b,p) * W(q,p)
    }"""
    assert regions(text, (batch, 128), (64, 128), (32, 64), (2, 32)) == expected


def test_minimal_fusion_keeps_regions_apart() -> None:
    assert regions(LAYERS, *layers(128), options=CpuOptions(ScheduleOptions(fusion=Fusion.MINIMAL))) > 1


def test_more_cores_need_more_chunks() -> None:
    counts = {cores: regions(LAYERS, *layers(128), machine=replace(MACHINE, cores=cores)) for cores in (4, 8, 64)}
    assert counts == {4: 1, 8: 1, 64: 2}


def test_large_operands_are_divided_among_the_cores_instead() -> None:
    assert regions(LAYERS, *layers(1024, 1024)) == 2


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("Y(b,o) +=! X(b,n) * W2(o,n)", 1),
        ("Y(b,o) +=! X(n,b) * W2(o,n)", 2),  # reads what all chunks have made
        ("Y(b,o) +=! I(b,n) * W2(o,n)", 2),  # reads nothing of what the first has made
    ],
)
def test_only_nests_that_exchange_data_within_a_chunk_are_joined(second: str, expected: int) -> None:
    text = (
        "def f(float(B,M) I, float(N,M) W1, float(N,N) W2) -> (X, Y)"
        f" {{ X(b,n) +=! I(b,m) * W1(n,m) {second} where b in 0:B, o in 0:N }}"
    )
    assert regions(text, (96, 96), (96, 96), (96, 96)) == expected


def test_small_programs_stay_on_one_core() -> None:
    assert regions(LAYERS, *layers(8, 16)) == 0


def test_hidden_layers_keep_their_register_tiles() -> None:
    text = LAYERS.replace("-> (X, Y)", "-> (Y)")
    loops = map_program(specialized(text, layers(128)), CpuOptions(), MACHINE).loops
    assert sorted(buffer.name.partition("_")[2] for buffer in loops.promoted) == ["W1", "W2", "X", "Y"]
    assert {b.name[:4] for b in loops.promoted if b.name.endswith(("X", "Y"))} == {"tile"}


@pytest.mark.parametrize("batch", [128, 133])
def test_joined_regions_compute_the_same(batch: int) -> None:
    definition = tc.define(LAYERS).layers
    generator = np.random.default_rng(3)
    arguments = [generator.integers(-3, 4, shape).astype(np.float32) for shape in layers(batch)]
    i, w1, b1, w2 = arguments
    kernel = definition.compile(*arguments)
    assert kernel.source.count("runtime->parallel_for(") <= 1  # one core alone runs no parallel loop
    results = kernel(*arguments)
    assert isinstance(results, tuple)
    x, y = map(np.asarray, results)
    np.testing.assert_array_equal(x, np.maximum(i @ w1.T + b1, 0))
    np.testing.assert_array_equal(y, x @ w2.T)
