"""Graphs as text: what is printed parses back equal, and errors show their place."""

from __future__ import annotations

import numpy as np
import pytest

import tc
import tc.graph
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph_text import graph_text
from tc.graph.ir.parse_graph import parse
from tc.graph.ir.sizes import least, open_size
from tests.fuzz.graph_programs import drawn

F = ScalarType.FLOAT32
MM = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_parse_back(seed: int) -> None:
    graph = drawn(seed).graph
    text = graph_text(graph)
    assert graph_text(parse(text, graph.constants)) == text


def test_open_sizes_and_odd_names() -> None:
    builder = Builder("a graph: odd")
    n, h = open_size("N"), open_size("image.height")
    x = builder.input("layer/x:0", F, (n, 2 * h, (h + 1) // 2, least(n, h)))
    text = graph_text(builder.finish([builder.permute(x, (3, 1, 2, 0))]))
    assert graph_text(parse(text)) == text
    assert '"layer/x:0"' in text


def test_a_comprehension_has_a_graph() -> None:
    graph = tc.define(MM).single().graph
    assert graph_text(graph).startswith("graph mm(float32(M, K) A, float32(K, N) B) -> (C) {\n    C = mm(A, B)\n}\n")
    assert graph_text(parse(graph_text(graph))) == graph_text(graph)
    a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    np.testing.assert_array_equal(tc.graph.Model.of(graph)(a, b), np.full((2, 4), 3))


def test_a_comprehension_with_scalars_has_none() -> None:
    scaled = tc.define("def scaled(float a, float(N) x) -> (y) { y(i) = a * x(i) }").single()
    with pytest.raises(tc.GraphError, match="`scaled` takes the scalar `a`; declare a tensor without dimensions"):
        _ = scaled.graph


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph g(float32(2) x) -> (y) { y = }", "1:36: this is not in the grammar of graphs"),
        ("graph g(float31(2) x) -> (x) { }", "1:9: no type is called `float31`"),
        ("graph g(float32(2) x, float32(2) x) -> (x) { }", "1:34: two values are called `x`"),
        ("graph g(float32(2) x) -> (y) { }", "1:27: no value is called `y` here"),
        ("graph g(float32(2) x) -> (x) {\n  y = f(x)\n}", "2:7: no definition is called `f`"),
        ("graph g(float32(2) x) -> (x) { constant float32(2) w }", "1:32: the contents of `w` are not given"),
        (
            "graph g(float32(2) x) -> (x) {\n  y = view x reshape(3)\n}",
            r"2:3: `x` of shape \(2\) cannot be reshaped to \(3\)",
        ),
        (
            "graph g(float32(2,3) x) -> (x) {\n  y = mm(x, x)\n}\n" + MM,
            "2:3: mm: the size `K` is 3 in `A.1` and 2 in `B.0`",
        ),
        ("graph g(float32(2,2) x) -> (x) {\n  x = mm(x, x)\n}\n" + MM, "2:3: two values are called `x`"),
        ("graph g(float32(2,2) x) -> (x) {\n  (y, z) = mm(x, x)\n}\n" + MM, "2:3: 1 results, and 2 names"),
        ('graph g(float32(2) x) -> (x) { y = host "f"(x) }', "1:32: nodes of the host are not read from text"),
        ("graph g(float32(2) x) -> (x) { y = view x reinterpret(float31) }", "no type is called `float31`"),
    ],
)
def test_errors_show_their_place(text: str, message: str) -> None:
    with pytest.raises(tc.GraphError, match=message):
        parse(text)


def test_constants_must_fit() -> None:
    text = "graph g(float32(2) x) -> (x, w) { constant float32(2) w }"
    with pytest.raises(tc.GraphError, match=r"`w` is declared float32\(2,\), got float64\(2,\)"):
        parse(text, {"w": np.zeros(2)})
