"""What NVRTC makes of our CUDA, run on this machine (``ptx.py``); ``test_simulated.py`` names this file to pytest.

All combinations: ``pytest -n 0 -m slow tests/cuda/simulated_ptx.py``.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tc
from tc.language.program.functions import FUNCTIONS
from tc.polyhedral.ir.launch_order import Digit, LaunchOrder
from tc.reference.compare import compare
from tc.runtime.cuda import nvrtc
from tests.comprehensions.case import Case
from tests.comprehensions.corpus import CASES
from tests.cuda.checked import MM, check
from tests.cuda.frameworks import FRAMEWORKS
from tests.cuda.nvrtc_ptx import ptx_of
from tests.cuda.simulator import simulator
from tests.gpu_cases import OPTIONS, fitting
from tests.polyhedral.gpu.mapping.chains import PLAIN, TURNED, shapes
from tests.polyhedral.gpu.mapping.launched import STEPS
from tests.polyhedral.gpu.tensor.products import bytes_of, of_bytes, operands, product
from tests.turns import every, every_row
from tests.wide import TEXTS, N
from tests.wide import arrays as wide_arrays

GPU = simulator()
COMPILE = nvrtc.compile_cuda
# Every so many of the corpus.
STEP = 144


def compile_and_translate(source: str, architecture: str) -> Any:
    """The binary; from now on it does what its PTX does."""
    binary = COMPILE(source, architecture)
    GPU.translate(binary.code, ptx_of(source, architecture))
    return binary


@pytest.fixture(autouse=True)
def translating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "compile_cuda", compile_and_translate)
    GPU.failures.clear()


def agrees(case: Case, options: tc.GpuOptions) -> None:
    """Also where a mistake has no consequence."""
    try:
        check(case, case.large_ragged_sizes, options, FRAMEWORKS["own"])
    finally:
        assert not GPU.failures


@pytest.mark.parametrize("number", range(0, len(CASES), STEP), ids=[case.name for case in CASES[::STEP]])
def test_some_of_the_corpus_agrees_with_the_oracle(number: int) -> None:
    options = tuple(OPTIONS.values())
    agrees(CASES[number], options[number // STEP % len(options)])


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_combinations_agree(case: Case, options: tc.GpuOptions) -> None:
    agrees(case, options)


def test_loops_of_unknown_length_run_as_often_as_they_should() -> None:
    """NVRTC 13.5 forgets what is left over where it unrolls some of them by another number than a power of two."""
    (case,) = (case for case in CASES if case.name == "sum_of_vector")
    agrees(case, OPTIONS["runs of points, few blocks"])


@pytest.mark.parametrize("name", sorted(STEPS))
def test_launched_steps_agree_with_the_oracle(name: str) -> None:
    text, shapes = STEPS[name]
    definition = tc.define(text).single()
    random = np.random.default_rng(3)
    arrays = [0.1 * random.standard_normal(shape).astype(np.float32) for shape in shapes]
    given = [tc.to_device(array) for array in arrays]
    kernel = definition.compile(*arrays, target="cuda")
    (steps,) = kernel.executable.convention.steps
    GPU.log()
    found: Any = definition(*given, target="cuda")
    launched = sum(line.startswith("cuLaunchKernel") for line in GPU.log())
    grids = len(kernel.executable.convention.grids)
    assert launched == grids + (len(steps.values) - 1) * (steps.last - steps.first + 1)
    assert compare(list(definition.oracle(*arrays).values())[-1], found.numpy()).ok
    assert not GPU.failures


def test_blocks_in_another_order_agree_with_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows of two blocks, column by column."""
    order = LaunchOrder(((Digit(1, 3, 1),), (Digit(3, 2, 1),)))
    monkeypatch.setattr("tc.codegen.printer.launches.block_order", lambda *_given: order)
    random = np.random.default_rng(3)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in ((45, 20), (20, 30))]
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(16, 16, 8)), block=(8, 8), split_k_blocks=1)
    kernel = MM.compile(*arrays, target="cuda", options=options)
    assert kernel.executable.convention.grids[0].grid == (2, 3, 1)
    assert "const int block_y = block % 3;" in kernel.source
    found: Any = MM(*map(tc.to_device, arrays), target="cuda", options=options)
    assert compare(MM.oracle(*arrays)["C"], found.numpy()).ok
    assert not GPU.failures


class Behind:
    """An array that lies so many elements behind where memory begins, which is aligned."""

    def __init__(self, array: np.ndarray, elements: int) -> None:
        self.memory = tc.to_device(np.concatenate([np.zeros(elements, array.dtype), array.ravel()]))
        interface: Any = self.memory.__cuda_array_interface__
        address, read_only = interface["data"]
        data = (address + elements * array.itemsize, read_only)
        self.__cuda_array_interface__: Any = {**interface, "shape": array.shape, "data": data, "strides": None}


@pytest.mark.parametrize("elements", [0, 1, 4])
@pytest.mark.parametrize("stages", [1, 3])
def test_what_is_copied_in_vectors_may_lie_anywhere(elements: int, stages: int) -> None:
    random = np.random.default_rng(elements)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((20, 24), (24, 36)))
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(16, 16, 8)), block=(8, 8), stages=stages)
    kernel = MM.compile(a, b, target="cuda", options=options)
    assert "tc_copy_piece<aligned" in kernel.source
    found: Any = MM(Behind(a, elements), Behind(b, 0), target="cuda", options=options)
    assert compare(MM.oracle(a, b)["C"], found.numpy()).ok
    assert not GPU.failures


CONVOLUTION = """
def conv(float(N,G,C,H,W) I, float(G,F,C,KH,KW) W1) -> (O) { O(n,g,f,h,w) +=! I(n,g,c,h+kh,w+kw) * W1(g,f,c,kh,kw) }
"""


@pytest.mark.parametrize("elements", [0, 1])
def test_results_that_a_thread_has_side_by_side_are_stored_in_vectors(elements: int) -> None:
    """Wherever the result lies; what is in front of it stays as it is."""
    random = np.random.default_rng(elements)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((20, 24), (24, 64)))
    options = tc.GpuOptions(
        tc.ScheduleOptions(tile=(16, 32, 8)), block=(8, 8), distribution=tc.Distribution.BLOCKED, stages=2
    )
    assert "tc_store_piece<aligned, 16>" in MM.compile(a, b, target="cuda", options=options).source
    out = Behind(np.full((20, 64), np.nan, np.float32), elements)
    MM(tc.to_device(a), tc.to_device(b), out=out, target="cuda", options=options)
    found = out.memory.numpy()
    assert not found[:elements].any()
    assert compare(MM.oracle(a, b)["C"], found[elements:].reshape(20, 64)).ok
    assert not GPU.failures


def test_offsets_of_copies_are_computed_once() -> None:
    random = np.random.default_rng(1)
    shapes = ((3, 2, 40, 9, 11), (2, 7, 40, 3, 3))
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    conv = tc.define(CONVOLUTION).conv
    options = tc.GpuOptions(stages=3)
    assert 'asm("" : "+r"(kept' in conv.compile(*arrays, target="cuda", options=options).source
    found: Any = conv(*map(tc.to_device, arrays), target="cuda", options=options)
    assert compare(conv.oracle(*arrays)["O"], found.numpy()).ok
    assert not GPU.failures


SIZES = (("AB", 70, 66, 50), ("AB'", 33, 40, 96), ("A'B", 64, 64, 32))


def fitted(definition: tc.Comprehension, arrays: tuple[np.ndarray, ...], options: tc.GpuOptions) -> Any:
    given = [tc.to_device(array) for array in arrays]
    return fitting(lambda chosen: definition(*given, target="cuda", options=chosen), options)


@pytest.mark.parametrize("type", every(2, ["int8", "uint8", "int16"]))
@pytest.mark.parametrize("options", every(2, [tc.GpuOptions(), OPTIONS["copied ahead"]]))
def test_narrow_integers_agree_with_the_oracle(type: str, options: tc.GpuOptions) -> None:
    """Products of four bytes are one instruction, and their signs are in wider registers."""
    random = np.random.default_rng(0)
    a, b = (random.integers(-100, 100, shape).astype(type) for shape in ((37, 29), (29, 43)))
    definitions = tc.define(
        f"def product({type}(M,K) A, {type}(K,N) B) -> (C) {{ C(m,n) +=! int32(A(m,k)) * int32(B(k,n)) }} "
        f"def greatest({type}(M,K) A) -> (C) {{ C(m) max=! A(m,k) }}"
    )
    for definition, arrays in ((definitions.product, (a, b)), (definitions.greatest, (a,))):
        found = fitted(definition, arrays, options)
        np.testing.assert_array_equal(found.numpy(), definition.oracle(*arrays)["C"].values)
    assert not GPU.failures


@pytest.mark.parametrize(
    ("layout", "m", "n", "k", "type"),
    every_row(2, [(*row, type) for type in ("bfloat16", "float16") for row in SIZES]),
)
def test_matrix_instructions_agree_with_the_oracle(layout: str, m: int, n: int, k: int, type: str) -> None:
    f, arrays = product(layout, type), operands(layout, type, m, n, k)
    kernel = f.compile(*arrays, target="cuda")
    assert "mma.sync" in kernel.source
    found: Any = f(*(tc.to_device(array) for array in arrays), target="cuda")
    assert compare(f.oracle(*arrays)["C"], found.numpy()).ok
    assert not GPU.failures


@pytest.mark.parametrize(("left", "right"), every_row(2, [("int8", "uint8"), ("int8", "int8"), ("uint8", "uint8")]))
def test_matrix_instructions_of_bytes_agree_with_the_oracle(left: str, right: str) -> None:
    f, arrays = of_bytes("AB'", left, right), bytes_of("AB'", left, right, 70, 40, 100)
    kernel = f.compile(*arrays, target="cuda")
    assert "mma.sync" in kernel.source
    found: Any = f(*(tc.to_device(array) for array in arrays), target="cuda")
    np.testing.assert_array_equal(found.numpy(), f.oracle(*arrays)["C"].values)
    assert not GPU.failures


GROUPED = tc.GpuOptions(tc.ScheduleOptions(tile=(64, 64, 64)), stages=2, tensor_cores=tc.TensorCores.WARPGROUPS)


@pytest.mark.parametrize(
    ("layout", "sizes", "tile", "type"),
    every_row(
        3,
        [
            ("AB", (70, 66, 128), (64, 64, 64), "bfloat16"),
            ("AB'", (70, 130, 64), (64, 128, 64), "float16"),
            ("A'B", (150, 130, 80), (128, 128, 64), "float16"),
            ("AB'", (128, 256, 80), (128, 256, 64), "bfloat16"),
            ("A'B'", (150, 64, 208), (128, 64, 64), "float16"),
            ("AB", (64, 256, 64), (64, 256, 64), "float16"),
        ],
    ),
)
def test_instructions_of_four_warps_agree_with_the_oracle(
    layout: str, sizes: tuple[int, int, int], tile: tuple[int, int, int], type: str
) -> None:
    f, arrays = product(layout, type), operands(layout, type, *sizes)
    options = tc.GpuOptions(tc.ScheduleOptions(tile=tile), tensor_cores=tc.TensorCores.WARPGROUPS)
    kernel = f.compile(*arrays, target="cuda:sm_90a", options=options)
    assert "wgmma.mma_async" in kernel.source
    found: Any = f(*(tc.to_device(array) for array in arrays), target="cuda:sm_90a", options=options)
    assert compare(f.oracle(*arrays)["C"], found.numpy()).ok
    assert not GPU.failures


@pytest.mark.parametrize("products", every(2, [tc.Products.THREE_TF32, tc.Products.TF32]))
def test_matrix_instructions_of_rounded_factors_agree_with_the_oracle(products: tc.Products) -> None:
    random, numerics = np.random.default_rng(0), tc.Numerics(products=products)
    f = tc.define("def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }").single()
    arrays = tuple(random.standard_normal(shape).astype(np.float32) for shape in ((70, 45), (33, 45)))
    options = tc.GpuOptions(numerics=numerics)
    assert "mma.sync.aligned.m16n8k8" in f.compile(*arrays, target="cuda", options=options).source
    found: Any = f(*(tc.to_device(array) for array in arrays), target="cuda", options=options)
    assert compare(f.oracle(*arrays, products=products)["C"], found.numpy()).ok
    assert not GPU.failures


MISTAKES = {
    "no barrier": (r"bar\.sync \t0;", ""),
    "copies are not awaited": (r"cp\.async\.wait_group \d", "cp.async.wait_group 9"),
}
MATRIX_MISTAKES = {
    "rows taken for columns": (r"ldmatrix(\.sync\.aligned\.m8n8\.x4)\.shared", r"ldmatrix\1.trans.shared"),
    "another row": (r"(ldmatrix[^;]*\[%r\d+)(\+\d+)?\]", r"\1+16]"),
    "registers exchanged": (r"(mma[^;]*?\{%r\d+, *)(%r\d+), *(%r\d+)", r"\1\3, \2"),
    "copies are not awaited": MISTAKES["copies are not awaited"],
}


# All of a descriptor but where the matrix begins: 1,024 bytes from eight rows to the next, the swizzle of 128 bytes.
DESCRIPTOR = 1 << 62 | (1024 >> 4) << 32 | 1 << 16
GROUP_MISTAKES = {
    "no fence of registers": (r"wgmma\.fence\.sync\.aligned;", ""),
    "no fence of shared memory": (r"fence\.proxy\.async\.shared::cta;", ""),
    "a fence before copies have arrived": (
        r"(cp\.async\.commit_group;\s*cp\.async\.wait_group 0;)([^@]*?)(fence\.proxy\.async\.shared::cta;)",
        r"\3\2\1",
    ),
    "products are not awaited": (r"wgmma\.wait_group\.sync\.aligned 0", "wgmma.wait_group.sync.aligned 1"),
    "products are not committed": (r"wgmma\.commit_group\.sync\.aligned;", ""),
    "registers exchanged": (r"(wgmma\.mma_async\S* *\{)(%f\d+), *(%f\d+)", r"\1\3, \2"),
    "factors exchanged": (r"(wgmma\.mma_async[^}]*\}, *)(%rd\d+), *(%rd\d+)", r"\1\3, \2"),
    "another stride": (str(DESCRIPTOR), str(DESCRIPTOR - (32 << 32))),
    "no swizzle": (str(DESCRIPTOR), str(DESCRIPTOR - (1 << 62))),
    "pieces do not change places": (r"xor\.b32( *\t*%r\d+), (%r\d+), %r\d+", r"mov.b32\1, \2"),
    "no barrier": (r"bar\.sync \t0;", ""),
    "copies are not awaited": (r"cp\.async\.wait_group 0", "cp.async.wait_group 9"),
}


@pytest.mark.parametrize("mistake", every(2, ["", *GROUP_MISTAKES]))
def test_mistakes_in_instructions_of_four_warps_are_noticed(mistake: str) -> None:
    """A kernel that touches what is under way fails, or computes something else."""
    f, arrays = product("AB'", "float16"), operands("AB'", "float16", 64, 64, 256)
    kernel = f.compile(*arrays, target="cuda:sm_90a", options=GROUPED)
    if mistake:
        pattern, instead = GROUP_MISTAKES[mistake]
        changed, count = re.subn(pattern, instead, ptx_of(kernel.source, "sm_90a"))
        assert count
        GPU.translate(kernel.executable.binary.code, changed)
    try:
        found: Any = f(*(tc.to_device(array) for array in arrays), target="cuda:sm_90a", options=GROUPED)
        right = compare(f.oracle(*arrays)["C"], found.numpy()).ok
    except tc.DeviceError:
        right = False
    assert right == (not mistake)


@pytest.mark.parametrize("mistake", ["", *MATRIX_MISTAKES])
def test_mistakes_in_matrix_instructions_are_noticed(mistake: str) -> None:
    f, arrays = product("AB'", "float16"), operands("AB'", "float16", 64, 64, 128)
    kernel = f.compile(*arrays, target="cuda")
    if mistake:
        pattern, instead = MATRIX_MISTAKES[mistake]
        changed, count = re.subn(pattern, instead, ptx_of(kernel.source, "sm_90"))
        assert count
        GPU.translate(kernel.executable.binary.code, changed)
    found: Any = f(*(tc.to_device(array) for array in arrays), target="cuda")
    assert compare(f.oracle(*arrays)["C"], found.numpy()).ok == (not mistake)


@pytest.mark.parametrize("type", every(4, ["float", "double", "bfloat16", "float16"]))
def test_functions_agree_with_the_oracle(type: str) -> None:
    random = np.random.default_rng(0)
    dtype = np.dtype({"float": "f4", "double": "f8", "float16": "f2"}.get(type, "f4"))
    if type == "bfloat16":
        dtype = np.dtype(__import__("ml_dtypes").bfloat16)
    usual = np.concatenate([random.standard_normal(20) * scale for scale in (1, 8, 60)])
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, 1, -1, 2, 1e-30, 88, -88, 104, -104, 700, -745])
    x = np.concatenate([usual, special]).astype(dtype)
    arrays = [x, *(random.permutation(x) for _ in range(3))]
    statements = "  ".join(
        f"Y_{name}(i) = {name}({', '.join(f'X{n}(i)' for n in range(function.arity))})"
        for name, function in FUNCTIONS.items()
    )
    parameters = ", ".join(f"{type}(N) X{n}" for n in range(len(arrays)))
    text = f"def all({parameters}) -> ({', '.join(f'Y_{name}' for name in FUNCTIONS)}) {{ {statements} }}"
    functions = tc.define(text).all
    found: Any = functions(*(tc.to_device(array) for array in arrays), target="cuda")
    expected = functions.oracle(*arrays)
    compared = {name: compare(expected[name], own.numpy()) for name, own in zip(expected, found, strict=True)}
    assert not {name: str(own) for name, own in compared.items() if not own.ok}
    assert not GPU.failures


@pytest.mark.parametrize("mistake", ["", *MISTAKES])
def test_mistakes_are_noticed(mistake: str) -> None:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape, np.float32) for shape in ((37, 50), (50, 41)))
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(16, 16, 8)), block=(8, 8), stages=2)
    kernel = MM.compile(a, b, target="cuda", options=options)
    if mistake:
        pattern, instead = MISTAKES[mistake]
        changed, count = re.subn(pattern, instead, ptx_of(kernel.source, "sm_90"))
        assert count
        GPU.translate(kernel.executable.binary.code, changed)
    found: Any = MM(tc.to_device(a), tc.to_device(b), target="cuda", options=options)
    assert np.allclose(found.numpy(), a @ b, atol=1e-4) == (not mistake)


def test_accesses_outside_of_arrays_are_noticed() -> None:
    x = np.ones(100, np.float32)
    double = tc.define("def double(float(N) x) -> (y) { y(i) = 2.0 * x(i) }").double
    kernel = double.compile(x, target="cuda")
    changed, count = re.subn(r"(ld\.global[^;]*\[%rd\d+)(\+\d+)?\]", r"\1+4096]", ptx_of(kernel.source, "sm_90"))
    assert count
    GPU.translate(kernel.executable.binary.code, changed)
    with pytest.raises(tc.DeviceError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        double(tc.to_device(x), target="cuda")
    (failure,) = GPU.failures
    assert re.fullmatch(r"tc_kernel_0: outside of all arrays at 0x\w+ by thread \d+ 0 0 of block \d+ 0 0", failure)


def combined(type: str) -> tuple[tc.Comprehension, tuple[np.ndarray, ...]]:
    """Atomic updates with every operator that a type has, and arguments with many terms for each element."""
    operators = ("+", "*", "min", "max") if "int" in type else ("min", "max")
    statements = "  ".join(f"Y{n}(I(b)) {operator}=! v(b) where I(b) in 0:9" for n, operator in enumerate(operators))
    results = ", ".join(f"Y{n}" for n in range(len(operators)))
    random = np.random.default_rng(1)
    terms = random.choice(np.array([-3, 2, 5, 7], np.int64).astype(type), 300)
    return (
        tc.define(f"def f(int32(N) I, {type}(N) v) -> ({results}) {{ {statements} }}").single(),
        (random.integers(-1, 9, 300).clip(0).astype(np.int32), terms),
    )


@pytest.mark.parametrize("type", every(3, ["int32", "uint32", "int64", "uint64", "float32", "float64", "float16"]))
def test_atomic_updates_agree_with_the_oracle(type: str) -> None:
    """Threads let others run between what they read and what they change."""
    definition, arrays = combined(type)
    found: Any = definition(*(tc.to_device(array) for array in arrays), target="cuda")
    expected = definition.oracle(*arrays)
    assert all(compare(expected[f"Y{n}"], own.numpy()).ok for n, own in enumerate(found))
    assert not GPU.failures


def test_an_update_that_is_lost_is_noticed() -> None:
    """Where a thread does not look whether another one came between."""
    definition, (indices, _) = combined("float32")
    arrays = (indices, np.random.default_rng(2).permutation(300).astype(np.float32))
    kernel = definition.compile(*arrays, target="cuda")
    pattern = r"(atom\.global\.cas\.b32 \t(%r\d+).*\n.*setp\.eq\.s32 \t%p\d+, \2), %r\d+"
    changed, count = re.subn(pattern, r"\1, \2", ptx_of(kernel.source, "sm_90"))
    assert count
    GPU.translate(kernel.executable.binary.code, changed)
    expected = definition.oracle(*arrays)

    def is_right() -> bool:
        found: Any = definition(*(tc.to_device(array) for array in arrays), target="cuda")
        return all(compare(expected[f"Y{n}"], own.numpy()).ok for n, own in enumerate(found))

    # Which thread runs when is chance.
    assert not all(is_right() for _ in range(50))


@pytest.mark.parametrize("name", ["bytes", "halves", "two", "widening", "truths"])
def test_wide_accesses_agree_with_the_oracle(name: str) -> None:
    text = TEXTS[name]
    definition = tc.define(text).single()
    inputs = wide_arrays(text, ((N,), (N,)))
    found = definition(*(tc.to_device(array) for array in inputs))
    expected = definition.oracle(*inputs)
    for result, values in zip(definition.program.results, found if isinstance(found, tuple) else (found,), strict=True):
        assert compare(expected[result], values.numpy()).ok, result
    assert not GPU.failures


@pytest.mark.parametrize("shape", [(3, 1000), (2, 4099), (200, 9601)])
def test_totals_of_rows_agree_with_the_oracle(shape: tuple[int, int]) -> None:
    """Each thread adds up the partial results of all warps behind one barrier."""
    text = """
    def norm(float(N,D) X) -> (s, O) {
      s(n) +=! X(n,d)
      q(n) +=! (X(n,d) - s(n) / D) * (X(n,d) - s(n) / D)
      O(n,d) = (X(n,d) - s(n) / D) * rsqrt(q(n) / D + 1e-5)
    }
    """
    definition, x = tc.define(text).norm, np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    found, expected = definition(tc.to_device(x)), definition.oracle(x)
    assert isinstance(found, tuple)
    for result, values in zip(("s", "O"), found, strict=True):
        assert compare(expected[result], values.numpy()).ok, result
    assert not GPU.failures


@pytest.mark.parametrize("text", [TURNED, PLAIN], ids=["turned", "plain"])
def test_layers_in_one_kernel_agree_with_the_oracle(text: str) -> None:
    """Matrices are copied asynchronously, and awaited once."""
    definition, rng = tc.define(text).single(), np.random.default_rng(3)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes(text, 33, 41, 65, 9)]
    assert len(definition.compile(*arrays, target="cuda:sm_90").resources.grids) == 1
    found = definition(*(tc.to_device(array) for array in arrays))
    for expected, own in zip(
        definition.oracle(*arrays).values(), found if isinstance(found, tuple) else (found,), strict=True
    ):
        assert compare(expected, own.numpy()).ok
    assert not GPU.failures
