"""Normalizations, softmax, losses and steps of optimizers of ONNX, beside NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tc
from tests.graph.one_node import check, computed, one_node

F = np.float32


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(F)


def softmax(x: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        power = np.exp(x - x.max(axes, keepdims=True))
    return np.asarray(power / power.sum(axes, keepdims=True))


def standard(x: np.ndarray, axes: tuple[int, ...], epsilon: float = 1e-5) -> np.ndarray:
    return np.asarray((x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon))


# --- softmax ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 4, 1), (2, 1, 3)])
def test_softmax_along_an_axis(axis: int, shape: Sequence[int]) -> None:
    x = random(*shape) * 30
    check("Softmax", {"X": x}, {"Y": softmax(x, axis)}, opset=13, axis=axis)
    check("LogSoftmax", {"X": x}, {"Y": np.log(softmax(x.astype(np.float64), axis)).astype(F)}, opset=13, axis=axis)
    hard = (np.arange(shape[axis]) == np.expand_dims(x.argmax(axis), -1)).astype(F)
    check("Hardmax", {"X": x}, {"Y": np.moveaxis(hard, -1, axis)}, opset=13, axis=axis)


def test_softmax_of_old_versions_flattens() -> None:
    x = random(2, 3, 5)
    check("Softmax", {"X": x}, {"Y": softmax(x, (1, 2))}, opset=11)
    check("Softmax", {"X": x}, {"Y": softmax(x, 2)}, opset=9, axis=2)
    check("LogSoftmax", {"X": x}, {"Y": np.log(softmax(x, (0, 1, 2)))}, opset=6, axis=0)
    flat = x.reshape(2, 15)
    hard = (np.arange(15) == flat.argmax(1)[:, None]).astype(F).reshape(x.shape)
    check("Hardmax", {"X": x}, {"Y": hard}, opset=12, compiled=True)


def test_softmax_of_special_numbers() -> None:
    x = np.array([[0, -np.inf, 1], [-np.inf] * 3, [np.nan, 0, 1], [3e38, -3e38, 0]], F)
    check("Softmax", {"X": x}, {"Y": softmax(x, 1)})
    hard = np.eye(3, dtype=F)[[2, 0, 0, 0]]
    check("Hardmax", {"X": x}, {"Y": hard})
    check("Softmax", {"X": np.zeros((2, 0), F)}, {"Y": np.zeros((2, 0), F)})
    check("Hardmax", {"X": np.zeros((2, 0), F)}, {"Y": np.zeros((2, 0), F)})


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_softmax_is_rounded_once(dtype: Any) -> None:
    x = (random(4, 300) * 3).astype(dtype)
    exact = softmax(x.astype(np.float64), 1)
    check("Softmax", {"X": x}, {"Y": exact.astype(dtype)}, compiled=True, tolerance=2e-6)


# --- normalizations --------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_layer_normalization(axis: int) -> None:
    x = random(3, 4, 5) * 3 + 1
    axes = tuple(range(axis % 3, 3))
    scale, shift = random(*x.shape[axis % 3 :]), random(*x.shape[axis % 3 :], seed=1)
    mean = x.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(x.var(axes, keepdims=True) + F(1e-5))
    arrays = {"X": x, "W": scale, "B": shift}
    wanted = {"Y": standard(x, axes) * scale + shift, "M": mean, "R": inverse}
    check("LayerNormalization", arrays, wanted, opset=17, axis=axis)
    model = one_node("LayerNormalization", arrays, ["Y", "", "R"], opset=17, axis=axis)
    np.testing.assert_allclose(computed(model, arrays)[1], inverse, rtol=1e-5)


def test_layer_normalization_of_halves() -> None:
    x, scale = (random(3, 70) * 100).astype(np.float16), np.ones(1, np.float16)
    wide = x.astype(np.float64)
    wanted = {"Y": standard(wide, (1,)).astype(np.float16), "M": wide.mean(1, keepdims=True).astype(F)}
    check("LayerNormalization", {"X": x, "W": scale}, wanted, compiled=True, tolerance=1e-3)
    brief = {"Y": wanted["Y"], "M": wanted["M"].astype(ml_dtypes.bfloat16)}
    check("LayerNormalization", {"X": x, "W": scale}, brief, tolerance=1e-3, stash_type=16)


def test_rms_normalization() -> None:
    x, scale = random(3, 4, 5), random(4, 1)
    wanted = x / np.sqrt((x * x).mean((1, 2), keepdims=True) + 0.25) * scale
    check("RMSNormalization", {"X": x, "W": scale}, {"Y": wanted.astype(F)}, axis=1, epsilon=0.25, compiled=True)


def test_instance_and_group_normalization() -> None:
    x = random(2, 6, 3, 5) + 2
    scale, shift = random(6), random(6, seed=1)
    column = (6, 1, 1)
    wanted = standard(x, (2, 3)) * scale.reshape(column) + shift.reshape(column)
    check("InstanceNormalization", {"X": x, "W": scale, "B": shift}, {"Y": wanted}, opset=6)
    grouped = standard(x.reshape(2, 3, 2, 3, 5), (2, 3, 4)).reshape(x.shape)
    wanted = grouped * scale.reshape(column) + shift.reshape(column)
    arrays = {"X": x, "W": scale, "B": shift}
    check("GroupNormalization", arrays, {"Y": wanted}, opset=21, num_groups=3, compiled=True)
    by_group = {"X": x, "W": scale[:3], "B": shift[:3]}
    wanted = grouped * scale[:3].repeat(2).reshape(column) + shift[:3].repeat(2).reshape(column)
    check("GroupNormalization", by_group, {"Y": wanted}, opset=18, num_groups=3)


def test_instances_of_one_number() -> None:
    x, scale, shift = random(3, 4), random(4), random(4, seed=1)
    wanted = np.broadcast_to(shift, (3, 4))
    check("InstanceNormalization", {"X": x, "W": scale, "B": shift}, {"Y": wanted}, opset=6)


def test_mean_variance_and_unit_norms() -> None:
    x = random(2, 3, 4, 5)
    check("MeanVarianceNormalization", {"X": x}, {"Y": standard(x, (0, 2, 3), 0)}, opset=13)
    check("MeanVarianceNormalization", {"X": x}, {"Y": standard(x, (1, 2), 0)}, opset=9, axes=[1, -2])
    x[:, 1] = 0
    for order in (1, 2):
        norm = (np.abs(x) ** order).sum(2, keepdims=True) ** (1 / order)
        wanted = np.divide(x, norm, out=np.zeros_like(x), where=norm != 0)
        check("LpNormalization", {"X": x}, {"Y": wanted}, opset=1, axis=2, p=order)


# --- batch normalization ---------------------------------------------------------------------------------


def of_batch(*own: int) -> dict[str, np.ndarray]:
    """Scale, shift, mean and variance."""
    names = ("S", "B", "M", "V")
    return {name: np.abs(random(*own, seed=seed)) + F(0.5) for seed, name in enumerate(names)}


@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 5), (2, 4, 3, 2), (7,)])
@pytest.mark.parametrize("dtype", [F, np.float16])
def test_batch_normalization(shape: Sequence[int], dtype: Any) -> None:
    x = random(*shape).astype(dtype)
    given = of_batch(4 if len(shape) > 1 else 1)
    s, b, m, v = (array.reshape(-1, *(1,) * (len(shape) - 2)) for array in given.values())
    wanted = (x.astype(F) - m) / np.sqrt(v + 1e-5) * s + b
    own = {name: array.astype(dtype) if name in "SB" else array for name, array in given.items()}
    check("BatchNormalization", {"X": x, **own}, {"Y": wanted.astype(dtype)}, opset=15, tolerance=3e-3)
    check("BatchNormalization", {"X": x, **own}, {"Y": wanted.astype(dtype)}, opset=9, tolerance=3e-3)


def test_batch_normalization_in_training() -> None:
    x, given = random(3, 4, 5), of_batch(4)
    s, b, m, v = given.values()
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    y = standard(x, (0, 2)) * s[:, None] + b[:, None]
    wanted = {"Y": y, "RM": m * F(0.8) + mean * F(0.2), "RV": v * F(0.8) + variance * F(0.2)}
    arrays = {"X": x, **given}
    check("BatchNormalization", arrays, wanted, opset=15, training_mode=1, momentum=0.8, compiled=True)
    wanted |= {"SM": mean, "SV": variance}
    check("BatchNormalization", arrays, wanted, opset=7, momentum=0.8)
    check("BatchNormalization", arrays, {"Y": y}, opset=6)


def test_batch_normalization_by_element() -> None:
    x, given = random(3, 4, 5), of_batch(4, 5)
    s, b, m, v = given.values()
    wanted = (x - m) / np.sqrt(v + 1e-5) * s + b
    check("BatchNormalization", {"X": x, **given}, {"Y": wanted.astype(F)}, opset=6, spatial=0, is_test=1)
    wanted = standard(x, (0,)) * s + b
    check(
        "BatchNormalization",
        {"X": x, **given},
        {"Y": wanted, "RM": m * F(0.9) + x.mean(0) * F(0.1)},
        opset=7,
        spatial=0,
    )


# --- losses ----------------------------------------------------------------------------------------------


def loss(logs: np.ndarray, target: np.ndarray, weight: np.ndarray, ignored: int | None, reduction: str) -> np.ndarray:
    kept = np.ones(target.shape) if ignored is None else (target != ignored).astype(F)
    safe = np.where(kept > 0, target, 0)
    share = weight[safe] * kept
    terms = -np.take_along_axis(logs, safe[:, None], 1)[:, 0] * share
    if reduction == "none":
        return terms.astype(F)
    return np.asarray(terms.sum() / (share.sum() if reduction == "mean" else 1), F)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize(("shape", "ignored"), [((5, 4), None), ((3, 4, 2), -7), ((2, 3, 3, 2), 1), ((1, 1), None)])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses(shape: Sequence[int], ignored: int | None, reduction: str, weighted: bool) -> None:
    scores, classes = random(*shape), shape[1]
    target = np.random.default_rng(1).integers(0, classes, (shape[0], *shape[2:]))
    if ignored is not None:
        target.reshape(-1)[::3] = ignored
    weight = np.abs(random(classes)) if weighted else np.ones(classes, F)
    attributes: dict[str, Any] = {"reduction": reduction} | ({} if ignored is None else {"ignore_index": ignored})
    arrays = {"X": scores, "T": target} | ({"W": weight} if weighted else {})
    given = (target, weight, ignored, reduction)
    check("NegativeLogLikelihoodLoss", arrays, {"Y": loss(scores, *given)}, opset=13, **attributes)
    logs = np.log(softmax(scores, 1))
    arrays["T"] = target.astype(np.int32)
    check("SoftmaxCrossEntropyLoss", arrays, {"Y": loss(logs, *given), "L": logs}, opset=12, **attributes)


def test_losses_compiled() -> None:
    scores, target = random(5, 3, 2), np.array([[0, 1], [2, 9], [1, 1], [9, 0], [2, 2]])
    logs, weight = np.log(softmax(scores, 1)), np.array([1, 2, 3], F)
    wanted = {"Y": loss(logs, target, weight, 9, "mean")}
    arrays = {"X": scores, "T": target, "W": weight}
    check("SoftmaxCrossEntropyLoss", arrays, wanted, ignore_index=9, compiled=True)
    with pytest.raises(tc.ArgumentError, match="index"):
        computed(one_node("SoftmaxCrossEntropyLoss", arrays), arrays, compiled=True)


# --- optimizers ------------------------------------------------------------------------------------------

TRAINING = "ai.onnx.preview.training"


def of_optimizer(states: int, steps: int, dtype: Any = F) -> dict[str, np.ndarray]:
    shapes = ((3, 4), ())
    names = [f"{kind}{tensor}" for kind in "xgvh"[: 2 + states] for tensor in range(2)]
    found = {name: np.abs(random(*shapes[int(name[1])], seed=seed)).astype(dtype) for seed, name in enumerate(names)}
    return {"R": np.array(0.1, dtype), "T": np.array(steps, np.int64), **found}


@pytest.mark.parametrize("steps", [0, 3])
def test_adagrad(steps: int) -> None:
    arrays = of_optimizer(1, steps)
    rate = F(0.1) / (1 + steps * 0.5)
    first, second = {}, {}
    for n in "01":
        x, g, h = (arrays[f"{kind}{n}"].astype(np.float64) for kind in "xgv")
        g = g + 0.25 * x
        h = h + g * g
        first[f"X{n}"] = np.asarray(x - rate * g / (np.sqrt(h) + 1e-6), F)
        second[f"H{n}"] = np.asarray(h, F)
    check("Adagrad", arrays, first | second, opset=1, domain=TRAINING, decay_factor=0.5, norm_coefficient=0.25)


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("dtype", [F, np.float64])
def test_adam(steps: int, dtype: Any) -> None:
    arrays = of_optimizer(2, steps, dtype)
    rate = 0.1 * (np.sqrt(1 - 0.75**steps) / (1 - 0.5**steps) if steps else 1)
    found: dict[str, dict[str, np.ndarray]] = {"X": {}, "V": {}, "H": {}}
    for n in "01":
        x, g, v, h = (arrays[f"{kind}{n}"].astype(np.float64) for kind in "xgvh")
        g = g + 0.25 * x
        v, h = 0.5 * v + 0.5 * g, 0.75 * h + 0.25 * g * g
        found["X"][f"X{n}"] = np.asarray(0.875 * (x - rate * v / (np.sqrt(h) + 0.125)), dtype)
        found["V"][f"V{n}"], found["H"][f"H{n}"] = np.asarray(v, dtype), np.asarray(h, dtype)
    attributes: dict[str, Any] = {
        "alpha": 0.5,
        "beta": 0.75,
        "epsilon": 0.125,
        "norm_coefficient": 0.25,
        "norm_coefficient_post": 0.125,
    }
    wanted = found["X"] | found["V"] | found["H"]
    check("Adam", arrays, wanted, opset=1, domain=TRAINING, compiled=steps > 0, **attributes)


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("mode", ["standard", "nesterov"])
def test_momentum(steps: int, mode: str) -> None:
    arrays = of_optimizer(1, steps)
    first, second = {}, {}
    for n in "01":
        x, g, v = (arrays[f"{kind}{n}"].astype(np.float64) for kind in "xgv")
        g = g + 0.25 * x
        v = 0.5 * v + (0.75 if steps else 1) * g
        first[f"X{n}"] = np.asarray(x - F(0.1) * (v if mode == "standard" else g + 0.5 * v), F)
        second[f"V{n}"] = np.asarray(v, F)
    attributes: dict[str, Any] = {"alpha": 0.5, "beta": 0.75, "norm_coefficient": 0.25, "mode": mode}
    check("Momentum", arrays, first | second, opset=1, domain=TRAINING, **attributes)


# --- open sizes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "opset", "shape", "given"),
    [
        ("Softmax", 13, ("B", "N", 5), {"axis": 1}),
        ("Hardmax", 11, ("B", "N", 5), {}),
        ("LogSoftmax", 13, ("B", 3, "M"), {}),
        ("MeanVarianceNormalization", 13, ("B", 4, "H", "W"), {}),
        ("LpNormalization", 22, ("B", "N", 5), {"axis": 1}),
    ],
)
def test_open_sizes(kind: str, opset: int, shape: Sequence[int | str], given: dict[str, Any]) -> None:
    for extent in (2, 3):
        x = random(*(extent if isinstance(size, str) else size for size in shape))
        model = one_node(kind, {"X": x}, opset=opset, shapes={"X": shape}, **given)
        graph = model.graph()
        assert [*map(str, graph.values[graph.outputs[0]].shape)] == [*map(str, shape)]
        fixed = one_node(kind, {"X": x}, opset=opset, **given)
        np.testing.assert_array_equal(computed(model, {"X": x})[0], computed(fixed, {"X": x})[0])


# --- what is refused -------------------------------------------------------------------------------------

X = {"X": random(2, 3, 4)}
W = {"W": random(3), "B": random(3)}
STEP = {"alpha": 0.5, "beta": 0.75, "norm_coefficient": 0.0}


@pytest.mark.parametrize(
    ("kind", "arrays", "given", "message"),
    [
        ("Softmax", X, {"axis": 3}, "axis 3 of a tensor with 3 dimensions"),
        ("LpNormalization", X, {"p": 3}, "the norm of order 3 is not supported; `p` is 1 or 2"),
        ("GroupNormalization", {**X, **W}, {"num_groups": 2}, "3 channels cannot be divided into 2 groups"),
        ("NegativeLogLikelihoodLoss", {**X, "T": np.zeros((2, 4), int)}, {"reduction": "max"}, "`reduction` is 'max'"),
        (
            "NegativeLogLikelihoodLoss",
            {**X, "T": np.zeros(2, int)},
            {},
            "the scores have 3 dimensions, and the targets 1",
        ),
        (
            "Adam",
            of_optimizer(1, 0),
            {"domain": TRAINING, "opset": 1},
            "8 operands; it takes two, and 4 for each tensor",
        ),
        ("Momentum", of_optimizer(1, 0), {"domain": TRAINING, "opset": 1, "mode": "x", **STEP}, "`mode` is 'x'"),
    ],
)
def test_refusals(kind: str, arrays: dict[str, np.ndarray], given: dict[str, Any], message: str) -> None:
    model = one_node(kind, arrays, **given)
    with pytest.raises(tc.GraphError, match=message):
        computed(model, arrays)
