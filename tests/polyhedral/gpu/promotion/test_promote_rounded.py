"""Results of products of halves are stored from shared memory, in pieces of rows."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

import tc
from tc.dispatch.kernel import Kernel
from tc.language.program.program import Read
from tc.polyhedral.execution.streamed import stream_in
from tc.polyhedral.gpu.barriers.place_barriers import place_barriers
from tc.polyhedral.ir.loops import Copy, leaves
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import ScheduleTree
from tc.polyhedral.passes import State
from tests.mutants.judge import Given, Verdict, judge
from tests.mutants.mistakes import Mistake, dropping
from tests.polyhedral.gpu.tensor.products import LAYOUTS, LINEAR, SMALL, TYPES, agree, operands, product
from tests.translated import translated

STREAMS = tc.GpuOptions(
    tc.ScheduleOptions(tile=(64, 64, 64)), shared_memory=112 << 10, tensor_cores=tc.TensorCores.STREAMS
)


def rounded(kernel: Kernel) -> list[str]:
    """The buffers that results are in before they are stored."""
    assert kernel.compilation is not None
    loops = kernel.compilation.mapped.loops
    values = {own.name: own.value for own in loops.bodies}
    stored = [values[own.statement] for own in leaves(loops.root) if isinstance(own, Copy)]
    shared = {own.name for own in loops.promoted if own.shared}
    return sorted({own.tensor for own in stored if isinstance(own, Read)} & shared)


@pytest.mark.parametrize(("m", "n"), [(64, 64), (70, 72), (45, 68)])  # whole tiles, cut ones, and pieces of 8 bytes
def test_products_agree_with_the_oracle(m: int, n: int) -> None:
    for type in TYPES:
        f, arrays = product("AB", type), operands("AB", type, m, n, 48)
        kernel = f.compile(*arrays, target="emulator", options=SMALL)
        assert rounded(kernel) == ["shared0_C"]
        agree(f, arrays, kernel)


def test_what_follows_a_product_is_rounded_to_shared_memory() -> None:
    f, random = tc.define(LINEAR.format("float16")).single(), np.random.default_rng(0)
    arrays = tuple(random.standard_normal(own).astype(np.float16) for own in ((70, 48), (68, 48), (68,), (70, 68)))
    kernel = f.compile(*arrays, target="emulator", options=SMALL)
    assert rounded(kernel) == ["shared0_y"]
    agree(f, arrays, kernel)


def test_streams_end_before_their_results_are_shared() -> None:
    f, arrays = product("AB'", "bfloat16"), operands("AB'", "bfloat16", 70, 136, 320)
    kernel = f.compile(*arrays, target="emulator", options=STREAMS)
    assert kernel.compilation is not None
    assert stream_in(kernel.compilation.mapped.loops.root) is not None
    assert rounded(kernel) == ["shared0_C"]
    agree(f, arrays, kernel)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((64, 24, 48), tc.GpuOptions()),  # rows of 48 bytes
        ((64, 45, 48), SMALL),  # rows without pieces
        ((64, 64, 48), replace(SMALL, stages=3, shared_memory=17 << 10)),  # whose tiles have the room
        ((64, 64, 48), tc.GpuOptions(tensor_cores=tc.TensorCores.NONE)),
    ],
    ids=["short rows", "odd rows", "stages", "no matrix instructions"],
)
def test_what_stays_in_registers(shape: tuple[int, int, int], options: tc.GpuOptions) -> None:
    arrays = operands("AB", "float16", *shape)
    assert rounded(product("AB", "float16").compile(*arrays, target="emulator", options=options)) == []


def test_as_many_stages_as_are_asked_for_have_room_beside_a_result() -> None:
    arrays = operands("AB", "float16", 64, 64, 48)
    kernel = product("AB", "float16").compile(*arrays, target="emulator", options=replace(SMALL, stages=3))
    assert rounded(kernel) == ["shared0_C"]


@pytest.mark.parametrize("count", [2, 4])
def test_one_of_several_results_is_in_shared_memory(count: int) -> None:
    """All others are stored by pairs; three tiles of operands have room in any case."""
    results = [f"C{n}" for n in range(count)]
    rounding = " ".join(f"{name}(m,n) = float16({n + 1}.0 * s(m,n))" for n, name in enumerate(results))
    text = f"""def f(float16(M,K) A, float16(K,N) B) -> ({", ".join(results)}) {{
        s(m,n) +=! float32(A(m,k)) * float32(B(k,n)) {rounding} }}"""
    made = translated(tc.define(text).single(), (2048, 512), (512, 2048), target="cuda:sm_90a")
    found = stream_in(made.mapped.loops.root)
    assert found is not None
    assert found.stream.slots == 3
    assert made.source.text.count("tc_store_piece<true, 4>(") == 1


def test_every_kernel_of_a_program_may_have_a_stream() -> None:
    text = """def f(float16(M,K) A, float16(K,N) B, float16(K,N) D) -> (C, E) {
        C(m,n) +=! A(m,k) * B(k,n)  E(m,n) +=! A(m,k) * D(k,n) }"""
    made = translated(tc.define(text).single(), (4096, 512), (512, 4096), (512, 4096), target="cuda:sm_90a")
    assert made.source.text.count("tc_take_registers<240>();") == 2


def test_products_of_single_threads_are_stored_by_them() -> None:
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(128, 128, 32)), block=(16, 16))
    made = translated(product("AB", "float16"), (256, 64), (64, 256), target="cuda:sm_90", options=options)
    assert "_store0" not in made.source.text.partition("typedef")[0]


def test_stores_are_of_sixteen_bytes_where_tensors_are_aligned() -> None:
    made = translated(product("AB'", "float16"), (256, 256), (256, 256), target="cuda:sm_90", options=tc.GpuOptions())
    assert "tc_copy_piece<aligned, false, 16>(&t_C[" in made.source.text
    assert "tc_store_piece<true, 4>(&t_shared0_C[" in made.source.text
    # What is stored in pieces decides about the version, too.
    assert "(uintptr_t)t_A | (uintptr_t)t_B) | (uintptr_t)t_C) & 15) == 0" in made.source.text


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("options", [SMALL, STREAMS], ids=["warps", "streams"])
def test_a_missing_barrier_is_refused_and_seen(options: tc.GpuOptions, layout: str) -> None:
    a, b = operands(layout, "float16", 64, 64, 320)
    first, second, term = LAYOUTS[layout]
    text = f"def f(float16{first}, float16{second}) -> (C) {{ C(m,n) +=! {term} }}"

    def without(tree: ScheduleTree, scop: Scop, **how: bool) -> State:
        """The one behind what is rounded, which has the last number."""
        return dropping(max(place_barriers(tree, scop, **how)[1].barrier_names))(tree, scop, **how)

    mistake = Mistake("without the barrier", lambda: patch("tc.polyhedral.grid_passes.place_barriers", without))
    assert judge(text, "f", Given({"A": a, "B": b}), options, mistake) == Verdict(refused=True, wrong=True)
