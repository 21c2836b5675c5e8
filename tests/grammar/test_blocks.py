"""Blocks of statements, ``for t in 0:T { ... }``: where they may stand, and what `for` means elsewhere."""

from __future__ import annotations

import pytest

from tc.base.errors import ParseError
from tc.grammar.parser import parse
from tc.grammar.printer import print_text
from tc.grammar.syntax import Block
from tc.grammar.syntax_builder import MAXIMUM_BLOCKS
from tests.grammar.nodes import NOWHERE, apply, assign, name, number, parse_statements

TEXT = """\
def f(float(N) a) -> (c) {
    c(0) = a(0)
    for t in 1:N {
        c(t) = c(t - 1)
        for s in 0:t {
            b(s) += a(s) where s < 3;
            (x, y) = g(a)
        }
        b(t) = 1;
        in = 2
    }
    d = b
}
"""


def test_a_block_holds_statements_and_blocks() -> None:
    assert parse_statements("for t in 0:N { a = 1 for s in t:3 { b = 2; } }") == (
        Block(
            "t",
            number(0),
            name("N"),
            (
                assign("a", None, number(1)),
                Block("s", name("t"), number(3), (assign("b", None, number(2)),), NOWHERE, NOWHERE),
            ),
            NOWHERE,
            NOWHERE,
        ),
    )


def test_a_text_with_blocks_prints_as_it_is_written() -> None:
    assert print_text(parse(TEXT)) == TEXT


def test_the_span_of_a_block_is_all_of_it() -> None:
    (block,) = (s for s in parse(TEXT).definitions[0].statements if isinstance(s, Block))
    assert TEXT[block.span.start : block.span.end].startswith("for t in 1:N {")
    assert TEXT[block.span.start : block.span.end].endswith("in = 2\n    }")
    assert TEXT[block.iterator_span.start : block.iterator_span.end] == "t"


@pytest.mark.parametrize("gap", [" ", "\n", " # for\n"])
def test_for_is_a_keyword_where_a_statement_may_begin_and_a_name_follows(gap: str) -> None:
    assert [type(s).__name__ for s in parse_statements(f"c = for{gap}for{gap}for in for:for {{ for = for }}")] == [
        "Assign",
        "Block",
    ]
    assert parse_statements(f"for(for) = for(for){gap}for += 1") == (
        assign("for", (name("for"),), apply("for", name("for"))),
        *parse_statements("for += 1"),
    )


@pytest.mark.parametrize(
    "text",
    ["for t in 0:3 { }", "for t { a = 1 }", "for t in 3 { a = 1 }", "for t in 0:3 a = 1", "for t in 0:3 { a = 1"],
)
def test_a_block_without_a_range_or_statements_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_statements(text)


def test_blocks_nest_only_so_deep() -> None:
    def nested(count: int) -> str:
        heads = " ".join(f"for i{depth} in 0:2 {{" for depth in range(count))
        return f"def f(float(N) a) -> (c) {{ {heads} c = 1 {'}' * count} }}"

    assert print_text(parse(nested(MAXIMUM_BLOCKS)))
    with pytest.raises(ParseError, match=f"more than {MAXIMUM_BLOCKS} blocks stand inside each other"):
        parse(nested(MAXIMUM_BLOCKS + 1))
    with pytest.raises(ParseError):
        parse(nested(1000))
