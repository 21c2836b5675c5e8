"""What people write who think in C, NumPy, einsum or formulas: every text of ``slips.txt`` is refused with its hint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tc.base.errors import TextError
from tests.language.support import lower, lower_all

_HEAD, _END = "def f(float(M,N) A, float(N) v, float s) -> (B) { ", " }"


def _slips() -> Iterator[tuple[str, list[str]]]:
    """The hints, and the texts that lead to each."""
    found: list[tuple[str, list[str]]] = []
    is_whole = False
    for line in Path(__file__).with_name("slips.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            is_whole = line == "[definitions]"
        elif line.startswith("    "):
            found[-1][1].append(line[4:] if is_whole else _HEAD + line[4:] + _END)
        elif line and not line.startswith("# "):
            found.append((line, []))
    yield from found


@pytest.mark.parametrize(("hint", "texts"), list(_slips()))
def test_slips(hint: str, texts: list[str]) -> None:
    assert texts
    for marked in texts:
        before, _, rest = marked.partition("\u00ab")
        place, _, behind = rest.partition("\u00bb")
        text = before + place + behind
        with pytest.raises(TextError) as caught:
            lower_all(text)
        spans = {(d.span.start, d.span.end) for d in caught.value.diagnostics if d.span is not None and d.hint == hint}
        begin = len(before) if rest else max(start for start, _ in spans)
        assert (begin, begin + len(place)) in spans or not rest, text


def test_slips_in_comments_are_none() -> None:
    text = "def f(float(N) x) -> (y) { # for i in range(N): y[i] = x[i]\n y(i) = x(i) + # ** 2\n }"
    with pytest.raises(TextError) as caught:
        lower_all(text)
    assert [d.hint for d in caught.value.diagnostics] == [None]


def test_slips_far_from_the_place_are_none() -> None:
    text = "def f(float(N) x) -> (y) { y(i) = x(i) +" + " " * 500 + "} # y[i] = x[i] ** 2"
    with pytest.raises(TextError) as caught:
        lower_all(text)
    assert [d.hint for d in caught.value.diagnostics] == [None]


@pytest.mark.parametrize("name", ["lambda", "None", "for", "in", "where", "class", "int", "float", "return", "def_"])
def test_words_of_other_languages_are_names(name: str) -> None:
    program = lower(f"def f(float(N) x) -> (y) {{ {name}(i) = x(i) y(i) = {name}(i) }}")
    assert name in {tensor.name for tensor in program.tensors}


@pytest.mark.parametrize("space", ["\t", "\r", "\f", "\v", "\r\n"])
def test_white_space(space: str) -> None:
    assert lower(f"def f(float(N) x) -> (y) {{{space}y(i){space}={space}x(i){space}}}{space}").name == "f"


def test_a_byte_order_mark_begins_a_text() -> None:
    text = "\ufeffdef f(float(N) x) -> (y) { y(i) = x(i) }"
    assert lower(text).name == "f"
    with pytest.raises(TextError) as caught:
        lower_all(text.replace("(y) {", "(y) \ufeff{"))
    assert caught.value.diagnostics[0].hint == "remove this invisible character"


def test_equal_and_not() -> None:
    assert lower("def f(bool(N) x) -> (y) { y(i) =!x(i) }").statements[0].reduction is None


def test_comparisons_of_truth_values_are_no_chains() -> None:
    assert lower("def f(float(N) x, bool(N) b) -> (y) { y(i) = x(i) == 1 == b(i) }").name == "f"
    assert lower("def f(float(N) x) -> (y) { y(i) = (x(i) < 1) < 2 }").name == "f"
