"""Targets are named, resolved against a processor, and refused with a reason."""

from __future__ import annotations

import itertools

import pytest

import tc
from tc.base.errors import DeviceError, OptionsError
from tc.runtime.named_target import named_target
from tc.targets.target import CpuTarget, Processor, check_runs, parse_cpu_target, parse_target, processor, resolve

V3 = CpuTarget("x86-64-v3")
V4 = CpuTarget("x86-64-v4", ("avx512vnni",))


def test_names_round_trip() -> None:
    for target in (CpuTarget("x86-64"), V3, V4, CpuTarget("armv8-a"), CpuTarget("armv8.2-a", ("bf16", "i8mm"))):
        assert parse_target(str(target)) == target
    assert str(V4) == "cpu:x86-64-v4+avx512vnni"
    assert parse_target("cpu:x86-64-v4+avx512vnni+avx512vbmi+avx512vnni") == CpuTarget(
        "x86-64-v4", ("avx512vbmi", "avx512vnni")
    )


def test_the_host_has_a_name_and_runs_itself() -> None:
    target = parse_cpu_target("cpu")
    assert parse_target(str(target)) == target
    assert "native" not in " ".join((str(target), *target.flags))
    check_runs(target, processor())


@pytest.mark.parametrize(("target", "width"), [("x86-64", 16), ("x86-64-v3", 32), ("x86-64-v4", 64), ("armv8-a", 16)])
def test_vector_width_follows_the_level(target: str, width: int) -> None:
    assert CpuTarget(target).vector_bytes == width


def test_levels_contain_the_lower_ones() -> None:
    levels = [CpuTarget(name) for name in ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")]
    for lower, upper in itertools.pairwise(levels):
        assert lower.features < upper.features
    assert {"-mavx2", "-mfma", "-mf16c"} <= set(V3.flags)
    assert {"-mavx512vnni", "-mprefer-vector-width=512"} <= set(V4.flags)


def test_the_richest_level_that_fits_is_resolved() -> None:
    assert resolve(Processor("x86_64", frozenset())) == CpuTarget("x86-64")
    assert resolve(Processor("x86_64", V3.features)) == V3
    assert resolve(Processor("x86_64", V3.features | {"avx512_vnni"})) == V3
    assert resolve(Processor("x86_64", V4.features)) == V4
    # One missing feature costs the level.
    assert resolve(Processor("x86_64", V3.features - {"movbe"})) == CpuTarget("x86-64-v2")
    assert resolve(Processor("aarch64", frozenset())) == CpuTarget("armv8-a")
    level = CpuTarget("armv8.2-a")
    assert resolve(Processor("aarch64", level.features)) == level
    assert resolve(Processor("aarch64", level.features | {"i8mm"})) == CpuTarget("armv8.2-a", ("i8mm",))
    assert resolve(Processor("aarch64", frozenset({"i8mm"}))) == CpuTarget("armv8-a")


def test_extensions_of_aarch64_are_added_to_its_level() -> None:
    assert CpuTarget("armv8-a").flags == ("-march=armv8-a",)
    assert CpuTarget("armv8.2-a", ("bf16", "i8mm")).flags == ("-march=armv8.2-a+bf16+i8mm",)


def test_an_unknown_machine_is_refused() -> None:
    with pytest.raises(DeviceError, match="this machine is riscv64, tc knows aarch64, x86_64"):
        resolve(Processor("riscv64", frozenset()))


def test_another_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(DeviceError, match="it runs on Linux, and this system is darwin"):
        processor.__wrapped__()


def test_running_elsewhere_is_refused_with_what_is_missing() -> None:
    with pytest.raises(DeviceError, match=r"'cpu:x86-64-v3' does not run here: this processor lacks avx2, fma; use"):
        check_runs(V3, Processor("x86_64", V3.features - {"fma", "avx2"}))
    with pytest.raises(DeviceError, match="this machine is aarch64; use target 'cpu'"):
        check_runs(V3, Processor("aarch64", V3.features))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cpuu", "unknown target 'cpuu'; did you mean 'cpu'?"),
        ("", "unknown target ''; known: cpu, emulator, opencl, cuda"),
        ("cpu:", "unknown cpu architecture ''; known: x86-64"),
        ("cpu:x86-64-v9", "unknown cpu architecture 'x86-64-v9'; did you mean 'x86-64-v"),
        ("cpu:x86-64-v4+avx512vni", "unknown cpu extension 'avx512vni'; did you mean 'avx512vnni'?"),
        ("cpu:x86-64-v3+avx512vnni", "cpu extension 'avx512vnni' belongs to x86-64-v4, not to x86-64-v3"),
    ],
)
def test_unknown_names_get_a_hint(text: str, message: str) -> None:
    with pytest.raises(OptionsError) as caught:
        parse_target(text)
    assert message in str(caught.value)


def test_an_architecture_must_be_named_to_compile_for() -> None:
    with pytest.raises(OptionsError, match=r"^target 'cuda' names no architecture; name one, as in 'cuda:sm_90'$"):
        parse_target("cuda")


def test_targets_that_this_machine_lacks_are_not_available() -> None:
    pytest.importorskip("cuda.bindings")
    if tc.targets()["cuda"].startswith("available"):
        pytest.skip("this machine has a GPU")
    with pytest.raises(
        DeviceError,
        match=r"^target 'cuda' is not available: the CUDA driver cannot be loaded \(.*\); to run here, use 'cpu' or "
        r"'emulator', to compile only, name an architecture, as in 'cuda:sm_90'$",
    ):
        named_target("cuda")


def test_every_target_is_named_as_it_is_asked_for() -> None:
    for name in ("cpu:x86-64-v3", "emulator", "opencl", "cuda:sm_90"):
        assert str(parse_target(name)) == name


def test_a_cpu_may_be_wanted() -> None:
    assert parse_cpu_target("cpu:x86-64-v3") == V3
    with pytest.raises(OptionsError, match=r"^target must be a cpu, got 'emulator'$"):
        parse_cpu_target("emulator")
