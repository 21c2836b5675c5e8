"""Kernels: made once, for arrays, specs or shapes, for this processor or another; called on what they are made for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

import tc
from tc.artifact.executable import load
from tc.base.proof import Proof
from tc.polyhedral.execution.execution import Execution
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.proof.demands import Demands
from tc.polyhedral.proof.verify import prove
from tc.runtime.host.c_compiler import compiling
from tc.runtime.opencl.opencl import opencl_device, require_compiler
from tc.targets.target import CpuTarget, Processor, processor
from tests.programs import run

DEFINITIONS = tc.define(
    """
    def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }
    def affine(float(M,N) X) -> (Y) { Y(i,j) = 2 * X(i,j) + j }
    def norm(float(M,N) X) -> (O) {
        total(i) +=! X(i,j)
        O(i,j) = X(i,j) / total(i)
    }
    def mean(half(M,N) X) -> (O) { O(i) +=! X(i,j) }
    def axpby(float a, float(N) x, float b) -> (y) { y(i) = a * x(i) + b * y(i) }
    def pool(float(N) X, int s) -> (O) { O(i) max=! X(s * i + k) where k in 0:s }
    """
)
MM, AFFINE = DEFINITIONS.mm, DEFINITIONS.affine
FLOAT32 = tc.ScalarType.FLOAT32
generator = np.random.default_rng(0)
A, B = (generator.integers(-8, 9, shape).astype(np.float32) for shape in ((7, 13), (13, 5)))


def test_arrays_specs_and_shapes_give_the_same_kernel() -> None:
    kernel = MM.compile(A, B)
    specs = tc.ArraySpec((7, 13), FLOAT32), tc.ArraySpec((13, 5), FLOAT32, (5, 1))
    assert MM.compile(*specs) is kernel
    assert MM.compile((7, 13), (13, 5)) is kernel
    assert MM.compile(torch.from_numpy(A), B) is kernel
    assert MM.compile(tc.ArraySpec((7, 13), FLOAT32, (1, 7)), B) is MM.compile(np.asfortranarray(A), B)
    assert MM.compile(A[::-1], B) is not kernel
    assert repr(kernel) == f"<tc.Kernel mm(A[7, 13], B[13, 5]) for {kernel.target}>"


def test_strides_that_no_element_follows_mean_nothing() -> None:
    for shape, strides in (((1, 5), (100, 1)), ((5, 1), (1, 77)), ((0, 5), (3, 3)), ((1, 1), (0, -4))):
        assert AFFINE.compile(tc.ArraySpec(shape, FLOAT32, strides)) is AFFINE.compile(shape)


def test_a_kernel_runs_on_what_it_is_made_for() -> None:
    kernel = MM.compile((7, 13), (13, 5))
    out = np.empty((7, 5), np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(kernel(A, B), A @ B)
        assert isinstance(kernel(torch.from_numpy(A), B), torch.Tensor)
        assert kernel(A, B, out=out) is out
        np.testing.assert_array_equal(out, A @ B)


def test_scalars_that_are_only_values_are_free() -> None:
    kernel = DEFINITIONS.axpby.compile(1.0, (5,), 2.0)
    for a, b in ((3, 5), (-1, 2)):
        y = np.ones(5, np.float32)
        kernel(a, np.full(5, 7, np.float32), b, out=y)
        assert (y == a * 7 + b).all()


OTHERS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: MM.compile(A, B)(A, B[:, :4].copy()),
        "got A: float32[7, 13], B: float32[13, 4]; compile another one, or call the definition itself",
    ),
    (lambda: MM.compile(A, B)(A[::-1], B), "got A: float32[7, 13] strides (-13, 1), B: float32[13, 5]; compile"),
    (
        lambda: MM.compile(A, B)(A, B, out=np.empty((5, 7), np.float32).T),
        "got A: float32[7, 13], B: float32[13, 5], C: float32[7, 5] strides (1, 7); compile",
    ),
    (
        lambda: AFFINE.compile(A)(A, out=A),
        "compiled for X: float32[7, 13], got X: float32[7, 13], Y: float32[7, 13], Y is X; compile another one",
    ),
    (
        lambda: DEFINITIONS.pool.compile((9,), 2)(np.ones(9, np.float32), 3),
        "compiled for X: float32[9], s = 2, got X: float32[9], s = 3; compile another one",
    ),
    (
        lambda: MM.compile(A, B)(A.copy(), B[1:]),
        "this kernel of mm is compiled for A: float32[7, 13], B: float32[13, 5], ",
    ),
    (lambda: MM.compile(A, B)(A), "mm takes 2 arguments (A, B), got 1"),
    (lambda: MM.compile(A, B)(A.astype("f8"), B), "argument A of mm: expected element type float32, got float64"),
    (lambda: MM.compile(A, B)(A, B, out=np.empty((7, 4), np.float32)), "output C of mm: expected shape (7, 5), got"),
]


@pytest.mark.parametrize(("call", "message"), OTHERS, ids=map(str, range(len(OTHERS))))
def test_a_kernel_refuses_what_it_is_not_made_for(call: Callable[[], object], message: str) -> None:
    with pytest.raises(tc.ArgumentError, match=re.escape(message)):
        call()


def test_what_a_kernel_says_of_itself() -> None:
    kernel = MM.compile(A, B, options=tc.CpuOptions(threads=1))
    assert kernel.asked == tc.CpuOptions(threads=1)
    assert kernel.target == MM.compile(A, B, target="cpu").target
    assert str(kernel.target).startswith("cpu:")
    assert kernel.compilation is not None
    assert [buffer.name for buffer in kernel.compilation.buffers] == ["A", "B", "C"]
    assert kernel.signature.arguments == (
        ("A", tc.ArraySpec((7, 13), FLOAT32)),
        ("B", tc.ArraySpec((13, 5), FLOAT32)),
    )
    assert kernel.layout("C").shape == (7, 5)
    assert kernel.compilation.specialization.program.name == "mm"
    assert "void tc_kernel(" in kernel.source
    assert kernel.schedule.startswith("domain { S0[")
    assert str(kernel.proof).startswith("proven: every instance of 3 statements runs exactly once")
    names = [stage.name for stage in kernel.stages]
    assert names[:2] == ["scop", "schedule"]
    assert "generate" in names
    assert names[-5:] == ["print", "verify schedule", "verify code", "compile", "load"]
    assert all(stage.seconds >= 0 for stage in kernel.stages)


@pytest.mark.parametrize("unproven", ["schedule", "generated code"])
def test_a_kernel_that_is_not_proven_is_not_made(unproven: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The C compiler works beside the proof; what it makes is thrown away."""
    stopped: list[bool] = []

    @contextmanager
    def watched(*arguments: Any) -> Iterator[Callable[[], bytes]]:
        with compiling(*arguments) as library:
            try:
                yield library
            finally:
                stopped.append(True)

    def refuse(scop: Scop, execution: Execution, what: str, demands: Demands) -> Proof:
        if what == unproven:
            raise tc.VerificationError("chunks overlap")
        return prove(scop, execution, what, demands)

    monkeypatch.setattr("tc.compiler.compiling", watched)
    monkeypatch.setattr("tc.polyhedral.pipeline.prove", refuse)
    monkeypatch.setattr("tc.artifact.executable.load_kernel", None)
    definition = tc.define("def unproven(float(N) X) -> (Y) { Y(i) = X(i) * 5 }").unproven
    with pytest.raises(tc.VerificationError, match="chunks overlap"):
        definition(np.ones(3, np.float32))
    assert stopped == [True]


# What is kept in registers depends on how long vectors are.
WIDE = "cpu:x86-64-v4"


def test_resources_count_temporaries_packed_operands_and_code() -> None:
    resources = MM.compile(A, B).resources
    assert (resources.temporaries, resources.scratch) == (0, 0)
    assert resources.binary > 1000
    assert DEFINITIONS.norm.compile((33, 13), target=WIDE).resources.temporaries == 0  # registers hold the sums
    # In whole cache lines.
    memory = tc.CpuOptions(register_accumulators=0, local_temporaries=0)
    assert DEFINITIONS.norm.compile((33, 13), target=WIDE, options=memory).resources.temporaries == 3 * 64
    # A sum of halves is kept in single precision.
    assert DEFINITIONS.mean.compile((33, 13), target=WIDE, options=memory).resources.temporaries == 3 * 64
    across = tc.define("def across(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }")
    shapes = (129, 129), (129, 129)
    one = tc.CpuOptions(tc.ScheduleOptions(tile=()), register_tile=(4, 16), threads=1)
    packed = across.compile(*shapes, options=one).resources.scratch
    assert 129 * 129 * 4 <= packed < 2 * 129 * 129 * 4
    assert across.compile(*shapes, options=tc.CpuOptions(packed_operands=0)).resources.scratch == 0


def test_every_level_of_this_machine() -> None:
    found = processor()
    sources = {}
    for march in ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"):
        kernel = MM.compile(A, B, target=f"cpu:{march}")
        assert kernel.target == CpuTarget(march)
        sources[march] = kernel.source
        if kernel.target.features <= found.features:
            np.testing.assert_array_equal(kernel(A, B), A @ B)
        else:
            with pytest.raises(tc.DeviceError, match=f"target 'cpu:{march}' does not run here: this processor lacks"):
                kernel(A, B)
    # Vectors have a length of their own on each; all else is in the hands of the C compiler.
    assert sources["x86-64"] == sources["x86-64-v2"] != sources["x86-64-v3"]
    assert "tc_float32x8" in sources["x86-64-v3"]


@pytest.mark.parametrize("type", ["int8", "uint8", "int16", "uint16", "int32", "uint64"])
def test_comparisons_add_up_as_ones(type: str) -> None:
    """Compilers that unroll such short sums into vectors may take a comparison's mask for its value."""
    text = f"def count({type}(N,N,N) A) -> (n) {{ n() +=! {type}(A(i, j, k) != 0) where (i + k) % 2 == 0 }}"
    assert tc.define(text).count(np.ones((2, 2, 2), type)) == 4


def test_another_machine_needs_a_cross_compiler() -> None:
    other = "x86-64" if processor().machine == "aarch64" else "armv8-a"
    with pytest.raises(
        tc.DeviceError, match=rf"target 'cpu:{other}' needs a C compiler for .* in TC_CC=.*-linux-gnu-gcc"
    ):
        MM.compile(A, B, target=f"cpu:{other}")


def test_code_for_another_processor_is_made_but_never_run(monkeypatch: pytest.MonkeyPatch) -> None:
    executable = MM.compile(A, B, target="cpu:x86-64-v3").executable
    monkeypatch.setattr("tc.artifact.executable.processor", lambda: Processor("x86_64", frozenset({"avx", "sse2"})))
    with pytest.raises(
        tc.DeviceError, match="target 'cpu:x86-64-v3' does not run here: this processor lacks abm, avx2,"
    ):
        load(executable)
    plain = tc.define("def plain(float(M,K) A) -> (C) { C(m) +=! A(m,r_k) }").plain
    kernel = plain.compile(A, target="cpu:x86-64-v3")
    assert "load" not in [stage.name for stage in kernel.stages]
    for _ in range(2):
        with pytest.raises(tc.DeviceError, match="use target 'cpu'"):
            kernel(A)


def test_targets_of_this_machine() -> None:
    found = tc.targets()
    assert found["cpu"] == f"available: {MM.compile(A, B).target}"
    assert found["emulator"] == "available"
    assert found["opencl"].startswith(("available: ", "not available: "))
    assert found["cuda"].startswith("not available: ")


def test_targets_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    opencl_device.cache_clear()
    try:
        assert re.fullmatch(r"not available: pyopencl is not installed; .*", tc.targets()["opencl"])
    finally:
        opencl_device.cache_clear()


def test_a_driver_that_compiles_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """PoCL makes a device of a processor that its own compiler is too old for."""
    cl = pytest.importorskip("pyopencl")
    try:
        opencl_device()
    except tc.DeviceError as error:
        pytest.skip(str(error))
    with monkeypatch.context() as patched:
        patched.setattr(cl, "Program", _NothingCompiles)
        require_compiler.cache_clear()
        refused = (
            r"the driver of the OpenCL device '.+' compiles nothing "
            r"\(error: unknown target CPU 'generic'\); install one that knows it"
        )
        assert re.fullmatch(f"not available: {refused}", tc.targets()["opencl"])
        with pytest.raises(tc.DeviceError, match=refused):
            MM.compile(A, B, target="opencl")
    require_compiler.cache_clear()


class _NothingCompiles:
    def __init__(self, _context: object, _source: str) -> None:
        pass

    def build(self, _flags: list[str], *, cache_dir: bool) -> None:
        assert cache_dir is False
        raise pytest.importorskip("pyopencl").RuntimeError("BUILD_PROGRAM_FAILURE\nerror: unknown target CPU 'generic'")


def test_the_environment_names_a_target() -> None:
    program = """
import numpy as np, tc
f = tc.define("def f(float(N) X) -> (Y) { Y(i) = 2 * X(i) }").f
x = np.ones(3, np.float32)
print(f.compile(x).target, f.compile(x, target="cpu:x86-64-v2").target, f(x).tolist())
"""
    assert run(program, environment={"TC_TARGET": "cpu:x86-64"}) == "cpu:x86-64 cpu:x86-64-v2 [2.0, 2.0, 2.0]\n"


def test_sources_do_not_depend_on_the_process() -> None:
    """Equal texts give equal code, however Python hashes: caches and reports compare it."""
    program = """
import tc
text = '''
def f(float(M,N) X, float(N,M) Y) -> (O, P) {
    T(i,j) = X(i,j) * Y(j,i)
    O(i) +=! T(i,j)
    P(j) max=! T(i,j)
}'''
k = tc.define(text).f.compile((129, 65), (65, 129))
print(k.schedule, k.source)
"""
    outputs = {run(program, environment={"PYTHONHASHSEED": seed}) for seed in ("1", "4242")}
    assert len(outputs) == 1


def test_failures_are_not_remembered() -> None:
    """A kernel that could not be made is tried again."""
    definition = tc.define("def again(float(N) X) -> (Y) { Y(i) = X(i) * 3 }").again
    x: Any = np.ones(3, np.float32)
    with pytest.MonkeyPatch.context() as broken:

        def refuse(*_arguments: object) -> None:
            raise tc.CompileError("the disk is full")

        broken.setattr("tc.compiler.compiling", refuse)
        for _ in range(2):
            with pytest.raises(tc.CompileError, match="the disk is full"):
                definition(x)
    np.testing.assert_array_equal(definition(x), 3 * x)
