"""Views: shapes, strides and offsets are those of NumPy, and what does not lie so is copied."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tc
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.nodes import View
from tc.graph.ir.sizes import open_size
from tc.graph.run.evaluate import evaluate

F = ScalarType.FLOAT32


@pytest.mark.parametrize("seed", range(60))
def test_chains_of_views_are_numpys(seed: int) -> None:
    chosen = random.Random(seed)
    shape = tuple(chosen.choice((1, 2, 3, 5)) for _ in range(3))
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    builder = Builder("views")
    value, wanted = builder.input("x", F, shape), array
    for _ in range(5):
        kind = chosen.choice(("permute", "slice", "reshape", "expand"))
        rank = wanted.ndim
        if kind == "permute":
            axes = chosen.sample(range(rank), rank)
            value, wanted = builder.permute(value, axes), wanted.transpose(axes)
        elif kind == "slice" and rank:
            steps = [chosen.choice((1, 2, -1)) for _ in range(rank)]
            index = tuple(slice(None, None, step) for step in steps)
            starts = [0 if step > 0 else extent - 1 for step, extent in zip(steps, wanted.shape, strict=True)]
            value, wanted = builder.slice(value, starts, steps, wanted[index].shape), wanted[index]
        elif kind == "reshape":
            target = (int(wanted.size),) if chosen.random() < 0.5 else tuple(s for s in wanted.shape if s != 1)
            value, wanted = builder.reshape(value, target), wanted.reshape(target)
        else:
            target = (2, *(2 if extent == 1 else extent for extent in wanted.shape))
            value, wanted = builder.expand(value, target), np.broadcast_to(wanted, target)
    graph = builder.finish([value])
    found = evaluate(graph, {"x": array})[graph.outputs[0]]
    np.testing.assert_array_equal(found, wanted)
    assert graph.values[graph.outputs[0]].shape == wanted.shape


def test_a_view_moves_nothing() -> None:
    builder = Builder("views")
    x = builder.input("x", F, (4, 6))
    graph = builder.finish([builder.reshape(builder.permute(builder.reshape(x, (2, 2, 6)), (1, 0, 2)), (2, 2, 6))])
    assert all(isinstance(node, View) for node in graph.nodes)


def test_what_does_not_lie_in_order_is_copied() -> None:
    builder = Builder("views")
    x = builder.input("x", F, (4, 6))
    graph = builder.finish([builder.reshape(builder.permute(x, (1, 0)), (24,))])
    assert sum(not isinstance(node, View) for node in graph.nodes) == 1


def test_open_sizes_pass_through() -> None:
    builder = Builder("views")
    n = open_size("N")
    x = builder.input("x", F, (n, 4, 6))
    flat = builder.reshape(x, (n, 24))
    assert flat.strides is None
    assert builder.permute(flat, (1, 0)).steps == (1, 24)
    assert builder.reshape(builder.permute(x, (2, 0, 1)), (6, 1, n, 4)).shape == (6, 1, n, 4)


def test_bytes_as_another_type() -> None:
    builder = Builder("views")
    graph = builder.finish([builder.reinterpret(builder.input("x", F, (3,)), ScalarType.INT32)])
    found = evaluate(graph, {"x": np.array([1, -2, np.inf], np.float32)})[graph.outputs[0]]
    np.testing.assert_array_equal(found, np.array([1, -2, np.inf], np.float32).view(np.int32))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda b, x: b.reshape(x, (5,)), r"`x` of shape \(2, 3\) cannot be reshaped to \(5\)"),
        (lambda b, x: b.permute(x, (0, 0)), r"`x` of shape \(2, 3\) cannot be permuted by \(0, 0\)"),
        (lambda b, x: b.slice(x, [0], [1], [1]), r"`x` of shape \(2, 3\) cannot be sliced by 1 ranges"),
        (lambda b, x: b.slice(x, [0, 1], [1, 1], [2, 3]), r"`x` of shape \(2, 3\) cannot be sliced from 1 to 3"),
        (lambda b, x: b.expand(x, (4, 3)), r"`x` of shape \(2, 3\) cannot be expanded to \(4, 3\)"),
        (lambda b, x: b.reinterpret(x, ScalarType.INT8), r"`x` of shape \(2, 3\) cannot be read as int8"),
    ],
)
def test_what_does_not_fit(make, message: str) -> None:  # type: ignore[no-untyped-def]
    builder = Builder("views")
    x = builder.input("x", F, (2, 3))
    with pytest.raises(tc.GraphError, match=message):
        make(builder, x)
