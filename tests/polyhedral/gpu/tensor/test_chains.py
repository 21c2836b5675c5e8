"""Chains of two products, as attention: on the emulator against the oracle, and as NVRTC compiles them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tc
from tc.base.dots import MatrixShape
from tc.dispatch.kernel import Kernel
from tc.language.program.program import Binary, Read
from tc.language.program.specialization import Specialization
from tc.polyhedral.attempts import first_attempt, next_attempt
from tc.polyhedral.generate.obstacles import NoChain
from tc.polyhedral.gpu.cost.count_kernels import count_kernels
from tc.polyhedral.gpu.mapping.chains import find_chain
from tc.polyhedral.gpu.mapping.recompute import recompute
from tc.polyhedral.ir.chained import Chain, Part, Recomputed
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.proof.rewrites.verify_recomputed import find_wrong_recomputation
from tc.targets.machine import GPUS
from tests.polyhedral.gpu.tensor.attention import EARLY, LATE, PLAIN
from tests.polyhedral.gpu.tensor.products import TYPES, agree, multiplies
from tests.translated import translated

SHAPES = tuple(MatrixShape(16, 8, 16, type, "f32") for type in ("f16", "bf16"))


def specialized(text: str, n: int = 128, m: int = 128, d: int = 64, e: int = 64) -> Specialization:
    shapes = ((n, d), (m, d), (m, e))
    batch = () if text is PLAIN else (2,)
    return tc.define(text.format("float16")).single().specialize(*((*batch, *own) for own in shapes))


def parts(chain: Chain) -> list[tuple[str, Part, int]]:
    return [(own.statement, own.part, own.phase) for own in chain.links]


def test_scores_are_computed_once_more_behind_each_reduction() -> None:
    found = find_chain(specialized(LATE), SHAPES)
    assert found is not None
    chain, again = found
    assert parts(chain) == [
        ("S0", Part.SCORES, 0),
        ("S0_again", Part.SCORES, 1),
        ("S1", Part.REDUCTION, 0),
        ("S2", Part.KEYS, 1),
        ("S3", Part.REDUCTION, 1),
        ("S4", Part.SUMS, 1),
        ("S5", Part.COLUMNS, 2),
    ]
    assert (chain.around, chain.rows, chain.keys, chain.columns, chain.steps) == (2, 128, 128, 64, 64)
    assert chain.reductions == {"S1", "S3"}
    assert [str(own) for own in again] == ["S0: computed once more for S2, by S0_again"]
    early = find_chain(specialized(EARLY), SHAPES)
    assert early is not None
    assert [own.statement for own in early[0].links if own.part is Part.SCORES] == ["S0", "S0_again_1", "S0_again"]
    plain = find_chain(specialized(PLAIN), SHAPES)
    assert plain is not None
    assert plain[1] == ()


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (LATE, "t(b,n,m) +=! q(b,n,d) * k(b,m,d) * k(b,m,d)"),  # no product of two
        (LATE, "t(b,n,m) += q(b,n,d) * k(b,m,d)"),
        (LATE, "t(b,n,m) +=! float32(q(b,n,d)) * float32(k(b,n,d)) where m in 0:M"),  # keys are in no factor
    ],
)
def test_what_is_no_chain(text: str, changed: str) -> None:
    source = text.replace("t(b,n,m) +=! q(b,n,d) * k(b,m,d)", changed)
    if "+= q" in changed:
        source = source.replace("t(b,n,m) += ", "t(b,n,m) = 0.0 * q(b,n,0) * k(b,m,0)\n    t(b,n,m) += ")
    assert find_chain(specialized(source), SHAPES) is None


def test_small_and_wide_ones_are_none() -> None:
    for sizes in (
        (63, 128, 64, 64),
        (128, 63, 64, 64),
        (128, 128, 15, 64),
        (128, 128, 64, 129),
        (128, 128, 64, 15),
        (128, 128, 64, 20),
    ):
        assert find_chain(specialized(LATE, *sizes), SHAPES) is None
    assert find_chain(specialized(LATE), ()) is None


def test_scores_that_are_a_result_are_kept() -> None:
    assert find_chain(specialized(LATE.replace("-> (o)", "-> (o, e)")), SHAPES) is None
    assert find_chain(specialized(LATE.replace("-> (o)", "-> (o, s)")), SHAPES) is not None


def again(text: str = LATE) -> tuple[Specialization, Specialization, Recomputed]:
    before = specialized(text)
    found = find_chain(before, SHAPES)
    assert found is not None
    ((after, made),) = recompute(before, found[1][:1])
    return before, after, made


def with_statement(after: Specialization, name: str, **changes: object) -> Specialization:
    changed = tuple(replace(own, **changes) if own.name == name else own for own in after.program.statements)  # type: ignore[arg-type]
    return replace(after, program=replace(after.program, statements=changed))


def test_what_is_computed_once_more_is_proven() -> None:
    before, after, made = again()
    assert find_wrong_recomputation(before, after, made) is None
    statements = after.program.statements
    copy = next(own for own in statements if own.name == made.made)
    assert isinstance(copy.value, Binary)
    wrong = {
        "another value": with_statement(after, made.made, value=copy.value.left),
        "begins nothing": with_statement(after, made.made, initialize=False),
        "another target": with_statement(after, made.made, target="t"),
        "another reader": with_statement(after, "S1", value=Read(made.tensor, copy.subscripts, copy.value.type)),
        "nothing": replace(
            after, program=replace(after.program, statements=tuple(s for s in statements if s.name != made.made))
        ),
        "later": replace(after, program=replace(after.program, statements=(statements[0], *statements[2:], copy))),
        "too little room": replace(
            after, layouts={**after.layouts, made.tensor: replace(after.layouts[made.tensor], shape=(2, 128, 127))}
        ),
        "another order": replace(
            after,
            program=replace(after.program, statements=(*statements[:3], statements[4], statements[3], *statements[5:])),
        ),
    }
    for mistake, changed in wrong.items():
        found = find_wrong_recomputation(before, changed, made)
        assert found is not None, mistake
        assert found.violation in (Violation.CHANGED, Violation.REORDERED)


def test_without_a_kernel_for_both_there_are_more_kernels() -> None:
    specialization, options, machine = specialized(LATE), tc.GpuOptions(), GPUS["sm_90"]
    first = first_attempt(specialization, options, machine)
    assert first.plan.chain is not None
    second = next_attempt(specialization, machine, first, NoChain())
    assert second.plan.chain is None
    (decision,) = (own for own in second.decisions if own.option == "products in a row")
    assert str(decision).startswith("products in a row: in kernels of their own instead of in one kernel")


@pytest.mark.parametrize(
    "options",
    [
        tc.GpuOptions(tensor_cores=tc.TensorCores.NONE),
        tc.GpuOptions(block=(4, 32)),
        tc.GpuOptions(shared_memory=0),
        tc.GpuOptions(shared_memory=8192),
        tc.GpuOptions(register_accumulators=8),
        tc.GpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL)),
    ],
)
def test_options_are_honoured(options: tc.GpuOptions) -> None:
    assert first_attempt(specialized(LATE), options, GPUS["sm_90"]).plan.chain is None


def compiled(text: str, type: str, b: int, n: int, m: int, d: int, e: int) -> Kernel:
    """On the emulator, which agrees with the oracle."""
    f, random = tc.define(text.format(type)).single(), np.random.default_rng(0)
    batch = () if text is PLAIN else (b,)
    arrays = tuple(random.standard_normal((*batch, *own)).astype(TYPES[type]) for own in ((n, d), (m, d), (m, e)))
    kernel = f.compile(*arrays, target="emulator")
    agree(f, arrays, kernel)
    return kernel


def is_one_kernel(kernel: Kernel) -> bool:
    assert kernel.compilation is not None
    return len(count_kernels(kernel.compilation.mapped.loops)) == 1 and multiplies(kernel)


def test_products_with_nothing_between_rows_agree_with_the_oracle() -> None:
    assert is_one_kernel(compiled(PLAIN, "float16", 1, 70, 72, 16, 24))


@pytest.mark.slow
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("text", [LATE, EARLY])
@pytest.mark.parametrize("sizes", [(1, 64, 64, 16, 16), (1, 77, 200, 24, 24), (2, 100, 130, 16, 48)])
def test_attention_agrees_with_the_oracle(text: str, type: str, sizes: tuple[int, int, int, int, int]) -> None:
    assert is_one_kernel(compiled(text, type, *sizes))


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("size", [64, 128])
def test_attention_compiles_without_spills(size: int, architecture: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    f = tc.define(LATE.format("float16")).single()
    kernel = f.compile((8, 512, size), (8, 512, size), (8, 512, size), target=f"cuda:{architecture}")
    (grid,) = kernel.resources.grids
    assert (grid.stack, grid.spill_stores, grid.spill_loads) == (0, 0, 0)
    assert kernel.source.count("mma.sync.aligned.m16n8k16") > 0


@pytest.mark.slow
def test_one_kernel_is_predicted_to_be_quicker() -> None:
    f = tc.define(LATE.format("float16")).single()
    shapes = ((32, 1024, 64),) * 3
    both, apart = (
        translated(f, *shapes, target="cuda:sm_90", options=options)
        for options in (None, tc.GpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL)))
    )
    counts = [count_kernels(own.mapped.loops) for own in (both, apart)]
    assert [len(own) for own in counts] == [1, len(counts[1])]
    assert len(counts[1]) > 1
    assert sum(own.demand.matrix for own in counts[0]) == 1.5 * sum(own.demand.matrix for own in counts[1])
