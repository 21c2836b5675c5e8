"""The original's `<=>`: what stands before it is computed, the library call behind it is ignored with a warning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tc
from tc.base.errors import ParseError
from tc.grammar import syntax
from tc.grammar.parser import parse
from tc.grammar.printer import print_definition
from tests.language.support import lower

MATMUL = "def f(float(M,K) A, float(K,N) B) -> (O) {\n  O(i,j) +=! A(i,k) * B(k,j) <=> matmul(A(i,k), B(k,j))\n}"
SIGMOID = "def f(float(M,N) A) -> (O) { O(i,j) = 1 / (1 + exp(-A(i,j))) <=> sigmoid(A(i,j)) where i in 0:M }"


def test_the_statement_is_computed_and_a_warning_says_so() -> None:
    a, b = np.ones((3, 5), np.float32), np.ones((5, 2), np.float32)
    with pytest.warns(tc.LibraryCallWarning) as caught:
        f = tc.define(MATMUL)
    assert np.asarray(f(a, b)).tolist() == [[5, 5]] * 3
    (warning,) = caught
    assert warning.filename == __file__
    assert str(warning.message) == (
        "2:34: the library call `matmul` is ignored: the statement before `<=>` is what is computed\n"
        "      O(i,j) +=! A(i,k) * B(k,j) <=> matmul(A(i,k), B(k,j))\n"
        "                                     ^^^^^^^^^^^^^^^^^^^^^^\n"
        "    hint: remove `<=> ...`, or leave it: it changes nothing"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tc.define(str(f["f"]))


@pytest.mark.parametrize("text", [MATMUL, SIGMOID])
def test_it_means_nothing_and_is_printed(text: str) -> None:
    (definition,) = parse(text).definitions
    (statement,) = definition.statements
    assert isinstance(statement, syntax.Assign)
    assert statement.library is not None
    printed = print_definition(definition)
    assert "<=>" in printed
    assert parse(printed).definitions == (definition,)
    start = text.index("<=>")
    end = text.find("where", start)
    assert lower(text) == lower(text[:start] + (text[end:] if end >= 0 else "}"))


@pytest.mark.parametrize("rest", ["<=> matmul", "<=> 3", "<=>", "<=> g(A(i,k)) <=> h(A(i,k))"])
def test_what_is_no_call_is_refused(rest: str) -> None:
    with pytest.raises(ParseError):
        parse(f"def f(float(M,K) A) -> (O) {{ O(i,k) = A(i,k) {rest} }}")
