"""What the passes know of a machine, and the defaults that follow from it."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

import tc
from tc.compiler import translate
from tc.targets.machine import GENERIC_GPU, GPUS, GpuMachine
from tc.targets.multiprocessor import MULTIPROCESSORS
from tc.targets.resolve import resolved
from tc.targets.target import CudaTarget, parse_target

MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").single()
SUMS = tc.define("def sums(float(M,N) X) -> (s) { s(m) +=! X(m,n) }").single()
PASSES = Path(__file__).parents[2] / "tc/polyhedral"


def opened(machine: GpuMachine) -> dict[str, object]:
    """What the machine makes of options that are left open."""
    return {decision.option: decision.taken for decision in resolved(tc.GpuOptions(), machine)}


def source(definition: tc.Comprehension, target: str, *shapes: tuple[int, ...], options: tc.GpuOptions) -> str:
    return translate(definition.specialize(*shapes), options, parse_target(target)).source.text


def test_every_architecture_has_a_machine() -> None:
    assert GPUS.keys() == MULTIPROCESSORS.keys()
    for name, machine in GPUS.items():
        assert machine.multiprocessor is MULTIPROCESSORS[name] is CudaTarget(name).multiprocessor
        assert bool(machine.matrix_shapes)
        assert machine.asynchronous_copies == (name != "sm_75")


@pytest.mark.parametrize("machine", [*GPUS.values(), GENERIC_GPU], ids=[*GPUS, "generic"])
def test_two_blocks_with_the_default_of_shared_memory_fit_a_multiprocessor(machine: GpuMachine) -> None:
    found = opened(machine)
    assert found["shared_memory"] == machine.block_shared
    assert machine.multiprocessor.resident(machine.block_threads, 0, machine.block_shared) >= 2
    assert 2 * machine.operand_bytes <= machine.block_shared
    assert machine.few_operand_bytes < machine.operand_bytes
    assert found["register_accumulators"] == machine.thread_elements == 64
    assert machine.multiprocessors / 2 < machine.enough_blocks <= machine.multiprocessors


def test_what_is_asked_for_is_kept() -> None:
    asked = tc.GpuOptions(shared_memory=1000, register_accumulators=3, shuffles=False)
    assert list(resolved(replace(asked, stages=1), GPUS["sm_75"])) == []


def test_architectures_have_defaults_of_their_own() -> None:
    found = {name: opened(GPUS[name])["shared_memory"] for name in ("sm_75", "sm_80", "sm_90", "sm_120")}
    assert found == {"sm_75": 32 << 10, "sm_80": 81 << 10, "sm_90": 113 << 10, "sm_120": 49 << 10}
    assert [GPUS[name].enough_blocks for name in ("sm_80", "sm_90", "sm_100")] == [81, 99, 111]
    sources = {
        source(MM, f"cuda:{name}", (1152, 64), (64, 1280), options=tc.GpuOptions()).partition("tc_kernel_0")[2]
        for name in ("sm_75", "sm_80", "sm_90")
    }
    assert len(sources) == 3


def test_tiles_are_copied_ahead_where_copies_are_asynchronous() -> None:
    for name, stages in (("sm_75", 1), ("sm_90", 4)):
        options = tc.GpuOptions(tc.ScheduleOptions(tile=(64, 64, 8)))
        found = source(MM, f"cuda:{name}", (128, 64), (64, 128), options=options)
        assert found == source(MM, f"cuda:{name}", (128, 64), (64, 128), options=replace(options, stages=stages))


def test_a_target_without_shuffles_has_none_by_default_and_refuses_them() -> None:
    found = source(SUMS, "opencl", (8, 512), options=tc.GpuOptions())
    assert found == source(SUMS, "opencl", (8, 512), options=tc.GpuOptions(shuffles=False))
    with pytest.raises(tc.OptionsError) as refused:
        source(SUMS, "opencl", (8, 512), options=tc.GpuOptions(shuffles=True))
    assert str(refused.value) == (
        "shuffles=True cannot be had: threads of this target exchange no registers; leave it out"
    )
    shuffled = source(SUMS, "emulator", (8, 512), options=tc.GpuOptions())
    assert shuffled == source(SUMS, "emulator", (8, 512), options=tc.GpuOptions(shuffles=True))
    assert shuffled != source(SUMS, "emulator", (8, 512), options=tc.GpuOptions(shuffles=False))


def test_no_pass_has_a_constant_of_one_machine() -> None:
    """The warp, the blocks of a grid, bytes of shared memory: whatever a GPU has, a pass asks it for."""
    figures = {128 << 10, 113 << 10, 81 << 10, 48 << 10, 20 << 10, 8 << 10, 1 << 16, 132, 108, 148}
    found = [
        f"{path.name}:{node.lineno}"
        for folder in ("gpu", "generate", "execution")
        for path in sorted((PASSES / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and node.value is not None
        and (value := constant(node.value)) in figures
        and value is not None
    ]
    assert found == []
    warps = [
        str(path)
        for path in sorted(PASSES.parent.rglob("*.py"))
        if re.search(r"^_?(WARP|LANES|MOST_THREADS)\b.*= (32|1024)$", path.read_text(), re.MULTILINE)
    ]
    assert [Path(name).name for name in warps] == ["grid.py", "threads.py"]


def constant(node: ast.expr) -> int | None:
    """The value of ``20 << 10``, say."""
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.BinOp(left, ast.LShift(), right):
            one, other = constant(left), constant(right)
            return None if one is None or other is None else one << other
        case _:
            return None
