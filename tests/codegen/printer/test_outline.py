"""Nests of a sequence with register tiles are functions of their own, with what they mention as parameters."""

from __future__ import annotations

import pytest

import tc
from tests.translated import translated

TWICE = """
def twice(float(M,K) A, int32(K) I, float(K,K) B, float(K,N) D) -> (C) {
    T(m,j) +=! A(m,k) * B(I(k),j)
    C(m,n) +=! T(m,j) * D(j,n)
}
"""
SHAPES = ((256, 64), tc.ArraySpec((64,), tc.ScalarType.INT32), (64, 64), (64, 64))
TARGET = "cpu:x86-64-v4"


def nests(text: str) -> list[str]:
    """The functions of nests, from their names on."""
    starts = [at for at in range(len(text)) if text.startswith("void tc_nest_", at)]
    return [text[start : text.index("\n}", start)] for start in starts]


def test_two_products_in_one_loop_are_two_functions() -> None:
    text = translated(tc.define(TWICE).twice, *SHAPES, target=TARGET).source.text
    found = nests(text)
    assert len(found) == 2
    for nest in found:
        header, body = nest.split(" {", 1)
        name, _, parameters = header.partition("(")
        names = [parameter.split()[-1].lstrip("*") for parameter in parameters.rstrip(")").split(",")]
        assert f"{name.split()[-1]}({', '.join(names)});" in text
        assert all(name in body for name in names)
    # Where indices are looked at, a fault is noted at the end of the function that looks.
    assert [nest.count("if (faulted)") for nest in found] == [nest.count("faulted = 0") for nest in found]
    assert sum(nest.count("if (faulted)") for nest in found) == text.count("if (faulted)") == 1


def test_one_product_stays_where_it_is() -> None:
    mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
    text = translated(mm, (512, 512), (512, 512), target=TARGET).source.text
    assert "t_packed" in text
    assert not nests(text)


@pytest.mark.parametrize("target", ["emulator", "opencl"])
def test_other_languages_keep_nests_where_they_are(target: str) -> None:
    text = translated(tc.define(TWICE).twice, *SHAPES, target=target).source.text
    assert "t_A" in text
    assert not nests(text)
