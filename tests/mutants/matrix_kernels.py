"""Kernels with matrix instructions, and all mistakes that are made in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from unittest.mock import patch

import ml_dtypes
import numpy as np

import tc
from tc.base.dots import MatrixShape
from tc.polyhedral.generate.spread_totals import spread_totals
from tc.polyhedral.gpu.tensor.instructions import matrix_instructions
from tc.polyhedral.ir.loops import Barrier, LoopTree, leaves
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.proof.printed.verify_spread import find_wrong_spread
from tests.mutants.judge import Given, Verdict, judge, mistakes
from tests.mutants.matrix_changes import Changed, changes, places, with_change
from tests.mutants.mistakes import Mistake
from tests.mutants.shared_mistakes import shared_mistakes

_TYPES = {"bfloat16": np.dtype(ml_dtypes.bfloat16), "float": np.dtype(np.float32)}
# A warp has several blocks of rows and of columns.
_TILES = tc.GpuOptions(tc.ScheduleOptions(tile=(64, 32, 32)), block=(4, 16))
_WARPS = tc.GpuOptions(tc.ScheduleOptions(tile=(32, 32, 32)), block=(4, 16, 2))


@dataclass(frozen=True, slots=True)
class MatrixKernel:
    """A definition ``f`` of a ``result``, the shapes of its arguments, and options."""

    result: str
    arguments: str
    body: str
    shapes: tuple[tuple[int, ...], ...]
    options: tc.GpuOptions

    @property
    def text(self) -> str:
        """The definition."""
        return f"def f({self.arguments}) -> ({self.result}) {{ {self.body} }}"

    @property
    def given(self) -> Given:
        """Random arguments."""
        random = np.random.default_rng(0)
        found: dict[str, object] = {}
        for declared, shape in zip(self.arguments.split(", "), self.shapes, strict=True):
            type, name = declared.split("(")[0], declared.split()[-1]
            dtype = _TYPES.get(type) or np.dtype(type)
            if dtype.kind in "iu":
                info = np.iinfo(dtype)
                found[name] = random.integers(info.min, info.max + 1, shape).astype(dtype)
            else:
                found[name] = random.standard_normal(shape).astype(dtype)
        return Given(found)


def _product(
    type: str, left: str, right: str, sizes: tuple[int, int, int], options: tc.GpuOptions, other: str | None = None
) -> MatrixKernel:
    """``left``, ``right``: the iterators of the factors, in the order of their dimensions."""
    extents = dict(zip("mnk", sizes, strict=True))
    shapes = tuple(tuple(extents[name] for name in own) for own in (left, right))
    declared = (f"({','.join(own).upper()})" for own in (left, right))
    arguments = ", ".join(
        f"{t}{own} {name}" for t, own, name in zip((type, other or type), declared, "AB", strict=True)
    )
    factors = [f"A({','.join(left)})", f"B({','.join(right)})"]
    if type.endswith("int8"):
        factors = [f"int32({factor})" for factor in factors]
    return MatrixKernel("C", arguments, f"C(m,n) +=! {' * '.join(factors)}", shapes, options)


def _staged(stages: int) -> tc.GpuOptions:
    return replace(_WARPS, stages=stages)


def _rounded(products: tc.Products) -> tc.GpuOptions:
    return tc.GpuOptions(numerics=tc.Numerics(products=products))


_SQUARE, _RAGGED = (64, 64, 64), (70, 66, 55)
KERNELS = {
    "AB": _product("float16", "mk", "kn", _SQUARE, _TILES),
    "AB'": _product("float16", "mk", "nk", _SQUARE, _TILES),
    "A'B": _product("bfloat16", "km", "kn", _SQUARE, _TILES),
    "A'B'": _product("float16", "km", "nk", _SQUARE, _TILES),
    "AB, ragged": _product("bfloat16", "mk", "kn", _RAGGED, _TILES),
    "A'B', ragged": _product("float16", "km", "nk", _RAGGED, _TILES),
    "AB', warps along both sides, two stages": _product("float16", "mk", "nk", (64, 64, 160), _staged(2)),
    "A'B, warps along both sides, three stages": _product("float16", "km", "kn", (64, 64, 160), _staged(3)),
    "AB', one stage": _product("float16", "mk", "nk", (33, 64, 80), _staged(1)),
    "tf32, AB'": _product("float", "mk", "nk", (64, 64, 32), _rounded(tc.Products.TF32)),
    "three times tf32, A'B, ragged": _product("float", "km", "kn", (40, 33, 21), _rounded(tc.Products.THREE_TF32)),
    "bytes, AB'": _product("int8", "mk", "nk", (64, 64, 128), _TILES, "uint8"),
    "bytes, A'B, ragged": _product("uint8", "km", "kn", (40, 33, 70), tc.GpuOptions(), "int8"),
    "a bias and an activation": MatrixKernel(
        "D",
        "bfloat16(M,K) A, bfloat16(N,K) B, bfloat16(N) b",
        "C(m,n) +=! A(m,k) * B(n,k)  D(m,n) = fmax(C(m,n) + b(n), 0.0)",
        ((70, 90), (50, 90), (50,)),
        _WARPS,
    ),
    "batches": MatrixKernel(
        "C",
        "float16(Z,M,K) A, float16(Z,K,N) B",
        "C(z,m,n) +=! float32(A(z,m,k)) * float32(B(z,k,n))",
        ((2, 33, 50), (2, 50, 41)),
        tc.GpuOptions(),
    ),
    "planes, eights of lines": MatrixKernel(
        "O",
        "float16(N,C,H,W) I, float16(F,C,KH,KW) K",
        "O(n,f,h,w) +=! I(n,c,h+kh,w+kw) * K(f,c,kh,kw)",
        ((1, 32, 6, 14), (32, 32, 2, 3)),
        tc.GpuOptions(split_k_blocks=1),
    ),
    "channels last, rows in eights of lines": MatrixKernel(
        "O",
        "bfloat16(N,H,W,C) I, bfloat16(F,KH,KW,C) K",
        "O(n,h,w,f) +=! I(n,h+kh,w+kw,c) * K(f,kh,kw,c)",
        ((2, 5, 13, 20), (16, 2, 2, 20)),
        tc.GpuOptions(split_k_blocks=1),
    ),
    "convolution": MatrixKernel(
        "O",
        "float16(N,H,W,C) I, float16(F,KH,KW,C) W",
        "O(n,h,w,f) +=! I(n,h+kh,w+kw,c) * W(f,kh,kw,c)",
        ((1, 2, 65, 16), (32, 1, 2, 16)),
        tc.GpuOptions(),
    ),
    "grouped convolution": MatrixKernel(
        "O",
        "float16(N,G,C,H,W) I, float16(G,F,C,KH,KW) W",
        "O(n,g,f,h,w) +=! I(n,g,c,h+kh,w+kw) * W(g,f,c,kh,kw)",
        ((1, 2, 17, 1, 33), (2, 64, 17, 1, 2)),
        tc.GpuOptions(),
    ),
    "scores": MatrixKernel(
        "C",
        "float16(S,D) Q, float16(T,D) K, float16(T,D) V",
        "s(i,j) +=! Q(i,d) * K(j,d)  m(i) max=! s(i,j)  e(i,j) = exp(s(i,j) - m(i))  t(i) +=! e(i,j) "
        "p(i,j) = e(i,j) / t(i)  C(i,d) +=! p(i,j) * V(j,d)",
        ((20, 32), (40, 32), (40, 32)),
        tc.GpuOptions(),
    ),
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """``equivalent``: why it means the same as the kernel without the mistake; None where it does not."""

    kernel: str
    mistake: Mistake
    equivalent: str | None = None

    @property
    def name(self) -> str:
        """In the words of a person."""
        return f"{self.kernel}: {self.mistake.name}"

    def judged(self) -> Verdict:
        """What becomes of it."""
        own = KERNELS[self.kernel]
        return judge(own.text, "f", own.given, own.options, self.mistake)


@cache
def mutants(kernel: str) -> tuple[Mutant, ...]:
    """All of one kernel: in its matrix instructions, its copies, their stages, its barriers."""
    own = KERNELS[kernel]
    found: list[Changed] = []
    shared: list[Mistake] = []

    def looked_at(root: LoopTree, scop: Scop, shapes: tuple[MatrixShape, ...], *, groups: bool) -> LoopTree:
        changed = matrix_instructions(root, scop, shapes, groups=groups)
        found[:] = [change for place in places(changed, scop) for change in changes(place)]
        shared[:] = shared_mistakes(scop)
        return changed

    with patch("tc.polyhedral.grid_passes.matrix_instructions", looked_at):
        others = mistakes(own.text, "f", own.given, own.options)
    printed = _printed_barriers(own)
    return (
        *(Mutant(kernel, _made(change), change.equivalent) for change in found),
        *(Mutant(kernel, own, None if _matters(own, printed) else _UNPRINTED) for own in (*others, *shared)),
    )


_UNPRINTED = "every thread computes for itself what the barrier separates, and it is not printed"


def _printed_barriers(kernel: MatrixKernel) -> frozenset[str]:
    """Those that are left where all threads compute what one of them would have computed for them."""
    arguments = kernel.given.inputs.values()
    made = tc.define(kernel.text).single().compile(*arguments, target="emulator", options=kernel.options)
    assert made.compilation is not None
    program = made.compilation.mapped.loops
    root = spread_totals(program, lambda own, root: find_wrong_spread(own, root) is None).root
    return frozenset(leaf.statement for leaf in leaves(root) if isinstance(leaf, Barrier))


def _matters(mistake: Mistake, printed: frozenset[str]) -> bool:
    """Whether it changes what is printed."""
    dropped = mistake.name.removeprefix("without ")
    return dropped == mistake.name or dropped in printed


def _made(changed: Changed) -> Mistake:
    """As if the pass made the change."""

    def wrong(*arguments: Any, **more: Any) -> LoopTree:
        return with_change(matrix_instructions(*arguments, **more), changed.place.number, changed.change)

    @contextmanager
    def made() -> Iterator[None]:
        with patch("tc.polyhedral.grid_passes.matrix_instructions", wrong):
            yield

    return Mistake(f"{changed.name} (matrix instruction {changed.place.number})", made)
