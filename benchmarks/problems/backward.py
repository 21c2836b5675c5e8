"""Backward passes beside PyTorch's, and whole steps of training: both are followed by autograd."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import tc
from benchmarks.problems.cases import GCONV, GROUP_NORM, LAYER_NORM, LUT1, LUT2, MLP1, MLP3, SOFTMAX, TMM
from benchmarks.problems.indirect import SEED, Place, tensors

Tensor = Any
Peer = Callable[..., Any]

_CONVOLUTION: Final = """
def conv(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) { O(n,f,h,w) +=! I(n,c,h+i,w+j) * K(f,c,i,j) }"""
_ATTENTION: Final = """
def attention(float(B,N,D) q, float(B,M,D) k, float(B,M,E) v) -> (o) {
    t(b,n,m) +=! q(b,n,d) * k(b,m,d)
    h(b,n) max=! 0.125 * t(b,n,m)
    e(b,n,m) = exp(0.125 * t(b,n,m) - h(b,n))
    s(b,n) +=! e(b,n,m)
    p(b,n,m) = e(b,n,m) / s(b,n)
    o(b,n,f) +=! p(b,n,m) * v(b,m,f)
}"""
_MAX_POOL: Final = """
def pool(float(N,C,H,W) I) -> (O) { O(n,c,h,w) max=! I(n,c,2*h+i,2*w+j) where i in 0:2, j in 0:2 }"""
_AVERAGE_POOL: Final = """
def pool(float(N,C,H,W) I) -> (O) { O(n,c,h,w) +=! 0.25 * I(n,c,2*h+i,2*w+j) where i in 0:2, j in 0:2 }"""
_BLOCK: Final = """
def block(float(N,C,H,W) I, float(F,C,KH,KW) K, float(F) b) -> (O) {
    O(n,f,h,w) +=! I(n,c,h+i,w+j) * K(f,c,i,j)
    O(n,f,h,w) = fmax(O(n,f,h,w) + b(f), 0)
}"""


@dataclass(frozen=True, slots=True)
class Backward:
    """The backward pass of a definition, by some arguments; ``forward``: with the forward pass before it.

    ``shapes``: of the arguments; ``indices``: of those that are indices, below which number.  ``peer``: what PyTorch
    computes of the same arguments.
    """

    name: str
    text: str
    shapes: Mapping[str, tuple[int, ...]]
    peer_call: Peer
    minimum: float
    wanted: tuple[str, ...] = ()
    indices: Mapping[str, int] | None = None
    forward: bool = False

    def ours(self, place: Place = Place.CPU) -> Callable[[], object]:
        """A call of ours."""
        return self._call(tc.define(self.text).single(), place)

    def peer(self, place: Place = Place.CPU) -> Callable[[], object]:
        """A call of PyTorch's."""
        return self._call(self.peer_call, place)

    def _call(self, function: Peer, place: Place) -> Callable[[], object]:
        import torch

        # As in all measurements, products are those of float32.
        torch.backends.cudnn.allow_tf32 = False
        arguments = self._arguments(place)
        floating = [name for name, value in arguments.items() if value.is_floating_point()]
        for name in self.wanted or floating:
            arguments[name].requires_grad_()
        learned = [arguments[name] for name in self.wanted or floating]

        def run() -> tuple[Tensor, ...]:
            found = function(*arguments.values())
            return found if isinstance(found, tuple) else (found,)

        results = run()
        torch.manual_seed(SEED)
        weights = [torch.randn_like(result) for result in results]
        if self.forward:
            return lambda: torch.autograd.grad(run(), learned, weights)
        return lambda: torch.autograd.grad(results, learned, weights, retain_graph=True)

    def _arguments(self, place: Place) -> dict[str, Tensor]:
        random, indices = np.random.default_rng(SEED), self.indices or {}
        arrays = [
            random.integers(0, indices[name], shape, np.int32)
            if name in indices
            else random.standard_normal(shape, np.float32) * np.float32(0.1)
            for name, shape in self.shapes.items()
        ]
        return dict(zip(self.shapes, tensors(arrays, place), strict=True))


def _mlp3(x: Tensor, *layers: Tensor) -> tuple[Tensor, ...]:
    import torch

    results = []
    for weight, bias in zip(layers[::2], layers[1::2], strict=True):
        x = torch.relu(torch.nn.functional.linear(x, weight, bias))
        results.append(x)
    return tuple(results)


def _gconv(image: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    import torch

    n, groups, channels, height, width = image.shape
    joined = weights.flatten(0, 1)
    found = torch.nn.functional.conv2d(
        image.reshape(n, groups * channels, height, width), joined, bias.flatten(), groups=groups
    )
    return found.reshape(n, groups, weights.shape[1], *found.shape[2:])


def _group_norm(image: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    import torch

    groups = image.shape[1]
    found = torch.nn.functional.group_norm(image.flatten(1, 2), groups, gamma.flatten(), beta.flatten(), 1e-5)
    return found.reshape(image.shape)


def _functional(name: str) -> Peer:
    """A function of ``torch.nn.functional``."""

    def call(*arguments: Tensor, **options: Any) -> Tensor:
        import torch

        return getattr(torch.nn.functional, name)(*arguments, **options)

    return call


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return _functional("scaled_dot_product_attention")(q, k, v, scale=0.125)


def _block(image: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    return _functional("relu")(_functional("conv2d")(image, weights, bias))


def _bag(table: Tensor, indices: Tensor) -> Tensor:
    return _functional("embedding_bag")(indices, table, mode="sum")


def _bags(one: Tensor, first: Tensor, two: Tensor, second: Tensor) -> tuple[Tensor, ...]:
    return _bag(one, first), _bag(two, second)


def _mlp1(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return _functional("relu")(x @ weight + bias)


_IMAGE: Final = {"I": (8, 64, 30, 30), "K": (64, 64, 3, 3)}
_MLP3: Final = {"I": (128, 128), "W2": (64, 128), "B2": (64,), "W3": (32, 64), "B3": (32,), "W4": (2, 32), "B4": (2,)}
_TABLE: Final = 10**6


def _grouped(channels: int, side: int) -> Backward:
    shapes = {
        "I": (32, 32, channels, side, side),
        "W1": (32, channels, channels, 3, 3),
        "B": (32, channels),
    }
    return Backward(f"gconv-{channels}", GCONV.text, shapes, _gconv, 1.0)


def _normalized(name: str, n: int, side: int) -> Backward:
    text = GROUP_NORM.text.replace("-> (O, sum, ssum)", "-> (O)")
    shapes = {"I": (n, 32, 16, side, side), "gamma": (32, 16), "beta": (32, 16)}
    return Backward(name, text, shapes, _group_norm, 1.0)


BACKWARD: Final = (
    Backward("conv-input", _CONVOLUTION, _IMAGE, _functional("conv2d"), 1.0, ("I",)),
    Backward("conv-weight", _CONVOLUTION, _IMAGE, _functional("conv2d"), 1.0, ("K",)),
    *(_grouped(channels, side) for channels, side in ((4, 56), (8, 28), (16, 14), (32, 7))),
    Backward("tmm-128-1024-1024", TMM.text, {"A": (128, 1024), "B": (1024, 1024)}, _functional("linear"), 1.0),
    Backward("tmm-1024-1024-1024", TMM.text, {"A": (1024, 1024), "B": (1024, 1024)}, _functional("linear"), 1.0),
    Backward("mlp1", MLP1.text, {"I": (128, 2000), "W1": (2000, 128), "B1": (128,)}, _mlp1, 1.0),
    Backward("mlp3", MLP3.text, _MLP3, _mlp3, 1.0),
    _normalized("group-norm-large", 32, 48),
    _normalized("group-norm-small", 4, 12),
    Backward(
        "layer-norm",
        LAYER_NORM.text,
        {"I": (4096, 1024), "gamma": (1024,), "beta": (1024,)},
        lambda x, gamma, beta: _functional("layer_norm")(x, (1024,), gamma, beta, 1e-5),
        1.0,
    ),
    Backward("softmax", SOFTMAX.text, {"I": (4096, 4096)}, lambda x: _functional("softmax")(x, 1), 1.0),
    Backward("attention", _ATTENTION, dict.fromkeys("qkv", (16, 256, 64)), _attention, 1.0),
    Backward("max-pool", _MAX_POOL, {"I": (8, 64, 56, 56)}, lambda x: _functional("max_pool2d")(x, 2), 1.0),
    Backward("average-pool", _AVERAGE_POOL, {"I": (8, 64, 56, 56)}, lambda x: _functional("avg_pool2d")(x, 2), 1.0),
    Backward("lut1", LUT1.text, {"L": (_TABLE, 64), "I": (128, 50)}, _bag, 1.0, indices={"I": _TABLE}),
    Backward(
        "lut2",
        LUT2.text,
        {"L1": (_TABLE, 64), "I1": (128, 50), "L2": (_TABLE, 64), "I2": (128, 50)},
        _bags,
        1.0,
        indices={"I1": _TABLE, "I2": _TABLE},
    ),
    Backward("mlp3-step", MLP3.text, _MLP3, _mlp3, 1.5, forward=True),
    Backward("conv-block-step", _BLOCK, {**_IMAGE, "b": (64,)}, _block, 1.5, forward=True),
)
