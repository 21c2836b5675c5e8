"""Predicted times: what follows from counts, and what must not depend on how they are shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tc
from tc.artifact.packing import pack, unpack
from tc.polyhedral.gpu.cost.count_kernels import count_kernels
from tc.prediction.counts import KernelCount, counts_of, counts_text
from tc.prediction.predict import Use, estimated_use, predict
from tc.prediction.prediction import Limit, Prediction
from tc.targets.devices import DEVICES, USUAL
from tests.translated import translated
from tests.turns import one_in

COPY = tc.define("def copy(float(N) x) -> (y) { y(i) = x(i) }").single()
PRODUCT = tc.define("def product(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }").single()
ROWS = tc.define("def rows(float(M,N) x) -> (y) { y(m) +=! x(m,r_n) }").single()
TILED = tc.GpuOptions(schedule=tc.ScheduleOptions(tile=(32, 32, 16)), block=(16, 16), stages=2)
H200 = DEVICES["H200"]


def counted(
    definition: tc.Comprehension, *shapes: tuple[int, ...], options: tc.GpuOptions | None = None
) -> tuple[KernelCount, ...]:
    return count_kernels(translated(definition, *shapes, target="cuda:sm_90", options=options).mapped.loops)


@one_in(2)
@pytest.mark.parametrize("device", ["A100", "H200", "L4"])
def test_larger_sizes_take_longer(device: str) -> None:
    own = DEVICES[device]
    for counts in (
        [counted(COPY, (size,)) for size in (1 << 12, 1 << 18, 1 << 24)],
        [counted(PRODUCT, (size, 128), (128, size), options=TILED) for size in (64, 512, 4096)],
        [counted(PRODUCT, (256, size), (size, 256), options=TILED) for size in (64, 512, 4096)],
        [counted(ROWS, (size, 1024)) for size in (64, 4096, 1 << 16)],
    ):
        times = [predict(one, own) for one in counts]
        assert [one.seconds for one in times] == sorted(one.seconds for one in times)
        assert [one.floor for one in times] == sorted(one.floor for one in times)
        assert all(one.floor < one.seconds for one in times)


def test_quicker_devices_take_less_time() -> None:
    """An H200 is an H100 with more bandwidth; an RTX 4090 a larger L4."""
    large = counted(COPY, (1 << 26,))
    product = counted(PRODUCT, (4096, 1024), (1024, 4096), options=TILED)
    assert predict(large, H200).seconds < predict(large, DEVICES["H100"]).seconds
    for count in (large, product):
        assert predict(count, DEVICES["RTX 4090"]).seconds < predict(count, DEVICES["L4"]).seconds


def test_what_limits_a_copy_and_a_product() -> None:
    assert predict(counted(COPY, (1 << 26,)), H200).limit is Limit.MEMORY
    assert predict(counted(COPY, (64,)), H200).limit is Limit.LAUNCH
    product = predict(counted(PRODUCT, (4096, 1024), (1024, 4096), options=TILED), H200).kernels[0]
    assert product.limit in (Limit.SHARED, Limit.ISSUE, Limit.FLOATS)
    assert product.shares[0] == max(product.shares, key=lambda own: own[1])
    assert 0 < product.occupancy <= 1
    assert product.waves == pytest.approx(128 * 128 / (132 * product.resident))


def test_caches_that_are_warm_save_time() -> None:
    small = counted(ROWS, (4096, 1024))
    assert predict(small, H200, cold=False).seconds < predict(small, H200).seconds


def test_fewer_blocks_find_room_with_more_registers() -> None:
    (count,) = counted(PRODUCT, (1024, 64), (64, 1024), options=TILED)
    few, many = (predict((count,), H200, [Use(registers)]).kernels[0] for registers in (32, 200))
    assert few.resident > many.resident
    assert few.occupancy > many.occupancy
    assert few.seconds <= many.seconds
    assert 32 < estimated_use(count).registers < 255


def test_edges_are_named() -> None:
    prediction = predict(counted(PRODUCT, (1000, 64), (64, 1000), options=TILED), H200)
    (kernel,) = prediction.kernels
    assert sum(kind.count for kind in kernel.kinds) == kernel.blocks == 32 * 32
    assert len(kernel.edges) >= 1
    assert str(prediction).startswith("predicted ")
    assert " us on H200: " in str(prediction)
    assert "; edge blocks " in str(prediction)


def test_each_launch_counts() -> None:
    (one,) = counted(COPY, (1 << 20,))
    single, many = predict((one,), H200), predict((replace(one, launches=10),), H200)
    assert many.seconds > 9 * (single.seconds - single.launch)
    assert many.kernels == (replace(single.kernels[0], launches=10),)
    assert predict((), H200).limit is Limit.LAUNCH


def test_usual_devices_have_the_architecture() -> None:
    assert all(DEVICES[name].architecture == own.removesuffix("a") for own, name in USUAL.items())
    assert DEVICES["H100"].operations == pytest.approx(66.9e12, rel=0.01)
    assert DEVICES["A100"].operations == pytest.approx(19.5e12, rel=0.01)


def test_explanations_have_a_section() -> None:
    for target, there in (("cuda:sm_90", True), ("cuda:sm_75", False), ("cpu", False), ("emulator", False)):
        assert ("\n== prediction ==\npredicted " in ROWS.explain((64, 512), target=target)) is there


def test_kernels_keep_what_they_ask_for() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    kernel = PRODUCT.compile((64, 64), (64, 64), target="cuda:sm_80", options=TILED)
    found = kernel.predicted
    assert isinstance(found, Prediction)
    assert found.device == "A100"
    executable = kernel._executable
    assert unpack(pack(executable)) == executable
    assert unpack(pack(executable)).predicted == found
    counts = counts_of(executable.asks)
    assert [count.grid for count in counts] == [(2, 2)]
    assert counts_text(counts) == executable.asks
    assert (counts_text(()), counts_of("")) == ("", ())
    with pytest.raises(ValueError, match="_Counts"):
        counts_of("{}")
    assert executable.predicted_on(DEVICES["RTX A6000"]).device == "RTX A6000"
    assert PRODUCT.compile((64, 64), (64, 64)).predicted is None
    assert PRODUCT.compile((64, 64), (64, 64), target="cuda:sm_75", options=replace(TILED, stages=1)).predicted is None
