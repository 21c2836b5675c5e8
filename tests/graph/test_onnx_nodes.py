"""ONNX's own tests of operators: all of them by the oracle, some compiled; what is left out has a reason.

The types, random numbers, sequences and images that the language lacks are refused before anything runs.
"""

from __future__ import annotations

import functools
import re
import warnings
from typing import Any

import numpy as np
import pytest

import tc
import tc.graph

PARTS = 16
# Why tests are left out: what they are refused for, or how their results differ.
REFUSED = {
    "types": r"has the type (string|u?int[24]|float4_e2m1|float8_e8m0|float8_e\dm\d\w*fnuz|complex\d+), which is not",
    "sequences": r"is an? (sequence|optional), and must be a tensor|`(Sequence|Optional|SplitTo)",
    "sequences as constants": r"\((SequenceConstruct|SequenceEmpty|Optional)\): the operator has no rule",
    "random numbers": r"RandomUniformLike|draws random numbers",
    "images in files": r"`ImageDecoder`",
    "texts": r"`(StringNormalizer|StringSplit|StringConcat|RegexFullMatch)`|constants that are texts",
}
# NumPy rounds a sum of halves after each term, which is further from the exact one than our bound: the expected values
# are off by 1.2 to 1.65 ulps, ours by 0.5.
ROUNDED = {
    "test_attention_4d_causal_bf16",
    "test_attention_4d_padded_kv_bf16",
    "test_attention_4d_causal_padded_kv_bf16",
    "test_attention_4d_attn_mask_causal_bf16",
    "test_attention_3d_causal_bf16",
    "test_attention_4d_causal_fp16",
}
# What NumPy's transform gives for 0 is 2e-7, where 45 is the largest: ours is 0.
NOISY = {"test_dft_inverse", "test_dft_inverse_opset19"}


@functools.cache
def cases() -> list[Any]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(collect_testcases(None))


def array_of(value: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def reason(message: str) -> str | None:
    return next((name for name, pattern in REFUSED.items() if re.search(pattern, message)), None)


def run(case: Any, *, compiled: bool) -> str | None:
    """Runs a test; the reason for which it is left out, or None."""
    try:
        model = tc.graph.load(case.model)
        results = [_results(model, inputs, compiled=compiled) for inputs, _ in case.data_sets]
    except tc.GraphError as error:
        found = reason(str(error))
        if found is None:
            raise
        return found
    for values, (_, outputs) in zip(results, case.data_sets, strict=True):
        for name, value in zip(model.outputs, outputs, strict=True):
            compare(case, values[name], array_of(value))
    return None


def _results(model: tc.graph.Model, inputs: Any, *, compiled: bool) -> dict[str, np.ndarray]:
    given = {declared.name: array_of(x) for declared, x in zip(model.inputs, inputs, strict=False)}
    return (model.run if compiled else model.reference)(model.outputs, given)


def compare(case: Any, found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.dtype.name == wanted.dtype.name, case.name
    assert found.shape == wanted.shape, case.name
    if found.dtype.kind not in "fV":
        np.testing.assert_array_equal(found, wanted, case.name)
        return
    first, second = (array.astype(np.float64) for array in (found, wanted))
    relative, absolute = case.rtol, case.atol
    if case.name.removesuffix("_expanded") in ROUNDED:
        relative = absolute = 2e-2
    if case.name in NOISY:
        absolute = 1e-6
    np.testing.assert_allclose(first, second, rtol=relative, atol=absolute, err_msg=case.name)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("part", range(PARTS))
def test_all_by_the_oracle(part: int) -> None:
    for case in cases()[part::PARTS]:
        run(case, compiled=False)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("part", range(PARTS))
def test_some_compiled(part: int) -> None:
    for case in cases()[part * 17 :: 16 * 29]:
        run(case, compiled=True)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_all_compiled(part: int) -> None:
    for case in cases()[part::PARTS]:
        run(case, compiled=True)


def test_every_module_of_rules_is_registered() -> None:
    """A rule that no table has is never used."""
    import importlib
    import pkgutil

    from tc.graph.onnx import operators
    from tc.graph.onnx.operators import neural
    from tc.graph.onnx.rules import RULES

    known = set(map(id, RULES.values()))
    for package in (operators, neural):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            found = getattr(importlib.import_module(module.name), "RULES", {})
            assert known.issuperset(map(id, found.values())), module.name


def test_as_many_run_as_the_documents_say() -> None:
    """Loading alone says what is refused; the exact count is in the documents."""
    refused = 0
    for case in cases():
        try:
            tc.graph.load(case.model)
        except tc.GraphError:
            refused += 1
    assert len(cases()) - refused >= 1650
