"""Recurrences beside PyTorch's: an LSTM beside ``torch.nn.LSTM``; a selective scan (Mamba), all shortest paths
(Floyd-Warshall) and a heat equation beside loops over their steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

import tc
from benchmarks.problems.indirect import SEED, Array, Place, placed, tensors

LSTM: Final = """
def lstm(float(T,B,I) x, float(4,H,I) W, float(4,H,H) U, float(4,H) v, float(B,H) h0, float(B,H) c0) -> (h, c) {
    h(0,b,i) = h0(b,i)
    c(b,i) = c0(b,i)
    for t in 0:T {
        p(t,b,g,i) +=! x(t,b,k) * W(g,i,k)
        q(t,b,g,i) +=! h(t,b,j) * U(g,i,j)
        z(b,g,i) = p(t,b,g,i) + q(t,b,g,i) + v(g,i)
        c(b,i) = c(b,i) / (1 + exp(-z(b,1,i))) + tanh(z(b,2,i)) / (1 + exp(-z(b,0,i)))
        h(t+1,b,i) = tanh(c(b,i)) / (1 + exp(-z(b,3,i)))
    }
}"""
_SELECTIVE_SCAN: Final = """
def scan(float(B,L,D) x, float(B,L,D) dt, float(D,N) A, float(B,L,N) P, float(B,L,N) Q) -> (y) {
    s(b,d,n) = float(0) where b in 0:B, d in 0:D, n in 0:N
    for t in 0:L {
        s(b,d,n) = exp(dt(b,t,d) * A(d,n)) * s(b,d,n) + dt(b,t,d) * P(b,t,n) * x(b,t,d)
        y(b,t,d) +=! s(b,d,n) * Q(b,t,n)
    }
}"""


class Task(Protocol):
    """Something that is measured, ours and a peer's; ``minimum``: what the peer's time over ours should be."""

    @property
    def name(self) -> str: ...

    @property
    def minimum(self) -> float: ...

    def ours(self, place: Place = Place.CPU) -> Callable[[], object]: ...

    def peer(self, place: Place = Place.CPU) -> Callable[[], object]: ...


@dataclass(frozen=True, slots=True)
class Lstm:
    """One layer, whose input and state have the same size."""

    name: str
    steps: int
    batch: int
    size: int
    minimum: float

    def ours(self, place: Place = Place.CPU) -> Callable[[], object]:
        """A call of ours."""
        arguments = placed(self._arguments(), place)
        f = tc.define(LSTM).single()
        return lambda: f(*arguments)

    def peer(self, place: Place = Place.CPU) -> Callable[[], object]:
        """A call of PyTorch's."""
        import torch

        x, w, u, bias, h, c = tensors(self._arguments(), place)
        layer = torch.nn.LSTM(self.size, self.size, device=place.value)
        with torch.no_grad():
            parameters = dict(layer.named_parameters())
            for own, given in (("weight_ih_l0", w), ("weight_hh_l0", u), ("bias_ih_l0", bias)):
                parameters[own].copy_(given.reshape(parameters[own].shape))
            parameters["bias_hh_l0"].zero_()

        def call() -> object:
            with torch.no_grad():
                return layer(x, (h[None], c[None]))

        return call

    def _arguments(self) -> tuple[Array, ...]:
        random, size = np.random.default_rng(SEED), self.size
        shapes = (self.steps, self.batch, size), (4, size, size), (4, size, size), (4, size), *[(self.batch, size)] * 2
        return tuple(random.standard_normal(shape, np.float32) * np.float32(0.1) for shape in shapes)


@dataclass(frozen=True, slots=True)
class SelectiveScan:
    """The recurrence of a Mamba layer: states of ``states`` numbers for every channel."""

    name: str
    batch: int
    length: int
    channels: int
    states: int
    minimum: float

    def ours(self, place: Place = Place.CPU) -> Callable[[], object]:
        """A call of ours."""
        arguments = placed(self._arguments(), place)
        f = tc.define(_SELECTIVE_SCAN).single()
        return lambda: f(*arguments)

    def peer(self, place: Place = Place.CPU) -> Callable[[], object]:
        """The loop over steps in PyTorch."""
        import torch

        x, dt, a, p, q = tensors(self._arguments(), place)

        def call() -> object:
            state = torch.zeros(self.batch, self.channels, self.states, device=place.value)
            results = []
            for t in range(self.length):
                step = dt[:, t, :, None]
                state = torch.exp(step * a) * state + step * p[:, t, None, :] * x[:, t, :, None]
                results.append((state * q[:, t, None, :]).sum(-1))
            return torch.stack(results, dim=1)

        return call

    def _arguments(self) -> tuple[Array, ...]:
        random = np.random.default_rng(SEED)
        channels, states = (self.batch, self.length, self.channels), (self.batch, self.length, self.states)
        x, p, q = (random.standard_normal(shape, np.float32) for shape in (channels, states, states))
        dt = random.uniform(0.01, 0.1, channels).astype(np.float32)
        a = -random.uniform(0.5, 2.0, (self.channels, self.states)).astype(np.float32)
        return x, dt, a, p, q


_PATHS: Final = """
def paths(float(N,N) W) -> (D) {
    D(i,j) = W(i,j)
    for k in 0:N { D(i,j) min= D(i,k) + D(k,j) }
}"""
_HEAT: Final = """
def heat(float(N) u0) -> (u) {
    s(0,i) = u0(i)
    for t in 0:STEPS { s(t+1,i) = 0.5 * s(t,i) + 0.25 * s(t,max(i-1,0)) + 0.25 * s(t,min(i+1,N-1)) }
    u(i) = s(STEPS,i)
}"""


@dataclass(frozen=True, slots=True)
class Paths:
    """Lengths of the shortest paths between all of ``nodes`` nodes."""

    name: str
    nodes: int
    minimum: float

    def ours(self, place: Place = Place.CPU) -> Callable[[], object]:
        """A call of ours."""
        (lengths,) = placed((self._lengths(),), place)
        f = tc.define(_PATHS).single()
        return lambda: f(lengths)

    def peer(self, place: Place = Place.CPU) -> Callable[[], object]:
        """The loop over steps in PyTorch."""
        import torch

        (lengths,) = tensors((self._lengths(),), place)

        def call() -> object:
            found = lengths.clone()
            for k in range(self.nodes):
                torch.minimum(found, found[:, k, None] + found[k], out=found)
            return found

        return call

    def _lengths(self) -> Array:
        return np.random.default_rng(SEED).uniform(0.0, 1.0, (self.nodes, self.nodes)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Heat:
    """Steps of the heat equation on a line of ``points`` points, whose ends are insulated."""

    name: str
    points: int
    steps: int
    minimum: float

    def ours(self, place: Place = Place.CPU) -> Callable[[], object]:
        """A call of ours."""
        (start,) = placed((self._start(),), place)
        f = tc.define(_HEAT.replace("STEPS", str(self.steps))).single()
        return lambda: f(start)

    def peer(self, place: Place = Place.CPU) -> Callable[[], object]:
        """The loop over steps in PyTorch."""
        import torch

        (start,) = tensors((self._start(),), place)

        def call() -> object:
            line = start
            for _ in range(self.steps):
                left, right = torch.cat((line[:1], line[:-1])), torch.cat((line[1:], line[-1:]))
                line = 0.5 * line + 0.25 * left + 0.25 * right
            return line

        return call

    def _start(self) -> Array:
        return np.random.default_rng(SEED).standard_normal(self.points, np.float32)
