"""Deep, long and senseless texts end in a ParseError, and never in a crash."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import TestCase

import lark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tc.grammar.parser
from tc.base.errors import ParseError
from tc.grammar.parser import parse
from tc.grammar.printer import print_text
from tc.grammar.syntax_builder import MAXIMUM_DEPTH
from tests.counting import calls
from tests.turns import every

MEGABYTE = 1_000_000
DEFINITION = "def f(float(N) a) -> (c) { c(i) = "
MATMUL = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }"


def nested(levels: int, opening: str, inner: str, closing: str) -> str:
    return DEFINITION + opening * levels + inner + closing * levels + " }"


# What to write ``levels`` times before and behind ``a`` for an expression one level deeper each time.
SHAPES = [
    ("(", ")"),
    ("-", ""),
    ("!", ""),
    ("f(", ")"),
    ("f(b, c, ", ", d)"),
    ("b ? c : ", ""),
    ("b ? ", " : c"),
    ("b + (", ")"),
    ("", " + b"),
    ("", " * b"),
    ("", " < b"),
    ("", " || b"),
]


@pytest.mark.parametrize(("opening", "closing"), SHAPES)
def test_the_deepest_expressions_survive_recursive_passes(opening: str, closing: str) -> None:
    doubled = opening == "b + (" or closing == " < b"  # printed with parentheses
    levels = (MAXIMUM_DEPTH - 1) // (2 if doubled else 1)
    text = parse(nested(levels, opening, "a", closing))
    assert parse(print_text(text)) == text
    assert hash(text) == hash(parse(print_text(text)))
    assert repr(text).startswith("Text(")


@pytest.mark.parametrize("levels", [MAXIMUM_DEPTH, 2_000, 10_000])
@pytest.mark.parametrize(("opening", "closing"), SHAPES)
def test_deeper_expressions_are_refused(opening: str, closing: str, levels: int) -> None:
    with pytest.raises(ParseError, match=f"more than {MAXIMUM_DEPTH} levels of operators and parentheses"):
        parse(nested(levels, opening, "a", closing))


@pytest.mark.parametrize(
    "context", ["c(@) = a", "c = f(@)", "(c) = f(@)", "c = a where x = @", "c = a where i in 0:@", "c = a where @ < i"]
)
def test_depth_is_bounded_everywhere(context: str) -> None:
    deepest = "(" * (MAXIMUM_DEPTH - 2) + "a" + ")" * (MAXIMUM_DEPTH - 2)
    parse("def f() -> (c) { " + context.replace("@", deepest) + " }")
    with pytest.raises(ParseError, match="levels of operators"):
        parse("def f() -> (c) { " + context.replace("@", f"(({deepest}))") + " }")


@pytest.mark.parametrize(
    "text",
    every(
        2,
        [
            "(" * MEGABYTE,
            "\0" * MEGABYTE,
            "\u2192" * MEGABYTE,
            "\ud800" * MEGABYTE,
            "x" * MEGABYTE,
            "9" * MEGABYTE,
            " " * MEGABYTE,
            "#" * MEGABYTE,
            "def " * (MEGABYTE // 4),
            "def f(" + "float a, " * (MEGABYTE // 9),
            DEFINITION + "(" * MEGABYTE,
            DEFINITION + "-" * MEGABYTE,
            DEFINITION + "f(a," * (MEGABYTE // 4),
            DEFINITION + "a ? " * (MEGABYTE // 4),
            DEFINITION + "a + " * (MEGABYTE // 4),
            DEFINITION + "9" * MEGABYTE,
            DEFINITION + "." * MEGABYTE,
            DEFINITION + "x" * MEGABYTE,
            DEFINITION + "a where " * (MEGABYTE // 8),
            DEFINITION + "a where (" * (MEGABYTE // 9),
            DEFINITION + "a where " + "exists " * (MEGABYTE // 7),
            DEFINITION + "a where i in (" + "x" * MEGABYTE,
            DEFINITION + "a where " + "# in\n" * (MEGABYTE // 5),
        ],
    ),
    ids=lambda text: ascii(text[:60]),
)
def test_a_megabyte_of_nonsense_is_refused(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("seed", range(3))
def test_a_megabyte_of_random_characters_is_refused(seed: int) -> None:
    noise = random.Random(seed).randbytes(MEGABYTE).decode("latin-1")
    for text in (noise, DEFINITION + noise, DEFINITION + "a where " + noise):
        with pytest.raises(ParseError):
            parse(text)


_TOKENS = "def f ( ) -> { } , ; : ? = += min= max=! + - * / % < <= == != && || ! . 0 1.5 x where in exists # \n ["


@given(st.lists(st.sampled_from(_TOKENS.split(" ")), max_size=12).map(" ".join) | st.text(max_size=12))
@settings(max_examples=150)
def test_random_bodies_parse_or_are_refused(body: str) -> None:
    text = f"def f() -> (c) {{ c = a {body} }}"
    try:
        parsed = parse(text)
    except ParseError:
        return
    assert parse(print_text(parsed)) == parsed


def test_what_statements_cost_grows_with_their_number_only() -> None:
    def parsed(count: int) -> Callable[[], object]:
        body = "\n".join(f"b{k}(i) = max(a(i) * {k}, 0) + b{k}(i) / 2.5 where i in 0:{k}" for k in range(count))
        text = f"def f(float(N) a) -> (b) {{ {body} }}"
        return lambda: parse(text)

    parse(MATMUL)
    few, many = calls(parsed(100)), calls(parsed(400))
    assert few < many < 4.2 * few


def test_a_short_text_takes_few_calls() -> None:
    parse(MATMUL)
    assert calls(lambda: parse(MATMUL)) < 4_000  # 2,348 with Lark 1.2


def test_many_threads_parse_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(parse, [MATMUL] * 64))) == 1


def test_the_only_conflict_is_that_of_a_name_and_a_parenthesis() -> None:
    grammar = Path(tc.grammar.parser.__file__).with_name("tc.lark").read_text(encoding="utf-8")
    with TestCase().assertLogs(lark.logger, logging.DEBUG) as logged:
        lark.Lark(grammar, parser="lalr", debug=True)
    messages = [record.getMessage() for record in logged.records]
    conflicts = {message for message in messages if "onflict" in message}
    assert conflicts == {"Shift/Reduce conflict for terminal LPAR: (resolving as shift)"}
    assert {message for message in messages if message.startswith(" * ")} == {" * <atom : NAME>"}
