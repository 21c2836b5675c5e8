"""Concatenations that move nothing: parts of results, what cannot lie in one, and what it all needs of memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

import tc.graph
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.ir.graph_text import graph_text
from tc.graph.ir.nodes import Call, Join
from tc.graph.ir.values import Value
from tc.graph.memory.joins import Costs, joined
from tc.graph.memory.own_outputs import with_own_outputs
from tc.graph.memory.plan import MemoryPlan, needed_blocks, planned
from tc.graph.operators.joining import Concatenated, concatenated
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.reductions import reduced
from tc.graph.partition.compose import composed
from tc.graph.partition.partition import partition_of
from tc.graph.run.allocate import Allocating
from tc.graph.run.arrays import on_arrays
from tc.graph.run.execute import Execution
from tests.fuzz.graph_memory import run_allocating, run_in_arena

F = ScalarType.FLOAT32
# Joins, copies of operands that cannot lie in their parts, and concatenations that are left.
Shares = tuple[int, int, int]


def shares(graph: Graph) -> Shares:
    kinds = Counter(type(node) for node in graph.nodes)
    calls = [node for node in graph.nodes if isinstance(node, Call)]
    copies = sum(call.program.name == "copy" for call in calls)
    return kinds[Join], copies, sum(isinstance(call.operator, Concatenated) for call in calls)


def plan_of(graph: Graph, costs: Costs = Costs(kernel=0, row=1)) -> MemoryPlan:  # noqa: B008  # frozen
    return planned(composed(found := joined(graph, needed_blocks, costs), partition_of(found)))


def check(graph: Graph, found: Graph, *, compiled: bool = False) -> None:
    """The graph with joins means the same, and no part is written to by anything else, however it is run."""
    random = np.random.default_rng(0)
    shapes = {name: [size for size in graph.values[name].shape if isinstance(size, int)] for name in graph.inputs}
    inputs = {name: random.integers(-9, 9, shape).astype(np.float32) for name, shape in shapes.items()}
    wanted = tc.graph.Model.of(graph).reference(graph.outputs, inputs)
    plan = planned(with_own_outputs(composed(found, partition_of(found))))
    made = [run_in_arena(plan, inputs), run_allocating(plan, inputs)]
    if compiled:
        for ready in (Execution(plan, None), Allocating(plan, None)):
            results = ready.run(on_arrays(inputs), graph.outputs)
            made.append(tuple(map(np.asarray, results)))
    for at, name in enumerate(graph.outputs):
        for held in made:
            np.testing.assert_array_equal(held[at], wanted[name])


def sums(builder: Builder, operand: Value, window: int = 2) -> Value:
    """Sums of neighbours: no part of the kernel of a concatenation."""
    text = f"def sums(float(N,C,H) X) -> (Y) {{ Y(n,c,h) +=! X(n,c,h+i) where i in 0:{window} }}"
    return builder.call(text, operand)[0]


@pytest.mark.parametrize("batch", [1, 3])
def test_makers_write_to_parts(batch: int) -> None:
    """Of one image, parts are contiguous; of several, they have strides, and kernels for those are compiled."""
    builder = Builder("squeeze")
    x = builder.input("x", F, (batch, 3, 40))
    left, right = sums(builder, x), sums(builder, pointwise(builder, "double", "2 * {0}", [x]))
    whole = concatenated(builder, [left, right], 1)
    total = reduced(builder, "total", whole, (1,), keep=False, operator="+=!")
    graph = builder.finish([total])
    found = joined(graph, needed_blocks)
    assert shares(found) == (1, 0, 0)
    assert found.values[left.name].is_contiguous == (batch == 1)
    plan = planned(with_own_outputs(composed(found, partition_of(found))))
    assert [block.name for block in plan.blocks if block.name in (left.name, right.name)] == []
    check(graph, found, compiled=True)


@pytest.mark.parametrize("flat", [True, False])
def test_dense_blocks_lie_in_one_value(flat: bool) -> None:
    """Each concatenation is the beginning of the next one, whether it has the last one or all before it as operands."""
    builder = Builder("dense")
    whole = sums(builder, builder.input("x", F, (1, 4, 42)))
    parts = [whole]
    for _ in range(4):
        inner = pointwise(builder, "relu", "max({0}, 0)", [whole])
        text = "def mix(float(N,C,H) X) -> (Y) { Y(n,d,h) +=! X(n,c,h) where d in 0:2 }"
        parts.append(builder.call(text, inner)[0])
        whole = concatenated(builder, parts if flat else [whole, parts[-1]], 1)
    last = reduced(builder, "last", whole, (1,), keep=False, operator="max=!")
    graph = builder.finish([last])
    found = joined(graph, needed_blocks)
    assert shares(found) == (4, 0, 0)
    plan, before = (planned(composed(own, partition_of(own))) for own in (found, graph))
    assert {plan.storage.roots[part.name] for part in parts} == {whole.name}
    assert plan.arena < before.arena
    check(graph, found)


def test_what_has_no_part_of_its_own_is_copied() -> None:
    """Inputs, constants, what is returned, a value that comes twice, and one that another concatenation has."""
    builder = Builder("copies")
    x = builder.input("x", F, (8, 20))
    constant = builder.constant(np.ones((2, 20), np.float32))
    made, returned = (builder.call("def f(float(M,N) X) -> (Y) { Y(m,n) +=! X(k,n) * X(m,n) }", x)[0] for _ in "ab")
    first = concatenated(builder, [x, constant, made, returned, made], 0)
    second = concatenated(builder, [made, pointwise(builder, "fabs", "fabs({0})", [x])], 0)
    graph = builder.finish([first, returned, second])
    found = joined(graph, needed_blocks, Costs(kernel=0, row=1))
    assert shares(found) == (1, 4, 1)
    check(graph, found, compiled=True)


def test_slices_are_copied_and_views_of_all_are_not() -> None:
    """What a permutation looks at has rows of its own in the result; a slice has not all of its value."""
    builder = Builder("views")
    x = builder.input("x", F, (2, 3, 64))
    text = "def split(float(N,S,E) X) -> (Y) { Y(n,s,h,d) +=! X(n,s,16*h+d) where h in 0:4, d in 0:16 }"
    (made,) = builder.call(text, x)
    sliced = builder.slice(sums(builder, builder.input("z", F, (2, 4, 80)), 1), (0, 0, 0), (1, 1, 1), (2, 4, 32))
    whole = concatenated(builder, [builder.permute(made, (0, 2, 1, 3)), builder.reshape(sliced, (2, 4, 2, 16))], 2)
    graph = builder.finish([reduced(builder, "total", whole, (1,), keep=False, operator="+=!")])
    found = joined(graph, lambda _: (), Costs(kernel=0, row=1))
    assert shares(found) == (1, 1, 0)
    assert found.values[made.name].steps == (320, 16, 80, 1)
    check(graph, found)


def test_views_that_cannot_follow_keep_their_value_where_it_is() -> None:
    """Rows of a part with strides do not lie end to end."""
    builder = Builder("flat")
    x = builder.input("x", F, (2, 3, 20))
    made, other = sums(builder, x), sums(builder, x)
    flat = builder.reshape(made, (6 * 19,))
    whole = concatenated(builder, [made, other], 1)
    graph = builder.finish([whole, pointwise(builder, "twice", "2 * {0}", [flat])])
    found = joined(graph, needed_blocks)
    assert found.values[made.name].is_contiguous
    assert shares(found) == (1, 1, 0)
    check(graph, found)


def test_parts_of_what_is_returned_are_written_to_what_the_call_allocates() -> None:
    builder = Builder("returned")
    x = builder.input("x", F, (1, 3, 30))
    whole = concatenated(builder, [sums(builder, x), sums(builder, x, 2)], 1)
    graph = builder.finish([whole, builder.reshape(whole, (6, 29))])
    model = tc.graph.Model.of(graph)
    array = np.arange(90, dtype=np.float32).reshape(1, 3, 30)
    one, other = model(array), model(array + 1)
    assert isinstance(one, tuple)
    assert isinstance(other, tuple)
    assert not np.shares_memory(one[0], other[0])
    assert model.plan().arena == 0
    check(graph, joined(graph, needed_blocks), compiled=True)


def test_the_host_writes_to_parts() -> None:
    builder = Builder("host")
    x = builder.input("x", F, (3, 4))

    def upside_down(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [arrays[0][::-1]]

    (turned,) = builder.host("Turn", upside_down, [x], [(F, (3, 4))])
    (read,) = builder.host("Turn", upside_down, [turned], [(F, (3, 4))])
    graph = builder.finish([concatenated(builder, [turned, read], 1)])
    found = joined(graph, needed_blocks, Costs(kernel=0, row=1))
    assert shares(found) == (1, 0, 0)
    check(graph, found)


def test_results_in_place_of_a_part_would_hold_the_whole() -> None:
    builder = Builder("place")
    x = builder.input("x", F, (1, 4, 33))
    left, right = sums(builder, x), sums(builder, x)
    whole = concatenated(builder, [left, right], 1)
    text = "def used(float(N,C,H) W, float(N,D,H) L) -> (Y) { Y(n,d,h) +=! W(n,c,h) * L(n,d,h) }"
    (used,) = builder.call(text, whole, right)
    after = pointwise(builder, "after", "2 * {0}", [left])
    graph = builder.finish([sums(builder, used), sums(builder, after)])
    plan = planned(joined(graph, lambda _: ()), reorder=False)
    assert plan.storage.in_place == {}
    check(graph, plan.graph)


def test_whole_joins_are_overwritten_in_place() -> None:
    builder = Builder("whole")
    x = builder.input("x", F, (1, 4, 33))
    whole = concatenated(builder, [sums(builder, x), sums(builder, x)], 1)
    after = pointwise(builder, "after", "2 * {0}", [whole])
    graph = builder.finish([sums(builder, after)])
    plan = planned(joined(graph, needed_blocks))
    assert plan.storage.in_place == {after.name: whole.name}
    check(graph, plan.graph)


def test_no_join_needs_more_memory() -> None:
    """A part that is made early would hold the memory of all parts while the largest values are there."""
    builder = Builder("skip")
    x = builder.input("x", F, (1, 4, 501))
    early = sums(builder, x)
    wide = "def wide(float(N,C,H) X) -> (Y) { Y(n,d,h) +=! X(n,c,h) where d in 0:32 }"
    narrow = "def narrow(float(N,C,H) X) -> (Y) { Y(n,d,h) +=! X(n,c,h) where d in 0:4 }"
    largest = builder.call(wide, early)[0]
    late = builder.call(narrow, reduced(builder, "least", largest, (1,), keep=True, operator="min=!"))[0]
    graph = builder.finish([sums(builder, concatenated(builder, [early, late], 1))])
    assert shares(joined(graph, lambda _: ())) == (1, 0, 0)
    assert shares(joined(graph, needed_blocks)) == (0, 0, 1)


def test_what_shares_the_kernel_of_a_concatenation_goes_on_doing_so() -> None:
    """A join would make a kernel of each; values that are large enough are worth one more kernel."""
    builder = Builder("rotated")
    x = builder.input("x", F, (1, 8, 300))
    parts = [pointwise(builder, f"p{n}", f"{n} * {{0}}", [x]) for n in range(2)]
    few = concatenated(builder, parts, 1)
    many = concatenated(
        builder, [*(pointwise(builder, f"q{n}", f"{n} + {{0}}", [x]) for n in range(5)), sums(builder, x, 1)], 1
    )
    graph = builder.finish([few, many])
    assert shares(joined(graph, lambda _: ())) == (0, 0, 2)
    assert shares(joined(graph, lambda _: (), Costs(kernel=0))) == (1, 0, 1)


def test_short_rows_are_copied() -> None:
    builder = Builder("columns")
    x = builder.input("x", F, (100, 3, 4))
    graph = builder.finish([concatenated(builder, [sums(builder, x, 1), sums(builder, x, 1)], 2)])
    assert shares(joined(graph, needed_blocks)) == (0, 0, 1)
    assert shares(joined(graph, needed_blocks, Costs(row=16))) == (1, 0, 0)


def test_empty_operands_have_no_part() -> None:
    builder = Builder("empty")
    x = builder.input("x", F, (3, 5))
    nothing = builder.constant(np.zeros((0, 5), np.float32))
    made = builder.call("def f(float(M,N) X) -> (Y) { Y(m,n) +=! X(k,n) * X(m,n) }", x)[0]
    other = builder.call("def g(float(M,N) X) -> (Y) { Y(m,n) +=! X(k,n) + X(m,n) }", x)[0]
    graph = builder.finish(
        [concatenated(builder, [nothing, made, other], 0), concatenated(builder, [nothing, made], 0)]
    )
    found = joined(graph, needed_blocks)
    assert shares(found) == (1, 0, 1)
    check(graph, found)


def test_the_table_counts_the_whole_with_its_first_part() -> None:
    builder = Builder("table")
    x = builder.input("x", F, (1, 500, 1001))
    whole = concatenated(builder, [sums(builder, x), sums(builder, x)], 1)
    plan = plan_of(builder.finish([reduced(builder, "total", whole, (0, 1, 2), keep=False, operator="+=!")]))
    assert [(row.statement.split(" = ")[-1], row.bytes) for row in plan.rows()] == [
        ("sums(x)", 4_000_000),
        ("sums(x)", 0),
        ("join(sums_Y, sums_Y_2)", 0),
        ("total(concat_Y)", 0),
        ("free concat_Y", -4_000_000),
    ]
    assert plan.peak == plan.arena == 4_000_000


def test_models_join_unless_they_are_told_not_to() -> None:
    builder = Builder("switch")
    x = builder.input("x", F, (2, 3, 40))
    graph = builder.finish([concatenated(builder, [sums(builder, x), sums(builder, x, 2)], 1)])
    for join, kernels in ((True, 2), (False, 3)):
        model = tc.graph.Model.of(graph, tc.graph.Settings(rules=(), join=join))
        model(np.ones((2, 3, 40), np.float32))
        assert model.kernels == kernels


def test_joins_have_a_text() -> None:
    builder = Builder("text")
    x = builder.input("x", F, (1, 3, 40))
    graph = builder.finish([concatenated(builder, [sums(builder, x), sums(builder, x, 2)], 1)])
    text = graph_text(joined(graph, needed_blocks))
    assert "concat_Y = view (sums_Y, sums_Y_2) join(1)" in text
    with pytest.raises(tc.GraphError, match="joins come of planning, and are not read from text"):
        tc.graph.parse(text)
