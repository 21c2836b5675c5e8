"""Products of quantized operands: integers with a scale for every block of 32, and two of four bits in a byte."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.comprehensions.case import Case, at, integers, uniform

Array = np.ndarray[Any, Any]


def _of_bytes(a: Array, a_scale: Array, b: Array, b_scale: Array) -> tuple[Array]:
    blocks = np.einsum("mgk,gkn->mgn", a.reshape(len(a), -1, 32) * 1.0, b.reshape(-1, 32, b.shape[1]) * 1.0)
    return (np.einsum("mgn,mg,gn->mn", blocks, a_scale, b_scale),)


def _of_halves_of_bytes(x: Array, w: Array, scale: Array) -> tuple[Array]:
    whole = np.stack([w % 16, w // 16], axis=2).reshape(len(w), -1) - 8.0
    return (x @ (whole * np.repeat(scale, 32, axis=1)).T,)


CASES = (
    Case(
        "product_of_scaled_bytes",
        "block-scaled int8",
        """
def product(int8(M,K) a, float(M,G) sa, int8(K,N) b, float(G,N) sb) -> (c) {
    p(m,n,g) +=! int32(a(m, 32*g + k)) * int32(b(32*g + k, n)) where k in 0:32, g in 0:G
    c(m,n) +=! float(p(m,n,g)) * sa(m,g) * sb(g,n)
}""",
        {
            "a": integers(-127, 128, "M", "K", dtype="int8"),
            "sa": uniform(0.5, 2.0, "M", "G"),
            "b": integers(-127, 128, "K", "N", dtype="int8"),
            "sb": uniform(0.5, 2.0, "G", "N"),
        },
        _of_bytes,
        at("M N K G", 24, 40, 96, 3),
        (at("M N K G", 1, 1, 32, 1), at("M N K G", 5, 7, 64, 2)),
        terms=("K",),
        even_sizes=at("M N K G", 24, 40, 96, 3),
    ),
    Case(
        "product_of_packed_nibbles",
        "int4 weights, two in a byte, with a scale for every 32",
        """
def product(float(M,K) x, uint8(N,H) w, float(N,G) s) -> (y) {
    y(m,n) +=! x(m,k) * (float(k % 2 == 0 ? w(n,k/2) % 16 : w(n,k/2) / 16) - 8.0) * s(n,k/32) where k in 0:2*H
}""",
        {
            "x": uniform(-1.0, 1.0, "M", "K"),
            "w": integers(0, 256, "N", "H", dtype="uint8"),
            "s": uniform(0.5, 2.0, "N", "G"),
        },
        _of_halves_of_bytes,
        at("M N K H G", 24, 40, 96, 48, 3),
        (at("M N K H G", 1, 1, 32, 16, 1), at("M N K H G", 5, 7, 64, 32, 2)),
        terms=("K",),
        even_sizes=at("M N K H G", 24, 40, 96, 48, 3),
    ),
)
