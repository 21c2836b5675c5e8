"""Operands of which each element is read once are read in the order in which they lie in memory."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tests.translated import translated

PRODUCT = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
VECTOR = tc.define("def vm(float(K) a, float(K,N) B) -> (c) { c(n) +=! a(k) * B(k,n) }").vm
TARGET = "cpu:x86-64-v3"


def steps(source: str) -> list[int]:
    """How far apart in ``B`` two iterations of the loops around a product are, outermost first."""
    (read,) = set(re.findall(r"t_B\[([^\]]*)\]", source))
    factors = {name: int(factor or 1) for factor, name in re.findall(r"(?:(\d+) \* )?(c\d+)", read)}
    return [factors[name] for name in sorted(factors)]


def test_one_row_of_a_product_is_a_product_with_a_vector() -> None:
    one = translated(PRODUCT, (1, 1024), (1024, 2048), target=TARGET).source.text
    vector = translated(VECTOR, (1024,), (1024, 2048), target=TARGET).source.text
    assert steps(one) == steps(vector)
    assert steps(one)[0] > 2048, "rows of B are the outermost loop"


def test_several_rows_keep_their_sums_in_registers() -> None:
    assert "float32x8 t_tile" in translated(PRODUCT, (2, 1024), (1024, 2048), target=TARGET).source.text


@pytest.mark.parametrize("columns", [513, 2050])
def test_results_are_those_of_the_oracle(columns: int) -> None:
    rng = np.random.default_rng(columns)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((1, 777), (777, columns))]
    assert compare(PRODUCT.oracle(*arrays)["C"], np.asarray(PRODUCT(*arrays, target="cpu"))).ok
