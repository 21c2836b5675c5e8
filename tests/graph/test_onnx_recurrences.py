"""RNN, GRU and LSTM of ONNX in all their variants, beside loops of NumPy."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tc
from tests.graph.one_node import Arrays, check, computed, one_node

F = np.float32
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
USED = {"RNN": 1, "GRU": 2, "LSTM": 3}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
FUNCTIONS: dict[str, Callable[[np.ndarray, float, float], np.ndarray]] = {
    "Affine": lambda x, a, b: a * x + b,
    "Elu": lambda x, a, b: np.where(x < 0, a * np.expm1(x), x),
    "HardSigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "LeakyRelu": lambda x, a, b: np.where(x < 0, a * x, x),
    "Relu": lambda x, a, b: np.maximum(x, 0),
    "ScaledTanh": lambda x, a, b: a * np.tanh(b * x),
    "Sigmoid": lambda x, a, b: np.exp(-np.logaddexp(0, -x)),
    "Softplus": lambda x, a, b: np.log1p(np.exp(x)),
    "Softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "Tanh": lambda x, a, b: np.tanh(x),
    "ThresholdedRelu": lambda x, a, b: np.where(x < a, 0, x),
}
ALPHAS = {"Affine": 1.0, "Elu": 1.0, "HardSigmoid": 0.2, "LeakyRelu": 0.01, "ScaledTanh": 1.0, "ThresholdedRelu": 1.0}
BETAS = {"Affine": 0.0, "HardSigmoid": 0.5, "ScaledTanh": 1.0}


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) / 2).astype(F)


def functions(names: list[str], alphas: list[float], betas: list[float], clip: float) -> list[Any]:
    """Activations, which take their numbers in order."""
    alphas, betas, found = list(alphas), list(betas), []
    for name in names:
        a = (alphas.pop(0) if alphas else ALPHAS[name]) if name in ALPHAS else 0.0
        b = (betas.pop(0) if betas else BETAS[name]) if name in BETAS else 0.0
        found.append(lambda x, name=name, a=a, b=b: FUNCTIONS[name](np.clip(x, -clip, clip), a, b))
    return found


def stepped(kind: str, x: np.ndarray, own: dict[str, np.ndarray], f: list[Any], given: dict[str, Any]) -> Any:
    """The hidden state and the cell after a step."""
    h, c, (wb, rb) = own["h"], own["c"], own["B"]
    w = [x @ own["W"][q].T + wb[q] for q in range(GATES[kind])]
    r = [h @ own["R"][q].T + rb[q] for q in range(GATES[kind])]
    if kind == "RNN":
        return f[0](w[0] + r[0]), c
    if kind == "GRU":
        z, reset = f[0](w[0] + r[0]), f[0](w[1] + r[1])
        last = reset * r[2] if given.get("linear_before_reset") else (reset * h) @ own["R"][2].T + rb[2]
        return (1 - z) * f[1](w[2] + last) + z * h, c
    p = own["P"]
    i, forget = f[0](w[0] + r[0] + p[0] * c), f[0](w[2] + r[2] + p[2] * c)
    forget = 1 - i if given.get("input_forget") else forget
    new = forget * c + i * f[1](w[3] + r[3])
    return f[0](w[1] + r[1] + p[1] * new) * f[2](new), new


def wanted_of(kind: str, arrays: Arrays, given: dict[str, Any]) -> dict[str, np.ndarray]:
    """All results, positions first."""
    held = {name: array.astype(np.float64) for name, array in arrays.items() if array is not None}
    x, gates, count, size = held["X"], GATES[kind], len(held["W"]), held["R"].shape[2]
    steps, batch = x.shape[:2]
    names = given.get("activations", DEFAULTS[kind] * count)
    f = functions(names, given.get("activation_alpha", []), given.get("activation_beta", []), given.get("clip", np.inf))
    lengths = held.get("L", np.full(batch, steps)).astype(int)
    y, last = np.zeros((steps, count, batch, size)), np.zeros((2, count, batch, size))
    for d in range(count):
        own = {"W": held["W"][d].reshape(gates, size, -1), "R": held["R"][d].reshape(gates, size, size)}
        own["B"] = held["B"][d].reshape(2, gates, size) if "B" in held else np.zeros((2, gates, size))
        own["P"] = held["P"][d].reshape(3, size) if "P" in held else np.zeros((3, size))
        backward = given.get("direction") == "reverse" or d == 1
        for b in range(batch):
            own["h"], own["c"] = (held[n][d, b] if n in held else np.zeros(size) for n in ("H", "C"))
            for t in reversed(range(lengths[b])) if backward else range(lengths[b]):
                own["h"], own["c"] = stepped(kind, x[t, b], own, f[d * USED[kind] :], given)
                y[t, d, b] = own["h"]
            last[0, d, b], last[1, d, b] = own["h"], own["c"]
    return {"Y": y, "YH": last[0]} | ({"YC": last[1]} if kind == "LSTM" else {})


def drawn(kind: str, seed: int) -> tuple[dict[str, np.ndarray | None], dict[str, Any]]:
    """Operands, positions first, and attributes."""
    chosen = random.Random(f"{kind} {seed}")
    direction = chosen.choice(["forward", "reverse", "bidirectional"])
    count, gates = 1 + (direction == "bidirectional"), GATES[kind]
    steps, batch, inputs, size = (chosen.choice(options) for options in ([1, 3, 5], [1, 2, 3], [1, 2, 4], [1, 3, 4]))

    def maybe(*shape: int) -> np.ndarray | None:
        return normal(*shape, seed=seed + 1) if chosen.random() < 0.6 else None

    arrays: dict[str, np.ndarray | None] = {
        "X": normal(steps, batch, inputs, seed=seed),
        "W": normal(count, gates * size, inputs, seed=seed),
        "R": normal(count, gates * size, size, seed=seed),
        "B": maybe(count, 2 * gates * size),
        "L": np.array([chosen.randint(0, steps) for _ in range(batch)], np.int32) if chosen.random() < 0.5 else None,
        "H": maybe(count, batch, size),
    }
    given: dict[str, Any] = {"direction": direction, "hidden_size": size}
    if kind == "LSTM":
        arrays |= {"C": maybe(count, batch, size), "P": maybe(count, 3 * size)}
        given |= {"input_forget": 1} if chosen.random() < 0.3 else {}
    if kind == "GRU" and chosen.random() < 0.5:
        given["linear_before_reset"] = 1
    if chosen.random() < 0.5:
        given["activations"] = [chosen.choice(list(FUNCTIONS)) for _ in range(count * USED[kind])]
        for name, most in (("alpha", 6), ("beta", 2)):
            if chosen.random() < 0.7:
                numbers = [chosen.choice([0.25, 0.5, 0.75]) for _ in range(chosen.choice([1, most]))]
                given[f"activation_{name}"] = numbers
    if chosen.random() < 0.3:
        given["clip"] = 0.5
    return arrays, given


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("seed", range(24))
def test_recurrences(kind: str, seed: int) -> None:
    arrays, given = drawn(kind, seed)
    wanted = {name: array.astype(F) for name, array in wanted_of(kind, arrays, given).items()}
    if seed % 3 == 0:  # elements of the batch come first
        given["layout"] = 1
        arrays |= {name: array.swapaxes(0, 1).copy() for name in "XHC" if (array := arrays.get(name)) is not None}
        wanted["Y"] = wanted["Y"].transpose(2, 0, 1, 3)
        wanted |= {name: array.swapaxes(0, 1) for name, array in wanted.items() if name != "Y"}
    opset = 22 if seed % 3 == 0 else 7
    check(kind, arrays, wanted, opset=opset, compiled=seed < 3, **given)


@pytest.mark.parametrize("results", [["", "YH"], ["Y"], ["Y", "", "YC"]])
def test_results_that_are_wanted(results: list[str]) -> None:
    arrays, given = drawn("LSTM", 1)
    wanted = wanted_of("LSTM", arrays, given)
    model = one_node("LSTM", arrays, results, opset=14, **given)
    for name, found in zip(model.outputs, computed(model, arrays), strict=True):
        np.testing.assert_allclose(found, wanted[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", GATES)
def test_open_sizes(kind: str) -> None:
    for steps, batch in ((2, 3), (4, 1)):
        gates = GATES[kind]
        arrays: Arrays = {
            "X": normal(steps, batch, 4),
            "W": normal(2, 5 * gates, 4),
            "R": normal(2, 5 * gates, 5),
            "B": None,
            "L": np.full(batch, steps, np.int32),
        }
        shapes = {"X": ("T", "N", 4), "L": ("N",)}
        model = one_node(kind, arrays, ["Y", "YH"], direction="bidirectional", shapes=shapes)
        graph = model.graph()
        assert [*map(str, graph.values[graph.outputs[0]].shape)] == ["T", "2", "N", "5"]
        wanted = wanted_of(kind, arrays, {"direction": "bidirectional"})
        for name, found in zip(("Y", "YH"), computed(model, arrays), strict=True):
            np.testing.assert_allclose(found, wanted[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", GATES)
def test_halves_are_held_in_float32(kind: str) -> None:
    gates, size = GATES[kind], 8
    shapes = {"X": (20, 2, 5), "W": (1, gates * size, 5), "R": (1, gates * size, size), "B": (1, 2 * gates * size)}
    arrays: Arrays = {name: normal(*shape).astype(np.float16) for name, shape in shapes.items()}
    wanted = {name: array.astype(np.float16) for name, array in wanted_of(kind, arrays, {}).items()}
    check(kind, arrays, wanted, compiled=True, tolerance=1e-3)


BASE = {"X": normal(2, 3, 4), "W": normal(1, 5, 4), "R": normal(1, 5, 5)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"direction": "down"}, "`direction` is 'down', and must be forward, reverse or bidirectional"),
        ({"direction": "bidirectional"}, "`direction` is 'bidirectional', and `W` has 1 matrices"),
        ({"activations": ["Cosine"]}, "there is no activation 'Cosine'; there are affine, elu"),
    ],
)
def test_refusals(given: dict[str, Any], message: str) -> None:
    with pytest.raises(tc.GraphError, match=message):
        computed(one_node("RNN", BASE, **given), BASE)


def test_too_few_activations() -> None:
    arrays = {"X": normal(2, 3, 4), "W": normal(1, 20, 4), "R": normal(1, 20, 5)}
    model = one_node("LSTM", arrays, activations=["Tanh", "Tanh"])
    with pytest.raises(tc.GraphError, match="2 activations are given, and 3 are used"):
        computed(model, arrays)
