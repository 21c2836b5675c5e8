"""Ensembles of decision trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.onnx.operators.scores import TRANSFORMS, both_classes, labels, post_transformed, rows_of
from tc.graph.onnx.tensors import array_of
from tc.graph.operators.pointwise import cast, pointwise
from tc.graph.operators.trees import COMPARISONS, LEAF, Forest, Node, leaves, voted

# In the order of their numbers; the one after the last asks whether a feature is in a set.
_MODES: Final = tuple(COMPARISONS)
_MEMBER: Final = len(_MODES)
_AGGREGATES: Final = ("AVERAGE", "SUM", "MIN", "MAX")


def _tree_ensemble(operation: Operation) -> Sequence[Value]:
    builder, rows = operation.builder, operation.operand(0)
    rows = cast(builder, rows, ScalarType.FLOAT32) if rows.type.is_half else rows
    forest, first = _forest(operation)
    targets, weights = operation.list("leaf_targetids") or (), _tensor(operation, "leaf_weights")
    how = _named(operation, "aggregate_function", _AGGREGATES, 1)
    shape = (len(forest.nodes), operation.integer("n_targets"))
    votes = np.full(shape, _nothing(how, weights.dtype), weights.dtype)
    votes[first + np.arange(len(targets)), list(targets)] = weights
    found = voted(builder, leaves(builder, rows, forest), votes, how)
    found = post_transformed(operation, found, _named(operation, "post_transform", TRANSFORMS))
    return [cast(builder, found, operation.operand(0).type)]


def _named(operation: Operation, attribute: str, names: Sequence[str], default: int = 0) -> str:
    """What the number that an attribute has is called."""
    code = operation.integer(attribute, default)
    if not 0 <= code < len(names):
        raise operation.error(f"`{attribute}` is {code}; it must be a number from 0 to {len(names) - 1}")
    return names[code]


def _nothing(how: str, dtype: np.dtype) -> float:
    """What a leaf says of targets that it does not vote for."""
    bounds = np.finfo(dtype)
    return {"MIN": float(bounds.max), "MAX": float(bounds.min)}.get(how, 0.0)


def _tensor(operation: Operation, name: str) -> np.ndarray:
    """An attribute that is a tensor of numbers; those of fewer bits as float32."""
    if name not in operation.attributes:
        raise operation.error(f"the attribute `{name}` is missing")
    found = array_of(operation.attributes[name].t, None, operation.builder.origin).reshape(-1)
    return found if found.dtype == np.float64 else found.astype(np.float32)


def _forest(operation: Operation) -> tuple[Forest, int]:
    """The trees, and the place of the first leaf: the leaves come after the nodes that compare.

    A node that asks for a set becomes a chain of nodes, one for each member.
    """

    def attribute(name: str, default: int = 0) -> Sequence[int]:
        return operation.list(f"nodes_{name}") or (default,) * len(codes)

    codes, splits = [int(code) for code in _tensor(operation, "nodes_modes")], _tensor(operation, "nodes_splits")
    first, sets = len(codes), _sets(operation)
    nodes = []
    for place, code in enumerate(codes):
        yes, no = (
            attribute(f"{kind}nodeids")[place] + (first if attribute(f"{kind}leafs")[place] else 0)
            for kind in ("true", "false")
        )
        mode = _MODES[code] if 0 <= code < _MEMBER else "BRANCH_EQ" if code == _MEMBER else str(code)
        missing = bool(attribute("missing_value_tracks_true")[place])
        nodes.append(Node(mode, attribute("featureids")[place], float(splits[place]), yes, no, missing))
    ends = range(first, first + len(operation.list("leaf_targetids") or ()))
    nodes += [Node(LEAF, 0, 0.0, place, place) for place in ends]
    for place in (place for place, code in enumerate(codes) if code == _MEMBER):
        node, (value, *others) = nodes[place], next(sets, None) or [np.nan]
        no = node.no
        for other in others:
            nodes.append(Node(node.mode, node.feature, other, node.yes, no, node.missing))
            no = len(nodes) - 1
        nodes[place] = Node(node.mode, node.feature, value, node.yes, no, node.missing)
    return Forest(tuple(nodes), operation.list("tree_roots") or ()), first


def _sets(operation: Operation) -> Iterator[list[float]]:
    """The sets in the order of the nodes that ask for them; NaN ends each."""
    found: list[float] = []
    values = _tensor(operation, "membership_values") if "membership_values" in operation.attributes else ()
    for value in map(float, values):
        if np.isnan(value):
            yield found
            found = []
        else:
            found.append(value)


def _older_forest(operation: Operation, kind: str) -> tuple[Forest, np.ndarray, list[int]]:
    """Trees as versions before 5 have them; the numbers of the votes, and the nodes that they belong to."""

    def attribute(name: str) -> Sequence[int]:
        return operation.list(name) or ()

    keys = list(zip(attribute("nodes_treeids"), attribute("nodes_nodeids"), strict=True))
    places = {key: place for place, key in enumerate(keys)}
    missing = attribute("nodes_missing_value_tracks_true") or (0,) * len(keys)
    parts = (operation.texts("nodes_modes"), attribute("nodes_featureids"), _numbers(operation, "nodes_values"))
    children = zip(attribute("nodes_truenodeids"), attribute("nodes_falsenodeids"), strict=True)
    nodes: list[Node] = []
    for (tree, _), mode, feature, split, (yes, no), gone in zip(keys, *parts, children, missing, strict=True):
        own = len(nodes)
        if mode == LEAF:
            nodes.append(Node(LEAF, 0, 0.0, own, own))
        else:
            to = (places.get((tree, yes), -1), places.get((tree, no), -1))
            nodes.append(Node(mode, feature, float(split), *to, bool(gone)))
    roots: dict[int, int] = {}
    for place, (tree, _) in enumerate(keys):
        roots.setdefault(tree, place)
    voters = zip(attribute(f"{kind}_treeids"), attribute(f"{kind}_nodeids"), strict=True)
    return (
        Forest(tuple(nodes), tuple(roots.values())),
        _numbers(operation, f"{kind}_weights"),
        [places[key] for key in voters],
    )


def _numbers(operation: Operation, name: str) -> np.ndarray:
    """An attribute that is a list of floats, or a tensor, which may be of float64."""
    if f"{name}_as_tensor" in operation.attributes:
        return _tensor(operation, f"{name}_as_tensor")
    return np.array(operation.numbers(name) or (), np.float32)


def _votes(
    operation: Operation, forest: Forest, weights: np.ndarray, voters: Sequence[int], ids: str, how: str, width: int
) -> np.ndarray:
    """What each node says of each target; several votes of one node count as one does by one."""
    targets = list(operation.list(ids) or ())
    votes = np.full((len(forest.nodes), width), _nothing(how, weights.dtype), weights.dtype)
    {"MIN": np.minimum, "MAX": np.maximum}.get(how, np.add).at(votes, (list(voters), targets), weights)
    return votes


def _based(operation: Operation, scores: Value) -> Value:
    """The scores with the base values."""
    base = _numbers(operation, "base_values")
    if not base.size:
        return scores
    added = operation.builder.constant(base, "base")
    return pointwise(operation.builder, "based", "{0} + {1}", [scores, added])


def _tree_regressor(operation: Operation) -> Sequence[Value]:
    builder, rows, how = operation.builder, rows_of(operation), operation.text("aggregate_function", "SUM")
    if how not in _AGGREGATES:
        raise operation.error(f"the aggregate `{how}` is not known; use {', '.join(_AGGREGATES)}")
    forest, weights, voters = _older_forest(operation, "target")
    votes = _votes(operation, forest, weights, voters, "target_ids", how, operation.integer("n_targets"))
    found = _based(operation, voted(builder, leaves(builder, rows, forest), votes, how))
    found = post_transformed(operation, found, operation.text("post_transform", "NONE"))
    return [cast(builder, found, ScalarType.FLOAT32)]


def _tree_classifier(operation: Operation) -> Sequence[Value]:
    builder, rows, classes = operation.builder, rows_of(operation), operation.list("classlabels_int64s")
    if classes is None:
        raise operation.error("classes that are texts are not supported; give `classlabels_int64s`")
    transform = operation.text("post_transform", "NONE")
    forest, weights, voters = _older_forest(operation, "class")
    votes = _votes(operation, forest, weights, voters, "class_ids", "SUM", len(classes))
    scores = _based(operation, voted(builder, leaves(builder, rows, forest), votes, "SUM"))
    voted_for = sorted(set(operation.list("class_ids") or ()))
    if len(voted_for) == 1 and len(classes) <= 2:  # the votes are those for the second class
        only = builder.slice(scores, (0, voted_for[0]), (1, 1), (scores.shape[0], 1))
        scores = both_classes(operation, only, "1 - {x}" if transform in ("NONE", "PROBIT") else "-{x}")
        classes = (0, *classes) if len(classes) == 1 else classes
    scores = post_transformed(operation, scores, transform)
    return [labels(operation, scores, classes), cast(builder, scores, ScalarType.FLOAT32)]


RULES: Final[dict[str, Rule]] = {
    "TreeEnsemble": _tree_ensemble,
    "TreeEnsembleClassifier": _tree_classifier,
    "TreeEnsembleRegressor": _tree_regressor,
}
