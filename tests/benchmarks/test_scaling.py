"""How kernels would be divided among many threads."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from benchmarks.__main__ import main
from benchmarks.problems.cases import case_called
from benchmarks.scaling import HEADER, THREADS, Region, lines_of, regions_of, summary
from tc.targets.machine import VectorUnit
from tc.targets.target import parse_cpu_target
from tests.polyhedral.support import specialized

VECTORS = VectorUnit(64, 32)
PRODUCT = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"


def test_shares_are_counted() -> None:
    region = Region(threads=16, iterations=20, own=2000, shared=100, written=20 * 64, piece=64)
    assert region.longest_share == 2
    assert region.balance == 20 / 32
    assert region.bytes_of_a_thread == 300
    assert region.lines_of_two == 0


def test_lines_at_the_borders_of_shares_have_two_threads() -> None:
    region = Region(threads=4, iterations=4, own=400, shared=0, written=400, piece=100)
    assert region.lines_of_two == 3 * 64 / 400
    # One border in every one of ten rows.
    assert Region(2, 2, 4000, 0, 4000, 200).lines_of_two == 10 * 64 / 4000
    assert Region(1, 4, 400, 0, 400, 100).lines_of_two == 0


def test_what_only_a_call_knows_is_not_counted() -> None:
    region = Region(16, None, 100, 10, 100, 4)
    assert (region.longest_share, region.balance, region.bytes_of_a_thread, region.lines_of_two) == (0, 1.0, 110, 0.0)


@pytest.mark.parametrize("threads", THREADS[1:])
def test_a_large_product_is_divided(threads: int) -> None:
    (region,) = regions_of(specialized(PRODUCT, ((1024, 1024), (1024, 1024))), threads, VECTORS)
    assert region.threads == threads
    assert region.own + region.shared == 3 * 4 * 1024**2
    assert region.written == 4 * 1024**2
    assert region.balance > 0.85
    assert region.lines_of_two == 0


def test_two_loops_are_shared_where_one_has_fewer_iterations_than_threads() -> None:
    text = "def f(float(N,C,H,W) x) -> (y) { y(n,c) max=! x(n,c,h,w) }"
    shapes = ((6, 10, 40, 37),)
    for threads, iterations in ((2, 10), (6, 10), (64, 60)):
        (region,) = regions_of(specialized(text, shapes), threads, VECTORS)
        assert region.iterations == iterations
    f = tc.define(text).single()
    x = np.random.default_rng(0).standard_normal(shapes[0]).astype(np.float32)
    np.testing.assert_array_equal(f(x, options=tc.CpuOptions(threads=64)), x.max((2, 3)))


def test_small_kernels_are_not_divided() -> None:
    assert regions_of(specialized(PRODUCT, ((8, 8), (8, 8))), 64, VECTORS) == []
    assert summary([])["balance"] == 1.0


def test_the_command_prints_a_line_for_each_number_of_threads(capsys: pytest.CaptureFixture[str]) -> None:
    main(["scaling", "--kernels", "mlp1", "--threads", "2,16"])
    header, *lines = capsys.readouterr().out.splitlines()
    assert header == HEADER
    assert [line.split()[:2] for line in lines] == [["mlp1", "2"], ["mlp1", "16"]]
    target = parse_cpu_target("cpu")
    vectors = VectorUnit(target.vector_bytes, target.vector_registers)
    assert lines == list(lines_of(case_called("mlp1"), (2, 16), vectors))


@pytest.mark.parametrize("text", ["", "0", "two", "2,,x"])
def test_numbers_of_threads_are_checked(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["scaling", "--threads", text])
    assert "expected numbers of threads from 1 on" in capsys.readouterr().err
