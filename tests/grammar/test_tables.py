"""The tables of the parser that are kept beside the grammar."""

from __future__ import annotations

import re
from pathlib import Path

import lark
import pytest

from tc.grammar import parser as parsing
from tc.grammar import tables
from tc.grammar.syntax_builder import Builder


def test_the_tables_belong_to_the_grammar(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        tables.TABLES.write_text(tables.tables(), encoding="utf-8")
    kept = re.search(r'"lark ([^,]*), grammar (\w*)"', tables.TABLES.read_text(encoding="utf-8"))
    assert kept is not None
    asked = tables.made_for(tables.GRAMMAR.read_bytes()).replace(lark.__version__, kept[1])
    assert f"lark {kept[1]}, grammar {kept[2]}" == asked, "the grammar has changed: run pytest --update-golden"


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
                further: parsing._Steps = step
                answers.append(further.accepts())
            except lark.exceptions.UnexpectedInput as error:
                answers.append({str(error.pos_in_stream)})
        assert answers[0] == answers[1]


def test_tables_of_another_grammar_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "tc.json"
    other.write_text('{"made_for": "lark 0.1, grammar 2"}\n', encoding="utf-8")
    monkeypatch.setattr(tables, "TABLES", other)
    parsing._parser.cache_clear()
    assert parsing.parse("def f(float(N) A) -> (B) { B(n) = A(n) }").definitions
    parsing._parser.cache_clear()
