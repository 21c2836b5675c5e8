"""Sums of columns in blocks of rows, which what goes by rows reads, too."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tests.translated import translated

BACKWARD = """
def backward(float(N,D) x, float(D) gamma, float(N) mean, float(N) rstd, float(N,D) d_y) -> (d_x, d_gamma, d_beta) {
    s(n) +=! d_y(n,d) * gamma(d)
    t(n) +=! d_y(n,d) * gamma(d) * (x(n,d) - mean(n))
    r(n) = t(n) * rstd(n) * rstd(n) / float(D)
    d_x(n,d) = rstd(n) * (d_y(n,d) * gamma(d) - s(n) / float(D) - (x(n,d) - mean(n)) * r(n))
    d_gamma(d) +=! d_y(n,d) * (x(n,d) - mean(n)) * rstd(n)
    d_beta(d) +=! d_y(n,d)
}"""
# Columns that rows read only when these have been summed up.
STANDARD = """
def standard(float(N,D) x) -> (y) {
    s(d) +=! x(n,d)
    y(n,d) = x(n,d) - s(d) / float(N)
}"""
# Sums of blocks.
PARTIAL = r"\bt_\w+_parts\b"
PRODUCTS = """
def products(float(N,D) x, float(D,D) w, float(N,D) d_y) -> (d_x, d_w) {
    d_x(n,i) +=! d_y(n,o) * w(o,i)
    d_w(o,i) +=! d_y(n,o) * x(n,i)
}"""


def _text(text: str, *shapes: tuple[int, ...]) -> str:
    return translated(tc.define(text).single(), *shapes, target="cpu:x86-64-v4").source.text


def _shapes(n: int, d: int) -> tuple[tuple[int, ...], ...]:
    return (n, d), (d,), (n,), (n,), (n, d)


def test_blocks_of_rows_are_read_once() -> None:
    text = _text(BACKWARD, *_shapes(2048, 1024))
    (region,) = (own for own in text.split("static ") if "// S2\n" in own)
    assert "// S4\n" in region
    assert "// S5\n" in region
    # 64 blocks of 32 rows.
    assert re.search(r"for \(int64_t c1 = 32 \* c0; c1 < 32 \* c0 \+ 32; c1 \+= 1\)", region)
    assert "tc_region_0, &captured, 0, 64)" in text


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (BACKWARD, _shapes(256, 256)),  # the second-level cache holds all rows
        (BACKWARD, _shapes(64, 1 << 17)),  # and here not even eight of them
        (STANDARD, ((2048, 1024),)),
        (PRODUCTS, ((2048, 1024), (1024, 1024), (2048, 1024))),
    ],
)
def test_other_sums_stay_whole(text: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    assert not re.search(PARTIAL, _text(text, *shapes))


def test_tiles_and_no_fusion_leave_sums_whole() -> None:
    f = tc.define(BACKWARD).single()
    schedules = (
        tc.CpuOptions(schedule=tc.ScheduleOptions(tile=(32, 32))),
        tc.CpuOptions(schedule=tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL)),
    )
    for options in schedules:
        found = translated(f, *_shapes(2048, 1024), target="cpu:x86-64-v4", options=options)
        assert not re.search(PARTIAL, found.source.text)


@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_that_are_not_full_have_the_values_of_the_definition(threads: int) -> None:
    f = tc.define(BACKWARD).single()
    random = np.random.default_rng(0)
    x, gamma, mean, rstd, d_y = (random.standard_normal(shape, np.float32) for shape in _shapes(1031, 520))
    arguments = x, gamma, mean, np.abs(rstd), d_y
    expected = f.oracle(*arguments)
    found = f.compile(*arguments, options=tc.CpuOptions(threads=threads))(*arguments)
    assert isinstance(found, tuple)
    for name, value in zip(("d_x", "d_gamma", "d_beta"), found, strict=True):
        assert compare(expected[name], np.asarray(value)).ok, name


@pytest.mark.parametrize(("n", "d"), [(0, 3), (3, 0), (0, 0)])
def test_nothing_is_in_no_blocks(n: int, d: int) -> None:
    arguments = [np.ones(shape, np.float32) for shape in _shapes(n, d)]
    results = tc.define(BACKWARD).single()(*arguments)
    assert isinstance(results, tuple)
    assert [np.asarray(own).tolist() for own in results] == [np.zeros((n, d)).tolist(), [0.0] * d, [0.0] * d]
