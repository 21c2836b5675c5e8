"""Causal attention of several heads, as its formula says.

python examples/attention.py
"""

from __future__ import annotations

import numpy as np

import tc

TEXT = """
def attention(float(H,N,D) Q, float(H,N,D) K, float(H,N,D) V, float scale) -> (O) {
    score(h,i,j) +=! Q(h,i,d) * K(h,j,d)
    top(h,i) max=! scale * score(h,i,j) where j in 0:i+1
    weight(h,i,j) = j <= i ? exp(scale * score(h,i,j) - top(h,i)) : 0
    total(h,i) +=! weight(h,i,j)
    O(h,i,d) +=! weight(h,i,j) / total(h,i) * V(h,j,d)
}
"""
attention = tc.define(TEXT).attention


def in_numpy(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    """The same, in float64."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    score = scale * q @ k.transpose(0, 2, 1)
    score[:, np.triu(np.ones(score.shape[1:], bool), 1)] = -np.inf
    weight = np.exp(score - score.max(2, keepdims=True))
    result: np.ndarray = weight / weight.sum(2, keepdims=True) @ v
    return result


def main() -> None:
    """Compare it with NumPy."""
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal((4, 60, 32), np.float32) for _ in range(3))
    scale = 32**-0.5
    result = attention(q, k, v, scale)
    np.testing.assert_allclose(result, in_numpy(q, k, v, scale), rtol=1e-4, atol=1e-5)
    print("4 heads, 60 positions: as NumPy computes them")


if __name__ == "__main__":
    main()
