"""What lies along lanes beside a register tile."""

from __future__ import annotations

import re

import numpy as np

import tc
from tc.reference.compare import compare
from tests.translated import translated

# The rows of the product are in tiles; what follows goes along rows.
SCORES = """
def scores(float(N,D) q, float(M,D) k) -> (p) {
    t(n,m) +=! q(n,d) * k(m,d)
    h(n) max=! t(n,m)
    e(n,m) = exp(t(n,m) - h(n))
    s(n) +=! e(n,m)
    p(n,m) = e(n,m) / s(n)
}"""


def test_rows_of_another_statements_tile_are_loops_around_lanes() -> None:
    text = translated(tc.define(SCORES).single(), (256, 64), (256, 64), target="cpu:x86-64-v4").source.text
    loop = r"#pragma omp simd\n *for \(int64_t c\d = 0; c\d < 256; c\d \+= 1\) \{[^}]*// S{}\n"
    for statement in (2, 4):
        assert re.search(loop.replace("{}", str(statement)), text), statement


def test_values_are_those_of_the_definition() -> None:
    f = tc.define(SCORES).single()
    random = np.random.default_rng(0)
    for n, m, d in ((256, 256, 64), (37, 71, 19), (5, 300, 3)):
        arguments = [random.standard_normal(shape, np.float32) for shape in ((n, d), (m, d))]
        assert compare(f.oracle(*arguments)["p"], np.asarray(f(*arguments))).ok


def test_steps_whose_sum_reads_its_tensor_elsewhere_are_no_lanes() -> None:
    f = tc.define(
        """
        def columns(float(N,N) x) -> (s) {
            s(i,j) = x(i,j)
            for k in 0:N { for i in k+1:N { s(k,k) += s(i,k) * x(i,k) } }
        }"""
    ).single()
    x = np.random.default_rng(0).standard_normal((23, 23), np.float32)
    assert compare(f.oracle(x)["s"], np.asarray(f(x))).ok
