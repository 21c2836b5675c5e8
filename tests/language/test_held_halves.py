"""Temporaries of halves that stay float32 until a result stores what is computed from them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tc
from tc.base.errors import SemanticError
from tc.base.source_hash import source_files
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.lower.builder import ProgramBuilder
from tc.language.program.program import Binary, IteratorReference, Program, Reduction
from tc.language.text.canonical import canonical
from tc.language.text.print_program import program_text
from tests.language.support import complaints, lower, lower_all, value

F16, F32, BF16 = ScalarType.FLOAT16, ScalarType.FLOAT32, ScalarType.BFLOAT16


def types(program: Program) -> dict[str, str]:
    """The types of what is written, by name."""
    return {t.name: str(t.type) for t in program.tensors if t.name not in program.arguments}


TYPES = {
    "def f(half(N) a) -> (c) { s +=! a(i)  c = s / N }": {"s": "float32", "c": "float16"},
    "def f(bfloat16(N) a) -> (c) { s +=! a(i)  c = s / N }": {"s": "float32", "c": "bfloat16"},
    # Every reduction counts, and what is computed from one, however far.
    "def f(half(N) a) -> (c) { s max=! a(i)  t = s / N  u = exp(t)  c = u }": {
        "s": "float32", "t": "float32", "u": "float32", "c": "float16",
    },
    "def f(half(N) a) -> (c) { s = 0.0  s += a(i)  s += a(i) * a(i)  c = s }": {"s": "float32", "c": "float16"},
    # A statement before the reduction, or a reader before a later writer, changes nothing.
    "def f(half(N) a) -> (c) { s = a(0)  t = s  s += a(i) where exists a(i)  c = s + t }": {
        "s": "float32", "t": "float32", "c": "float16",
    },
    # No reduction, a conversion on purpose, and another type: as before.
    "def f(half(N) a) -> (c) { t(i) = a(i) * a(i)  c(i) = t(i) / N }": {"t": "float16", "c": "float16"},
    "def f(half(N) a) -> (c) { s +=! a(i)  t = half(s / N)  c = t }": {
        "s": "float32", "t": "float16", "c": "float16",
    },
    "def f(half(N) a) -> (c, d) { s +=! a(i)  c = float(s)  d = s > 1 }": {
        "s": "float32", "c": "float32", "d": "bool",
    },
    "def f(half(N) a, int x, double y) -> (c, d) { s +=! a(i)  c = s * x  d = s + y }": {
        "s": "float32", "c": "float64", "d": "float64",
    },
    "def f(float(N) a) -> (c) { s +=! half(a(i))  c = s }": {"s": "float32", "c": "float16"},
    # A result is a result, also while it is updated; values of the same name that are not returned are temporaries.
    "def f(half(N) a) -> (c) { c +=! a(i)  c = c / N }": {"c": "float16"},
    "def f(half(N) a) -> (c) { c +=! a(i)  d = c / N  c = d * 2 }": {"c_1": "float32", "d": "float32", "c": "float16"},
    "def f(half(N) a) -> (c, s) { s +=! a(i)  c = s / N }": {"s": "float16", "c": "float16"},
    # What comes in through `out=` and is kept, because it is read after its place is written.
    "def f(half(N) a) -> (c, b) { b += a(i)  c = b  b = b * 2 }": {"b_in": "float32", "c": "float16", "b": "float16"},
}  # fmt: skip


@pytest.mark.parametrize("text", TYPES)
def test_types(text: str) -> None:
    program = lower(text)
    assert types(program) == TYPES[text]
    assert lower(program_text(program)) == program


def test_what_is_held_in_float32_is_computed_in_float32() -> None:
    program = lower("def f(half(N) a, half(N) b) -> (c) { s +=! a(i) * b(i)  t = s / N + 70000.0  c = t * b(0) }")
    assert [value(statement) for statement in program.statements] == [
        "float32(a(i)) * float32(b(i))",
        "s / float32(N) + 70000.0",
        "float16(t * float32(b(0)))",
    ]


def test_what_a_result_adds_up_is_named_as_a_half() -> None:
    program = lower("def f(half(M,N) a) -> (c) { s(i) +=! a(i,j)  c +=! s(i) / N }")
    assert value(program.statements[1]) == "float16(s(i) / float32(N))"


SUM = "def sum(half(N) a) -> (s) { s +=! a(i) } "
CALLS = {
    "a result that is a temporary here": (
        SUM + "def f(half(N) a) -> (c) { s = sum(a)  c = s / N }",
        {"s": "float32", "c": "float16"},
    ),
    "a result that is one here, too": (
        SUM + "def f(half(N) a) -> (c) { c = sum(a) }",
        {"c": "float16"},
    ),
    "an argument": (
        "def halve(half() x) -> (half y) { y = x / 2 } def f(half(N) a) -> (c) { s +=! a(i)  t = halve(s)  c = t + 1 }",
        {"s": "float32", "t": "float32", "c": "float16"},
    ),
    "an argument from which a result is computed": (
        "def halve(half() x) -> (y) { t = x / 2  y = t } def f(half(N) a) -> (c) { s +=! a(i)  c = halve(s) }",
        {"s": "float32", "t": "float32", "c": "float16"},
    ),
    "an update": (
        "def add(half(N) x) -> (y) { y += x(i) } def f(half(N) a) -> (c) { s = a(0)  s = add(a)  c = s }",
        {"s": "float32", "c": "float16"},
    ),
    "calls inside calls": (
        SUM + "def mean(half(N) a) -> (m) { s = sum(a)  m = s / a.0 } "
        "def f(half(N) a) -> (c) { m = mean(a)  v +=! (a(i) - m) * (a(i) - m)  c = sqrt(v / N) }",
        {"s": "float32", "m": "float32", "v": "float32", "c": "float16"},
    ),
    "nothing to hold": (
        "def twice(half(N) a) -> (b) { b(i) = a(i) * 2 } def f(half(N) a) -> (c) { b = twice(a)  c(i) = b(i) + 1 }",
        {"b": "float16", "c": "float16"},
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    text, expected = CALLS[name]
    program = lower(text, "f")
    assert types(program) == expected
    assert lower(program_text(program)) == program


def test_a_definition_that_is_called_stays_as_it_is() -> None:
    text, _ = CALLS["a result that is a temporary here"]
    assert types(lower_all(text)["sum"]) == {"s": "float16"}


def test_chains_of_calls_may_be_long() -> None:
    count = 400
    text = "".join(f"def f{k}(half() x) -> (y) {{ y = f{k - 1}(x) }} " for k in range(count, 0, -1))
    text += "def f0(half() x) -> (y) { y = x / 2 } "
    text += f"def f(half(N) a) -> (c) {{ s +=! a(i)  t = f{count}(s)  c = t + 1 }}"
    assert types(lower(text, "f")) == {"s": "float32", "t": "float32", "c": "float16"}


def test_a_half_is_no_argument_for_a_float() -> None:
    text = "def g(float() x) -> (y) { y = x } def f(half(N) a) -> (c) { s +=! a(i)  c = g(s) }"
    assert complaints(text, SemanticError) == [
        "argument `x` of `g` is float32, `s` is float16 [convert it to a tensor of its own first, with `float32(...)`]"
    ]


@pytest.mark.parametrize("type", [F16, F32])
def test_programs_made_in_python_follow_the_rule(type: ScalarType) -> None:
    builder = ProgramBuilder("f")
    i = IteratorReference("i")
    a = builder.argument("a", type, (builder.size("N"),))
    s, c = builder.tensor("s", type, rank=0), builder.tensor("c", type, rank=0)
    builder.statement(s(), a(i), reduction=Reduction.ADD, initialize=True)
    builder.statement(c(), Binary(BinaryOperator.ADD, s(), s(), type))
    if type is F32:
        assert types(builder.build(["c"])) == {"s": "float32", "c": "float32"}
        return
    assert types(builder.build(["s", "c"])) == {"s": "float16", "c": "float16"}
    with pytest.raises(SemanticError) as caught:
        builder.build(["c"])
    assert str(caught.value) == (
        "temporary `s` holds a reduction of halves, which stays float32\n"
        "    hint: make it FLOAT32, and cast where a result stores what is computed from it"
    )


def test_a_cache_tells_programs_apart_that_hold_something_else() -> None:
    """The key has the canonical text, which says all types, and a hash of the sources, this rule's among them."""
    texts = [
        "def f(half(N) a) -> (c) { s +=! a(i)  c = s / N }",
        "def f(half(N) a) -> (c) { s +=! a(i)  c = half(s) / N }",
        "def f(half(N) a) -> (c) { s +=! a(i)  t = half(s)  c = t / N }",
        "def f(half(N) a) -> (c, s) { s +=! a(i)  c = s / N }",
        "def f(bfloat16(N) a) -> (c) { s +=! a(i)  c = s / N }",
        "def f(half(N) a) -> (c) { s +=! float(a(i))  c = s / N }",
        "def f(half(N) a) -> (c) { s = a(0)  s max= a(i) where i in 0:N  c = s / N }",
        "def f(half(N) a) -> (c) { s = a(0)  c = s / N where exists a(0) }",
    ]
    programs = [canonical(lower(text)) for text in texts]
    canonical_texts = [program_text(program) for program in programs]
    assert len(set(canonical_texts)) == len(texts)
    for program, text in zip(programs, canonical_texts, strict=True):
        assert lower(text) == program  # what a key stands for has these types, and no others
    assert "tc/language/check/held.py" in {name for name, _ in source_files("tc", Path(tc.__file__).parent)}
