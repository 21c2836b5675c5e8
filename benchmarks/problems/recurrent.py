"""Recurrences beside PyTorch's: an LSTM beside ``torch.nn.LSTM``, a selective scan (Mamba) beside its loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

import tc
from benchmarks.problems.indirect import SEED, THREADS, Array

_LSTM: Final = """
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

    def ours(self) -> Callable[[], object]: ...

    def peer(self) -> Callable[[], object]: ...


@dataclass(frozen=True, slots=True)
class Lstm:
    """One layer, whose input and state have the same size."""

    name: str
    steps: int
    batch: int
    size: int
    minimum: float

    def ours(self) -> Callable[[], object]:
        """A call of ours."""
        arguments = self._arguments()
        f = tc.define(_LSTM).single()
        return lambda: f(*arguments)

    def peer(self) -> Callable[[], object]:
        """A call of PyTorch's."""
        import torch

        torch.set_num_threads(THREADS)
        x, w, u, bias, h, c = map(torch.from_numpy, self._arguments())
        layer = torch.nn.LSTM(self.size, self.size)
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

    def ours(self) -> Callable[[], object]:
        """A call of ours."""
        arguments = self._arguments()
        f = tc.define(_SELECTIVE_SCAN).single()
        return lambda: f(*arguments)

    def peer(self) -> Callable[[], object]:
        """The loop over steps in PyTorch."""
        import torch

        torch.set_num_threads(THREADS)
        x, dt, a, p, q = map(torch.from_numpy, self._arguments())

        def call() -> object:
            state = torch.zeros(self.batch, self.channels, self.states)
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
