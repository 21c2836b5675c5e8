"""What is changed of options with which no loops can be taken: decided in one place, and handed on with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tc
from tc.base.decision import Decision
from tc.base.errors import OptionsError
from tc.compiler import translate
from tc.polyhedral.attempts import first_attempt, next_attempt
from tc.polyhedral.generate.localize import NotAffineError
from tc.polyhedral.generate.obstacles import InBuffers, LongSums, MissingInstances, NoMatrices
from tc.polyhedral.ir.loops import LoopTree
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.pipeline import map_program
from tc.reference.compare import compare
from tc.targets.machine import GENERIC_GPU
from tc.targets.options import CpuOptions, Distribution, Fusion, GpuOptions, Options, ScheduleOptions, TensorCores
from tc.targets.target import parse_target
from tests.polyhedral.support import MACHINE, MATMUL, machine_for, specialized

PRODUCT = specialized(MATMUL, ((40, 20), (20, 64)))
WITHOUT_SHUFFLES = replace(GENERIC_GPU, shuffles=False, asynchronous_copies=False)
# What the machine makes of what is left open.
OPEN = {"shared_memory": 48 << 10, "register_accumulators": 64, "shuffles": True}


def test_the_first_attempt_is_what_was_asked_for() -> None:
    for options in (CpuOptions(), GpuOptions(shared_memory=1000, register_accumulators=0, shuffles=False)):
        attempt = first_attempt(PRODUCT, options, machine_for(options))
        assert (attempt.asked, attempt.options, attempt.decisions) == (options, options, ())


def test_what_is_left_open_is_what_the_machine_makes_of_it() -> None:
    attempt = first_attempt(PRODUCT, GpuOptions(), GENERIC_GPU)
    assert (attempt.asked, attempt.options) == (GpuOptions(), GpuOptions(**OPEN))  # type: ignore[arg-type]
    assert {d.option: (d.asked, d.taken) for d in attempt.decisions} == {n: (None, own) for n, own in OPEN.items()}
    assert str(attempt.decisions[0]) == "shared_memory: 49152, since two such blocks fit a multiprocessor"


@pytest.mark.parametrize(("stages", "taken"), [(None, 1), (3, 3)])
def test_what_a_machine_has_not_is_not_tried(stages: int | None, taken: int) -> None:
    attempt = first_attempt(
        PRODUCT, GpuOptions(stages=stages, shared_memory=0, register_accumulators=0), WITHOUT_SHUFFLES
    )
    assert attempt.options == GpuOptions(stages=taken, shared_memory=0, register_accumulators=0, shuffles=False)
    assert attempt.decisions[0] == Decision("shuffles", None, False, "the target has no warp shuffles")
    assert [(d.option, d.asked, d.taken) for d in attempt.decisions[1:]] == [("stages", None, 1)] * (stages is None)


@pytest.mark.parametrize(
    ("options", "obstacle", "changes"),
    [
        (
            CpuOptions(local_temporaries=0),
            InBuffers.NOT_AFFINE,
            {"register_accumulators": 0, "packed_operands": 0, "nontemporal_stores": 0},
        ),
        (
            GpuOptions(register_operands=8),
            InBuffers.NOT_AFFINE,
            {"register_accumulators": 0, "shared_memory": 0, "register_operands": 0, "shuffles": False},
        ),
        (GpuOptions(register_operands=8), InBuffers.MOVING_ARRAYS, {"register_operands": 0}),
        (GpuOptions(), InBuffers.MOVING_ARRAYS, {"register_accumulators": 0}),
        (GpuOptions(), InBuffers.DIVERGENT_BARRIERS, {"shared_memory": 0}),
        (GpuOptions(), InBuffers.MISSING_COPIES, {"shared_memory": 0}),
    ],
)
def test_limits_of_buffers_are_lowered(options: Options, obstacle: InBuffers, changes: dict[str, Any]) -> None:
    machine = machine_for(options)
    first = first_attempt(PRODUCT, options, machine)
    wide = replace(first, plan=replace(first.plan, wide=frozenset({"S0"})))
    found = next_attempt(PRODUCT, machine, wide, obstacle)
    assert found.options == replace(first.options, **changes)
    assert found.plan.wide == {"S0"}
    lowered = tuple(Decision(name, getattr(options, name), taken, obstacle.value) for name, taken in changes.items())
    assert found.decisions == (*(d for d in first.decisions if d.option not in changes), *lowered)


def test_shuffles_that_were_asked_for_are_not_given_up() -> None:
    first = first_attempt(PRODUCT, GpuOptions(shuffles=True), GENERIC_GPU)
    with pytest.raises(OptionsError) as refused:
        next_attempt(PRODUCT, GENERIC_GPU, first, InBuffers.NOT_AFFINE)
    assert str(refused.value) == (
        "shuffles=True cannot be had for mm: subscripts of a buffer would be no affine functions of the loops; "
        "leave shuffles out, or choose other tiles"
    )


def test_other_changes_leave_the_options() -> None:
    first = first_attempt(PRODUCT, CpuOptions(), MACHINE)
    whole = next_attempt(PRODUCT, MACHINE, first, MissingInstances())
    wide = next_attempt(PRODUCT, MACHINE, whole, LongSums(frozenset({"S0"})))
    assert wide.options == CpuOptions()
    assert wide.whole_sums
    assert wide.plan.wide == {"S0"}
    assert [(d.option, d.asked, d.taken) for d in wide.decisions] == [
        ("loops over sums of iterators", "divided", "whole"),
        ("accumulator", "float32", "float64"),
    ]
    assert str(wide.decisions[1]).startswith("accumulator: float64 instead of float32, since S0 adds up too many terms")


def test_obstacles_that_no_buffer_makes_are_mistakes_of_ours() -> None:
    first = first_attempt(PRODUCT, GpuOptions(shared_memory=0), GENERIC_GPU)
    with pytest.raises(AssertionError, match="DIVERGENT_BARRIERS without buffers"):
        next_attempt(PRODUCT, GENERIC_GPU, first, InBuffers.DIVERGENT_BARRIERS)


def test_kernels_say_what_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = map_program(PRODUCT, CpuOptions(), MACHINE).attempt
    assert (usual.asked, usual.options) == (CpuOptions(), CpuOptions())
    # Tiles are chosen nest by nest, by rules that are more than sizes.
    assert [(d.option, d.asked) for d in usual.decisions] == [("tile", None), ("register_tile", None)]

    def refuse(root: LoopTree, scop: Scop) -> LoopTree:
        if scop.promotions:
            raise NotAffineError
        return root

    monkeypatch.setattr("tc.polyhedral.passes.localize_loops", refuse)
    found = map_program(PRODUCT, CpuOptions(), MACHINE)
    assert found.attempt.options == CpuOptions(
        register_accumulators=0, packed_operands=0, local_temporaries=0, nontemporal_stores=0
    )
    lowered = ["register_accumulators", "packed_operands", "local_temporaries", "nontemporal_stores"]
    assert [d.option for d in found.attempt.decisions if d.option in lowered] == lowered
    assert "packed_operands: 0 instead of 131072, since subscripts of a buffer" in found.stage("earlier attempts").text


TRANSPOSE = "def transpose(float(M,N) A) -> (B) { B(n,m) = A(m,n) }"
RUNS = GpuOptions(
    ScheduleOptions(Fusion.MAXIMAL, unroll=1024),
    block=(1, 64),
    distribution=Distribution.BLOCKED,
    split_k_threads=(4,),
    split_k_blocks=4,
    register_accumulators=16,
    register_operands=64,
)


@pytest.mark.parametrize(
    ("text", "shapes", "options", "expected"),
    [
        (MATMUL, ((4, 64), (64, 8)), CpuOptions(register_accumulators=0), []),
        (MATMUL, ((4, 65), (65, 8)), CpuOptions(register_accumulators=0), ["accumulator"]),
        (MATMUL, ((128, 40), (40, 96)), RUNS, ["register_operands"]),
        (TRANSPOSE, ((1000, 777),), GpuOptions(grid=(8,), stages=2), ["shared_memory"]),
    ],
    ids=["none", "long sums", "moving arrays", "divergent barriers"],
)
def test_kernels_with_changes(
    text: str, shapes: tuple[tuple[int, ...], ...], options: Options, expected: list[str]
) -> None:
    found = map_program(specialized(text, shapes), options, machine_for(options)).attempt
    assert [d.option for d in found.decisions if d.option in expected] == expected
    changes = {d.option: d.taken for d in found.decisions}
    assert all(changes[name] == getattr(found.options, name) == 0 for name in expected if name != "accumulator")
    assert found.asked == options


STRIDED = "def f(float(N,N) x) -> (y) { y(i,m) max=! x(k,j) where i in 0:N, m in 0:N, k in 0:N, 2*j < i }"


@pytest.mark.parametrize("shared", [None, 0])
def test_scans_whose_barriers_would_diverge_are_none(shared: int | None) -> None:
    f = tc.define(STRIDED).single()
    sizes = (tc.dynamic(8), tc.dynamic(8))
    options = tc.GpuOptions(shared_memory=shared)
    kernel = f.compile(sizes, target="emulator", options=options)
    (decision,) = (own for own in kernel.decisions if own.option == "scans")
    assert str(decision) == (
        "scans: False instead of True, since threads of a block would meet the barriers between its steps "
        "unequally often"
    )
    assert not kernel.options.schedule.scans
    assert isinstance(kernel.options, tc.GpuOptions)
    assert (kernel.options.shared_memory == 0) == (shared == 0)
    for extent in (1, 5, 8):
        x = np.random.default_rng(extent).standard_normal((extent, extent), np.float32)
        assert compare(f.oracle(x)["y"], np.asarray(f(x, target="emulator", options=options))).ok


def test_without_matrix_instructions_other_tiles_are_tried() -> None:
    """What two products in one loop share is cut for neither; shared memory that was given up is had again."""
    halves = tc.define(
        "def f(float16(M,K) A, float16(K,N) B, float16(K,N) D) -> (E) { C(m,n) +=! A(m,k) * B(k,n)  "
        "G(m,n) +=! A(m,k) * D(k,n)  E(m,n) = C(m,n) * G(m,n) }"
    ).single()
    specialization = halves.specialize((64, 64), (64, 64), (64, 64))
    attempt = next_attempt(
        specialization, GENERIC_GPU, first_attempt(specialization, GpuOptions(), GENERIC_GPU), NoMatrices()
    )
    assert isinstance(attempt.options, GpuOptions)
    assert attempt.options.tensor_cores is TensorCores.NONE
    assert attempt.asked == GpuOptions()
    (said,) = (own for own in attempt.decisions if own.option == "tensor_cores")
    assert said.reason == "the lanes of no warp would run whole blocks of its products together"
    made = translate(specialization, GpuOptions(), parse_target("emulator"))
    assert said in made.decisions
