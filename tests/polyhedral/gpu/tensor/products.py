"""Products of halves, their arguments, and what runs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import tc
from tc.dispatch.kernel import Kernel
from tc.polyhedral.ir.loops import LoopTree, Mma, leaves
from tc.reference.compare import compare

TYPES: dict[str, npt.DTypeLike] = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
# Which operand is transposed.
LAYOUTS = {
    "AB": ("(M,K) A", "(K,N) B", "A(m,k) * B(k,n)"),
    "AB'": ("(M,K) A", "(N,K) B", "A(m,k) * B(n,k)"),
    "A'B": ("(K,M) A", "(K,N) B", "A(k,m) * B(k,n)"),
    "A'B'": ("(K,M) A", "(N,K) B", "A(k,m) * B(n,k)"),
}
# What is added to products in registers before it is rounded; ``{0}`` is the type of halves.
LINEAR = """def f({0}(M,K) x, {0}(N,K) w, {0}(N) b, {0}(M,N) r) -> (y) {{
    s(m,n) +=! x(m,k) * w(n,k)
    y(m,n) = {0}(fmax(s(m,n) + float32(b(n)), 0.0) + float32(r(m,n))) }}"""
# Blocks of 32 by 32 with four warps, whatever the sizes are.
SMALL = tc.GpuOptions(tc.ScheduleOptions(tile=(32, 32, 32)), block=(4, 16, 2))


def product(layout: str, type: str) -> tc.Comprehension:
    """The definition of a product."""
    a, b, term = LAYOUTS[layout]
    return tc.define(f"def f({type}{a}, {type}{b}) -> (C) {{ C(m,n) +=! {term} }}").single()


def of_bytes(layout: str, left: str, right: str) -> tc.Comprehension:
    """The definition of a product of bytes, in int32."""
    a, b, term = LAYOUTS[layout]
    first, second = term.split(" * ")
    text = f"def f({left}{a}, {right}{b}) -> (C) {{ C(m,n) +=! int32({first}) * int32({second}) }}"
    return tc.define(text).single()


def bytes_of(layout: str, left: str, right: str, m: int, n: int, k: int) -> tuple[npt.NDArray[Any], ...]:
    """Random ones, from all values."""
    random = np.random.default_rng(0)
    shapes = (own.shape for own in operands(layout, "float16", m, n, k))
    ends = ((np.iinfo(type).min, np.iinfo(type).max + 1, type) for type in (left, right))
    return tuple(
        random.integers(first, last, shape).astype(t) for (first, last, t), shape in zip(ends, shapes, strict=True)
    )


def operands(layout: str, type: str, m: int, n: int, k: int, seed: int = 0) -> tuple[npt.NDArray[Any], ...]:
    """Random ones."""
    first, second, _ = LAYOUTS[layout]
    sizes = {"M": m, "N": n, "K": k}
    shapes = [tuple(sizes[name] for name in own.split(")")[0][1:].split(",")) for own in (first, second)]
    random = np.random.default_rng(seed)
    return tuple(random.standard_normal(shape).astype(TYPES[type]) for shape in shapes)


def multiplies(kernel: Kernel) -> bool:
    """Whether there are matrix instructions in the kernel."""
    assert kernel.compilation is not None
    return any(True for _ in matrices(kernel.compilation.mapped.loops.root))


def matrices(root: LoopTree) -> Iterable[Mma]:
    """The matrix instructions in loops."""
    return (leaf for leaf in leaves(root) if isinstance(leaf, Mma))


def agree(definition: tc.Comprehension, arrays: tuple[npt.NDArray[Any], ...], kernel: Kernel) -> None:
    """Against the oracle."""
    found: Any = kernel(*arrays)
    results = found if isinstance(found, tuple) else (found,)
    for expected, values in zip(definition.oracle(*arrays).values(), results, strict=True):
        comparison = compare(expected, np.asarray(values))
        assert comparison.ok, comparison
