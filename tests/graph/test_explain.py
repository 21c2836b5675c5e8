"""Explanations of models name the steps of each schedule."""

from __future__ import annotations

import pytest

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.model import Model
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.products import product
from tc.graph.settings import Settings

F = ScalarType.FLOAT32
ORDER = "proven: every conflicting pair of instances runs in the order of the definition"


def layers(count: int, target: str) -> Model:
    """Products with bias and relu, none as wide as another."""
    builder = Builder("layers")
    made = builder.input("x", F, (8, 16))
    for number in range(count):
        width = 17 + number
        weights, bias = builder.input(f"w{number}", F, (16 + number, width)), builder.input(f"b{number}", F, (width,))
        made = pointwise(builder, "relu", "fmax({0} + {1}, 0.0)", [product(builder, made, weights), bias])
    return Model.of(builder.finish([made]), Settings(target=target))


@pytest.mark.parametrize("target", ["cpu", "emulator"])
@pytest.mark.parametrize("count", [1, 5])  # here, and in other processes
def test_the_steps_of_each_schedule(target: str, count: int) -> None:
    model = layers(count, target)
    assert ORDER not in model.explain()
    text = model.explain(steps=True)
    assert text.count("    def matmul_relu(") == text.count(f"    {ORDER}") == count
    kernels = text[text.index("== kernels") : text.index("== host")]
    assert kernels.count("toPrivate: ") >= count
    assert kernels.count("mapLcl: " if target == "emulator" else "asVector: ") >= count
