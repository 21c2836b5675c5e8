"""A graph that is cut where a kernel writes its result in the place of an operand, and what its kernels are."""

from __future__ import annotations

from tc.artifact.packing import options_text
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.model import Model
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.products import product
from tc.graph.settings import Settings

F = ScalarType.FLOAT32
CUT = Settings(rules=(), cuts=("half_Y",))


def steps() -> Graph:
    """A kernel that writes into the place of its operand, between two others, if the first edge is cut."""
    builder = Builder("steps")
    half = pointwise(builder, "half", "{0} / 2", [builder.input("x", F, (7, 9))])
    positive = pointwise(builder, "relu", "max({0}, 0)", [half])
    return builder.finish([product(builder, positive, builder.input("w", F, (9, 5)))])


def asked(model: Model) -> set[str]:
    """What the kernels write in place, and the options that they are made with."""
    kernels = model.compile().kernels.values()
    return {f"{kernel.signature.aliases} {options_text(kernel.asked)}" for kernel in kernels}
