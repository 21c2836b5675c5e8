"""Scatters: histograms, gradients of embeddings, PyTorch's ``scatter_reduce``, NumPy's ``ufunc.at``."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Array, Case, at, indices, integers, normal, permutation, uniform
from tests.comprehensions.formulas import Floats


def combined(operation: np.ufunc, before: Array, index: Array, values: Array) -> Array:
    """``operation.at`` along the first dimension."""
    result = np.array(before, np.float64)
    operation.at(result, index.astype(int), values)
    return result


def means(values: Floats, groups: Array, count: int) -> Floats:
    """Of the rows of every group; 0 where there are none."""
    sums = combined(np.add, np.zeros((count, values.shape[1])), groups, values)
    counts = np.maximum(np.bincount(groups.astype(int), minlength=count), 1)
    return np.asarray(sums / counts[:, None], np.float64)


CASES = (
    Case(
        "embedding_gradient",
        "the gradient of a lookup; torch index_add_",
        """
        def back(int32(B) I, float(B,D) dO, float(V,D) E) -> (float(V,D) dE) { dE(I(b), d) +=! dO(b, d) }
        """,
        {"I": indices("V", "B"), "dO": normal("B", "D"), "E": normal("V", "D")},
        lambda i, g, e: (combined(np.add, np.zeros(e.shape), i, g),),
        at("B D V", 1024, 64, 1000),
        (at("B D V", 1, 1, 1), at("B D V", 129, 13, 7), at("B D V", 0, 5, 3)),
        terms=("B",),
    ),
    Case(
        "histogram",
        "np.bincount",
        "def histogram(int32(N) x) -> (h) { h(x(i)) +=! 1 where x(i) in 0:256 }",
        {"x": integers(0, 255, "N")},
        lambda x: (np.bincount(x.astype(int), minlength=256),),
        at("N", 100_000),
        (at("N", 1), at("N", 129), at("N", 0)),
    ),
    Case(
        "two_dimensional_histogram",
        "np.add.at with two indices",
        """
        def joint(int32(N) x, int32(N) y, float(N) w) -> (h) {
            h(x(i), y(i)) +=! w(i) where x(i) in 0:16, y(i) in 0:9
        }
        """,
        {"x": integers(0, 15, "N"), "y": integers(0, 8, "N"), "w": normal("N")},
        lambda x, y, w: (combined(np.add, np.zeros(144), 9 * x + y, w).reshape(16, 9),),
        at("N", 4096),
        (at("N", 1), at("N", 129), at("N", 0)),
        terms=("N",),
    ),
    *(
        Case(
            f"scatter_reduce_{name}",
            f"torch.scatter_reduce along the first dimension, {name}",
            (
                "def reduced(float(V,D) x, int32(B) I, float(B,D) v) -> (y) "
                f"{{ y(e,d) = x(e,d)  y(I(b), d) {operator} v(b,d) }}"
            ),
            {"x": uniform(0.5, 1.5, "V", "D"), "I": indices("V", "B"), "v": uniform(0.5, 1.5, "B", "D")},
            lambda x, i, v, operation=operation: (combined(operation, x, i, v),),
            at("B D V", 64, 32, 48),
            (at("B D V", 1, 1, 1), at("B D V", 29, 13, 7), at("B D V", 0, 5, 3)),
            terms=("B",),
        )
        for name, operator, operation in (
            ("sum", "+=", np.add),
            ("prod", "*=", np.multiply),
            ("amin", "min=", np.minimum),
            ("amax", "max=", np.maximum),
        )
    ),
    Case(
        "scatter_mean",
        "torch.scatter_reduce, mean, without what was there; embedding_bag by segments",
        """
        def mean(int32(B) I, float(B,D) v, float(V) groups) -> (m) {
            count(I(b)) +=! 1 where I(b) in 0:V
            total(I(b), d) +=! v(b,d) where I(b) in 0:V
            m(e,d) = total(e,d) / max(count(e), 1)
        }
        """,
        {"I": indices("V", "B"), "v": normal("B", "D"), "groups": normal("V")},
        lambda i, v, groups: (means(v, i, len(groups)),),
        at("B D V", 256, 32, 48),
        (at("B D V", 1, 1, 1), at("B D V", 129, 13, 7), at("B D V", 0, 5, 3)),
        terms=("B",),
    ),
    Case(
        "permuted_rows",
        "indices that are declared distinct",
        """
        def permuted(int32(N) p, float(N,D) x) -> (y) {
            y(n,d) = 0.0f * x(n,d)
            y(p(n), d) = x(n,d) where distinct p
        }
        """,
        {"p": permutation("N"), "x": normal("N", "D")},
        lambda p, x: (x[np.argsort(p)],),
        at("N D", 64, 32),
        (at("N D", 1, 1), at("N D", 129, 13)),
    ),
)
