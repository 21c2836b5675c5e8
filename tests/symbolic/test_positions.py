"""Sizes that stay open in any dimension, several at a time: one kernel serves all of them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

import tc
from tc.base.errors import VerificationError
from tc.language.program.specialization import ArraySpec, Layout
from tc.polyhedral.pipeline import map_program
from tests.opencl import missing
from tests.polyhedral.support import MACHINE
from tests.symbolic.positions import POSITIONS
from tests.symbolic.programs import FLOAT, MM, agree
from tests.turns import every, every_row


@pytest.mark.parametrize("name", every(9, POSITIONS))
def test_one_kernel_serves_all_sizes(name: str) -> None:
    program = POSITIONS[name]
    f = tc.define(program.text).single()
    kernel = f.compile(*program.specs())
    for sizes in program.calls():
        agree(f, kernel, program.arrays(sizes))


@pytest.mark.parametrize("name", every(14, POSITIONS))
def test_grids_serve_all_sizes(name: str) -> None:
    """And the emulator sees every access, behind the last element of smaller arrays, too."""
    program = POSITIONS[name]
    f = tc.define(program.text).single()
    kernel = f.compile(*program.specs(), target="emulator")
    for sizes in program.calls():
        agree(f, kernel, program.arrays(sizes))


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
@pytest.mark.parametrize("name", every(9, reversed(POSITIONS)))
def test_opencl_serves_all_sizes(name: str) -> None:
    """No barrier is in a branch that depends on sizes: behind one, PoCL 3.0 ignores conditions, and writes anywhere."""
    program = POSITIONS[name]
    f = tc.define(program.text).single()
    kernel = f.compile(*program.specs(), target="opencl")
    for sizes in program.calls():
        agree(f, kernel, program.arrays(sizes))


@pytest.mark.parametrize("name", every(28, POSITIONS))
def test_cuda_compiles(name: str) -> None:
    pytest.importorskip("cuda.bindings")
    program = POSITIONS[name]
    kernel = tc.define(program.text).single().compile(*program.specs(), target="cuda:sm_90")
    assert all(grid.spill_stores == 0 for grid in kernel.resources.grids)


def _random_options(random: Random, target: str) -> tc.CpuOptions | tc.GpuOptions:
    tile = random.choice([(), (), (8, 8, 16), (3, 5, 7), (32, 16), (16, 16, 64)])
    schedule = tc.ScheduleOptions(fusion=random.choice(list(tc.Fusion)), tile=tile, unroll=random.choice([1, 1, 4, 16]))
    if target == "emulator":
        return tc.GpuOptions(
            schedule,
            register_accumulators=random.choice([64, 4, 0]),
            register_operands=random.choice([0, 4]),
            shared_memory=random.choice([48 << 10, 1 << 10, 0]),
            split_k_threads=random.choice([None, (), (4,)]),
            stages=random.choice([1, 2]),
        )
    return tc.CpuOptions(
        schedule,
        vectorize=random.choice([True, True, False]),
        register_tile=random.choice([None, None, (), (2, 8), (3, 5), (4, 16)]),
        register_accumulators=random.choice([256, 16, 0]),
        packed_operands=random.choice([0, 64, 4096]),
        local_temporaries=random.choice([0, 1024]),
        nontemporal_stores=random.choice([0, 1]),
        block_prefetch=random.choice([0, 1 << 17]),
        threads=random.choice([1, 2]),
    )


@pytest.mark.parametrize(
    ("name", "target", "seed"),
    every_row(
        41, [(n, t, s) for s in range(8) for t in ("cpu", "emulator") for n in ("mm", "transposed mm", "temporaries")]
    ),
)
def test_other_options_are_right_or_refused(name: str, target: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results count as large, so that they are prefetched."""
    monkeypatch.setattr("tc.polyhedral.prefetch.register_tiles._LARGE_BYTES", 0)
    program = POSITIONS[name]
    f = tc.define(program.text).single()
    try:
        kernel = f.compile(*program.specs(), target=target, options=_random_options(Random(seed), target))
    except tc.OptionsError:
        return
    for sizes in program.calls():
        agree(f, kernel, program.arrays(sizes))


def test_rows_that_are_far_apart() -> None:
    """Strides that are numbers stay what they are, whatever the extents."""
    mm = tc.define(MM).mm
    kernel = mm.compile(ArraySpec((tc.dynamic(9), tc.dynamic(20)), FLOAT, (32, 1)), (tc.dynamic(20), tc.dynamic(7)))
    random = np.random.default_rng(0)
    wide = random.standard_normal((9, 32)).astype(np.float32)
    for m, k, n in ((9, 20, 7), (5, 3, 1), (1, 20, 7), (4, 1, 2)):
        agree(mm, kernel, [wide[:m, :k], random.standard_normal((k, n)).astype(np.float32)])
    with pytest.raises(tc.ArgumentError, match=r"is compiled for A: float32\[1..9, 1..20\] strides \(32, 1\), B"):
        kernel(np.ones((5, 3), np.float32), np.ones((3, 2), np.float32))


def test_nothing_is_written_behind_smaller_rows() -> None:
    kernel = tc.define(MM).mm.compile((tc.dynamic(20), tc.dynamic(9)), (tc.dynamic(9), tc.dynamic(40)))
    for m, k, n in ((1, 1, 1), (7, 9, 13), (20, 2, 39)):
        guarded = np.full(20 * 40 + 1, 7, np.float32)
        kernel(np.ones((m, k), np.float32), np.ones((k, n), np.float32), out=guarded[: m * n].reshape(m, n))
        assert (guarded[: m * n] == k).all()
        assert (guarded[m * n :] == 7).all()


@pytest.mark.parametrize("target", ["cpu", "emulator"])
def test_indices_beyond_an_extent_that_is_open_are_refused(target: str) -> None:
    """Also those below the greatest extent."""
    gather = tc.define("def gather(float(E,D) T, int32(B) I) -> (O) { O(b,d) = T(I(b),d) }").gather
    read = gather.compile((tc.dynamic(9), tc.dynamic(4)), (tc.dynamic(5),), target=target)
    scatter = tc.define("def scatter(int32(B) I, float(V) x) -> (y) { y(v) = x(v)  y(I(b)) += 1 }").scatter
    write = scatter.compile((tc.dynamic(5),), (tc.dynamic(9),), target=target)
    for index in (5, 8, -1, 100):
        indices = np.array([0, index, 1], np.int32)
        with pytest.raises(
            tc.ArgumentError, match=r"an index into dimension 0 of T is outside of its extent \(statement"
        ):
            read(np.ones((5, 3), np.float32), indices)
        guarded = np.full(9, 7, np.float32)
        with pytest.raises(
            tc.ArgumentError, match=r"an index into dimension 0 of y is outside of its extent \(statement"
        ):
            write(indices, np.ones(5, np.float32), out=guarded[:5])
        assert (guarded[5:] == 7).all()


def test_accesses_behind_open_columns_are_refused() -> None:
    """The last column that there may be is none that there is."""

    def shorter(layout: Layout) -> Layout:
        extents = tuple(e and replace(e, constant=e.constant - 1) for e in layout.extents)
        return replace(layout, extents=extents)

    f = tc.define("def f(float(M,N) a) -> (b) { b(m,n) = a(m,n) }").f
    specialization = f.specialize((3, tc.dynamic(9)))
    layouts = {name: shorter(layout) for name, layout in specialization.layouts.items()}
    with pytest.raises(VerificationError, match=r"an access leaves its buffer: .*size_N"):
        map_program(replace(specialization, layouts=layouts), tc.CpuOptions(), MACHINE)


def test_strides_of_a_layout_follow_its_extents() -> None:
    spec = tc.define(POSITIONS["of four dimensions"].text).single().specialize(*POSITIONS["of four dimensions"].specs())
    x = spec.layouts["x"]
    assert [step if isinstance(step, int) else (step.factor, len(step.extents)) for step in x.steps] == [
        (1, 3),
        (1, 2),
        (1, 1),
        1,
    ]
    assert x.at((2, 3, 4, 5)).strides == (60, 20, 5, 1)
    assert x.at((3, 5, 7, 9)) == Layout(FLOAT, (3, 5, 7, 9), (315, 63, 9, 1))


def test_kernels_of_several_bounds_are_chosen_by_size() -> None:
    """The least arrays that cover a call, of whatever sizes."""
    mm = tc.define(MM).mm
    opened = [mm.compile((tc.dynamic(m), tc.dynamic(k)), (tc.dynamic(k), 8)) for m, k in ((40, 9), (9, 9), (9, 40))]
    for m, k, chosen in ((9, 9, 1), (1, 2, 1), (10, 9, 0), (9, 10, 2)):
        assert mm.compile((m, k), (k, 8)) is opened[chosen]
