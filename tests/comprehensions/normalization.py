"""Batch, group and layer normalization."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, at, normal, scalar, uniform
from tests.comprehensions.formulas import Floats, batch_norm, group_norm, layer_norm

_GROUP = "N G D H W"
_GROUP_INPUTS = {"I": normal("N", "G", "D", "H", "W"), "gamma": normal("G", "D"), "beta": normal("G", "D")}
_GROUP_PAPER = at(_GROUP, 4, 32, 16, 12, 12)
_GROUP_EVEN = at(_GROUP, 24, 40, 12, 4, 2)
_GROUP_RAGGED = (at(_GROUP, 1, 1, 1, 1, 2), at(_GROUP, 2, 3, 5, 7, 11))
_TWO_DEFINITIONS = """
def moments(float(N, K) I) -> (mean, var) {
    # var = E(x^2) - mean^2.
    mean(n) +=! I(n, r_k)
     var(n) +=! I(n, r_k) * I(n, r_k)
    mean(n)  = mean(n) / (K)
     var(n)  =  var(n) / (K) - mean(n) * mean(n)
}

def group_normalization(
    float(N, G, D, H, W) I, float(G, D) gamma, float(G, D) beta,
    float(N, G) mean, float(N, G) var) -> (O)
{
    O(n, g, d, h, w) = gamma(g, d)
        * ( I(n, g, d, h, w) - mean(n, g) )
        * rsqrt( var(n, g) + 1e-5 )
        + beta(g, d)
}
"""


def _group_sums(data: Floats) -> tuple[Floats, Floats]:
    flat = data.reshape(*data.shape[:2], -1)
    return flat.sum(axis=2), np.square(flat).sum(axis=2)


def _normalized(data: Floats, gamma: Floats, beta: Floats, mean: Floats, variance: Floats) -> Floats:
    scaled = (data - mean[:, :, None, None, None]) / np.sqrt(variance[:, :, None, None, None] + 1e-5)
    return scaled * gamma[:, :, None, None] + beta[:, :, None, None]


def _layer_norm_of_the_library(data: Floats, epsilon: float) -> tuple[Floats, ...]:
    """As the public library prints it: what it returns is multiplied, not divided, by the deviation."""
    mean = data.mean(axis=2)
    centered = data - mean[:, :, None]
    variance = (np.square(centered).sum(axis=2) + epsilon) / data.shape[2]
    return centered * np.sqrt(variance)[:, :, None], mean, centered, variance


def _batch_norm_of_the_library(
    data: Floats, mean_in: Floats, variance_in: Floats, momentum: float, epsilon: float
) -> tuple[Floats, ...]:
    """As the public library prints it, with ``epsilon`` added to every squared deviation."""
    mean = data.mean(axis=(0, 2, 3))
    mean_out = (1 - momentum) * mean_in + momentum * mean
    centered = data - mean_out[:, None, None]
    expected = np.square(centered).mean(axis=(0, 2, 3)) + epsilon
    mixed = (1 - momentum) * variance_in + momentum * expected
    normalized = batch_norm(data, mean_out, mixed, 0.0)
    return normalized, mean_out, 1 / np.sqrt(mixed), mean, centered, np.square(centered), expected, normalized


CASES = (
    Case(
        "group_norm_one_definition",
        "tc/benchmarks/group_normalization.h (the variant in use), tc/examples/group_normalization.cc",
        """
        def group_normalization(
            float(N, G, D, H, W) I, float(G, D) gamma, float(G, D) beta)
            -> (O, mean, var)
        {
            mean(n, g) +=! I(n, g, r_d, r_h, r_w)
             var(n, g) +=! I(n, g, r_d, r_h, r_w) * I(n, g, r_d, r_h, r_w)
            O(n, g, d, h, w) = gamma(g, d)
              * ( I(n, g, d, h, w) - mean(n, g) / (D * H * W))
              * rsqrt( var(n, g) / (D * H * W)
                    - mean(n, g) * mean(n, g)  / (D * H * W)  / (D * H * W)
                    + 1e-5 )
              + beta(g, d)
        }
        """,
        _GROUP_INPUTS,
        lambda data, gamma, beta: (group_norm(data, gamma, beta, 1e-5), *_group_sums(data)),
        _GROUP_PAPER,
        _GROUP_RAGGED[1:],
        even_sizes=_GROUP_EVEN,
        terms=("D", "H", "W"),
    ),
    Case(
        "group_norm_fused",
        "python/tests/test_tc.py, test_group_norm_fused",
        """
        def group_normalization(
            float(N, G, D, H, W) I, float(G, D) gamma, float(G, D) beta)
        -> (Sum, SumSq, O)
        {
            Sum(n, g) +=! I(n, g, r_d, r_h, r_w)
          SumSq(n, g) +=! I(n, g, r_d, r_h, r_w) * I(n, g, r_d, r_h, r_w)
            O(n, g, d, h, w) =  gamma(g, d)
                * ( I(n, g, d, h, w) - Sum(n, g) / (D * H * W))
                * rsqrt( (SumSq(n, g) - Sum(n, g) * Sum(n, g) / (D * H * W))
                       / (D * H * W)
                       + 1e-5)
                + beta(g, d)
        }
        """,
        _GROUP_INPUTS,
        lambda data, gamma, beta: (*_group_sums(data), group_norm(data, gamma, beta, 1e-5)),
        at(_GROUP, 4, 32, 4, 56, 56),
        _GROUP_RAGGED[1:],
        even_sizes=_GROUP_EVEN,
        terms=("D", "H", "W"),
        note="N cut from 32 to 1/8",
    ),
    Case(
        "group_norm_by_mean_of_squares",
        "tc/benchmarks/group_normalization.h, second implementation (in a comment)",
        """
        def group_normalization(
            float(N, G, D, H, W) I, float(G, D) gamma, float(G, D) beta)
            -> (O, mean, var)
        {
            mean(n, g) +=! I(n, g, r_d, r_h, r_w)
            mean(n,g)   = mean(n,g) / (D * H * W)
             var(n, g) +=! I(n, g, r_d, r_h, r_w) * I(n, g, r_d, r_h, r_w)
             var(n, g)  =  var(n, g) / (D * H * W) - mean(n,g) * mean(n,g)
            O(n, g, d, h, w) = gamma(g, d)
              * ( I(n, g, d, h, w) - mean(n, g) )
              * rsqrt( var(n, g) + 1e-5 )
              + beta(g, d)
        }
        """,
        _GROUP_INPUTS,
        lambda data, gamma, beta: (
            group_norm(data, gamma, beta, 1e-5),
            data.mean(axis=(2, 3, 4)),
            data.var(axis=(2, 3, 4)),
        ),
        _GROUP_PAPER,
        _GROUP_RAGGED[1:],
        even_sizes=_GROUP_EVEN,
        terms=("D", "H", "W"),
    ),
    Case(
        "group_norm_by_deviations",
        "tc/benchmarks/group_normalization.h, first implementation (in a comment)",
        """
        def group_normalization(
            float(N, G, D, H, W) I, float(G, D) gamma, float(G, D) beta)
            -> (O, mean, var)
        {
            mean(n, g) +=! I(n, g, r_d, r_h, r_w)
            mean(n, g)  = mean(n, g) / (D * H * W)
             var(n, g) +=! (I(n, g, r_d, r_h, r_w) - mean(n, g))
                         * (I(n, g, r_d, r_h, r_w) - mean(n, g))
             var(n, g)  =  var(n, g) / (D * H * W)
            O(n, g, d, h, w) =
                gamma(g, d) * (I(n, g, d, h, w) - mean(n, g)) * rsqrt(var(n, g) + 1e-5) + beta(g, d)
        }
        """,
        _GROUP_INPUTS,
        lambda data, gamma, beta: (
            group_norm(data, gamma, beta, 1e-5),
            data.mean(axis=(2, 3, 4)),
            data.var(axis=(2, 3, 4)),
        ),
        _GROUP_PAPER,
        _GROUP_RAGGED,
        even_sizes=_GROUP_EVEN,
        terms=("D", "H", "W"),
    ),
    Case(
        "group_norm_with_unit_scale",
        "test_tc_mapper_bugs.cc, ReductionDeadlockBug",
        """
        def group_norm(
            float(N, G, D, H, W) I, float(G, D) gamma, float(G, D) beta)
            -> (O, mean, var)
        {
            mean(n, g) +=! I(n, g, r_d, r_h, r_w)
            var(n, g) +=! I(n, g, r_d, r_h, r_w) * I(n, g, r_d, r_h, r_w)
            O(n, g, d, h, w) = gamma(g, d)
              * ( I(n, g, d, h, w) - mean(n, g) * 1.0 )
              * rsqrt( var(n, g) * 1.0
                    - mean(n, g) * mean(n, g) * 1.0 * 1.0
                    + 1e-5)
              + beta(g, d)
        }
        """,
        {"I": uniform(-1e-4, 1e-4, "N", "G", "D", "H", "W"), "gamma": normal("G", "D"), "beta": normal("G", "D")},
        lambda data, gamma, beta: (
            _normalized(data, gamma, beta, _group_sums(data)[0], _group_sums(data)[1] - _group_sums(data)[0] ** 2),
            *_group_sums(data),
        ),
        at(_GROUP, 4, 4, 2, 6, 6),
        (at(_GROUP, 2, 3, 1, 5, 7),),
        even_sizes=_GROUP_EVEN,
        terms=("D", "H", "W"),
        note="small values, because the text takes the root of a negative number otherwise",
    ),
    Case(
        "group_norm_moments",
        "python/tests/test_tc.py, test_group_norm_2kernels: moments",
        _TWO_DEFINITIONS,
        {"I": normal("N", "K")},
        lambda data: (data.mean(axis=1), data.var(axis=1)),
        at("N K", 128, 2304),
        (at("N K", 1, 7), at("N K", 7, 129)),
        definition="moments",
        terms=("K",),
    ),
    Case(
        "group_norm_second_definition",
        "python/tests/test_tc.py, test_group_norm_2kernels: group_normalization",
        _TWO_DEFINITIONS,
        {**_GROUP_INPUTS, "mean": normal("N", "G"), "var": uniform(0.5, 2, "N", "G")},
        lambda *arguments: (_normalized(*arguments),),
        _GROUP_PAPER,
        (at(_GROUP, 2, 3, 5, 7, 11), at(_GROUP, 2, 3, 0, 7, 11)),
        even_sizes=_GROUP_EVEN,
        definition="group_normalization",
    ),
    Case(
        "batch_norm",
        "layers.yaml, batchnorm, with momentum 0.25 and eps 1e-5",
        """
        def batchnorm(float(N, C, H, W) I, float(C) rMeanIn, float(C) rVarIn)
        -> (O, rMeanOut, rVarOut, mean, centered, variance, expectedVariance, normalizedOut)
        {
           mean(c) +=! I(nn, c, hh, ww)
           mean(c)  = mean(c) / (N * H * W)
           rMeanOut(c) = (1 - 0.25) * rMeanIn(c) + 0.25 * mean(c)
           centered(n, c, h, w) = I(n, c, h, w) - rMeanOut(c)
           variance(n, c, h, w) = centered(n, c, h, w) * centered(n, c, h, w)
           expectedVariance(c) +=! (variance(n, c, h, w) + 1e-5) / (N * H * W)
           rVarOut(c) = rsqrt(
             (1 - 0.25) * rVarIn(c) + 0.25 * expectedVariance(c))
           O(n, c, h, w) = centered(n, c, h, w) * rVarOut(c)
           normalizedOut(n, c, h, w) = O(n, c, h, w)
        }
        """,
        {"I": normal("N", "C", "H", "W"), "rMeanIn": normal("C"), "rVarIn": uniform(0.5, 2, "C")},
        lambda data, mean, variance: _batch_norm_of_the_library(data, mean, variance, 0.25, 1e-5),
        at("N C H W", 4, 4, 256, 256),
        (at("N C H W", 1, 1, 1, 1), at("N C H W", 3, 5, 7, 13)),
        terms=("N", "H", "W"),
        note="N cut from 32 to 1/8",
    ),
    Case(
        "batch_norm_by_arguments",
        "test/cuda/test_tc_mapper.cc, SpatialBatchNormalization (without the copy of the result)",
        """
        def spatial_batch_norm(
            float momentum, float eps,
            float(N,C,H,W) I, float(C) rMeanIn, float(C) rVarIn)
        -> (O, rMeanOut, rVarOut)
        {
            mean(c)    +=!    I(r_n, c, r_h, r_w)
            mean(c)     =  mean(c) / (N * H * W)
            rMeanOut(c) = (1 - momentum) * rMeanIn(c) + momentum * mean(c)

            centered(n, c, h, w) =          I(  n, c,   h,   w) - rMeanOut(c)
            variance(n, c, h, w) =   centered(  n, c,   h,   w) * centered(n, c, h, w)
            expectedVariance(c) +=! (variance(r_n, c, r_h, r_w) + eps) / (N * H * W)

            rVarOut(c) = rsqrt(
                (1 - momentum) * rVarIn(c) +
                     momentum  * expectedVariance(c))

            O(n, c, h, w)             = centered(n, c, h, w) * rVarOut(c)
        }
        """,
        {
            "momentum": scalar(0.125),
            "eps": scalar(2.0**-16),
            "I": normal("N", "C", "H", "W"),
            "rMeanIn": normal("C"),
            "rVarIn": uniform(0.5, 2, "C"),
        },
        lambda momentum, epsilon, data, mean, variance: _batch_norm_of_the_library(
            data, mean, variance, momentum, epsilon
        )[:3],
        at("N C H W", 32, 8, 28, 28),
        (at("N C H W", 3, 5, 7, 13),),
        terms=("N", "H", "W"),
    ),
    Case(
        "batch_norm_by_tensors_of_one_element",
        "test/cuda/test_autotuner.cc, BatchNorm",
        """
        def batchnorm(
            float(1) momentum, float(1) eps,
            float(N,C,H,W) I, float(C) rMeanIn, float(C) rVarIn)
        -> (normalizedOut, rMeanOut, rVarOut, mean, centered, expectedVariance)
        {
            mean(c)    +=!    I(r_n, c, r_h, r_w)
            mean(c)     =  mean(c) / (N * H * W)
            rMeanOut(c) = (1 - momentum(0)) * rMeanIn(c) + momentum(0) * mean(c)
            centered(n, c, h, w) =          I(  n, c,   h,   w) - rMeanOut(c)
            expectedVariance(c) +=! centered(  n, c,   h,   w) * centered(n, c, h, w)
            expectedVariance(c) = expectedVariance(c) / (N * H * W) + eps(0)
            rVarOut(c) = rsqrt(
                (1 - momentum(0)) * rVarIn(c) +
                     momentum(0)  * expectedVariance(c))
            normalizedOut(n, c, h, w) = centered(n, c, h, w) * rVarOut(c)
        }
        """,
        {
            "momentum": uniform(0.1, 0.9, 1),
            "eps": uniform(0.01, 0.1, 1),
            "I": normal("N", "C", "H", "W"),
            "rMeanIn": normal("C"),
            "rVarIn": uniform(0.5, 2, "C"),
        },
        lambda momentum, epsilon, data, mean, variance: [
            _batch_norm_of_the_library(data, mean, variance, momentum[0], epsilon[0])[i] for i in (0, 1, 2, 3, 4, 6)
        ],
        at("N C H W", 4, 4, 256, 256),
        (at("N C H W", 3, 5, 7, 13),),
        terms=("N", "H", "W"),
        note="N cut from 32 to 1/8",
    ),
    Case(
        "layer_norm_of_the_library",
        "layers.yaml, layernorm, with eps 1e-5 (it multiplies where it should divide, and so do we)",
        """
        def layernorm(float(T, B, C) I) -> (O, mean, centered, var) {
          mean(t, b) +=! I(t, b, c) / C
          centered(t, b, c) = I(t, b, c) - mean(t, b)
          var(t, b) +=! centered(t, b, c) * centered(t, b, c)
          var(t, b) = (var(t, b) + 1e-5) / C
          O(t, b, c) = centered(t, b, c) / rsqrt(var(t, b))
        }
        """,
        {"I": normal("T", "B", "C")},
        lambda data: _layer_norm_of_the_library(data, 1e-5),
        at("T B C", 7, 32, 64),
        (at("T B C", 1, 1, 1), at("T B C", 3, 7, 129)),
        terms=("C",),
    ),
    Case(
        "layer_norm_without_epsilon",
        "test_tc_mapper_bugs.cc, ReferenceBelongsToTwoGroups; test_autotuner.cc, LayerNorm",
        """
        def layernorm(float(T, B, C) I) -> (O, mean, centered, var) {
                mean(t, b)    +=! I(t, b, r_c) / C
            centered(t, b, c)  =  I(t, b,   c) - mean(t, b)

            var(t, b) +=! centered(t, b, r_c) * centered(t, b, r_c)
            var(t, b)  =       var(t, b) / C
            O(t, b, c) =  centered(t, b, c) / rsqrt(var(t, b))
        }
        """,
        {"I": normal("T", "B", "C")},
        lambda data: _layer_norm_of_the_library(data, 0.0),
        at("T B C", 7, 32, 64),
        (at("T B C", 3, 7, 129),),
        terms=("C",),
    ),
    Case(
        "layer_norm",
        "layer normalization with temporaries that are not outputs",
        """
        def layernorm(float(T, B, C) I, float(C) gamma, float(C) beta) -> (O) {
          mean(t, b) +=! I(t, b, c) / C
          var(t, b) +=! (I(t, b, c) - mean(t, b)) * (I(t, b, c) - mean(t, b)) / C
          O(t, b, c) = (I(t, b, c) - mean(t, b)) * rsqrt(var(t, b) + 1e-5) * gamma(c) + beta(c)
        }
        """,
        {"I": normal("T", "B", "C"), "gamma": normal("C"), "beta": normal("C")},
        lambda data, gamma, beta: (layer_norm(data, 1e-5) * gamma + beta,),
        at("T B C", 7, 32, 64),
        (at("T B C", 1, 1, 7), at("T B C", 3, 7, 129)),
        terms=("C",),
    ),
)
