"""Options are validated, travel as JSON, and every one of them changes the code as its text says."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tc
from tc.dispatch.kernel import Kernel
from tc.targets.options_json import from_json, to_json
from tests.turns import every_row

DEFINITIONS = tc.define(
    """
    def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }
    def chain(float(N) X) -> (O) { T(i) = X(i) * X(i)  O(i) = T(i) + 1 }
    def pick(float(N) X, int32(K) I) -> (O) { O(k) = X(I(k)) }
    """
)
MM, CHAIN, PICK = DEFINITIONS.mm, DEFINITIONS.chain, DEFINITIONS.pick
SHAPES = ((129, 17), (17, 65))
generator = np.random.default_rng(0)
A, B = (generator.integers(-8, 9, shape).astype(np.float32) for shape in SHAPES)

options = st.builds(
    tc.CpuOptions,
    schedule=st.builds(
        tc.ScheduleOptions,
        fusion=st.sampled_from(tc.Fusion),
        tile=st.none() | st.lists(st.integers(0, 1 << 30), max_size=4).map(tuple),
        unroll=st.integers(1, 4096),
    ),
    register_tile=st.none() | st.lists(st.integers(1, 1 << 10), min_size=2, max_size=4).map(tuple),
    vector_axis=st.none() | st.just(0),
    register_accumulators=st.integers(0, 1 << 16),
    packed_operands=st.integers(0, 1 << 18),
    local_temporaries=st.integers(0, 1 << 18),
    nontemporal_stores=st.integers(0, 1 << 62),
    threads=st.integers(0, 4096),
    vectorize=st.booleans(),
    check_indices=st.booleans(),
    gather_prefetch=st.integers(0, 1024),
    block_prefetch=st.integers(0, 1 << 30),
)


gpu_options = st.builds(
    tc.GpuOptions,
    schedule=st.builds(tc.ScheduleOptions, tile=st.none() | st.lists(st.integers(0, 64), max_size=4).map(tuple)),
    block=st.none() | st.lists(st.integers(1, 10), max_size=3).map(tuple),
    grid=st.none() | st.lists(st.integers(1, (1 << 31) - 1), max_size=3).map(tuple),
    distribution=st.sampled_from(tc.Distribution),
    split_k_threads=st.none()
    | st.sets(st.integers(2, 1 << 20), max_size=3).map(lambda parts: tuple(sorted(parts)[::-1])),
    split_k_blocks=st.none() | st.integers(1, 1 << 16),
    shuffles=st.booleans(),
    tensor_cores=st.sampled_from(tc.TensorCores),
    register_accumulators=st.integers(0, 1 << 10),
    register_operands=st.integers(0, 1 << 10),
    shared_memory=st.integers(0, 1 << 18),
    layout=st.sampled_from(tc.TileLayout),
    padding=st.integers(0, 64),
    stages=st.none() | st.integers(1, 8),
    min_blocks_per_multiprocessor=st.integers(1, 32),
    check_indices=st.booleans(),
)


def loops(kernel: Kernel) -> list[str]:
    """The headers of all loops in a kernel's source."""
    return re.findall(r"^ *for \((.*)\) \{$", kernel.source, re.MULTILINE)


# --- values ----------------------------------------------------------------------------------------------------


@given(options | gpu_options)
def test_options_travel_as_json(chosen: tc.CpuOptions | tc.GpuOptions) -> None:
    assert from_json(json.loads(json.dumps(to_json(chosen))), type(chosen)) == chosen
    assert type(chosen).from_json(chosen.to_json()) == chosen
    assert tc.ScheduleOptions.from_json(chosen.schedule.to_json()) == chosen.schedule
    # However it is written, it is written the same again.
    assert type(chosen).from_json(json.dumps(to_json(chosen), indent=2)).to_json() == chosen.to_json()


def test_what_json_leaves_out_keeps_its_default() -> None:
    assert from_json({}, tc.CpuOptions) == tc.CpuOptions()
    assert from_json({"threads": 1}, tc.CpuOptions) == tc.CpuOptions(threads=1)
    partial = {"schedule": {"tile": None, "fusion": "minimal"}}
    assert from_json(partial, tc.CpuOptions) == tc.CpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL))


UNKNOWN: list[tuple[Any, str]] = [
    ({"thread": 1}, "CpuOptions has no option 'thread'; did you mean 'threads'?"),
    ({"schedule": {"fusoin": "maximal"}}, "ScheduleOptions has no option 'fusoin'; did you mean 'fusion'?"),
    (
        {"qqq": 1},
        (
            "CpuOptions has no option 'qqq'; known: schedule, register_tile, vector_axis, register_accumulators, "
            "packed_operands, local_temporaries, nontemporal_stores, threads, vectorize, check_indices, "
            "gather_prefetch, block_prefetch, numerics"
        ),
    ),
    ({"register_tile": 8}, "register_tile must be a list of integers or null, got 8"),
    ({"schedule": {"fusion": "best"}}, "fusion must be one of maximal, preserve-parallel, minimal, got 'best'"),
    ({"schedule": {"tile": 32}}, "tile must be a list of integers or null, got 32"),
    ({"schedule": {"tile": [1.5]}}, "tile must be an integer from 0 to 1073741824, got 1.5"),
    ({"schedule": None}, "ScheduleOptions must be a JSON object, got None"),
    ({"tile": [8]}, 'CpuOptions has no option \'tile\'; it belongs to schedule: write {"schedule": {"tile": ...}}'),
    ({"block": [8]}, "CpuOptions has no option 'block'; tc.GpuOptions has one"),
    ({"schedule": {"threads": 2}}, "ScheduleOptions has no option 'threads'; tc.CpuOptions has one"),
    (
        {"schedule": {"fusion": "Maximal"}},
        "fusion must be one of maximal, preserve-parallel, minimal, got 'Maximal'; did you mean 'maximal'?",
    ),
    (
        {"schedule": {"fusion": ["maximal"]}},
        "fusion must be one of maximal, preserve-parallel, minimal, got ['maximal']",
    ),
    ({"threads": "2"}, "threads must be an integer from 0 to 4096, got '2'"),
    ({"threads": 2.0}, "threads must be an integer from 0 to 4096, got 2.0"),
    ({"threads": None}, "threads must be an integer from 0 to 4096, got None"),
    ({"vectorize": 1}, "vectorize must be True or False, got 1"),
    ({"register_tile": [[8]]}, "register_tile must be an integer from 1 to 1024, got [8]"),
    ([], "CpuOptions must be a JSON object, got []"),
]


@pytest.mark.parametrize(("data", "message"), UNKNOWN)
def test_json_that_means_nothing_is_refused(data: Any, message: str) -> None:
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}$"):
        from_json(data, tc.CpuOptions)
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}$"):
        tc.CpuOptions.from_json(json.dumps(data))


NO_JSON: list[tuple[Any, str]] = [
    ("threads=2", "options must be JSON such as {\"threads\": 1}, got 'threads=2': "),
    ("", "options must be JSON such as {\"threads\": 1}, got '': "),
    ("[" * 100_000, 'options must be JSON such as {"threads": 1}, got \'[['),
    ('{"threads": 1, "threads": 2}', "threads stands in the options twice; write it once"),
    ({"threads": 1}, "options must be text in JSON, got dict"),
    (None, "options must be text in JSON, got NoneType"),
]


@pytest.mark.parametrize(("text", "message"), NO_JSON, ids=[message[-20:] for _, message in NO_JSON])
@pytest.mark.parametrize("kind", [tc.CpuOptions, tc.GpuOptions, tc.ScheduleOptions])
def test_text_that_is_no_json_is_refused(kind: Any, text: Any, message: str) -> None:
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}"):
        kind.from_json(text)


IMPOSSIBLE: list[tuple[type, dict[str, Any], str]] = [
    (tc.ScheduleOptions, {"fusion": "maximal"}, "fusion must be a tc.Fusion, got 'maximal'"),
    (tc.ScheduleOptions, {"tile": [32]}, "tile must be a tuple of integers or None, got [32]"),
    (tc.ScheduleOptions, {"tile": (-1,)}, "tile must be an integer from 0 to 1073741824, got -1"),
    (tc.ScheduleOptions, {"tile": (1, True)}, "tile must be an integer from 0 to 1073741824, got True"),
    (tc.ScheduleOptions, {"tile": (2**30 + 1,)}, "tile must be an integer from 0 to 1073741824, got 1073741825"),
    (tc.ScheduleOptions, {"unroll": 0}, "unroll must be an integer from 1 to 4096, got 0"),
    (tc.ScheduleOptions, {"unroll": "8"}, "unroll must be an integer from 1 to 4096, got '8'"),
    (tc.CpuOptions, {"schedule": {"tile": (1,)}}, "schedule must be tc.ScheduleOptions, got {'tile': (1,)}"),
    (tc.CpuOptions, {"register_tile": [8]}, "register_tile must be a tuple of integers or None, got [8]"),
    (tc.CpuOptions, {"register_tile": (0,)}, "register_tile must be an integer from 1 to 1024, got 0"),
    (tc.CpuOptions, {"register_tile": (4, 8), "vector_axis": 2}, "vector_axis must be an integer from 0 to 1, got 2"),
    (tc.CpuOptions, {"register_accumulators": -1}, "register_accumulators must be an integer from 0 to 65536, got -1"),
    (tc.CpuOptions, {"packed_operands": 1 << 19}, "packed_operands must be an integer from 0 to 262144, got 524288"),
    (tc.CpuOptions, {"local_temporaries": -1}, "local_temporaries must be an integer from 0 to 262144, got -1"),
    (tc.CpuOptions, {"local_temporaries": 1.0}, "local_temporaries must be an integer from 0 to 262144, got 1.0"),
    (
        tc.CpuOptions,
        {"nontemporal_stores": -1},
        "nontemporal_stores must be an integer from 0 to 4611686018427387904, got -1",
    ),
    (tc.CpuOptions, {"threads": -1}, "threads must be an integer from 0 to 4096, got -1"),
    (tc.CpuOptions, {"threads": 2.0}, "threads must be an integer from 0 to 4096, got 2.0"),
    (tc.CpuOptions, {"vectorize": 1}, "vectorize must be True or False, got 1"),
    (tc.CpuOptions, {"check_indices": None}, "check_indices must be True or False, got None"),
    (tc.CpuOptions, {"gather_prefetch": 1025}, "gather_prefetch must be an integer from 0 to 1024, got 1025"),
    (tc.CpuOptions, {"block_prefetch": -1}, "block_prefetch must be an integer from 0 to 1073741824, got -1"),
]


@pytest.mark.parametrize(("kind", "values", "message"), IMPOSSIBLE)
def test_impossible_values_are_refused(kind: type, values: dict[str, Any], message: str) -> None:
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}$"):
        kind(**values)


def test_options_of_another_kind_are_refused() -> None:
    wrong: list[Any] = [{}, tc.ScheduleOptions(), "fast"]
    for candidate in wrong:
        with pytest.raises(tc.OptionsError, match=r"options must be tc\.CpuOptions for target 'cpu:.*', got "):
            MM(A, B, options=candidate)
    with pytest.raises(tc.OptionsError, match="unknown target 'gpu'"):
        MM(A, B, target="gpu")
    number: Any = 3
    with pytest.raises(tc.OptionsError, match="target must be a name such as 'cpu', got 3"):
        MM(A, B, target=number)
    with pytest.raises(tc.DeviceError, match="target 'cuda' is not available"):
        MM(A, B, target="cuda")


@pytest.mark.parametrize("count", [0, -1, 1025, 2.0, True])
def test_impossible_numbers_of_threads_are_refused(count: Any) -> None:
    with pytest.raises(tc.OptionsError, match="threads must be an integer from 1 to 1024, or None, got "):
        tc.set_threads(count)


# --- effects ---------------------------------------------------------------------------------------------------


def compiled(**schedule: Any) -> Kernel:
    """Without register tiles and accumulators, so that only what the schedule says is there."""
    plain = tc.CpuOptions(tc.ScheduleOptions(**schedule), register_tile=(), register_accumulators=0)
    return MM.compile(*SHAPES, options=plain)


def check_mm(kernel: Kernel) -> None:
    np.testing.assert_array_equal(kernel(A, B), A @ B)


def test_fusion_decides_which_statements_share_loops() -> None:
    kernels = {
        fusion: CHAIN.compile((129,), options=tc.CpuOptions(tc.ScheduleOptions(fusion=fusion))) for fusion in tc.Fusion
    }
    counts = {fusion: len(loops(kernel)) for fusion, kernel in kernels.items()}
    assert counts == {tc.Fusion.MAXIMAL: 1, tc.Fusion.PRESERVE_PARALLEL: 1, tc.Fusion.MINIMAL: 2}
    x = generator.integers(-8, 9, 129).astype(np.float32)
    for kernel in kernels.values():
        np.testing.assert_array_equal(kernel(x), x * x + 1)


def test_tiles_are_as_large_as_asked() -> None:
    flat, tiled, partly = compiled(tile=()), compiled(tile=(8, 16, 4)), compiled(tile=(0, 16))
    assert len(loops(flat)) == 3
    # Two statements below the tiles of m and n; the reduction has a tile loop and a point loop of its own.
    assert len(loops(tiled)) == 8
    assert all(f"c1 < {-(-65 // 16)}" in kernel.source for kernel in (tiled, partly))
    assert "runtime->parallel_for(runtime, tc_region_0, &captured, 0, 17)" in tiled.source
    assert "runtime->parallel_for(runtime, tc_region_0, &captured, 0, 129)" in partly.source
    for kernel in (flat, tiled, partly, compiled(tile=(64, 128, 32)), compiled(tile=(1, 1, 1))):
        check_mm(kernel)


def test_tiles_hold_whole_register_tiles() -> None:
    message = "tile size 30 is not a multiple of 4, the size of the register tile of the same loop; change one of them"
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}$"):
        MM.compile(*SHAPES, options=tc.CpuOptions(tc.ScheduleOptions(tile=(30,)), register_tile=(4, 16)))
    # The rule finds register tiles that divide what is given.
    for tile in ((30,), (7, 5), (1, 1, 1), (0, 13)):
        check_mm(MM.compile(*SHAPES, options=tc.CpuOptions(tc.ScheduleOptions(tile=tile))))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            tc.CpuOptions(tc.ScheduleOptions(tile=(8, 16, 4, 2)), register_tile=()),
            (
                "tile has 4 sizes, but loops are nested 3 deep at most; leave out the last ones "
                "(tile begins with the outermost loop)"
            ),
        ),
        (
            tc.CpuOptions(register_tile=(2, 4, 16)),
            "register_tile has 3 sizes, but the target of a reduction has 2 loops at most; leave out the first ones",
        ),
    ],
)
def test_sizes_that_no_loop_is_left_for_are_refused(options: tc.CpuOptions, message: str) -> None:
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}$"):
        MM.compile(*SHAPES, options=options)
    # Where the reduction has no iterations, its loops are missing, and the options are right for other sizes.
    empty = np.ones((3, 0), np.float32), np.ones((0, 5), np.float32)
    np.testing.assert_array_equal(MM.compile(*empty, options=options)(*empty), np.zeros((3, 5), np.float32))


def test_short_loops_are_unrolled() -> None:
    shapes = (129, 3), (3, 65)
    kernels = [
        MM.compile(
            *shapes,
            options=tc.CpuOptions(tc.ScheduleOptions(tile=(), unroll=unroll), register_tile=(), vectorize=False),
        )
        for unroll in (1, 2, 3)
    ]
    assert [len(loops(kernel)) for kernel in kernels] == [3, 3, 2]
    assert [kernel.source.count("// S0\n") for kernel in kernels] == [1, 1, 3]
    for kernel in kernels:
        np.testing.assert_array_equal(kernel(A[:, :3].copy(), B[:3]), A[:, :3] @ B[:3])


def test_register_tiles_keep_the_target_of_a_reduction_in_vectors_or_in_an_array() -> None:
    tile = tc.ScheduleOptions(tile=(96, 0, 8))
    ragged, wide = (
        MM.compile(*SHAPES, target=target, options=tc.CpuOptions(tile, register_tile=(4, 16)))
        for target in ("cpu", "cpu:x86-64-v4")
    )
    full_and_partial = ["t_tile0_C_0_0, t_tile0_C_1_0, t_tile0_C_2_0, t_tile0_C_3_0;", "t_tile0_C_0_0;"]
    assert all(wide.source.count(f"tc_float32x16 {rows}") == 2 for rows in full_and_partial)
    single = MM.compile(*SHAPES, options=tc.CpuOptions(tile, register_tile=(4, 1)))
    assert "float t_tile0_C[16] __attribute__((aligned(64)));" in single.source  # as long as a line of the cache
    whole = MM.compile(*SHAPES, target="cpu:x86-64-v3", options=tc.CpuOptions(tile, register_tile=(3, 13)))
    assert "tc_float32x8 t_tile0_C_0_0, t_tile0_C_1_0, t_tile0_C_2_0;" in whole.source
    assert "tc_float32x8 t_tile0_C_0_1, t_tile0_C_1_1, t_tile0_C_2_1;" in whole.source
    narrow = MM.compile(*SHAPES, target="cpu:x86-64", options=tc.CpuOptions(tile, register_tile=(3, 8)))
    for kernel in (ragged, single, whole, narrow):
        assert "S0_load0" in kernel.schedule
        assert "S0_store0" in kernel.schedule
        check_mm(kernel)
    none = MM.compile(*SHAPES, options=tc.CpuOptions(tile, register_tile=()))
    assert "tile0_C" not in none.source
    check_mm(none)


def test_vectors_of_a_register_tile_lie_along_the_lane_that_is_asked_for() -> None:
    for lane, iterator in ((None, "n"), (1, "n"), (0, "m")):
        kernel = MM.compile(*SHAPES, options=tc.CpuOptions(register_tile=(16, 8), vector_axis=lane))
        sizes = {"m": 16, "n": 8}
        assert f"S0_init[m, n] -> [(({iterator}) mod {sizes[iterator]})] }}  # vector, coincident" in kernel.schedule
        check_mm(kernel)


def test_accumulators_beyond_the_limit_stay_in_memory() -> None:
    tile = tc.ScheduleOptions(tile=(32, 64, 8))
    for limit, kept in ((64, True), (63, False), (0, False)):
        kernel = MM.compile(*SHAPES, options=tc.CpuOptions(tile, register_tile=(4, 16), register_accumulators=limit))
        assert ("t_tile0_C" in kernel.source) == kept
        check_mm(kernel)


# 64 lanes, a tile of register tiles, for the whole reduction and for a tile of it; then 16 lanes; none.
PACKED = [
    (64 * 17, 17 * 64),
    (64 * 17 - 1, 8 * 64),
    (16 * 8 - 1, 0),
    (16 * 8, 8 * 16),
    (64 * 8, 8 * 64),
    (64 * 8 - 1, 8 * 16),
    (0, 0),
]


@pytest.mark.parametrize(("limit", "size"), every_row(2, PACKED))
def test_operands_across_the_lanes_are_packed_for_as_many_loops_as_there_is_room(limit: int, size: int) -> None:
    transposed = tc.define("def tmm(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }").tmm
    tile = tc.ScheduleOptions(tile=(32, 64, 8))
    turned = np.ascontiguousarray(B.T)
    options = tc.CpuOptions(tile, register_tile=(4, 16), packed_operands=limit)
    kernel = transposed.compile(A, turned, options=options)
    assert ("S0_pack0" in kernel.schedule) == (size > 0)
    found = re.findall(r"t_packed0_B\[(\d+)\] __attribute__", kernel.source)
    assert list(map(int, found)) == ([size] if size else [])
    np.testing.assert_array_equal(kernel(A, turned), A @ B)


def test_pieces_of_rows_that_lie_far_apart_are_packed_where_the_cache_would_lose_them() -> None:
    packed = {
        (depth, columns): "packed0_B" in MM.compile((64, depth), (depth, columns)).source
        for depth, columns in ((1000, 256), (1000, 64), (20, 256))
    }
    assert packed == {(1000, 256): True, (1000, 64): False, (20, 256): False}


def test_temporaries_beyond_the_limit_stay_in_memory() -> None:
    program = tc.define("def twice(float(M,N) X) -> (O) { T(i,j) = X(i,j) * X(i,j)  O(i) max=! T(i,j) }").twice
    x = generator.integers(-8, 9, (33, 129)).astype(np.float32)
    for limit, local in ((129, True), (128, False), (0, False)):
        kernel = program.compile(x, options=tc.CpuOptions(tc.ScheduleOptions(tile=()), local_temporaries=limit))
        assert (kernel.resources.temporaries == 0) == local
        np.testing.assert_array_equal(kernel(x), (x * x).max(axis=1))


def test_results_from_the_size_on_that_is_told_are_written_past_the_caches() -> None:
    double = tc.define("def double_(float(M,N) X) -> (O) { O(i,j) = 2 * X(i,j) }").double_
    x = generator.standard_normal((33, 129)).astype(np.float32)
    for least, streamed in ((x.nbytes, True), (1, True), (x.nbytes + 1, False), (0, False)):
        kernel = double.compile(x, options=tc.CpuOptions(nontemporal_stores=least))
        assert ("tc_stream(&t_O[" in kernel.source) == streamed
        assert kernel.source.count("tc_stream_end();") == streamed
        np.testing.assert_array_equal(kernel(x), 2 * x)


def test_vectorization_marks_inner_loops() -> None:
    for tile in (None, ()):
        marked, plain = (
            MM.compile(*SHAPES, options=tc.CpuOptions(register_tile=tile, vectorize=vectorize))
            for vectorize in (True, False)
        )
        vectors = "#pragma omp simd" if tile == () else "tc_splat_float32x"
        assert vectors in marked.source
        assert "  # vector" in marked.schedule
        assert not re.search("#pragma omp simd|tc_[a-z]+_float32x", plain.source)
        assert "  # vector" not in plain.schedule
        for kernel in (marked, plain):
            check_mm(kernel)


def test_one_thread_needs_no_parallel_loop() -> None:
    several, few, one = (MM.compile(*SHAPES, options=tc.CpuOptions(threads=threads)) for threads in (0, 2, 1))
    assert "runtime->parallel_for(" in several.source
    assert few.source == several.source
    assert "runtime->parallel_for(" not in one.source
    for kernel in (several, few, one):
        check_mm(kernel)


def test_indices_are_checked_unless_told_otherwise() -> None:
    checked, unchecked = (
        PICK.compile((7,), (5,), options=tc.CpuOptions(check_indices=check)) for check in (True, False)
    )
    assert "fault" in checked.source.partition("tc_kernel_body")[2]
    assert "fault" not in unchecked.source.partition("tc_kernel_body")[2]
    x, indices = generator.standard_normal(7).astype(np.float32), np.array([6, 0, 3, 3, 1], np.int32)
    for kernel in (checked, unchecked):
        np.testing.assert_array_equal(kernel(x, indices), x[indices])
    # Inside a larger array an index that is too large reads a neighbour; only the check tells.
    outside = np.array([7, 0, 0, 0, 0], np.int32)
    larger = generator.standard_normal(8).astype(np.float32)
    with pytest.raises(tc.ArgumentError, match="pick: an index into dimension 0 of X is outside of 0:7"):
        checked(larger[:7], outside)
    result = unchecked(larger[:7], outside)
    assert isinstance(result, np.ndarray)
    assert result[0] == larger[7]


def test_rows_of_gathers_are_asked_for_as_far_ahead_as_told() -> None:
    lookup = tc.define("def lookup(float(E,D) W, int32(B,L) I) -> (O) { O(b,d) +=! W(I(b,l),d) }").lookup
    weights = generator.integers(-8, 9, (1000, 64)).astype(np.float32)
    indices = generator.integers(0, 1000, (7, 33)).astype(np.int32)
    for distance in (0, 1, 5):
        kernel = lookup.compile(weights, indices, options=tc.CpuOptions(gather_prefetch=distance))
        assert ("__builtin_prefetch" in kernel.source) == (distance > 0)
        if distance:
            # Never past the last index.
            assert re.search(rf"__builtin_prefetch.*tc_min_int64\(.*c\d \+ .*{distance}, 230\)", kernel.source)
        np.testing.assert_array_equal(kernel(weights, indices), weights[indices].sum(axis=1))


def test_options_make_kernels_of_their_own() -> None:
    chosen = tc.CpuOptions(vectorize=False)
    assert MM.compile(*SHAPES, options=chosen) is MM.compile(*SHAPES, options=tc.CpuOptions(vectorize=False))
    assert MM.compile(*SHAPES, options=chosen) is not MM.compile(*SHAPES)
    assert MM.compile(*SHAPES, options=chosen).asked == chosen
