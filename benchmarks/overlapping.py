"""``python -m benchmarks overlapping``: what it costs that several instances of ``+=!`` write one element.

Each definition is measured in two forms, in turns: in one statement (``y(i+k) +=! ...``), and in two, of which the
first sets every element to 0 and the second accumulates (``y(i) = 0  y(i+k) += ...``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

import tc

# One statement may take so many times as long as two.
MOST_RATIO: Final = 1.5
_SEED: Final = 1


@dataclass(frozen=True, slots=True)
class Form:
    """A definition: ``accumulation`` is what both forms have, with ``{}`` for the operator; ``zero`` comes first."""

    name: str
    parameters: str
    accumulation: str
    zero: str
    shapes: tuple[tuple[int, ...], ...]

    @property
    def one(self) -> str:
        """In one statement."""
        return f"def f({self.parameters}) -> (y) {{ {self.accumulation.format('+=!')} }}"

    @property
    def two(self) -> str:
        """In two statements."""
        return f"def f({self.parameters}) -> (y) {{ {self.zero} {self.accumulation.format('+=')} }}"


FORMS: Final = (
    Form(
        "overlap-add",
        "float(T,K) frames",
        "y(128*t + k) {} frames(t,k)",
        "y(i) = 0.0 where i in 0:128*(T - 1) + K",
        ((4096, 512),),
    ),
    Form(
        "full convolution",
        "float(N) x, float(K) w",
        "y(i + k) {} x(i) * w(k)",
        "y(i) = 0.0 where i in 0:N + K - 1",
        ((1 << 20,), (32,)),
    ),
    Form(
        "col2im",
        "float(C,KH,KW,H,W) columns",
        "y(c, h + kh, w + kw) {} columns(c,kh,kw,h,w)",
        "y(c, h, w) = 0.0 where c in 0:C, h in 0:H + KH - 1, w in 0:W + KW - 1",
        ((64, 3, 3, 112, 112),),
    ),
    Form(
        "gradient",
        "float(N,M,H,W) g, float(M,C,KH,KW) w",
        "y(n, c, h + kh, q + kw) {} g(n,m,h,q) * w(m,c,kh,kw)",
        "y(n, c, h, q) = 0.0 where n in 0:N, c in 0:C, h in 0:H + KH - 1, q in 0:W + KW - 1",
        ((4, 16, 56, 56), (16, 16, 3, 3)),
    ),
    Form("pairs", "float(N) x", "y(i/2) {} x(i)", "y(i) = 0.0 where i in 0:(N + 1)/2", ((1 << 22,),)),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of a call at best, in one statement and in two."""

    name: str
    one: float
    two: float

    @property
    def ratio(self) -> float:
        """Of one statement to two."""
        return self.one / self.two


def measure_form(form: Form, rounds: int) -> Measured:
    """The least time of each form in so many rounds, in turns; ValueError if their results differ.

    Who seems late has three times as many: on a busy machine, a few calls say little.
    """
    random = np.random.default_rng(_SEED)
    arguments = [random.standard_normal(shape, np.float32) for shape in form.shapes]
    one, two = (tc.define(text).single() for text in (form.one, form.two))
    result = np.asarray(one(*arguments))
    if not np.allclose(result, np.asarray(two(*arguments)), rtol=1e-4, atol=1e-4):
        raise ValueError(f"{form.name}: the two forms give different results")
    found = Measured(form.name, float("inf"), float("inf"))
    for number in range(3 * rounds):
        if number >= rounds and found.ratio <= MOST_RATIO:
            break
        times: list[float] = []
        for f in (one, two):
            started = time.perf_counter()
            f(*arguments, out=result)
            times.append(time.perf_counter() - started)
        found = Measured(form.name, min(found.one, times[0]), min(found.two, times[1]))
    return found


def measure_forms(forms: tuple[Form, ...], rounds: int) -> Iterator[Measured]:
    """All of them, in their order."""
    return (measure_form(form, rounds) for form in forms)


HEADER: Final = f"{'microseconds':20}{'one statement':>15}{'two':>10}{'ratio':>8}"


def line(found: Measured) -> str:
    """A form in the table that ``HEADER`` begins."""
    return f"{found.name:20}{found.one * 1e6:15,.0f}{found.two * 1e6:10,.0f}{found.ratio:8.2f}"
