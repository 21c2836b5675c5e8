"""Sampling images at positions that are data."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import torch

from tc.gradient.gradient import gradient
from tc.graph.ir.builder import Builder
from tc.graph.ir.nodes import Call
from tc.graph.ir.values import Value
from tc.graph.operators.neural.sampling import Sampling, sampled_at
from tc.language.program.program import Program
from tc.torch.fx.operation import Operation, Rules, UnclaimedError, extents

aten: Final = torch.ops.aten
_MODES: Final = ("linear", "nearest", "cubic")
_PADDINGS: Final = ("zeros", "border", "reflection")


def _how(operation: Operation) -> Sampling:
    if 0 in extents(operation.value("input")):
        raise UnclaimedError("has no elements")
    mode, padding = _MODES[operation.integer("interpolation_mode")], _PADDINGS[operation.integer("padding_mode")]
    if mode == "cubic" and padding == "border":
        padding = "edge"
    return Sampling(mode, padding, bool(operation["align_corners"]))


def _sampled(operation: Operation) -> Value:
    return sampled_at(operation.builder, operation.value("input"), operation.value("grid"), _how(operation))


def _gradient(operation: Operation) -> Sequence[Value | None]:
    """That of the definition, which is derived."""
    x, grid = operation.value("input"), operation.value("grid")
    apart = Builder("sampling")
    image, positions = (apart.input(name, one.type, one.shape) for name, one in (("x", x), ("grid", grid)))
    sampled_at(apart, image, positions, _how(operation))
    (program,) = (node.program for node in apart.nodes_from(0) if isinstance(node, Call))
    wanted = operation["output_mask"]
    names = tuple(tensor.name for tensor, want in zip(program.tensors, wanted, strict=False) if want)
    if not names:
        return [None, None]
    found = iter(operation.builder.call(_derived(program, names), x, grid, operation.value("grad_output")))
    return [next(found) if want else None for want in wanted]


@functools.lru_cache(maxsize=64)
def _derived(program: Program, names: tuple[str, ...]) -> Program:
    return gradient(program, names)


RULES: Final[Rules] = {
    aten.grid_sampler_2d.default: _sampled,
    aten.grid_sampler_3d.default: _sampled,
    aten.grid_sampler_2d_backward.default: _gradient,
    aten.grid_sampler_3d_backward.default: _gradient,
}
