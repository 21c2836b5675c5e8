"""Static memory: orders, offsets, lifetimes and the table."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import tc.graph
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.memory.blocks import Block, arena_size, live_peak
from tc.graph.memory.offsets import placed
from tc.graph.memory.order import Task, Tasks, by_height, least_memory
from tc.graph.memory.plan import planned
from tc.graph.operators.pointwise import pointwise
from tc.graph.run.allocate import Allocating
from tc.graph.run.arrays import on_arrays
from tests.fuzz.graph_programs import drawn
from tests.graph.orders import is_order, orders, random_tasks

F = ScalarType.FLOAT32
MEGABYTE = 10**6


@pytest.mark.parametrize("part", range(20))
def test_few_tasks_need_the_least(part: int) -> None:
    """All orders of 7 tasks or fewer; the slow test has up to nine."""
    chosen = random.Random(part)
    for _ in range(5):
        tasks = random_tasks(chosen, chosen.randint(1, 6))
        found = least_memory(tasks)
        assert is_order(tasks, found)
        assert tasks.peak(found) == min(map(tasks.peak, orders(tasks)))


@pytest.mark.slow
def test_a_thousand_graphs_of_up_to_nine_tasks() -> None:
    chosen = random.Random(1)
    for _ in range(1000):
        tasks = random_tasks(chosen, chosen.randint(1, 9))
        best = min(map(tasks.peak, orders(tasks)))
        assert tasks.peak(least_memory(tasks)) == best


@pytest.mark.parametrize("seed", range(30))
def test_many_tasks_need_no_more_than_in_the_order_given(seed: int) -> None:
    tasks = random_tasks(random.Random(seed), 60)
    found = least_memory(tasks)
    assert is_order(tasks, found)
    assert tasks.peak(found) <= tasks.peak(range(60))


def test_the_height_heuristic_orders_as_deepdsl_does() -> None:
    """Figure 4.8 of Huang's thesis: y1 y3 y2 y4 y5 z5 zw5 z4 z3 zw3 z2 zw2 z1 zw1."""
    names = ["y1", "y2", "y3", "y4", "y5", "z5", "z4", "z3", "z2", "z1", "zw5", "zw3", "zw2", "zw1"]
    uses = {
        "y1": "", "y2": "y1", "y3": "", "y4": "y2 y3", "y5": "y4", "z5": "y5", "zw5": "z5 y4", "z4": "z5 y4",
        "z3": "z4 y3", "zw3": "z3", "z2": "z4 y2", "zw2": "z2 y1", "z1": "z2 y1", "zw1": "z1",
    }  # fmt: skip
    number = {name: place for place, name in enumerate(names)}
    tasks = tuple(Task(tuple(number[own] for own in uses[name].split()), (number[name],)) for name in names)
    found = Tasks(tasks, (1,) * len(names), frozenset(number[name] for name in names if name.startswith("zw")))
    order = [names[place] for place in by_height(found)]
    assert order == ["y1", "y3", "y2", "y4", "y5", "z5", "zw5", "z4", "z3", "zw3", "z2", "zw2", "z1", "zw1"]


@pytest.mark.parametrize("seed", range(30))
def test_blocks_that_are_needed_together_lie_apart(seed: int) -> None:
    chosen = random.Random(seed)
    blocks = []
    for number in range(chosen.randint(1, 60)):
        first = chosen.randint(0, 40)
        blocks.append(Block(str(number), chosen.randint(0, 5000), first, first + chosen.randint(0, 12)))
    offsets = placed(blocks)
    assert offsets == placed(blocks)
    for (one, at), (other, beside) in itertools.combinations(zip(blocks, offsets, strict=True), 2):
        assert not one.meets(other) or at + one.bytes <= beside or beside + other.bytes <= at
    assert all(offset % 64 == 0 for offset in offsets)
    assert arena_size(blocks, offsets) >= live_peak(blocks)


@pytest.mark.parametrize("seed", range(20))
def test_chains_fill_the_arena(seed: int) -> None:
    """Layers, each of which needs the one before, have an arena that is no larger than what they need at a time."""
    chosen = random.Random(seed)
    blocks = [Block(str(n), 64 * chosen.randint(1, 500), n, n + chosen.randint(1, 2)) for n in range(50)]
    assert arena_size(blocks, placed(blocks)) <= 1.1 * live_peak(blocks)


def test_the_table_has_what_each_statement_needs() -> None:
    builder = Builder("layers")
    x = builder.input("x", F, (1000, 1000))
    first = pointwise(builder, "scale", "{0} * 2", [x])
    (total,) = builder.call("def total(float(M,N) A) -> (s) { s(m) +=! A(m,n) }", first)
    plan = planned(builder.finish([total]))
    assert plan.table().splitlines() == [
        "statement                 shape          new MB  total MB  without freeing MB",
        "scale_Y = scale(x)        1000, 1000   4.000000  4.000000            4.000000",
        "total_s = total(scale_Y)  1000         0.000000  4.000000            4.000000",
        "free scale_Y                          -4.000000  0.000000            4.000000",
    ]
    rows = [(row.statement, row.bytes, row.total, row.without) for row in plan.rows()]
    assert rows == [
        ("scale_Y = scale(x)", 4 * MEGABYTE, 4 * MEGABYTE, 4 * MEGABYTE),
        ("total_s = total(scale_Y)", 0, 4 * MEGABYTE, 4 * MEGABYTE),
        ("free scale_Y", -4 * MEGABYTE, 0, 4 * MEGABYTE),
    ]
    assert plan.peak == plan.arena == 4 * MEGABYTE
    assert plan.fits(8 * MEGABYTE + 4000)
    assert not plan.fits(8 * MEGABYTE + 3999)


def test_pointwise_results_replace_operands_that_end() -> None:
    builder = Builder("chain")
    x = builder.input("x", F, (100,))
    value = x
    for _ in range(5):
        value = pointwise(builder, "step", "{0} * 2 + 1", [value])
    (total,) = builder.call("def total(float(N) A) -> (s) { s +=! A(n) }", value)
    graph = builder.finish([total])
    assert planned(graph).arena == 448
    assert planned(graph, in_place=False).arena == 896
    model = tc.graph.Model.of(graph, tc.graph.Settings(rules=(), fuse=False))
    np.testing.assert_allclose(np.asarray(model(np.ones(100, np.float32))), 100 * (2**6 - 1))


@pytest.mark.parametrize("seed", range(40))
def test_plans_of_random_graphs_hold(seed: int) -> None:
    plan = planned(drawn(seed, 30).graph)
    at = {block.name: (plan.offsets[block.name], block) for block in plan.blocks}
    for (one, first), (other, second) in itertools.combinations(at.values(), 2):
        assert not first.meets(second) or one + first.bytes <= other or other + second.bytes <= one
    made: set[str] = {*plan.graph.inputs, *plan.graph.constants}
    for node in plan.graph.nodes:
        assert made.issuperset(node.operands)
        made.update(node.results)


def lenet(batch: int) -> Graph:
    """A step of training LeNet, a statement of DeepDSL's a node (Zhao, Huang and Cao, ICLR 2017, Figure 3).

    Its results are the loss and what the weights are changed by.
    """
    builder = Builder("lenet")
    shapes = {"x": (batch, 1, 28, 28), "y": (batch, 10), "cv1": (20, 1, 5, 5), "cv2": (50, 20, 5, 5)}
    shapes |= {"fc1": (800, 500), "b1": (500,), "fc2": (500, 10), "b2": (10,)}
    v = {name: builder.input(name, F, shape) for name, shape in shapes.items()}

    def made(name: str, text: str, *operands: str) -> None:
        (v[name],) = builder.call(text, *(v[own] for own in operands), names=[name])

    conv = "float(N,C,H,W) I, float(F,C,5,5) K"
    moved = "I(n, c, h + i, w + j)"
    pool = "(Y) { Y(n,c,h,w) max=! X(n, c, 2 * h + i, 2 * w + j) where i in 0:2, j in 0:2 }"
    made("x7", "def load(float(N,C,H,W) X) -> (Y) { Y(n,c,h,w) = X(n,c,h,w) }", "x")
    made("indicator", "def mark(float(M,N) A) -> (C) { C(m,n) = A(m,n) }", "y")
    made("x8", f"def conv({conv}) -> (O) {{ O(n,f,h,w) +=! {moved} * K(f,c,i,j) }}", "x7", "cv1")
    made("x9", f"def pool(float(N,C,H,W) X) -> {pool}", "x8")
    made("x10", f"def conv({conv}) -> (O) {{ O(n,f,h,w) +=! {moved} * K(f,c,i,j) }}", "x9", "cv2")
    made("x11", f"def pool(float(N,C,H,W) X) -> {pool}", "x10")
    v["flat"] = builder.reshape(v["x11"], (batch, 800))
    product = "def product(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    bias = "def bias(float(M,N) A, float(N) b) -> (C) { C(m,n) = A(m,n) + b(n) }"
    made("x12", product, "flat", "fc1")
    made("x14", bias, "x12", "b1")
    made("x15", "def relu(float(M,N) A) -> (C) { C(m,n) = max(A(m,n), 0) }", "x14")
    made("x16", product, "x15", "fc2")
    made("x17", bias, "x16", "b2")
    softmax = "T(m) max=! A(m,n)  S(m) +=! exp(A(m,n) - T(m))  C(m,n) = exp(A(m,n) - T(m)) / S(m)"
    made("x18", f"def softmax(float(M,N) A) -> (C) {{ {softmax} }}", "x17")
    made("x19", "def log(float(M,N) A) -> (C) { C(m,n) = log(A(m,n)) }", "x18")
    made("x20", "def weigh(float(M,N) A, float(M,N) B) -> (C) { C(m,n) = A(m,n) * B(m,n) }", "x19", "indicator")
    made("loss", "def loss(float(M,N) A) -> (s) { s +=! -A(m,n) / M }", "x20")
    made("x60", "def change(float(M,N) P, float(M,N) Y) -> (C) { C(m,n) = (P(m,n) - Y(m,n)) / M }", "x18", "indicator")
    weights = "def weights(float(M,K) A, float(M,N) D) -> (W) { W(k,n) +=! A(m,k) * D(m,n) }"
    back = "def back(float(M,N) D, float(K,N) W) -> (C) { C(m,k) +=! D(m,n) * W(k,n) }"
    made("d_fc2", weights, "x15", "x60")
    made("x62", back, "x60", "fc2")
    made("x64", "def step(float(M,N) D, float(M,N) A) -> (C) { C(m,n) = A(m,n) > 0 ? D(m,n) : 0 }", "x62", "x15")
    made("d_fc1", weights, "flat", "x64")
    made("x66", back, "x64", "fc1")
    v["x68"] = builder.reshape(v["x66"], (batch, 50, 4, 4))
    chosen = "X(n,c,h,w) == Y(n, c, h / 2, w / 2) ? D(n, c, h / 2, w / 2) : 0"
    unpool = f"def unpool(float(N,C,H,W) X, float(N,C,P,Q) Y, float(N,C,P,Q) D) -> (Z) {{ Z(n,c,h,w) = {chosen} }}"
    made("x71", unpool, "x10", "x11", "x68")
    filters = "float(N,C,H,W) I, float(N,F,P,Q) D) -> (K) { K(f,c,i,j) +=! I(n, c, h + i, w + j) * D(n,f,h,w) }"
    made("d_cv2", f"def filters({filters}", "x9", "x71")
    made(
        "x72",
        "def image(float(N,F,P,Q) D, float(F,C,5,5) K) -> (I) { I(n,c,h+i,w+j) +=! D(n,f,h,w) * K(f,c,i,j) }",
        "x71",
        "cv2",
    )
    made("x74", unpool, "x8", "x9", "x72")
    made("d_cv1", f"def filters({filters}", "x7", "x74")
    return builder.finish([v[name] for name in ("loss", "d_fc2", "d_fc1", "d_cv2", "d_cv1")])


def test_the_table_of_lenet_is_deepdsls() -> None:
    plan = planned(lenet(500), reorder=False)
    new = {row.statement.split(" = ")[0]: row.bytes / MEGABYTE for row in plan.rows()}
    figure = {"x7": 1.568, "x8": 23.04, "x9": 5.76, "x10": 6.4, "x11": 1.6, "x12": 1.0, "x14": 0, "x15": 0, "x16": 0.02}
    figure |= {"x18": 0.02, "x71": 6.4, "x72": 5.76, "x74": 23.04}
    assert {name: new[name] for name in figure} == figure
    rows = plan.rows()
    places = {row.statement.split(" = ")[0]: at for at, row in enumerate(rows)}
    totals = [(row.total / MEGABYTE, row.without / MEGABYTE) for row in rows]
    assert totals[places["x72"] - 1] == (36.768, 48.448)
    assert totals[places["x72"]] == (42.528, 54.208)
    assert totals[places["free x71"]] == (36.128, 54.208)
    assert totals[places["x74"]] == (59.168, 77.248)
    assert plan.peak == planned(lenet(500)).peak == 59_168_000
    assert plan.rows()[-1].total == 0


def test_what_is_allocated_is_what_is_planned() -> None:
    settings = tc.graph.Settings(rules=(), fuse=False, arena=False)
    model = tc.graph.Model.of(lenet(4), settings)
    random = np.random.default_rng(0)
    shapes = {own.name: [extent for extent in own.shape or () if isinstance(extent, int)] for own in model.inputs}
    arrays = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    found = model.run(model.outputs, arrays)
    beside = tc.graph.Model.of(lenet(4)).run(model.outputs, arrays)
    for name in model.outputs:
        np.testing.assert_allclose(found[name], beside[name], rtol=1e-4, atol=1e-4)
    plan = planned(lenet(4))
    execution = Allocating(plan, None)
    execution.run(on_arrays(arrays), plan.graph.outputs)
    assert execution.peak == max(row.total for row in plan.rows())
