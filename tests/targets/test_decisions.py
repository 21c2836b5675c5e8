"""Every option of every target, asked for on ten kernels: it is in the kernel, or in the decisions."""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

import tc
from tc.artifact.packing import assemble, decisions_said, describe, pack, unpack
from tc.base.decision import Decision
from tc.compiler import Compilation, translate
from tc.polyhedral.ir.loops import Buffer, GroupMma, Instance, Loop, LoopKind, Matrices, Prefetch, Sharing
from tc.polyhedral.pipeline import Prepared
from tc.targets.options import (
    CpuOptions,
    Distribution,
    Fusion,
    GpuOptions,
    Options,
    ScheduleOptions,
    TensorCores,
    TileLayout,
)
from tc.targets.target import parse_target
from tests.polyhedral.mutants import nodes
from tests.turns import every_row

KERNELS: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    "copy": ("def f(float(N) x) -> (y) { y(i) = 2.0 * x(i) }", ((100,),)),
    "transpose": ("def f(float(M,N) A) -> (B) { B(n,m) = A(m,n) }", ((30, 40),)),
    "product": ("def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", ((24, 40), (40, 36))),
    "rows": ("def f(float(M,N) A) -> (s) { s(m) +=! A(m,n) }", ((9, 200),)),
    "columns": ("def f(float(M,N) A) -> (s) { s(n) max=! A(m,n) }", ((90, 17),)),
    "softmax": (
        "def f(float(M,N) X) -> (O) { a(m) max=! X(m,n)  t(m) +=! exp(X(m,n) - a(m))  O(m,n) = X(m,n) / t(m) }",
        ((6, 40),),
    ),
    "gather": ("def f(float(N,D) T, int32(B) I) -> (O) { O(b,d) = T(I(b),d) }", ((50, 8), (20,))),
    "stencil": ("def f(float(N) x, float(K) w) -> (y) { y(i) +=! x(i + k) * w(k) }", ((70,), (5,))),
    "layers": (
        """def f(float(B,I) x, float(O,I) w, float(P,O) v) -> (y) {
            h(b,o) +=! x(b,i) * w(o,i)  r(b,o) = fmax(h(b,o), 0.0)  y(b,p) +=! r(b,o) * v(p,o) }""",
        ((8, 20), (16, 20), (12, 16)),
    ),
    "two": ("def f(float(N) x, float(M) y) -> (a, b) { a(i) = 2.0 * x(i)  b(j) = y(j) + 1.0 }", ((100,), (60,))),
}
SCHEDULES = (
    ScheduleOptions(fusion=Fusion.MINIMAL),
    ScheduleOptions(fusion=Fusion.MAXIMAL),
    ScheduleOptions(tile=(4,)),
    ScheduleOptions(tile=()),
    ScheduleOptions(unroll=4),
)
ON_CPU: dict[str, tuple[object, ...]] = {
    "schedule": SCHEDULES,
    "register_tile": ((2,), (), (2, 8)),
    "vector_axis": (0,),
    "register_accumulators": (0, 64),
    "packed_operands": (0, 100),
    "local_temporaries": (0, 64),
    "nontemporal_stores": (0, 1),
    "threads": (1,),
    "vectorize": (False, True),
    "check_indices": (False,),
    "gather_prefetch": (0, 4),
    "block_prefetch": (0, 64),
}
ON_GPU: dict[str, tuple[object, ...]] = {
    "schedule": SCHEDULES,
    "block": ((8,), (4, 2)),
    "grid": ((2,), (3, 2)),
    "distribution": (Distribution.BLOCKED,),
    "split_k_threads": ((4,), (), (64, 2)),
    "split_k_blocks": (2, 1),
    "shuffles": (True, False),
    "tensor_cores": tuple(TensorCores),
    "register_accumulators": (0, 4),
    "register_operands": (8,),
    "shared_memory": (0, 1000, 48 << 10),
    "layout": (TileLayout.POINTS,),
    "padding": (0, 1),
    "stages": (1, 2),
    "min_blocks_per_multiprocessor": (2,),
    "check_indices": (False,),
}
# What an OptionsError names where it is not the option itself.
ALSO_NAMED = {"split_k_blocks": "blocks", "vector_axis": "register_tile"}
LIMITS = frozenset(
    {
        "register_accumulators",
        "packed_operands",
        "local_temporaries",
        "nontemporal_stores",
        "register_operands",
        "shared_memory",
        "grid",
    }
)
MAY_DIFFER = LIMITS | {"block_prefetch", "vectorize", "fusion", "tensor_cores"}


def rows() -> Iterator[tuple[str, str, str, object]]:
    """All kernels with all options of all targets, in an order in which any few are of many kinds."""
    chosen = [
        *(("cpu:x86-64-v3", name, value) for name, values in ON_CPU.items() for value in values),
        *((t, n, v) for t in ("cuda:sm_90", "opencl", "emulator") for n, values in ON_GPU.items() for v in values),
    ]
    names = tuple(KERNELS)
    for turn, (number, (target, name, value)) in itertools.product(range(len(names)), enumerate(chosen)):
        yield names[(turn + number) % len(names)], target, name, value


@functools.cache
def prepared(kernel: str) -> Prepared:
    text, shapes = KERNELS[kernel]
    return Prepared(tc.define(text).single().specialize(*shapes))


def asked_for(target: str, name: str, value: Any) -> Options:
    if target.startswith("cpu"):
        return replace(CpuOptions(register_tile=(2, 4)) if name == "vector_axis" else CpuOptions(), **{name: value})
    return replace(GpuOptions(min_blocks_per_multiprocessor=1), **{name: value})


@pytest.mark.parametrize(("kernel", "target", "name", "value"), every_row(61, rows()))
def test_every_option_is_in_the_kernel_or_in_the_decisions(kernel: str, target: str, name: str, value: object) -> None:
    options = asked_for(target, name, value)
    try:
        made = translate(prepared(kernel), options, parse_target(target))
    except tc.OptionsError as error:
        assert name in str(error) or ALSO_NAMED.get(name, "tile") in str(error)  # noqa: PT017
        assert name not in LIMITS or "grid has" in str(error)  # noqa: PT017
        return
    except tc.CompileError as error:
        assert "OpenCL C has no" in str(error)  # noqa: PT017
        return
    require_truth(made, options)
    wished = {name: value}
    if name == "schedule":
        wished = {own: getattr(options.schedule, own) for own in ("tile", "fusion", "unroll")}
    for option, wish in wished.items():
        decided = any(decision.option == option for decision in made.decisions)
        assert decided or Found(made).has(option, wish), (option, wish, made.options)


def flat(options: Options) -> dict[str, object]:
    """Every option by name."""
    own = {field.name: getattr(options, field.name) for field in fields(options)}
    schedule = own.pop("schedule")
    return own | {field.name: getattr(schedule, field.name) for field in fields(schedule)}


def require_truth(made: Compilation, options: Options) -> None:
    """Each difference is a decision, and says what was asked for and taken; what is exact never differs."""
    assert made.asked == options
    asked, taken = flat(options), flat(made.options)
    decided: dict[str, list[Decision]] = {}
    for decision in made.decisions:
        decided.setdefault(decision.option, []).append(decision)
    for name, value in asked.items():
        if taken[name] != value:
            assert [(d.asked, d.taken) for d in decided[name]] == [(value, taken[name])]
            assert value is None or name in MAY_DIFFER
    for name in decided.keys() & asked.keys():
        assert all(d.asked == asked[name] and d.reason for d in decided[name])


@dataclass(frozen=True)
class Found:
    """What can be seen of options in a kernel."""

    made: Compilation

    def has(self, name: str, value: Any) -> bool:
        """Whether the option is there, or, of a limit, is kept to."""
        for found in (self.in_schedule, self.in_memory, self.in_grid):
            seen = found(name, value)
            if seen is not None:
                return seen
        # Of these, there may be nothing that they say how to do.
        assert name in ("distribution", "layout", "padding", "threads"), f"nothing says where {name} is seen"
        return bool(getattr(self.made.options, name) == value)

    def in_schedule(self, name: str, value: Any) -> bool | None:
        """Of loops and what they do."""
        loops = self.made.mapped.loops
        found = tuple(nodes(loops.root))
        kinds = {node.kind for node in found if isinstance(node, Loop)}
        match name:
            case "fusion":
                shared = re.search(r"\{ S\d+.* -> .*; S\d", self.stage("schedule").partition("\n")[2])
                return value is not Fusion.MINIMAL or shared is None
            case "tile":
                return not value or re.search(rf"/{value[0]}\)|mod {value[0]}\)", self.made.schedule) is not None
            case "unroll":
                return bool(value > 1) or LoopKind.FULLY_UNROLLED not in kinds
            case "register_tile":
                sizes = re.findall(r"mod (\d+)\)\].*(?:register|vector)", self.made.schedule)
                return not value or str(value[-1]) in sizes
            case "vector_axis":
                return LoopKind.VECTOR in kinds
            case "vectorize":
                return bool(kinds & {LoopKind.VECTOR, LoopKind.REDUCTION}) is value
            case "check_indices":
                return loops.checked is value
            case "tensor_cores":
                return (
                    not any(isinstance(node, Matrices) for node in found)
                    if value is TensorCores.NONE
                    else value in (TensorCores.WARPGROUPS, TensorCores.STREAMS)
                    or not any(isinstance(node, GroupMma) for node in found)
                )
            case "min_blocks_per_multiprocessor":
                return bool(loops.resident == value)
            case "gather_prefetch":
                gathers = [node for node in found if isinstance(node, Instance) and node.prefetched]
                return value > 0 or not gathers
            case "block_prefetch":
                return value > 0 or not any(isinstance(node, Prefetch) for node in found)
            case _:
                return None

    def in_memory(self, name: str, value: Any) -> bool | None:
        """Of buffers."""
        loops = self.made.mapped.loops
        match name:
            case (
                "register_accumulators"
                | "packed_operands"
                | "local_temporaries"
                | "register_accumulators"
                | "register_operands"
            ):
                return all(buffer.layout.size <= value for buffer in self.buffers_of(name))
            case "shared_memory":
                return all(grid.shared_bytes <= value for grid in self.made.source.grids)
            case "nontemporal_stores":
                stores = any(isinstance(node, Instance) and node.nontemporal for node in nodes(loops.root))
                return stores is (value > 0)
            case "shuffles":
                return bool(value) or all(buffer.sharing is not Sharing.LANES for buffer in loops.promoted)
            case "stages":
                return set(re.findall(r"slot\) % (\d+)", self.made.source.text)) <= {str(value)}
            case _:
                return None

    def in_grid(self, name: str, value: Any) -> bool | None:
        """Of blocks and threads."""
        match name:
            case "block":
                return math.prod(value) in {math.prod(threads) for _, threads in self.launched()}
            case "grid":
                return all(math.prod(blocks) <= math.prod(value) for blocks, _ in self.launched())
            case "split_k_threads":
                return bool(self.made.mapped.attempt.plan.parts == value)
            case "split_k_blocks":
                return bool(self.made.mapped.attempt.plan.blocks == value)
            case _:
                return None

    def stage(self, name: str) -> str:
        return self.made.mapped.stage(name).text

    def buffers_of(self, limit: str) -> Iterator[Buffer]:
        prefixes = {
            "register_accumulators": ("tile", "private"),
            "packed_operands": ("packed",),
            "local_temporaries": ("local",),
        }
        prefix = prefixes.get(limit, ("operand",))
        return (buffer for buffer in self.made.mapped.loops.promoted if buffer.name.startswith(prefix))

    def launched(self) -> Iterator[tuple[list[int], list[int]]]:
        """Blocks and threads of each kernel, as the explanation says."""
        for blocks, threads in re.findall(r"  blocks ([\d x]+), threads ([\d x]+)", self.stage("kernels")):
            yield list(map(int, blocks.split(" x "))), list(map(int, threads.split(" x ")))


MM = tc.define(KERNELS["product"][0]).single()
SHAPES = KERNELS["product"][1]


def test_kernels_say_what_they_are_made_with() -> None:
    a, b = (np.ones(shape, np.float32) for shape in SHAPES)
    options = GpuOptions(ScheduleOptions(tile=(8, 8)), block=(8, 8), shared_memory=0)
    kernel = MM.compile(a, b, target="emulator", options=options)
    assert kernel.asked == options
    assert kernel.options == replace(
        options,
        grid=(5, 3),
        split_k_threads=(),
        split_k_blocks=1,
        register_accumulators=64,
        shuffles=False,
        stages=1,
        padding=0,
    )
    assert {d.option: (d.asked, d.taken) for d in kernel.decisions} == {
        name: (None, getattr(kernel.options, name))
        for name in (
            "grid",
            "split_k_threads",
            "split_k_blocks",
            "register_accumulators",
            "shuffles",
            "stages",
            "padding",
        )
    }
    explained = MM.explain(a, b, target="emulator", options=options)
    assert (
        "\n\n== decisions ==\nregister_accumulators: 64, since that is a quarter of the registers of a thread\n"
        in explained
    )
    np.testing.assert_array_equal(kernel(a, b), a @ b)


def test_what_was_decided_is_stored_with_the_executable() -> None:
    for target, options in (("cpu", CpuOptions(local_temporaries=100)), ("emulator", GpuOptions(grid=(2,)))):
        executable = MM.compile(*SHAPES, target=target, options=options).executable
        assert executable.decisions
        assert unpack(pack(executable)) == executable
        assert decisions_said(describe(executable)) == tuple(map(str, executable.decisions))
    assert decisions_said("no JSON") == decisions_said("{}") == ()


def test_executables_of_the_format_before_load_and_those_of_later_ones_are_refused() -> None:
    executable = MM.compile(*SHAPES, target="cpu", options=CpuOptions(local_temporaries=100)).executable
    written = json.loads(describe(executable))
    before = {name: value for name, value in written.items() if name not in ("format", "options", "decisions")}
    parts = executable.asked.to_json(), executable.source, executable.binary.code
    found = assemble(json.dumps(before), *parts)
    assert (found.asked, found.options, found.decisions) == (executable.asked, executable.asked, ())
    assert found == replace(executable, options=executable.asked, decisions=())
    third = {name: value for name, value in written["convention"].items() if name != "steps"}
    assert assemble(json.dumps(written | {"format": 3, "convention": third}), *parts) == executable
    with pytest.raises(ValueError, match="it is of format 7, and this version of tc reads formats up to 6"):
        assemble(json.dumps(written | {"format": 7}), *parts)
    with pytest.raises(ValueError, match="local_temporaries must be an integer from 0 to 262144, got -1"):
        assemble(json.dumps(written | {"options": written["options"] | {"local_temporaries": -1}}), *parts)


def test_decisions_have_the_values_of_options() -> None:
    options = CpuOptions(ScheduleOptions(fusion=Fusion.MAXIMAL))
    executable = MM.compile(*SHAPES, target="cpu", options=options).executable
    fused = Decision("fusion", Fusion.MAXIMAL, Fusion.MINIMAL, "it is a test")
    decided = (fused, Decision("accumulator", "float32", "float64", "it is one, too"))
    kept = unpack(pack(replace(executable, decisions=decided)))
    assert kept.decisions == decided
    assert str(fused) == "fusion: minimal instead of maximal, since it is a test"
    assert decisions_said(describe(kept)) == tuple(map(str, decided))


def test_limits_that_nothing_comes_under_are_said() -> None:
    copied = tc.define(KERNELS["copy"][0]).single()
    options = CpuOptions(register_accumulators=100, packed_operands=100, local_temporaries=100, nontemporal_stores=100)
    kernel = copied.compile(*KERNELS["copy"][1], target="cpu", options=options)
    said = {d.option: str(d) for d in kernel.decisions}
    assert (
        said["register_accumulators"]
        == "register_accumulators: 0 instead of 100, since no target of a reduction is kept in a buffer"
    )
    assert said["packed_operands"] == "packed_operands: 0 instead of 100, since no operand is packed"
    assert said["local_temporaries"] == "local_temporaries: 0 instead of 100, since no temporary is kept in a buffer"
    grid = copied.compile(*KERNELS["copy"][1], target="emulator", options=GpuOptions(register_operands=8, grid=(1000,)))
    said = {d.option: str(d) for d in grid.decisions}
    assert (
        said["register_operands"]
        == "register_operands: 0 instead of 8, since no operand is read again by the same thread"
    )
    assert said["grid"] == "grid: (2,) instead of (1000,), since there are so many tiles"
    assert said["shared_memory"] == "shared_memory: 0, since nothing that several threads use has a tile that fits"
    assert said["register_accumulators"] == "register_accumulators: 0, since no thread keeps a result while it reduces"
    assert said["stages"] == "stages: 1, since no operand is copied to shared memory"


def test_kernels_without_vectors_say_so() -> None:
    for kernel, options, vectors in (("copy", CpuOptions(), True), ("copy", CpuOptions(vectorize=False), False)):
        made = translate(prepared(kernel), options, parse_target("cpu:x86-64-v3"))
        assert made.options.vectorize == vectors  # type: ignore[union-attr]
    single = tc.define("def f(float(N) x) -> (y) { y(0) = x(0) }").single()
    made = translate(single.specialize((4,)), CpuOptions(), parse_target("cpu:x86-64-v3"))
    assert "vectorize: False instead of True, since no innermost loop is parallel or reduces along memory" in map(
        str, made.decisions
    )


def test_sizes_of_loops_that_stay_whole_are_refused() -> None:
    """The mean and the squares share a loop, which each carries in its own way."""
    text = "def moments(float(N,K) I) -> (mean, var) { mean(n) +=! I(n,k)  var(n) +=! I(n,k) * I(n,k) }"
    definition, maximal = tc.define(text).moments, tc.Fusion.MAXIMAL
    wrong = tc.CpuOptions(tc.ScheduleOptions(tile=(3, 5), fusion=maximal))
    said = (
        "tile (3, 5) has sizes for loops that carry dependences among several statements, which stay whole; write 0 "
        "for these, as in (3, 0) (tile begins with the outermost loop)"
    )
    with pytest.raises(tc.OptionsError, match=re.escape(said)):
        definition.compile((7, 19), options=wrong)
    options = tc.CpuOptions(tc.ScheduleOptions(tile=(3, 0), fusion=maximal))
    assert definition.compile((7, 19), options=options).options.schedule.tile == (3, 0)


def test_every_option_is_asked_for() -> None:
    """But numerics, which say what a call may do, and are in every key."""
    for kind, asked in ((tc.CpuOptions, ON_CPU), (tc.GpuOptions, ON_GPU)):
        assert asked.keys() | {"numerics"} == {field.name for field in fields(kind)}
