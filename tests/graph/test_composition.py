"""Calls become one program as a text that makes them does, and are refused where only the text says what is meant."""

from __future__ import annotations

import pytest

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder, program_of
from tc.graph.ir.nodes import Call
from tc.graph.partition import compose
from tc.graph.partition.partition import partition_of
from tc.language.lower.compose_calls import Operand, ProgramCall, compose_calls
from tc.language.program.program import Program
from tests.fuzz.graph_programs import drawn

F, H = ScalarType.FLOAT32, ScalarType.FLOAT16
SHIFT = "def shift(float(N) A) -> (B) { T(i) = A(i) + 1  B(i) = T(i) * A(i) }"
SUM = "def sums(float(M,N) A) -> (S) { S(m) +=! A(m,n) }"
ADD = "def add(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }"


@pytest.mark.parametrize("part", range(4))
def test_random_groups_are_what_their_text_means(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[Program, Program]] = []
    directly = compose._directly

    def both(whole: compose._Whole) -> Program | None:
        direct = directly(whole)
        assert direct is not None
        found.append((direct, compose.program_by_text(whole)))
        return direct

    monkeypatch.setattr(compose, "_directly", both)
    compose._program.cache_clear()
    for seed in range(25 * part, 25 * part + 25):
        graph = drawn(seed).graph
        compose.composed(graph, partition_of(graph))
    assert len(found) > 10
    for direct, by_text in found:
        assert direct == by_text


def call(text: str, operands: str, results: str) -> ProgramCall:
    return ProgramCall(program_of(text), tuple(operands.split()), tuple(results.split()))


def operands(**shapes: tuple[int, ...]) -> list[Operand]:
    return [Operand(name, F, shape) for name, shape in shapes.items()]


def test_temporaries_of_callees_have_names_of_their_own() -> None:
    calls = [call(SHIFT, "T", "i"), call(SHIFT, "i", "y"), call(ADD, "i y", "z")]
    found = compose_calls("whole", operands(T=(5,)), calls, ["z"])
    assert found is not None
    assert len({tensor.name for tensor in found.tensors}) == len(found.tensors) == 6
    text = "def whole(float(5) T) -> (z) { i = shift(T)  y = shift(i)  z = add(i, y) }"
    from tc.grammar.parser import parse
    from tc.language.lower.lower import lower_caller

    assert found == lower_caller(parse(text), {one.name: one for one in (program_of(SHIFT), program_of(ADD))}, text)


@pytest.mark.parametrize(
    ("calls", "given"),
    [
        pytest.param([call(ADD, "x y", "z")], operands(x=(5,), y=(6,)), id="sizes differ"),
        pytest.param([call(SUM, "x", "z")], operands(x=(5,)), id="ranks differ"),
        pytest.param([call(ADD, "x y", "z")], [*operands(x=(5,)), Operand("y", H, (5,))], id="types differ"),
        pytest.param([call("def f(half(N) A) -> (B) { B(i) = A(i) }", "x", "z")], [Operand("x", H, (5,))], id="halves"),
        pytest.param([call("def f(float(N) A) -> (B) { B(i) += A(i) }", "x", "z")], operands(x=(5,)), id="comes in"),
        pytest.param(
            [call("def f(float s, float(N) A) -> (B) { B(i) = A(i) * s }", "s x", "z")], operands(x=(5,)), id="s"
        ),
    ],
)
def test_what_only_a_definition_says(calls: list[ProgramCall], given: list[Operand]) -> None:
    assert compose_calls("whole", given, calls, ["z"]) is None


def test_groups_of_halves_are_composed_by_their_text() -> None:
    builder = Builder("halves")
    value = builder.input("x", H, (4, 5))
    (sums,) = builder.call("def sums(half(M,N) A) -> (S) { S(m) +=! A(m,n) }", value)
    (shifted,) = builder.call("def shift(half(N) A) -> (B) { B(i) = A(i) + 1 }", sums)
    graph = builder.finish([shifted])
    (node,) = compose.composed(graph, partition_of(graph)).nodes
    assert isinstance(node, Call)
    assert [tensor.type for tensor in node.program.tensors if tensor.name not in ("x0", "y0")] in ([], [F])
