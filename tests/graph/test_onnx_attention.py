"""Attention of ONNX in all its variants, rotary embeddings and linear attention, beside NumPy."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tc
from tests.graph.one_node import Arrays, check, computed, one_node
from tests.turns import one_in

F = np.float32
INF = np.inf


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(F)


# --- attention -------------------------------------------------------------------------------------------


@dataclass
class Case:
    """Operands of four dimensions, and attributes."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    mask: np.ndarray | None = None
    past_key: np.ndarray | None = None
    past_value: np.ndarray | None = None
    length: np.ndarray | None = None
    scale: float | None = None
    cap: float = 0.0
    causal: bool = False
    before: int = -1
    behind: int = -1


def attended(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
    """The result, all keys and values, and the scores after each stage, in float64."""
    q, k, v = (x.astype(np.float64) for x in (case.query, case.key, case.value))
    if case.past_key is not None and case.past_value is not None:
        k, v = np.concatenate([case.past_key, k], 2), np.concatenate([case.past_value, v], 2)
    repeats = q.shape[1] // k.shape[1]
    rows, keys = q.shape[2], k.shape[2]
    scaled = q @ k.repeat(repeats, 1).swapaxes(2, 3) * (q.shape[3] ** -0.5 if case.scale is None else case.scale)
    capped = case.cap * np.tanh(scaled / case.cap) if case.cap else scaled
    offset = np.zeros((len(q), 1, 1, 1), int)
    if case.past_key is not None:
        offset += case.past_key.shape[2]
    elif case.length is not None:
        offset += case.length[:, None, None, None] - rows
    own, place = np.arange(rows)[:, None] + offset, np.arange(keys)
    seen = np.ones((len(q), 1, rows, keys), bool)
    seen &= (place <= own) if case.causal else True
    seen &= (own - place <= case.before) if case.before >= 0 else True
    seen &= (place - own <= case.behind) if case.behind >= 0 else True
    if case.length is not None:
        seen &= place < case.length[:, None, None, None]
    bias = np.where(seen, 0, -INF)
    if case.mask is not None:
        mask = np.where(case.mask, 0, -INF) if case.mask.dtype == bool else case.mask.astype(np.float64)
        if 1 < mask.shape[-1] < keys:
            mask = np.concatenate([mask, np.full((*mask.shape[:-1], keys - mask.shape[-1]), -INF)], -1)
        bias = bias + mask
    masked = capped + bias
    top = masked.max(3, keepdims=True)
    power = np.exp(masked - np.where(top == -INF, 0, top))
    total = power.sum(3, keepdims=True)
    weight = power / np.where(total == 0, 1, total)
    return weight @ v.repeat(repeats, 1), k, v, [scaled, capped, masked, weight]


def drawn(seed: int) -> tuple[Case, int]:
    """A case and its opset."""
    chosen = random.Random(seed)
    groups, shared = chosen.choice([1, 2, 3]), chosen.choice([1, 1, 2, 3])
    batch, rows, keys = chosen.choice([1, 2]), chosen.choice([1, 3, 4]), chosen.choice([1, 4, 5])
    size, out = chosen.choice([1, 4, 6]), chosen.choice([1, 3, 4])
    case = Case(
        normal(batch, groups * shared, rows, size, seed=seed),
        normal(batch, groups, keys, size, seed=seed + 1),
        normal(batch, groups, keys, out, seed=seed + 2),
        scale=chosen.choice([None, None, 0.3]),
        cap=chosen.choice([0.0, 0.0, 2.0]),
        causal=chosen.random() < 0.4,
    )
    total = keys
    if chosen.random() < 0.3:
        past = chosen.choice([1, 3])
        case.past_key, case.past_value = normal(batch, groups, past, size), normal(batch, groups, past, out)
        total += past
    elif chosen.random() < 0.4:
        case.length = np.array([chosen.randint(0, keys) for _ in range(batch)])
    if chosen.random() < 0.6:
        last = chosen.choice([total, total, max(total - 1, 1)])
        shape = [chosen.choice([1, batch]), chosen.choice([1, groups * shared]), chosen.choice([1, rows]), last]
        case.mask = normal(*shape[chosen.choice([0, 0, 1, 2]) :], seed=seed)
        case.mask[case.mask > 1] = -INF
        if chosen.random() < 0.5:
            case.mask = case.mask > -0.5
    if chosen.random() < 0.2:
        case.before, case.behind = chosen.choice([-1, 0, 2]), chosen.choice([-1, 0, 1])
    return case, 25 if max(case.before, case.behind) >= 0 else 24


def packed(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.swapaxes(1, 2)).reshape(len(x), x.shape[2], -1)


def attributes_of(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = {"softcap": case.cap, "is_causal": int(case.causal)}
    found |= {} if case.scale is None else {"scale": case.scale}
    if max(case.before, case.behind) >= 0:
        found |= {"left_window_size": case.before, "right_window_size": case.behind}
    return found


@one_in(3)
@pytest.mark.parametrize("seed", range(60))
def test_attention(seed: int) -> None:
    case, opset = drawn(seed)
    y, keys, values, stages = attended(case)
    arrays: dict[str, np.ndarray | None] = {"Q": case.query, "K": case.key, "V": case.value, "M": case.mask}
    arrays |= {"PK": case.past_key, "PV": case.past_value, "L": case.length}
    given: dict[str, Any] = attributes_of(case)
    if seed % 2:
        arrays |= {name: packed(array) for name, array in arrays.items() if name in "QKV" and array is not None}
        y = packed(y)
        given |= {"q_num_heads": case.query.shape[1], "kv_num_heads": case.key.shape[1]}
    wanted = {"Y": y, "NK": keys, "NV": values}
    if seed % 3:
        given["qk_matmul_output_mode"] = seed % 4
        wanted["Z"] = stages[seed % 4]
    right = {name: array.astype(F) for name, array in wanted.items()}
    check("Attention", arrays, right, opset=opset, compiled=seed < 6, **given)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_attention_is_rounded_once(dtype: Any) -> None:
    case, _ = drawn(3)
    case.query, case.key, case.value = (normal(2, 2, n, 8, seed=n).astype(dtype) for n in (3, 40, 40))
    case.mask, case.past_key, case.past_value, case.length = normal(3, 40).astype(dtype), None, None, None
    y = attended(case)[0]
    arrays: Arrays = {"Q": case.query, "K": case.key, "V": case.value, "M": case.mask}
    check("Attention", arrays, {"Y": y.astype(dtype)}, compiled=True, tolerance=2e-3, **attributes_of(case))


def test_attention_in_float64_of_narrow_numbers() -> None:
    q, k, v = (normal(1, 1, n, 4, seed=n) for n in (2, 3, 3))
    wanted = attended(Case(q, k, v))[0].astype(F)
    check("Attention", {"Q": q, "K": k, "V": v}, {"Y": wanted}, softmax_precision=11)


def test_queries_that_see_nothing() -> None:
    q, k, v = (normal(1, 2, n, 4, seed=n) for n in (2, 3, 3))
    for mask in (np.array([[False] * 3, [True] * 3]), np.array([[-INF] * 3, [0.0] * 3], F)):
        y, _, _, stages = attended(Case(q, k, v, mask))
        assert (y[:, :, 0] == 0).all()
        arrays = {"Q": q, "K": k, "V": v, "M": mask}
        wanted = {"Y": y.astype(F), "": v, "Z": stages[3].astype(F)}
        model = one_node("Attention", arrays, ["Y", "", "", "Z"], qk_matmul_output_mode=3)
        for compiled in (False, True):
            found = model.run(["Y", "Z"], arrays) if compiled else model.reference(["Y", "Z"], arrays)
            for name in "YZ":
                np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-6)


def test_open_sizes() -> None:
    heads: dict[str, Any] = {"q_num_heads": 4, "kv_num_heads": 2}
    shapes = {"Q": ("B", "L", 12), "K": ("B", "S", 6), "V": ("B", "S", 8), "M": ("B", 1, "L", "S + P")}
    shapes |= {"PK": ("B", 2, "P", 3), "PV": ("B", 2, "P", 4)}
    for batch, rows, keys, past in ((1, 2, 3, 4), (2, 1, 1, 1)):
        q, k, v = normal(batch, 4, rows, 3), normal(batch, 2, keys, 3), normal(batch, 2, keys, 4)
        case = Case(q, k, v, normal(batch, 1, rows, keys + past), normal(batch, 2, past, 3), normal(batch, 2, past, 4))
        arrays: Arrays = {"Q": packed(q), "K": packed(k), "V": packed(v), "M": case.mask}
        arrays = {**arrays, "PK": case.past_key, "PV": case.past_value}
        model = one_node("Attention", arrays, ["Y", "NK", "NV", "Z"], shapes=shapes, **heads)
        graph = model.graph()
        assert [*map(str, graph.values[graph.outputs[3]].shape)] == ["B", "4", "L", "P + S"]
        y, new_keys, new_values, stages = attended(case)
        for found, wanted in zip(computed(model, arrays), (packed(y), new_keys, new_values, stages[0]), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_infinite_scores() -> None:
    q, k, v = np.full((1, 1, 1, 1), 3e38, F), np.array([1e10, -1e10, 1], F).reshape(1, 1, 3, 1), normal(1, 1, 3, 2)
    mask = np.array([[False, True, True]])  # the product that is infinite is not seen
    check("Attention", {"Q": q, "K": k, "V": v, "M": mask}, {"Y": v[:, :, 2:]}, compiled=True)


# --- what goes with it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("part", [0, 4])
@pytest.mark.parametrize("by_place", [False, True])
def test_rotary_embedding(interleaved: bool, part: int, by_place: bool) -> None:
    x = normal(2, 3, 5, 6)  # batch, heads, positions, numbers
    half = (part or 6) // 2
    place = np.random.default_rng(0).integers(0, 7, (2, 5))
    cosine, sine = (normal(*((7,) if by_place else (2, 5)), half, seed=seed) for seed in (1, 2))
    c, s = ((a[place] if by_place else a)[:, None] for a in (cosine, sine))
    first, second = (
        (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(half), slice(half, 2 * half))
    )
    wanted = x.copy()
    wanted[..., first], wanted[..., second] = (
        c * x[..., first] - s * x[..., second],
        s * x[..., first] + c * x[..., second],
    )
    arrays: Arrays = {"X": x, "C": cosine, "S": sine, "P": place if by_place else None}
    given: dict[str, Any] = {"interleaved": int(interleaved), "rotary_embedding_dim": part}
    check("RotaryEmbedding", arrays, {"Y": wanted}, **given)
    check("RotaryEmbedding", {**arrays, "X": packed(x)}, {"Y": packed(wanted)}, num_heads=3, **given)


def test_swiglu() -> None:
    a, b = normal(3, 5), normal(3, 5, seed=1)
    check("SwiGLU", {"A": a, "B": b}, {"Y": a / (1 + np.exp(F(-0.5) * a)) * b}, opset=28, alpha=0.5, compiled=True)


@one_in(3)
@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("by_head", [False, True])
@pytest.mark.parametrize("dtype", [F, np.float16])
def test_linear_attention(rule: str, by_head: bool, dtype: Any) -> None:
    batch, steps, groups, shared, size, out = 2, 4, 2, 3, 3, 5
    q, k, v = (
        normal(batch, steps, groups, shared, size),
        normal(batch, steps, groups, size),
        normal(batch, steps, groups, out),
    )
    state = None if by_head else normal(batch, groups, size, out)
    decay = -np.abs(normal(batch, steps, groups, 1 if by_head else size))
    beta = np.abs(normal(batch, steps, 1 if by_head else groups))
    q, k, v, decay, beta = (x.astype(dtype) for x in (q, k, v, decay, beta))
    held = np.zeros((batch, groups, size, out)) if state is None else state.astype(np.float64)
    result = np.zeros((batch, steps, groups, shared, out))
    for t in range(steps):
        if "gated" in rule:
            held = held * np.exp(decay[:, t].astype(np.float64))[..., None]
        added = v[:, t].astype(np.float64)
        if "delta" in rule:
            added = beta[:, t, :, None] * (added - np.einsum("bgef,bge->bgf", held, k[:, t]))
        held = held + k[:, t, :, :, None] * added[:, :, None]
        result[:, t] = np.einsum("bgre,bgef->bgrf", q[:, t], held) * size**-0.5
    flat = [x.reshape(batch, steps, -1) for x in (q, k, v, decay, beta, result)]
    arrays: Arrays = dict(zip("QKV", flat, strict=False))
    arrays = {
        **arrays,
        "S": state,
        "D": flat[3] if "gated" in rule else None,
        "B": flat[4] if "delta" in rule else None,
    }
    wanted = {"Y": flat[5].astype(dtype), "Z": held.astype(dtype if state is None else F)}
    given: dict[str, Any] = {"q_num_heads": groups * shared, "kv_num_heads": groups, "update_rule": rule}
    tolerance = 1e-5 if dtype is F else 2e-3
    check("LinearAttention", arrays, wanted, opset=27, compiled=by_head, tolerance=tolerance, **given)


# --- what is refused -------------------------------------------------------------------------------------

QKV = {name: normal(1, 3, 2, 4, seed=seed) for seed, name in enumerate("QKV")}
FLAT = {name: packed(array) for name, array in QKV.items()}
HEADS = {"q_num_heads": 3, "kv_num_heads": 3}


@pytest.mark.parametrize(
    ("kind", "arrays", "given", "message"),
    [
        ("Attention", {**QKV, "M": None, "PK": QKV["K"]}, {}, "`past_key` and `past_value` must be given together"),
        (
            "Attention",
            {**QKV, "M": None, "PK": QKV["K"], "PV": QKV["V"], "L": np.array([1])},
            {"opset": 24},
            "`nonpad_kv_seqlen` must not be given together with `past_key`",
        ),
        ("Attention", {**QKV, "K": QKV["K"][:, :2]}, {}, "3 heads of queries cannot share 2 heads of keys"),
        ("Attention", QKV, {"qk_matmul_output_mode": 4}, "`qk_matmul_output_mode` is 4, and must be 0 to 3"),
        ("Attention", FLAT, {**HEADS, "kv_num_heads": 5}, "12 numbers cannot be divided into 5 heads"),
        ("Attention", FLAT, {}, "the attribute `q_num_heads` is missing"),
        (
            "RotaryEmbedding",
            {"X": QKV["Q"], "C": normal(1, 2, 3), "S": normal(1, 2, 3)},
            {},
            "there are angles for 3 pairs, and 4 numbers of each head to rotate",
        ),
        ("LinearAttention", FLAT, {**HEADS, "update_rule": "x"}, "`update_rule` is 'x', and must be one of linear"),
        ("LinearAttention", FLAT, {**HEADS, "update_rule": "gated"}, "`update_rule` 'gated' takes a `decay`"),
        (
            "LinearAttention",
            {**FLAT, "S": None, "D": FLAT["K"]},
            {**HEADS, "update_rule": "linear"},
            "`update_rule` 'linear' takes no `decay`",
        ),
        ("LinearAttention", FLAT, {**HEADS, "kv_num_heads": 2}, "3 heads of queries cannot share 2 heads of keys"),
    ],
)
def test_refusals(kind: str, arrays: Arrays, given: dict[str, Any], message: str) -> None:
    opset = given.pop("opset", 27 if kind == "LinearAttention" else 23)
    results = ["Y", "Z"] if kind == "LinearAttention" else ["Y"]
    model = one_node(kind, arrays, results, opset=opset, **given)
    with pytest.raises(tc.GraphError, match=message):
        computed(model, arrays)
