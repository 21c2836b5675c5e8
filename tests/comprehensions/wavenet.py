"""WaveNet blocks: dilated causal convolutions with gates."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, at, normal, uniform
from tests.comprehensions.formulas import Floats, convolution

_WAVENET = """
# Original data is float(B, C, RECEPTIVE_FIELD) and undergoes a
# Conv1d to become float(B, RESIDUAL_C, RECEPTIVE_FIELD)

def wavenet1(
    float(B, RESIDUAL_C, RECEPTIVE_FIELD) Data,
    float(DILATION_C, RESIDUAL_C, 2) FilterWeight,
    float(DILATION_C) FilterBias,
    float(DILATION_C, RESIDUAL_C, 2) GateWeight,
    float(DILATION_C) GateBias,
    float(RESIDUAL_C, DILATION_C) ResWeight,
    float(RESIDUAL_C) ResBias,
    float(SKIP_C, DILATION_C) SkipWeight,
    float(SKIP_C) SkipBias,
    float(DILATION_FACTOR) Dilation)
    -> (FilterOut, GateOut, NonLin, Res, Skip)
{
    FilterOut(b, dilation_c, rf)   = FilterBias(dilation_c)
        where b in 0:B, dilation_c in 0:DILATION_C, rf in 0:RECEPTIVE_FIELD
    FilterOut(b, dilation_c, rf)  += Data(b, r_residual_c, rf) * FilterWeight(dilation_c, r_residual_c, 1) +
        (
          (rf - DILATION_FACTOR >= 0) ?
            Data(b, r_residual_c, rf - DILATION_FACTOR) * FilterWeight(dilation_c, r_residual_c, 0) :
            float(0)
        )
        where rf in 0:RECEPTIVE_FIELD

    GateOut(b, dilation_c, rf)   = GateBias(dilation_c)
        where b in 0:B, dilation_c in 0:DILATION_C, rf in 0:RECEPTIVE_FIELD
    GateOut(b, dilation_c, rf)  += Data(b, r_residual_c, rf) * GateWeight(dilation_c, r_residual_c, 1) +
        (
          (rf - DILATION_FACTOR >= 0) ?
            Data(b, r_residual_c, rf - DILATION_FACTOR) * GateWeight(dilation_c, r_residual_c, 0) :
            float(0)
        )
        where rf in 0:RECEPTIVE_FIELD

    NonLin(b, dilation_c, rf)   =         tanh(FilterOut(b, dilation_c, rf))
        where rf in 0:RECEPTIVE_FIELD
    NonLin(b, dilation_c, rf)  *= 1 / (1 + exp( -GateOut(b, dilation_c, rf)))
        where rf in 0:RECEPTIVE_FIELD

       Res(b, residual_c, rf)   =   Data(b,  residual_c, rf) + ResBias(residual_c)
       Res(b, residual_c, rf)  += NonLin(b, r_dilation_c, rf) * ResWeight(residual_c, r_dilation_c)

      Skip(b, skip, rf) +=! NonLin(b, r_dilation_c, rf) * SkipWeight(skip, r_dilation_c)
        where rf in 0:RECEPTIVE_FIELD
      Skip(b, skip, rf)  = Skip(b, skip, rf) + SkipBias(skip)
        where rf in 0:RECEPTIVE_FIELD
}
"""
_WAVENET_SIZES = "B RESIDUAL_C DILATION_C SKIP_C RECEPTIVE_FIELD DILATION_FACTOR"
_WAVENET_LAYER = """
    Dilate{0}(batch, out)   =   Bias{0}(out) where batch in 0:BATCH
    Dilate{0}(batch, out)  += Weight{0}(out, r_in, r_kern) * Data{0}(batch, r_in, r_kern)
    NonLin{0}(batch, out)   = 1 / (1 + exp(-1*(Dilate{0}(batch, out))))
    NonLin{0}(batch, out)  *= tanh(Dilate{0}(batch, out + 64))

      Skip{0}(batch, skip)  =   SkipBias{0}(skip) where batch in 0:BATCH
      Skip{0}(batch, skip) += SkipWeight{0}(skip, r_in) * NonLin{0}(batch, r_in)
            where r_in in 0:IN # necessary because r_in gets into unresolved min/max
       Res{0}(batch, out)   =   ResBias{0}(  out) where batch in 0:BATCH
       Res{0}(batch, out)  += ResWeight{0}(  out, r_in) * NonLin{0}(batch, r_in)
            where r_in in 0:IN # necessary because r_in gets into unresolved min/max
       Res{0}(batch, out)   =       Res{0}(batch,  out) + NonLin{0}(batch, out)
            where out in 0:IN # necessary because out gets into unresolved min/max
"""
_WAVENET_LAYER_ARGUMENTS = """
    float(OUT, IN, KERN) Weight{0},
    float(OUT) Bias{0},
    float(BATCH, IN, KERN) Data{0},
    float(IN, IN) ResWeight{0},
    float(IN) ResBias{0},
    float(SKIP, IN) SkipWeight{0},
    float(SKIP) SkipBias{0}"""
_WAVENET_TWO_LAYERS = (
    "def wavenet2layers("
    + ",".join(_WAVENET_LAYER_ARGUMENTS.format(layer) for layer in (0, 1))
    + ")\n    -> (Res0, Dilate0, NonLin0, Skip0, Res1, Dilate1, NonLin1, Skip1)\n{"
    + "".join(_WAVENET_LAYER.format(layer) for layer in (0, 1))
    + "}"
)


def _causal_filter(data: Floats, weight: Floats, bias: Floats, distance: int) -> Floats:
    """A convolution of two taps that looks ``distance`` samples back."""
    return convolution(np.pad(data, ((0, 0), (0, 0), (distance, 0))), weight, bias, dilation=distance)


def _sigmoid(x: Floats) -> Floats:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _wavenet(
    data: Floats,
    filter_weight: Floats,
    filter_bias: Floats,
    gate_weight: Floats,
    gate_bias: Floats,
    residual_weight: Floats,
    residual_bias: Floats,
    skip_weight: Floats,
    skip_bias: Floats,
    dilation: Floats,
) -> tuple[Floats, ...]:
    filtered = _causal_filter(data, filter_weight, filter_bias, len(dilation))
    gate = _causal_filter(data, gate_weight, gate_bias, len(dilation))
    joined = np.tanh(filtered) * _sigmoid(gate)
    residual = data + convolution(joined, residual_weight[:, :, None], residual_bias)
    return filtered, gate, joined, residual, convolution(joined, skip_weight[:, :, None], skip_bias)


def _wavenet_layer(
    weight: Floats,
    bias: Floats,
    data: Floats,
    residual_weight: Floats,
    residual_bias: Floats,
    skip_weight: Floats,
    skip_bias: Floats,
) -> tuple[Floats, ...]:
    dilated = data.reshape(len(data), -1) @ weight.reshape(len(weight), -1).T + bias
    joined = _sigmoid(dilated)
    joined[:, : dilated.shape[1] - 64] *= np.tanh(dilated[:, 64:])
    inner = joined[:, : data.shape[1]]
    residual = inner @ residual_weight.T + residual_bias + inner
    return residual, dilated, joined, inner @ skip_weight.T + skip_bias


def _wavenet_two_layers(*arguments: Floats) -> tuple[Floats, ...]:
    return (*_wavenet_layer(*arguments[:7]), *_wavenet_layer(*arguments[7:]))


CASES = (
    Case(
        "wavenet_block",
        "tc/benchmarks/wavenet.h, dilation 1",
        _WAVENET,
        {
            "Data": normal("B", "RESIDUAL_C", "RECEPTIVE_FIELD"),
            "FilterWeight": normal("DILATION_C", "RESIDUAL_C", 2),
            "FilterBias": normal("DILATION_C"),
            "GateWeight": normal("DILATION_C", "RESIDUAL_C", 2),
            "GateBias": normal("DILATION_C"),
            "ResWeight": normal("RESIDUAL_C", "DILATION_C"),
            "ResBias": normal("RESIDUAL_C"),
            "SkipWeight": normal("SKIP_C", "DILATION_C"),
            "SkipBias": normal("SKIP_C"),
            "Dilation": uniform(0, 1, "DILATION_FACTOR"),
        },
        _wavenet,
        at(_WAVENET_SIZES, 1, 32, 32, 256, 4000, 1),
        (at(_WAVENET_SIZES, 2, 3, 5, 7, 129, 2), at(_WAVENET_SIZES, 1, 4, 4, 4, 129, 32)),
        even_sizes=at(_WAVENET_SIZES, 24, 8, 40, 40, 24, 8),
        terms=("RESIDUAL_C", "DILATION_C"),
    ),
    Case(
        "wavenet_two_layers",
        "tc/examples/wavenet.cc",
        _WAVENET_TWO_LAYERS,
        {
            f"{name}{layer}": make
            for layer in (0, 1)
            for name, make in (
                ("Weight", uniform(-0.5, 0.5, "OUT", "IN", "KERN")),
                ("Bias", uniform(-1, 1, "OUT")),
                ("Data", uniform(-1, 1, "BATCH", "IN", "KERN")),
                ("ResWeight", uniform(-1, 1, "IN", "IN")),
                ("ResBias", uniform(-1, 1, "IN")),
                ("SkipWeight", uniform(-1, 1, "SKIP", "IN")),
                ("SkipBias", uniform(-1, 1, "SKIP")),
            )
        },
        _wavenet_two_layers,
        at("BATCH OUT IN KERN SKIP", 1, 128, 64, 2, 256),
        (at("BATCH OUT IN KERN SKIP", 2, 77, 13, 3, 7),),
        even_sizes=at("BATCH OUT IN KERN SKIP", 24, 128, 64, 2, 120),
        terms=("IN", "KERN"),
    ),
)
