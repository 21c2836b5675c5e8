"""Operators of classical machine learning of ONNX, beside NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from scipy.special import ndtri

import tc
from tests.graph import one_node
from tests.graph.comparison import uniform, whole

F = np.float32
ML = "ai.onnx.ml"


def check(kind: str, x: np.ndarray, wanted: Any, **given: Any) -> None:
    named = wanted if isinstance(wanted, dict) else {"Y": wanted}
    one_node.check(kind, {"X": x}, named, domain=ML, **{"opset": 3, **given})


def refused(kind: str, x: np.ndarray, message: str, **given: Any) -> None:
    with pytest.raises(tc.GraphError, match=message):
        one_node.computed(one_node.one_node(kind, {"X": x}, domain=ML, **{"opset": 3, **given}), {"X": x})


# --- features --------------------------------------------------------------------------------------------


def test_array_feature_extractor() -> None:
    x = uniform(3, 2, 5)
    arrays = {"X": x, "I": np.array([[4, 0]])}
    one_node.check("ArrayFeatureExtractor", arrays, {"Y": x[..., [4, 0]]}, domain=ML, opset=1, compiled=True)
    one_node.check(
        "ArrayFeatureExtractor",
        {"X": x[0, 0], "I": np.array([1, 1, 3])},
        {"Y": x[:1, 0, [1, 1, 3]]},
        domain=ML,
        opset=1,
    )


def test_binarizer_scaler_and_imputer() -> None:
    x = uniform(3, 4)
    check("Binarizer", x, (x > 0.5).astype(F), threshold=0.5)
    check("Binarizer", whole(5), (whole(5) > 0).astype(np.int32))
    offset, scale = [0.5, 1, 2, 3], [2.0]
    check("Scaler", x, (x - np.array(offset, F)) * F(2), offset=offset, scale=scale, compiled=True)
    check("Scaler", whole(3, 4), whole(3, 4).astype(F))
    holes = np.where(x > 1, F(np.nan), x)
    wanted = np.where(x > 1, np.arange(4, dtype=F), x)
    check("Imputer", holes, wanted, imputed_value_floats=[0.0, 1.0, 2.0, 3.0], replaced_value_float=float("nan"))
    y = whole(3, 2, dtype="int64", low=0, high=3)
    check("Imputer", y, np.where(y == 2, 7, y), imputed_value_int64s=[7], replaced_value_int64=2)
    refused("Imputer", x, "there are no values for those that are missing")


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm: str) -> None:
    x = uniform(3, 5)
    x[1] = 0
    order = {"MAX": np.inf, "L1": 1, "L2": 2}[norm]
    wanted = x / np.maximum(np.linalg.norm(x, order, axis=1, keepdims=True), 1e-30)
    check("Normalizer", x, wanted, norm=norm, compiled=norm == "L2")
    check("Normalizer", x[0], wanted[0], norm=norm)
    refused("Normalizer", x, "the norm `L9` is not known; use MAX, L1, L2", norm="L9")
    refused("Normalizer", uniform(2, 2, 2), "the features have 3 dimensions; give rows of them", norm=norm)


def test_label_encoder() -> None:
    x = np.array([[1, 5, -7], [5, 1, 2]])
    given = {"keys_int64s": [1, 5, 1], "values_floats": [0.5, 1.5, 2.5], "default_float": -1.0}
    check("LabelEncoder", x, np.array([[2.5, 1.5, -1], [1.5, 2.5, -1]], F), compiled=True, **given)
    holes = np.array([np.nan, 2.5, 0], F)
    check("LabelEncoder", holes, np.array([7, 8, -1]), keys_floats=[np.nan, 2.5], values_int64s=[7, 8])
    tensors = {
        name: numpy_helper.from_array(np.array(value))
        for name, value in (
            ("keys_tensor", np.array([3, 4], np.int16)),
            ("values_tensor", np.array([1.25, 2.5])),
            ("default_tensor", np.array([9.0])),
        )
    }
    check("LabelEncoder", np.array([4, 0, 3], np.int16), np.array([2.5, 9, 1.25]), opset=4, **tensors)
    refused("LabelEncoder", x, "keys that are texts, or none", keys_strings=["a"], values_int64s=[1])
    refused(
        "LabelEncoder", x, "there are 1 keys and 2 values; give as many of both", keys_int64s=[1], values_int64s=[1, 2]
    )


def test_one_hot_encoder() -> None:
    x = np.array([[2, 7], [5, 2]])
    check("OneHotEncoder", x, (x[..., None] == [2, 5]).astype(F), cats_int64s=[2, 5])
    refused("OneHotEncoder", x, "categories that are texts are not supported; give `cats_int64s`", cats_strings=["a"])
    refused("OneHotEncoder", x, "elements of no category cannot be refused", cats_int64s=[2], zeros=0)


# --- linear models ---------------------------------------------------------------------------------------


def transformed(scores: np.ndarray, name: str) -> np.ndarray:
    power = np.exp(scores - scores.max(1, keepdims=True))
    if name == "SOFTMAX_ZERO":
        power = np.where(scores == 0, 0, power)
    shares = power / power.sum(1, keepdims=True)
    others = {"LOGISTIC": 1 / (1 + np.exp(-scores)), "PROBIT": ndtri(scores), "NONE": scores}
    found: np.ndarray = others.get(name, shares)
    return found


TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]


@pytest.mark.parametrize("transform", [*TRANSFORMS, "PROBIT"])
def test_linear_models(transform: str) -> None:
    x, weights, added = uniform(4, 3), uniform(2, 3, seed=1) / 9, np.array([0.45, 0.55], F)
    scores = x @ weights.T + added
    scores = np.clip(scores, 0.1, 0.9) if transform == "PROBIT" else scores
    x = np.linalg.lstsq(weights, (scores - added).T, rcond=None)[0].T.astype(F) if transform == "PROBIT" else x
    given = {"coefficients": weights.reshape(-1).tolist(), "intercepts": added.tolist(), "post_transform": transform}
    wanted = transformed(scores.astype(np.float64), transform).astype(F)
    check("LinearRegressor", x, wanted, targets=2, opset=1, tolerance=1e-4, **given)
    both = {"Y": np.array([3, 8])[wanted.argmax(1)], "Z": wanted}
    compiled = transform == "SOFTMAX"
    check("LinearClassifier", x, both, classlabels_ints=[3, 8], opset=1, tolerance=1e-4, compiled=compiled, **given)


def test_linear_classifiers_of_two_classes() -> None:
    x, weights = whole(5, 3, low=-2, high=3), [1.0, -2.0, 0.5]
    scores = (x @ np.array(weights))[:, None].astype(F)
    both = np.concatenate((-scores, scores), 1)
    wanted = {"Y": both.argmax(1), "Z": both}
    check("LinearClassifier", x, wanted, classlabels_ints=[0, 1], coefficients=weights, opset=1)
    alone = {"Y": np.where(scores[:, 0] >= 0, 6, 0), "Z": scores}
    check("LinearClassifier", x, alone, classlabels_ints=[6], coefficients=weights, opset=1)
    sure = {"Y": np.where(scores[:, 0] >= 0, 6, 0), "Z": transformed(scores, "LOGISTIC")}
    check("LinearClassifier", x, sure, classlabels_ints=[6], coefficients=weights, post_transform="LOGISTIC", opset=1)


def test_linear_models_refuse() -> None:
    x = uniform(2, 3)
    refused("LinearRegressor", x, "2 coefficients for 3 features", coefficients=[1.0, 2.0])
    given = {"coefficients": [1.0, 2.0, 3.0], "post_transform": "CUBE"}
    refused("LinearRegressor", x, "the transform `CUBE` is not known; use NONE, SOFTMAX, LOGISTIC", **given)
    message = "classes that are texts are not supported; give `classlabels_ints`"
    refused("LinearClassifier", x, message, coefficients=[1.0, 2.0, 3.0], classlabels_strings=["a"])


# --- trees -----------------------------------------------------------------------------------------------

# Nodes of two trees: what is compared, and the nodes that follow; those from 10 on are leaves.
MODES = [0, 1, 6, 3, 5, 4]
FEATURES = [0, 1, 2, 0, 2, 1]
SPLITS = [0.5, -0.25, 0.0, 0.0, 1.0, 2.0]
YES = [1, 10, 11, 14, 15, 10]
NO = [2, 5, 12, 4, 13, 13]
MISSING = [1, 0, 0, 0, 1, 0]
SETS = [1.0, 2.0, float("nan")]
WEIGHTS = [0.5, 1.5, -2.0, 4.0, 8.0, -0.75]
TARGETS = [0, 1, 1, 0, 1, 0]


def ends(row: np.ndarray) -> list[int]:
    found = []
    for root in (0, 3):
        place = root
        while place < 10:
            x, split = row[FEATURES[place]], SPLITS[place]
            holds = [x <= split, x < split, x >= split, x > split, x == split, x != split, x in SETS[:2]][MODES[place]]
            place = (YES if holds or (MISSING[place] and np.isnan(x)) else NO)[place]
        found.append(place - 10)
    return found


def rows() -> np.ndarray:
    x = whole(40, 3, low=-2, high=4).astype(F) / 2
    x[30:33, 0] = x[33:36, 1] = x[36:, 2] = np.nan
    return x


def voted(row: np.ndarray, how: str) -> list[float]:
    votes: list[list[float]] = [[], []]
    for leaf in ends(row):
        votes[TARGETS[leaf]].append(WEIGHTS[leaf])
    most = float(np.finfo(F).max)
    return [
        {"SUM": sum(v), "AVERAGE": sum(v) / 2, "MIN": min(v, default=most), "MAX": max(v, default=-most)}[how]
        for v in votes
    ]


def ensemble(dtype: type = F, **given: Any) -> dict[str, Any]:
    def tensor(values: Sequence[float], type: type) -> Any:
        return numpy_helper.from_array(np.array(values, type))

    def leaf(places: Sequence[int]) -> list[int]:
        return [int(place >= 10) for place in places]

    return {
        "nodes_modes": tensor(MODES, np.uint8), "nodes_featureids": FEATURES, "nodes_splits": tensor(SPLITS, dtype),
        "nodes_truenodeids": [place % 10 for place in YES], "nodes_trueleafs": leaf(YES),
        "nodes_falsenodeids": [place % 10 for place in NO], "nodes_falseleafs": leaf(NO),
        "nodes_missing_value_tracks_true": MISSING, "membership_values": tensor(SETS, dtype),
        "leaf_weights": tensor(WEIGHTS, dtype), "leaf_targetids": TARGETS, "tree_roots": [0, 3], "n_targets": 2,
        **given,
    }  # fmt: skip


@pytest.mark.parametrize("how", ["AVERAGE", "SUM", "MIN", "MAX"])
def test_tree_ensemble(how: str) -> None:
    x = rows()
    number = ["AVERAGE", "SUM", "MIN", "MAX"].index(how)
    wanted = np.array([voted(row, how) for row in x], F)
    check("TreeEnsemble", x, wanted, opset=5, compiled=how == "SUM", **ensemble(aggregate_function=number))
    wide = x.astype(np.float64)
    exact = np.where(abs(wanted) > 1e30, np.sign(wanted) * np.finfo(float).max, wanted.astype(float))
    check("TreeEnsemble", wide, exact, opset=5, **ensemble(np.float64, aggregate_function=number))


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_tree_ensemble_transforms(transform: str) -> None:
    x = rows()
    wanted = transformed(np.array([voted(row, "SUM") for row in x]), transform).astype(F)
    check(
        "TreeEnsemble",
        x,
        wanted,
        opset=5,
        **ensemble(post_transform=["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"].index(transform)),
    )


def test_tree_ensemble_of_one_leaf_and_refused() -> None:
    x = rows()
    leaf: dict[str, Any] = {
        "nodes_truenodeids": [2] * 6,
        "nodes_falsenodeids": [2] * 6,
        "nodes_trueleafs": [1] * 6,
        "nodes_falseleafs": [1] * 6,
    }
    wanted = np.repeat(np.array([[0, -4]], F), len(x), 0)
    check("TreeEnsemble", x, wanted, opset=5, **ensemble(**leaf))
    refused(
        "TreeEnsemble",
        x,
        "a node of a tree leads back to itself",
        opset=5,
        **ensemble(nodes_truenodeids=[0] * 6, nodes_trueleafs=[0] * 6),
    )
    refused(
        "TreeEnsemble",
        x,
        "a node of a tree leads to a node that there is not",
        opset=5,
        **ensemble(nodes_truenodeids=[77] * 6),
    )
    refused(
        "TreeEnsemble",
        x,
        "`post_transform` is 9; it must be a number from 0 to 4",
        opset=5,
        **ensemble(post_transform=9),
    )
    strange = numpy_helper.from_array(np.array([9] * 6, np.uint8))
    refused(
        "TreeEnsemble", x, "the comparison `9` is not known; use BRANCH_LEQ", opset=5, **ensemble(nodes_modes=strange)
    )
    missing = ensemble()
    del missing["nodes_splits"]
    refused("TreeEnsemble", x, "the attribute `nodes_splits` is missing", opset=5, **missing)


def older(kind: str, **given: Any) -> dict[str, Any]:
    """Two trees of one decision each, on features 0 and 1."""
    return {
        "nodes_treeids": [0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2, 0, 1, 2],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
        "nodes_featureids": [0, 0, 0, 1, 0, 0], "nodes_values": [0.5, 0.0, 0.0, 0.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0, 1, 0, 0], "nodes_falsenodeids": [2, 0, 0, 2, 0, 0],
        f"{kind}_treeids": [0, 0, 1, 1, 0], f"{kind}_nodeids": [1, 2, 1, 2, 1], f"{kind}_ids": [0, 1, 0, 1, 1],
        f"{kind}_weights": [1.0, 2.0, 4.0, 8.0, 0.5], **given,
    }  # fmt: skip


def older_scores(x: np.ndarray) -> np.ndarray:
    left, right = x[:, 0] <= 0.5, x[:, 1] > 0
    first = np.where(left, 1, 0) + np.where(right, 4, 0)
    return np.stack((first, np.where(left, 0.5, 2) + np.where(right, 0, 8)), 1)


def test_tree_regressor() -> None:
    x = uniform(9, 2)
    scores = older_scores(x)
    check("TreeEnsembleRegressor", x, scores.astype(F), n_targets=2, compiled=True, **older("target"))
    based = (scores / 2 + [1, 2]).astype(F)
    more = {"aggregate_function": "AVERAGE", "base_values": [1.0, 2.0]}
    check("TreeEnsembleRegressor", x, based, n_targets=2, **older("target", **more))
    refused(
        "TreeEnsembleRegressor",
        x,
        "the aggregate `ALL` is not known; use AVERAGE, SUM",
        **older("target", aggregate_function="ALL"),
    )


def test_tree_classifier() -> None:
    x = uniform(9, 2)
    scores = older_scores(x)
    wanted = {"Y": np.array([5, 9])[scores.argmax(1)], "Z": scores.astype(F)}
    check("TreeEnsembleClassifier", x, wanted, classlabels_int64s=[5, 9], **older("class"))
    one = {"class_ids": [0] * 5, "class_weights": [0.1, 0.2, 0.3, 0.4, 0.2]}
    left, right = x[:, 0] <= 0.5, x[:, 1] > 0
    sure = np.where(left, 0.3, 0.2) + np.where(right, 0.3, 0.4)
    both = np.stack((1 - sure, sure), 1)
    wanted = {"Y": (sure > 0.5).astype(np.int64), "Z": both.astype(F)}
    check("TreeEnsembleClassifier", x, wanted, classlabels_int64s=[0, 1], **older("class", **one))
    signed = transformed(np.stack((-sure, sure), 1), "LOGISTIC").astype(F)
    wanted = {"Y": np.ones(9, np.int64), "Z": signed}
    check(
        "TreeEnsembleClassifier", x, wanted, classlabels_int64s=[1], post_transform="LOGISTIC", **older("class", **one)
    )
    message = "classes that are texts are not supported; give `classlabels_int64s`"
    refused("TreeEnsembleClassifier", x, message, classlabels_strings=["a", "b"], **older("class"))
