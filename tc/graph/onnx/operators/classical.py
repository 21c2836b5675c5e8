"""Operators of classical machine learning, of the domain ai.onnx.ml; those on texts are not supported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tc.base.types import ScalarType
from tc.graph.ir.sizes import elements, number
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.onnx.operators import trees
from tc.graph.onnx.operators.scores import both_classes, labels, post_transformed, rows_of
from tc.graph.onnx.tensors import array_of
from tc.graph.operators.gathers import gathered
from tc.graph.operators.pointwise import cast, pointwise
from tc.graph.operators.texts import access, declared, definition, iterators, literal, parameter

_FLOAT: Final = ScalarType.FLOAT32


def _extract(operation: Operation) -> Sequence[Value]:
    builder, operand, indices = operation.builder, operation.operand(0), operation.operand(1)
    if len(operand.shape) == 1:
        operand = builder.reshape(operand, (1, *operand.shape))
    flat = builder.reshape(indices, (elements(indices.shape),))
    return [gathered(builder, operand, flat, len(operand.shape) - 1, "extract")]


def _binarizer(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    bound = literal(operation.number("threshold", 0.0), _FLOAT)
    return [pointwise(operation.builder, "binarizer", f"{{0}} > {bound}", [operand], operand.type)]


def _scaler(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    operands, formula = [operand], "{0}"
    for name, operator in (("offset", "-"), ("scale", "*")):
        given = operation.numbers(name)
        if given:
            operands.append(operation.builder.constant(np.array(given, np.float32), name))
            formula = f"({formula} {operator} {{{len(operands) - 1}}})"
    return [pointwise(operation.builder, "scaler", formula, operands, _FLOAT)]


def _normalizer(operation: Operation) -> Sequence[Value]:
    rows, norm = rows_of(operation), operation.text("norm", "MAX")
    sums = {"MAX": "S(b) max=! abs(X(b, k))", "L1": "S(b) +=! abs(X(b, k))", "L2": "S(b) +=! X(b, k) * X(b, k)"}
    if norm not in sums:
        raise operation.error(f"the norm `{norm}` is not known; use {', '.join(sums)}")
    size = "sqrt(S(b))" if norm == "L2" else "S(b)"
    statements = [sums[norm], f"Y(b, k) = float32(X(b, k) / max({size}, 1e-30))"]
    text = definition("normalizer", [parameter(rows.type, ["B", "K"], "X")], ["Y"], statements)
    return [operation.builder.reshape(operation.one(text, rows), operation.operand(0).shape)]


def _label_encoder(operation: Operation) -> Sequence[Value]:
    builder, operand = operation.builder, operation.operand(0)
    keys, values = _entries(operation, "keys"), _entries(operation, "values")
    if keys.shape != values.shape or keys.size == 0:
        raise operation.error(
            f"there are {keys.size} keys and {values.size} values; give as many of both, one at least"
        )
    type = ScalarType(values.dtype.name)
    if "default_tensor" in operation.attributes:
        default = float(array_of(operation.attributes["default_tensor"].t, None, builder.origin).reshape(-1)[0])
    else:
        default = (
            operation.number("default_float", -0.0) if type.is_floating else operation.integer("default_int64", -1)
        )
    names = iterators(len(operand.shape))
    x, found = access("X", names), access("J", names)
    same = f"{x} == K(n)" + (f" || {x} != {x} && K(n) != K(n)" if keys.dtype.kind == "f" else "")
    statements = [
        f"{found} max=! {same} ? int32(n) : -1",
        f"{access('Y', names)} = {found} >= 0 ? V(max({found}, 0)) : {literal(default, type)}",
    ]
    held = [builder.constant(keys, "keys"), builder.constant(values, "values")]
    parameters = [declared(operand, "X"), *(parameter(v.type, ["N"], n) for v, n in zip(held, "KV", strict=True))]
    return [operation.one(definition("label_encoder", parameters, ["Y"], statements), operand, *held)]


def _entries(operation: Operation, name: str) -> np.ndarray:
    """The keys or the values of an encoder, whichever attribute has them."""
    numbers, integers = operation.numbers(f"{name}_floats"), operation.list(f"{name}_int64s")
    if numbers is not None:
        return np.array(numbers, np.float32)
    if integers is not None:
        return np.array(integers, np.int64)
    if f"{name}_tensor" in operation.attributes:
        return array_of(operation.attributes[f"{name}_tensor"].t, None, operation.builder.origin).reshape(-1)
    raise operation.error(f"{name} that are texts, or none, are not supported; give `{name}_int64s` or `{name}_floats`")


def _linear(operation: Operation) -> Value:
    """Products of the rows with each row of coefficients, and intercepts."""
    rows, builder = rows_of(operation), operation.builder
    features = number(rows.shape[1], "the number of features")
    dtype = np.float64 if rows.type is ScalarType.FLOAT64 else np.float32
    coefficients = np.array(operation.numbers("coefficients") or (), dtype)
    if features == 0 or coefficients.size % features:
        raise operation.error(f"{coefficients.size} coefficients for {features} features")
    weights = builder.constant(coefficients.reshape(-1, features), "coefficients")
    given = operation.numbers("intercepts") or (0.0,) * (coefficients.size // features)
    added = builder.constant(np.array(given, dtype), "intercepts")
    text = definition(
        "linear",
        [
            parameter(rows.type, ["B", "F"], "X"),
            parameter(rows.type, ["K", "F"], "W"),
            parameter(rows.type, ["K"], "C"),
        ],
        ["Y"],
        ["S(b, k) +=! X(b, f) * W(k, f)", "Y(b, k) = S(b, k) + C(k)"],
    )
    return operation.one(text, rows, weights, added)


def _linear_regressor(operation: Operation) -> Sequence[Value]:
    found = post_transformed(operation, _linear(operation), operation.text("post_transform", "NONE"))
    return [cast(operation.builder, found, _FLOAT)]


def _linear_classifier(operation: Operation) -> Sequence[Value]:
    classes, transform = operation.list("classlabels_ints"), operation.text("post_transform", "NONE")
    if classes is None:
        raise operation.error("classes that are texts are not supported; give `classlabels_ints`")
    scores = _linear(operation)
    if scores.shape[1] == 1 and len(classes) == 2:
        scores = both_classes(operation, scores, "-{x}")
    scores = post_transformed(operation, scores, transform)
    if scores.shape[1] == 1:
        bound = 0 if transform == "NONE" else 0.5
        chosen = pointwise(
            operation.builder, "label", f"{{0}} >= {bound} ? {classes[0]} : 0", [scores], ScalarType.INT64
        )
        label = operation.builder.reshape(chosen, (scores.shape[0],))
    else:
        label = labels(operation, scores, classes)
    return [label, cast(operation.builder, scores, _FLOAT)]


def _one_hot_encoder(operation: Operation) -> Sequence[Value]:
    operand, categories = operation.operand(0), operation.list("cats_int64s")
    if categories is None:
        raise operation.error("categories that are texts are not supported; give `cats_int64s`")
    if not operation.integer("zeros", 1):
        raise operation.error("elements of no category cannot be refused; give `zeros` the value 1")
    names = iterators(len(operand.shape))
    held = operation.builder.constant(np.array(categories, np.int64), "categories")
    statement = f"{access('Y', [*names, 'k'])} = float32(int64({access('X', names)}) == C(k))"
    parameters = [declared(operand, "X"), parameter(held.type, ["K"], "C")]
    return [operation.one(definition("one_hot_encoder", parameters, ["Y"], [statement]), operand, held)]


def _imputer(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    floating = operand.type.is_floating
    given = operation.numbers("imputed_value_floats") if floating else operation.list("imputed_value_int64s")
    if not given:
        raise operation.error("there are no values for those that are missing")
    missing = (
        operation.number("replaced_value_float", 0.0) if floating else operation.integer("replaced_value_int64", 0)
    )
    gone = "{0} != {0}" if missing != missing else f"{{0}} == {literal(missing, operand.type)}"
    values = operation.builder.constant(np.array(given, np.dtype(str(operand.type))), "imputed")
    return [pointwise(operation.builder, "imputer", f"{gone} ? {{1}} : {{0}}", [operand, values], operand.type)]


RULES: Final[dict[str, Rule]] = {
    "ArrayFeatureExtractor": _extract,
    "Binarizer": _binarizer,
    "Imputer": _imputer,
    "LabelEncoder": _label_encoder,
    "LinearClassifier": _linear_classifier,
    "LinearRegressor": _linear_regressor,
    "Normalizer": _normalizer,
    "OneHotEncoder": _one_hot_encoder,
    "Scaler": _scaler,
    **trees.RULES,
}
