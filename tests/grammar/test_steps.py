"""What is parsed by steps looked up ahead is what Lark parses, and the rest is left to Lark."""

from __future__ import annotations

import pytest
from lark.exceptions import LarkError

from tc.grammar.step_tables import kept_steps
from tc.grammar.steps import Steps
from tc.grammar.syntax_builder import Builder, RefusedError
from tc.grammar.tables import parser

TEXT = """# comment
def def(float(for) in, where(N) distinct) -> (exists) { exists(for) max=! in(for) * 2.5 }
def f(float(N,M) A, int32(N) I, bool b) -> (C, D) {
  C(n) +=! A(I(n), m) * 2.5 - (b ? 1 : m % 3) where m in 1:M, !b
  for t in 1:N { D(t, i) = fmax(D(t - 1, i), exp(-A(t, i))) }
}
"""


def kept() -> Steps:
    tables = kept_steps()
    assert tables is not None
    return Steps(tables, Builder())


def test_each_beginning_of_a_text_is_parsed_as_by_lark_or_left_to_it() -> None:
    lark, steps = parser(Builder()), kept()
    parsed = 0
    for end in range(len(TEXT) + 1):
        try:
            expected = lark.parse(TEXT[:end])
        except (LarkError, RefusedError):
            expected = None
        assert steps.parsed(TEXT[:end], 1000) == expected, TEXT[:end]
        parsed += expected is not None
    assert parsed == 4


def test_deep_texts_are_left_to_lark() -> None:
    steps = kept()
    text = f"def f(float(N) A) -> (B) {{ B(i) = {'(' * 20}A(i){')' * 20} }}"
    assert steps.parsed(text, 1000) is not None
    assert steps.parsed(text, 20) is None


def test_what_cannot_be_a_value_is_refused() -> None:
    steps = kept()
    with pytest.raises(RefusedError):
        steps.parsed("def f(float(N) A) -> (B) { B(i) = A(i) + 99999999999999999999999 }", 1000)
