"""What a search space is told of a program's loops."""

from __future__ import annotations

import tc
from tc.targets.target import OpenClTarget, parse_target
from tc.tuner.space.nest import Nest
from tc.tuner.space.nests import nest_of, silent_options


def test_loops_of_all_statements() -> None:
    text = "def f(float(N,D) X) -> (O) { s(n) +=! X(n,d)  O(n,d) = X(n,d) / s(n) }"
    assert nest_of(tc.define(text).f.specialize((7, 9))) == Nest(
        {"0.0": 7, "0.1": 9, "1.0": 7, "1.1": 9}, 2, 1, ("0.1",)
    )


def test_names_stay_when_sizes_change() -> None:
    mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }").mm
    small, large = nest_of(mm.specialize((2, 3), (3, 4))), nest_of(mm.specialize((20, 30), (30, 40)))
    assert list(small.extents) == list(large.extents)
    assert (small.depth, small.independent, small.reduced) == (3, 2, ("0.2",))
    assert [large.extents[name] for name in large.extents] == [20, 40, 30]


def test_triangles_count_as_their_longest_row() -> None:
    text = "def f(float(N,N) X) -> (O) { O(i) +=! X(i,j) where j in 0:i+1 }"
    assert nest_of(tc.define(text).f.specialize((6, 6))).extents == {"0.0": 6, "0.1": 6}


def test_empty_loops_have_a_length() -> None:
    assert nest_of(tc.define("def f(float(N) X) -> (O) { O(i) = X(i) }").f.specialize((0,))).extents == {"0.0": 1}


def test_options_that_change_nothing_are_not_searched() -> None:
    x86, plain = parse_target("cpu:x86-64"), parse_target("cpu:armv8-a")
    mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }").mm
    scatters = {"scatter_owners", "scatter_parts"}
    assert silent_options(mm.specialize((2, 3), (3, 4)), x86) == scatters | {
        "gather_prefetch",
        "local_temporaries",
        "nontemporal_stores",
        "scans",
    }
    silent = silent_options(mm.specialize((512, 3), (3, 512)), x86)
    assert silent == scatters | {"gather_prefetch", "local_temporaries", "scans"}
    assert "nontemporal_stores" in silent_options(mm.specialize((512, 3), (3, 512)), plain)
    lookup = tc.define("def f(float(E) T, int32(B) I) -> (O) { t(b) = T(I(b))  O(b) = t(b) }").f
    found = silent_options(lookup.specialize((4,), (10,)), x86)
    unused = {"nontemporal_stores", "register_accumulators", "packed_operands", "register_tile", "vector_axis", "scans"}
    assert found == scatters | unused
    for triangle in ("where j in 0:i+1", "where i in 0:N, j in 0:N, j <= i"):
        sums = tc.define(f"def f(float(N) x) -> (y) {{ y(i) +=! x(j) {triangle} }}").f
        assert not {"scans", "local_temporaries"} & silent_options(sums.specialize((4,)), x86)
    back = tc.define("def f(float(V) z, int32(B) I) -> (O) { O(I(b)) +=! 1 where I(b) in 0:V }").f
    assert not scatters & silent_options(back.specialize((4,), (10,)), x86)
    assert "min_blocks_per_multiprocessor" in silent_options(mm.specialize((2, 3), (3, 4)), OpenClTarget())
