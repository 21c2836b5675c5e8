"""The steps of a schedule are named as rewrite rules, and read off the tree."""

from __future__ import annotations

import pytest

import tc
from tc.compiler import translate
from tc.targets.target import parse_target

LAYER = tc.define("""def layer(float(N,K) X, float(K,C) W, float(C) b) -> (Z) {
    S(n,c) +=! X(n,k) * W(k,c)
    Y(n,c) = S(n,c) + b(c)
    Z(n,c) = fmax(Y(n,c), 0.0)
}""").layer
SOFTMAX = tc.define("""def softmax(float(N,C) Z) -> (P) {
    M(n) max=! Z(n,c)
    E(n,c) = exp(Z(n,c) - M(n))
    S(n) +=! E(n,c)
    P(n,c) = E(n,c) / S(n)
}""").softmax
COPY = tc.define("def copy(float(N,M) A) -> (B) { B(n,m) = A(n,m) }").copy

ORDER = "proven: every conflicting pair of instances runs in the order of the definition"
PARTS = "proven: each term of a reduction is in one part, and each part is combined once"
PLACES = "proven: each access to a buffer finds the element that it stands for"
APART = "proven: no conflicting pair of instances runs at the same time"


def steps(
    f: tc.Comprehension, *shapes: tuple[int, ...], target: str, options: tc.CpuOptions | tc.GpuOptions
) -> list[str]:
    return translate(f.specialize(*shapes), options, parse_target(target)).steps.splitlines()


def test_nothing_is_done_to_a_plain_loop() -> None:
    plain = tc.CpuOptions(tc.ScheduleOptions(tile=()), threads=1, vectorize=False)
    assert steps(COPY, (7, 13), target="cpu:x86-64-v3", options=plain) == []


def test_steps_of_a_product_with_bias_and_relu() -> None:
    options = tc.CpuOptions(tc.ScheduleOptions(tile=(16, 32)), threads=2, register_tile=(4, 16), packed_operands=0)
    assert steps(LAYER, (67, 200), (200, 96), (96,), target="cpu:x86-64-v3", options=options) == [
        ORDER,
        "  split-join: S, Y, Z: strip-mining: c in tiles of 32 and of 16",
        "  split-join: S, Y, Z: strip-mining: n in tiles of 16 and of 4",
        "  interchange: S: c/32, n/16, n%16/4, c%32/16, k, n%4, c%16 instead of n, c, k",
        "  interchange: Y, Z: c/32, n/16, n%16/4, c%32/16, n%4, c%16 instead of n, c",
        "  map-map fusion: Z in the loops over c/32, n/16 of Y",
        "  reduce-map fusion: Y in the loops over c/32, n/16 of S",
        PARTS,
        "  partial reduction: S: sums of a few terms, added up in float32",
        PLACES,
        "  toPrivate: float32[16, 32] of Y in a buffer of a core",
        "  toPrivate: float32[4, 16] of S in registers",
        APART,
        "  mapGlb: S, Y, Z: c/32 to 3 parts that cores share",
        "  asVector: S, Y, Z: along c%16, 16 elements, up to 8 lanes",
        "  asVector: copies of S: along a1, 16 elements, up to 8 lanes",
    ]


def test_what_finishes_a_reduction_in_place_is_fused_with_it() -> None:
    text = """def f(float(N,K) X, float(K,C) W) -> (Y) {
        Y(n,c) +=! X(n,k) * W(k,c)
        Y(n,c) = fmax(Y(n,c), 0.0)
    }"""
    found = steps(tc.define(text).f, (64, 20), (20, 16), target="cpu:x86-64-v3", options=tc.CpuOptions(threads=1))
    assert [line for line in found if "fusion" in line] == [
        "  reduce-map fusion: Y goes through its next statement in the loops over n/6 of the one before"
    ]


def test_an_operand_is_packed() -> None:
    found = steps(LAYER, (512, 2048), (2048, 512), (512,), target="cpu:x86-64-v3", options=tc.CpuOptions(threads=2))
    assert "  toLocal: float32[2048, 16] of W packed, in a buffer of a core" in found


def test_steps_of_a_softmax() -> None:
    options = tc.CpuOptions(threads=2)
    assert steps(SOFTMAX, (64, 100), target="cpu:x86-64-v3", options=options) == [
        ORDER,
        "  split-join: M, S: strip-mining: c in tiles of 32",
        "  map-map fusion: P in the loops over n of E",
        "  reduce-map fusion: E in the loops over n of M",
        "  reduce-map fusion: S in the loops over n of E",
        "  reduce-map fusion: P in the loops over n of S",
        PARTS,
        "  partial reduction: M, S: lanes have a part each, along c%32",
        "  partial reduction: M, S: lanes have a part each, along c",
        "  partial reduction: S: sums of a few terms, added up in float32",
        PLACES,
        "  toPrivate: float32[1] of M in a buffer of a core",
        "  toPrivate: float32[1, 100] of E in a buffer of a core",
        "  toPrivate: float32[1] of S in a buffer of a core",
        APART,
        "  mapGlb: M, E, S, P: n to 64 parts that cores share",
        "  asVector: E, P: along c, 100 elements, up to 8 lanes",
    ]


@pytest.mark.parametrize("target", ["emulator", "cuda:sm_90"])
def test_steps_on_grids(target: str) -> None:
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(16, 32, 8)), block=(16, 8), split_k_blocks=1)
    assert steps(LAYER, (67, 200), (200, 96), (96,), target=target, options=options) == [
        ORDER,
        "  split-join: S, Y, Z: strip-mining: n in tiles of 16 and of 8",
        "  split-join: S, Y, Z: strip-mining: c in tiles of 32 and of 16",
        "  split-join: S: strip-mining: k in tiles of 8",
        "  interchange: S: n/16, c/32, n%8, c%16, k/8, k%8, n%16/8, c%32/16 instead of n, c, k",
        "  interchange: Y, Z: n/16, c/32, n%8, c%16, n%16/8, c%32/16 instead of n, c",
        "  map-map fusion: Z in the loops over n/16, c/32, n%8, c%16 of Y",
        "  reduce-map fusion: Y in the loops over n/16, c/32, n%8, c%16 of S",
        PARTS,
        "  partial reduction: S: sums of a few terms, added up in float32",
        PLACES,
        "  toLocal: float32[4, 16, 8] of X in memory that the threads of a block share, 4 of them in turn",
        "  toLocal: float32[4, 8, 32] of W in memory that the threads of a block share, 4 of them in turn",
        "  toPrivate: float32[2, 2] of S in registers",
        "  toPrivate: float32[2, 2] of Y in registers",
        APART,
        "  mapWrg: S, Y, Z: n/16, c/32 to 5 x 3 blocks",
        "  mapLcl: S, Y, Z: n%8, c%16 to 8 x 16 threads",
        "  asVector: copies of X, copies of W: along number, 4 elements",
    ]


def test_lanes_of_a_warp_exchange_parts() -> None:
    found = steps(SOFTMAX, (7, 130), target="emulator", options=tc.GpuOptions())
    assert {
        "  partial reduction: M_parts_1, S_parts_1: the lanes of a warp exchange their parts, along c_part_lane",
        "  partial reduction: S_parts_1: its parts along c_part are S_parts",
        "  partial reduction: S: its parts along c_part are S_parts_1",
        "  toLocal: float32[1, 130] of E in memory that the threads of a block share",
        "  toPrivate: float32[1, 32] of S_parts in registers of the lanes of a warp",
        "  mapLcl: E, P: c to 130 threads",
    } <= set(found)


def test_open_sizes_have_steps() -> None:
    found = steps(COPY, (tc.dynamic(1000), 64), target="cpu:x86-64-v3", options=tc.CpuOptions(threads=2))
    assert [line.partition(":")[0].strip() for line in found] == ["proven", "mapGlb", "asVector"]


@pytest.mark.parametrize("target", ["cpu", "emulator"])
def test_explanations_have_the_steps(target: str) -> None:
    text = LAYER.explain((7, 5), (5, 3), (3,), target=target)
    assert "\n\n== steps ==\nproven: every conflicting pair of instances runs in the order of the definition\n" in text
