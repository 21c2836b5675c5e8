"""The caret stands under what is meant, complaints come in the order of their places, and families are families."""

from __future__ import annotations

from typing import Any

import pytest

import tc
from tc.base.errors import Diagnostic, Span, TextError, line_and_column, nearest, render

SOURCE = "def f(float(N) A) -> (B) {\n    B(i) = C(i)\n}"


def span(part: str, source: str = SOURCE) -> Span:
    begin = source.index(part)
    return Span(begin, begin + len(part))


def test_a_message_has_place_line_caret_and_hint() -> None:
    text = render(Diagnostic("unknown name `C`", span("C(i)"), "did you mean `A`?"), SOURCE)
    assert text.splitlines() == [
        "2:12: unknown name `C`",
        "        B(i) = C(i)",
        "               ^^^^",
        "    hint: did you mean `A`?",
    ]


def test_without_a_place_only_the_message_is_shown() -> None:
    assert render(Diagnostic("nothing is written"), SOURCE) == "nothing is written"
    assert (
        render(Diagnostic("made by a builder", Span(3, 5), "call it"), None) == "made by a builder\n    hint: call it"
    )


def test_carets_stay_in_their_line() -> None:
    whole = render(Diagnostic("m", Span(0, len(SOURCE))), SOURCE).splitlines()
    assert whole[2] == "    " + "^" * len("def f(float(N) A) -> (B) {")
    end = render(Diagnostic("m", Span(len(SOURCE), len(SOURCE))), SOURCE).splitlines()
    assert end == ["3:2: m", "    }", "     ^"]
    beyond = render(Diagnostic("m", Span(10_000, 10_001)), SOURCE).splitlines()
    assert beyond == end
    assert render(Diagnostic("m", Span(0, 0)), "").splitlines() == ["1:1: m", "    ", "    ^"]


def test_of_a_long_line_only_the_part_around_the_caret_is_shown() -> None:
    source = "a" * 500_000 + "@" + "b" * 500_000
    place, line, caret = render(Diagnostic("m", span("@", source)), source).splitlines()
    assert place == "1:500001: m"
    assert len(line) < 200
    assert line[caret.index("^")] == "@"
    assert caret.count("^") == 1


def test_control_characters_take_one_column() -> None:
    source = "a\t\x00\x1b@"
    place, line, caret = render(Diagnostic("m", span("@", source)), source).splitlines()
    assert place == "1:5: m"
    assert line == "    a \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}@"
    assert line[caret.index("^")] == "@"


def test_complaints_are_sorted_by_place() -> None:
    error = TextError([Diagnostic("second", span("C(i)")), Diagnostic("first", span("float"))], SOURCE)
    assert [d.message for d in error.diagnostics] == ["first", "second"]
    assert str(error).index("first") < str(error).index("second")
    assert error.source == SOURCE
    assert TextError(Diagnostic("alone")).diagnostics == (Diagnostic("alone"),)


def test_lines_and_columns_start_at_one() -> None:
    assert [line_and_column("ab\nc\n", offset) for offset in range(6)] == [
        (1, 1),
        (1, 2),
        (1, 3),
        (2, 1),
        (2, 2),
        (3, 1),
    ]


def test_spans_join() -> None:
    assert Span(3, 5).to(Span(1, 4)) == Span(1, 5)
    assert Span(1, 2).to(Span(7, 9)) == Span(1, 9)


def test_the_nearest_name() -> None:
    assert nearest("fusoin", ["fusion", "tile"]) == "fusion"
    assert nearest("qqq", ["fusion", "tile"]) is None
    assert nearest("fusion", []) is None


def test_one_family() -> None:
    errors = (
        tc.ParseError,
        tc.SemanticError,
        tc.RangeError,
        tc.ArgumentError,
        tc.OptionsError,
        tc.VerificationError,
        tc.CompileError,
        tc.DeviceError,
        tc.CacheError,
    )
    assert all(issubclass(error, tc.TCError) for error in errors)
    assert issubclass(tc.RangeError, tc.SemanticError)
    assert not issubclass(tc.ParseError, tc.SemanticError)


TEXTS: list[tuple[str, type[tc.TCError], str]] = [
    ("def f(float(N) A -> (B) { B(i) = A(i) }", tc.ParseError, "1:18: "),
    ("def f(float(N) A) -> (B) { B(i) = C(i) }", tc.SemanticError, "1:35: "),
    ("def f(float(N) A) -> (B) { B(i) = A(j) }", tc.SemanticError, "1:"),
    ("def f(float(N) A) -> (B) { B(i) = A(i - 1) }", tc.RangeError, "1:"),
]


@pytest.mark.parametrize(("text", "error", "place"), TEXTS)
def test_texts_are_refused_with_a_caret(text: str, error: type[tc.TCError], place: str) -> None:
    with pytest.raises(error) as caught:
        tc.define(text)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(place)
    assert lines[1] == "    " + text
    assert "^" in lines[2]


def test_all_complaints_of_a_text_come_together() -> None:
    text = "def f(float(N) A) -> (B) { B(i) = C(i) }\ndef g(float(N) A) -> (B) { B(i) = A(i) + D(i) }"
    with pytest.raises(tc.SemanticError) as caught:
        tc.define(text)
    assert [line for line in str(caught.value).splitlines() if line[0].isdigit()] == [
        line for line in str(caught.value).splitlines() if line.startswith(("1:35: ", "2:42: "))
    ]
    assert len(caught.value.diagnostics) == 2


@pytest.mark.parametrize("text", [None, 3, b"def f() -> (A) { A(i) = 1 where i in 0:3 }"])
def test_what_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(tc.ArgumentError, match=r"tc\.define takes the text of definitions, got "):
        tc.define(text)
