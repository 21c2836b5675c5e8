"""Kernels: which calls share one, and that results do not depend on it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder, program_of
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.products import product
from tc.graph.operators.reductions import reduced
from tc.graph.partition.compose import composed
from tc.graph.partition.edges import edges_of
from tc.graph.partition.groups import MOST_STATEMENTS
from tc.graph.partition.kinds import Kind, kind_of
from tc.graph.partition.partition import partition_of
from tc.graph.run.evaluate import evaluate
from tc.language.text.print_program import program_text
from tests.fuzz.graph_programs import drawn

F = ScalarType.FLOAT32


def calls(graph: Graph) -> list[str]:
    return [node.program.name for node in composed(graph, partition_of(graph)).nodes if isinstance(node, Call)]


def layer(builder: Builder) -> tuple[Value, Value]:
    x, w = builder.input("x", F, (8, 16)), builder.input("w", F, (16, 4))
    return x, product(builder, x, w)


def test_what_is_pointwise_joins_a_product() -> None:
    builder = Builder("layer")
    _, made = layer(builder)
    bias = builder.input("b", F, (4,))
    shifted = pointwise(builder, "add", "{0} + {1}", [made, bias])
    assert calls(builder.finish([pointwise(builder, "relu", "max({0}, 0)", [shifted])])) == ["matmul_add_relu"]


def test_a_product_wants_its_operands_computed() -> None:
    builder = Builder("layer")
    x, w = builder.input("x", F, (8, 16)), builder.input("w", F, (16, 4))
    made = product(builder, pointwise(builder, "relu", "max({0}, 0)", [x]), w)
    assert calls(builder.finish([made])) == ["relu", "matmul"]


def test_what_is_pointwise_joins_the_sum_that_alone_uses_it() -> None:
    builder = Builder("norm")
    x = builder.input("x", F, (8, 16))
    squares = pointwise(builder, "square", "{0} * {0}", [x])
    total = reduced(builder, "sum", squares, (1,), keep=False)
    assert calls(builder.finish([total])) == ["square_sum"]
    assert calls(builder.finish([total, squares])) == ["square", "sum"]


def test_a_value_that_others_use_is_a_result() -> None:
    builder = Builder("layer")
    _, made = layer(builder)
    graph = composed(*_with_partition(builder.finish([pointwise(builder, "relu", "max({0}, 0)", [made]), made])))
    (call,) = graph.nodes
    assert call.results == ("relu_Y", "matmul_Y") or call.results == ("matmul_Y", "relu_Y")


def _with_partition(graph: Graph):  # type: ignore[no-untyped-def]
    return graph, partition_of(graph)


def test_no_kernel_waits_for_itself() -> None:
    builder = Builder("diamond")
    x, w = builder.input("x", F, (4, 4)), builder.input("w", F, (4, 4))
    first = pointwise(builder, "relu", "max({0}, 0)", [product(builder, x, w)])
    second = product(builder, first, w)
    both = pointwise(builder, "add", "{0} + {1}", [first, second])
    assert calls(builder.finish([both])) == ["matmul_relu", "matmul_add"]


def test_kernels_have_few_statements() -> None:
    builder = Builder("chain")
    value = builder.input("x", F, (4,))
    for _ in range(40):
        value = pointwise(builder, "step", "{0} * 2 + 1", [value])
    graph = composed(*_with_partition(builder.finish([value])))
    counts = [len(node.program.statements) for node in graph.nodes if isinstance(node, Call)]
    assert sum(counts) == 40
    assert max(counts) <= MOST_STATEMENTS


def test_edges_that_are_cut_join_nothing() -> None:
    builder = Builder("layer")
    _, made = layer(builder)
    graph = builder.finish([pointwise(builder, "relu", "max({0}, 0)", [made])])
    assert partition_of(graph, frozenset(edges_of(graph))).groups == ((0,), (1,))


@pytest.mark.parametrize("seed", range(40))
def test_random_partitions_change_no_result(seed: int) -> None:
    case, chosen = drawn(seed), random.Random(seed)
    cuts = frozenset(edge for edge in edges_of(case.graph) if chosen.random() < 0.3)
    graph = composed(case.graph, partition_of(case.graph, cuts))
    found = evaluate(graph, case.inputs)
    for name, wanted in zip(graph.outputs, case.results, strict=True):
        np.testing.assert_array_equal(found[name], wanted)


def test_kinds_of_programs() -> None:
    builder = Builder("kinds")
    x = builder.input("x", F, (4, 5))
    values = [
        pointwise(builder, "add", "{0} + {1}", [x, builder.input("b", F, (5,))]),
        builder.contiguous(builder.permute(x, (1, 0))),
        reduced(builder, "sum", x, (0,), keep=False),
    ]
    builder.call("def turned(float(M,N) A) -> (B) { B(j,i) = A(i,j) }", x)
    nodes = [node for node in builder.nodes_from(0) if isinstance(node, Call)]
    assert len(values) == 3
    assert [kind_of(node.program) for node in nodes] == [Kind.POINTWISE, Kind.POINTWISE, Kind.REDUCTION, Kind.MOVEMENT]


def test_what_follows_a_product_joins_no_further_reduction() -> None:
    """A maximum over windows beside the product that makes its elements would be computed between its tiles."""
    builder = Builder("layer")
    _, made = layer(builder)
    active = pointwise(builder, "relu", "max({0}, 0)", [made])
    assert calls(builder.finish([reduced(builder, "top", active, (1,), keep=False, operator="max=!")])) == [
        "matmul_relu",
        "top",
    ]


def test_a_sum_of_two_products_joins_one_of_them() -> None:
    builder = Builder("residual")
    x, w = builder.input("x", F, (8, 16)), builder.input("w", F, (16, 4))
    both = pointwise(builder, "add", "{0} + {1}", [product(builder, x, w), product(builder, x, w)])
    assert calls(builder.finish([both])) == ["matmul_add", "matmul"] or calls(builder.finish([both])) == [
        "matmul",
        "matmul_add",
    ]


def test_results_take_the_place_of_what_ends_with_them() -> None:
    builder = Builder("layer")
    _, made = layer(builder)
    shifted = pointwise(builder, "add", "{0} + {1}", [made, builder.input("b", F, (4,))])
    graph = builder.finish([pointwise(builder, "relu", "max({0}, 0)", [shifted])])
    (call,) = composed(graph, partition_of(graph)).nodes
    assert isinstance(call, Call)
    assert [statement.target for statement in call.program.statements] == ["y0", "y0", "y0"]
    text = program_text(call.program)
    assert program_text(program_of(text)) == text


def test_what_is_used_later_keeps_its_place() -> None:
    builder = Builder("layer")
    _, made = layer(builder)
    half = pointwise(builder, "half", "{0} / 2", [made])
    graph = builder.finish([pointwise(builder, "add", "{0} + {1}", [half, made])])
    (call,) = composed(graph, partition_of(graph)).nodes
    assert isinstance(call, Call)
    assert [statement.target for statement in call.program.statements] == ["t0", "y0", "y0"]
