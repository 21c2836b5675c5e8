"""The tables of the parser that are kept beside the grammar."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lark import Lark
from lark.exceptions import UnexpectedInput

from tc.base.errors import ParseError
from tc.grammar import by_lark, step_tables, tables
from tc.grammar import parser as parsing
from tc.grammar.step_tables import GRAMMAR, kept_steps, made_for
from tc.grammar.syntax_builder import Builder


def test_the_tables_belong_to_the_grammar(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        tables.TABLES.write_text(tables.tables(), encoding="utf-8")
    kept = re.search(r'"lark ([^,]*), (grammar \w*)"', tables.TABLES.read_text(encoding="utf-8"))
    assert kept is not None
    assert kept[2] == made_for(GRAMMAR.read_bytes()), "the grammar has changed: run pytest --update-golden"


def test_the_steps_are_those_of_the_grammar(request: pytest.FixtureRequest) -> None:
    found = tables.steps_of(tables.built(None))
    if request.config.getoption("--update-golden"):
        step_tables.STEPS.write_text(step_tables.as_json(found), encoding="utf-8")
    kept = kept_steps()
    assert kept is not None, "the grammar has changed: run pytest --update-golden"
    # Other versions of Lark may write other patterns.
    assert (kept.rows, kept.reductions, kept.start, kept.end) == (found.rows, found.reductions, found.start, found.end)
    assert (kept.ignored, kept.lexers) == (found.ignored, found.lexers)
    assert len(kept.patterns) == len(found.patterns)


def test_both_parsers_take_the_same() -> None:
    kept, made = tables.parser(Builder()), tables.built(Builder())
    text = "def f(float(N,M) A, int32(N) I) -> (C, D) {\n  C(n) +=! A(I(n), m) * 2.5 where m in 1:M\n  D = C(0)\n}"
    assert kept.parse(text) == made.parse(text)
    for at in range(0, len(text), 3):
        begun = [one.parse_interactive(text[:at]) for one in (kept, made)]
        answers = []
        for step in begun:
            try:
                step.exhaust_lexer()
                further: by_lark._Steps = step
                answers.append(further.accepts())
            except UnexpectedInput as error:
                answers.append({str(error.pos_in_stream)})
        assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "text",
    [
        "def def(float(for) in, where(N) distinct) -> (exists) { exists(for) = in(for) * 2.5 }",
        "def f(float(N) in) -> (where) { where(in) = in(in) where in in 0:N, exists in(in), distinct in }",
        "def f(float(N) A) -> (for, in) { for i in 0:N { for(i) = A(i) in = 2.f } where = !A(1) != 3e5 ? 0x1f : -1 }",
        "def f(float(N) A) -> (B) { B(i) =! A(i) <=> gemm(A, B) <= 3 B(i) min=! 1.5.2 }",
        "def f(float(N) A) -> (B) { B(i) += A(i) @ }",
    ],
)
def test_tokens_are_those_of_larks_own_lexer(text: str) -> None:
    plain = Lark(GRAMMAR.read_text(encoding="utf-8"), parser="lalr", lexer="contextual")
    for end in (len(text), len(text) // 2, 3):
        assert _tokens(plain, text[:end]) == _tokens(tables.parser(None), text[:end])


def _tokens(parser: Lark, text: str) -> list[tuple[object, ...]]:
    """The tokens up to an error, and where that is."""
    found: list[tuple[object, ...]] = []
    steps = parser.parse_interactive(text)
    try:
        found += [(token.type, str(token), token.start_pos, token.line, token.column) for token in steps.iter_parse()]
    except UnexpectedInput as error:
        found.append((type(error), error.pos_in_stream, error.line, error.column))
    return found


@pytest.fixture
def forgotten() -> Iterator[None]:
    parsing._steps.cache_clear()
    by_lark._parser.cache_clear()
    yield
    parsing._steps.cache_clear()
    by_lark._parser.cache_clear()


@pytest.mark.usefixtures("forgotten")
def test_tables_of_another_grammar_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"made_for": "lark 0.1, grammar 2"}\n', encoding="utf-8")
    monkeypatch.setattr(tables, "TABLES", other)
    monkeypatch.setattr(step_tables, "STEPS", other)
    assert kept_steps() is None
    text = "def f(float(N) A) -> (B) { B(n) = A(n) }"
    assert parsing.parse(text) == by_lark.parsed_by_lark(text, parsing.MAXIMUM_STACK)
    with pytest.raises(ParseError, match="expected an expression"):
        parsing.parse(text.replace("= A(n)", "= * A(n)"))
    with pytest.raises(ParseError, match="more than 200 levels"):
        parsing.parse(text.replace("A(n) }", f"{'(' * 2000}A(n){')' * 2000} }}"))


def test_valid_texts_are_parsed_without_lark() -> None:
    program = (
        "import sys; from tc.grammar.parser import parse; parse('def f(float(N) A) -> (B) { B(n) = -A(n) }'); "
        "assert 'lark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
