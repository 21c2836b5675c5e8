"""Definitions and their calls: arrays of either framework in, results of the same kind out."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import as_strided

import tc
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tc.runtime.frameworks.torch_arrays import torch_dtype
from tests.arrays import Array, array, whole

TEXT = """
def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }
def moments(float(M,N) X) -> (least, total, greatest) {
    greatest(i) max=! X(i,j)
    total(i) +=! X(i,j)
    least(i) min=! X(i,j)
}
def affine(float(M,N) X) -> (Y) { Y(i,j) = 2 * X(i,j) + j }
def axpby(float a, float(N) x, float b) -> (y) { y(i) = a * x(i) + b * y(i) }
def pick(float(M,N) X, int32(K) I) -> (Y) { Y(k,j) = X(I(k),j) }
"""
DEFINITIONS = tc.define(TEXT)


# --- definitions ------------------------------------------------------------------------------------------------------


def test_definitions_are_a_mapping_with_attributes() -> None:
    assert list(DEFINITIONS) == ["mm", "moments", "affine", "axpby", "pick"]
    assert len(DEFINITIONS) == 5
    assert DEFINITIONS["mm"] is DEFINITIONS.mm
    assert {"mm", "moments", "affine", "compile"} <= set(dir(DEFINITIONS))
    assert "mm" in DEFINITIONS
    assert "nn" not in DEFINITIONS
    assert repr(DEFINITIONS) == "<tc.Definitions mm, moments, affine, axpby, pick>"
    with pytest.raises(KeyError, match="no definition is called 'nn'; defined: mm, moments"):
        DEFINITIONS["nn"]
    with pytest.raises(KeyError, match="no definition is called 0; defined: mm, moments"):
        DEFINITIONS[0]  # type: ignore[index]


def test_an_unknown_definition_is_named_with_its_neighbour() -> None:
    with pytest.raises(AttributeError, match=r"no definition is called 'moment'; did you mean 'moments'\?"):
        _ = DEFINITIONS.moment
    with pytest.raises(AttributeError, match="no definition is called 'zzz'; defined: mm, moments, affine"):
        _ = DEFINITIONS.zzz
    assert not hasattr(DEFINITIONS, "__array__")


def test_several_definitions_cannot_be_called_together() -> None:
    with pytest.raises(TypeError, match=r"the text defines mm, moments, .*; call one of them, for example defs\.mm"):
        DEFINITIONS(whole(7, 3), whole(3, 5))


def test_a_single_definition_stands_for_itself() -> None:
    alone = tc.define("def twice(float(N) X) -> (Y) { Y(i) = X(i) + X(i) }")
    x = whole(7)
    np.testing.assert_array_equal(array(alone(x)), x + x)
    assert alone.output_shapes(x) == {"Y": (7,)}
    assert alone.compile(x) is alone.twice.compile(x)
    assert alone.explain(x) == alone.twice.explain(x)
    np.testing.assert_array_equal(alone.reference(x), x + x)
    assert repr(alone.twice) == "<tc.Comprehension twice(X) -> Y>"
    assert tc.define(str(alone.twice)).twice.program == alone.twice.program


def test_definitions_that_are_called_like_methods_are_reached_by_item() -> None:
    names = ["keys", "compile", "items"]
    found = tc.define("".join(f"def {name}(float(N) X) -> (Y) {{ Y(i) = X(i) + {n} }}" for n, name in enumerate(names)))
    assert list(found) == list(found.keys()) == names
    x = whole(7)
    for n, name in enumerate(found):
        np.testing.assert_array_equal(array(found[name](x)), x + n)


def test_copies_make_kernels_of_their_own() -> None:
    x = whole(7, 3)
    expected = array(DEFINITIONS.affine(x))
    for copied in (copy.deepcopy(DEFINITIONS), pickle.loads(pickle.dumps(DEFINITIONS))):
        assert list(copied) == list(DEFINITIONS)
        assert copied.affine.program == DEFINITIONS.affine.program
        assert copied.affine is not DEFINITIONS.affine
        np.testing.assert_array_equal(array(copied.affine(x)), expected)


# --- kinds of arrays --------------------------------------------------------------------------------------------------


def test_results_are_of_the_callers_kind() -> None:
    a, b = whole(7, 13), whole(13, 5, seed=1)
    tensor_a, tensor_b = torch.from_numpy(a), torch.from_numpy(b)
    # Twice: the first call compiles, the second takes the short way.
    for _ in range(2):
        for left, right, kind in (
            (a, b, np.ndarray),
            (tensor_a, tensor_b, torch.Tensor),
            (a, tensor_b, torch.Tensor),
            (tensor_a, b, torch.Tensor),
        ):
            result = DEFINITIONS.mm(left, right)
            assert type(result) is kind
            assert array(result).shape == (7, 5)
            assert array(result).dtype == np.float32
            np.testing.assert_array_equal(array(result), a @ b)


def test_results_are_new_arrays_every_time() -> None:
    x = whole(7, 3)
    first = array(DEFINITIONS.affine(x))
    kept = first.copy()
    second = array(DEFINITIONS.affine(-x))
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)
    assert first.flags.c_contiguous
    assert first.flags.writeable


def test_several_results_come_in_the_order_of_the_definition() -> None:
    x = whole(7, 13)
    for kind in (np.asarray, torch.from_numpy):
        for _ in range(2):
            results = DEFINITIONS.moments(kind(x))
            assert isinstance(results, tuple)
            for result, expected in zip(results, (x.min(1), x.sum(1), x.max(1)), strict=True):
                np.testing.assert_array_equal(array(result), expected)


def test_a_result_without_dimensions() -> None:
    total = tc.define("def total(float(N) X) -> (s) { s +=! X(i) }")
    for kind in (np.asarray, torch.from_numpy):
        result = array(total(kind(whole(129))))
        assert result.shape == ()
        assert result == whole(129).sum()
    out = np.zeros((), np.float32)
    assert total(whole(129), out=out) is out
    assert out == whole(129).sum()


def test_a_definition_without_arguments() -> None:
    table = tc.define(
        "def table() -> (squares, halves) { squares(i) = i * i where i in 0:7  halves(i) = squares(i) / 2.0 }"
    )
    for _ in range(2):
        results = table()
        assert isinstance(results, tuple)
        np.testing.assert_array_equal(results[0], np.arange(7) ** 2)
        np.testing.assert_array_equal(results[1], np.arange(7) ** 2 / 2)


def test_other_exporters_are_read_and_numpy_comes_out() -> None:
    class Export:
        """Exports a tensor, and is no tensor."""

        def __init__(self, tensor: torch.Tensor) -> None:
            self.tensor = tensor

        def __dlpack__(self, **options: Any) -> object:
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            code, index = self.tensor.__dlpack_device__()
            return int(code), index

    x, y = whole(7, 3), Export(torch.zeros(7, 3))
    result = DEFINITIONS.affine(Export(torch.from_numpy(x)), out=y)
    assert result is y
    np.testing.assert_array_equal(y.tensor.numpy(), 2 * x + np.arange(3))
    assert type(DEFINITIONS.affine(Export(torch.from_numpy(x)))) is np.ndarray


NUMPY_VIEWS: dict[str, Callable[[Array], Array]] = {
    "transposed": lambda block: block.T,
    "fortran": np.asfortranarray,
    "reversed": lambda block: block[::-1, ::-1],
    "stepped": lambda block: block[1::2, ::3],
    "part": lambda block: block[2:5, 3:],
    "broadcast": lambda block: np.broadcast_to(block[0], (5, block.shape[1])),
    "overlapping": lambda block: as_strided(block, (4, 5), (4, 8)),
    "read-only": lambda block: np.lib.stride_tricks.as_strided(block, writeable=False),
    "matrix": lambda block: block.view(np.matrix),
}


@pytest.mark.parametrize("name", NUMPY_VIEWS)
def test_strided_arrays_are_read_in_place(name: str) -> None:
    block = whole(7, 11)
    view = NUMPY_VIEWS[name](block)
    expected = 2 * np.asarray(view) + np.arange(view.shape[1])
    kept = block.copy()
    for _ in range(2):
        np.testing.assert_array_equal(array(DEFINITIONS.affine(view)), expected)
    np.testing.assert_array_equal(block, kept)


TORCH_VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "transposed": lambda block: block.T,
    "stepped": lambda block: block[1::2, ::3],
    "expanded": lambda block: block[1].expand(5, -1),
}


@pytest.mark.parametrize("name", TORCH_VIEWS)
def test_strided_tensors_are_read_in_place(name: str) -> None:
    view = TORCH_VIEWS[name](torch.from_numpy(whole(7, 11)))
    expected = 2 * view + torch.arange(view.shape[1])
    for _ in range(2):
        result = DEFINITIONS.affine(view)
        assert isinstance(result, torch.Tensor)
        assert torch.equal(result, expected)


def test_views_share_a_definition_but_not_a_kernel() -> None:
    a, b = whole(5, 5), whole(5, 5, seed=1)
    for left in (a, a.T, a[::-1], a[:, ::-1]):
        for right in (b, b.T):
            np.testing.assert_array_equal(array(DEFINITIONS.mm(left, right)), left @ right)


@pytest.mark.parametrize("type", list(tc.ScalarType))
def test_every_type_in_both_frameworks(type: tc.ScalarType) -> None:
    copy = tc.define(f"def copy({type}(N) A) -> (B) {{ B(i) = A(i) }}")
    values = np.arange(129) % 2 if type is tc.ScalarType.BOOL else np.arange(129) - 64 * (type.minimum < 0)
    given = values.astype(numpy_dtype(type))
    result = copy(given)
    assert isinstance(result, np.ndarray)
    assert result.dtype == given.dtype
    np.testing.assert_array_equal(result, given)
    tensor = torch.tensor(values.tolist(), dtype=torch_dtype(type))
    for _ in range(2):
        copied = copy(tensor)
        assert isinstance(copied, torch.Tensor)
        assert copied.dtype == tensor.dtype
        assert copied.tolist() == tensor.tolist()


@pytest.mark.parametrize("type", [tc.ScalarType.FLOAT16, tc.ScalarType.BFLOAT16])
def test_halves_are_summed_in_single_precision_and_rounded_once(type: tc.ScalarType) -> None:
    total = tc.define(f"def total({type}(M,N) A) -> (s) {{ s(i) +=! A(i,j) }}")
    # A sum of ones that is kept in half precision stops growing at 2048 or 256.
    a = np.full((3, 4097), 1.0).astype(numpy_dtype(type))
    expected = np.full(3, 4097.0, np.float32).astype(numpy_dtype(type))
    np.testing.assert_array_equal(array(total(a)), expected)
    tensor = torch.ones(3, 4097, dtype=torch_dtype(type))
    result = total(tensor)
    assert isinstance(result, torch.Tensor)
    assert result.dtype == tensor.dtype
    assert result.tolist() == expected.astype(np.float32).tolist()


# --- sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(0, 7, 5), (7, 0, 5), (7, 13, 0), (0, 0, 0), (1, 1, 1)])
def test_sizes_without_elements(sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b = whole(m, k), whole(k, n, seed=1)
    for kind in (np.asarray, torch.from_numpy):
        result = array(DEFINITIONS.mm(kind(a), kind(b)))
        assert result.shape == (m, n)
        np.testing.assert_array_equal(result, a @ b)


@pytest.mark.parametrize("type", ["float32", "float64", "bfloat16", "int8", "int64", "uint8", "uint64"])
def test_reductions_over_nothing_give_neutral_elements(type: str) -> None:
    reductions = tc.define(
        f"""
        def reductions({type}(M,N) X) -> (sum, product, least, greatest) {{
            sum(i) +=! X(i,j)
            product(i) *=! X(i,j)
            least(i) min=! X(i,j)
            greatest(i) max=! X(i,j)
        }}
        """
    )
    scalar = tc.ScalarType(type)
    results = reductions(np.zeros((3, 0), numpy_dtype(scalar)))
    limits: tuple[float, float] = (np.inf, -np.inf) if scalar.is_floating else (scalar.maximum, scalar.minimum)
    assert isinstance(results, tuple)
    assert [result.tolist() for result in results] == [[value] * 3 for value in (0, 1, *limits)]


def test_the_shapes_of_results_are_known_before_a_call() -> None:
    a, b = whole(7, 13), whole(13, 5)
    mm = DEFINITIONS.mm
    for arguments in (
        (a, b),
        (torch.from_numpy(a), b),
        ((7, 13), (13, 5)),
        (tc.ArraySpec((7, 13), tc.ScalarType.FLOAT32, (1, 7)), torch.Size((13, 5))),
    ):
        assert mm.output_shapes(*arguments) == {"C": (7, 5)}
    assert DEFINITIONS.moments.output_shapes((7, 0)) == {"least": (7,), "total": (7,), "greatest": (7,)}
    assert mm.output_shapes((2**30, 0), (0, 2**30)) == {"C": (2**30, 2**30)}


def test_ranges_that_the_sizes_shrink() -> None:
    convolution = tc.define("def conv(float(N) I, float(K) W) -> (O) { O(i) +=! I(i + k) * W(k) }").conv
    for n, k in ((129, 7), (7, 7), (6, 7)):
        x, w = whole(n), whole(k, seed=1)
        result = array(convolution(x, w))
        expected = np.correlate(x, w, "valid") if n >= k else np.zeros(0, np.float32)
        assert convolution.output_shapes(x, w) == {"O": (max(0, n - k + 1),)}
        np.testing.assert_array_equal(result, expected)


# --- scalars ----------------------------------------------------------------------------------------------------------


def test_scalars_of_any_kind() -> None:
    for a in (3, 3.0, np.float32(3), np.float64(3), np.int8(3), np.array(3), torch.tensor(3.0), True + 2):
        y = np.zeros(7, np.float32)
        DEFINITIONS.axpby(a, whole(7), 0, out=y)
        np.testing.assert_array_equal(y, 3 * whole(7))


def test_every_type_of_scalar() -> None:
    for type in tc.ScalarType:
        spread = tc.define(f"def spread({type} s, float(N) X) -> (O) {{ O(i) = s where exists X(i) }}")
        value = type.maximum if not type.is_floating else 0.5
        result = array(spread(value, whole(3)))
        assert result.dtype == numpy_dtype(type)
        assert result.tolist() == [value] * 3


def test_scalars_that_shape_the_program_make_kernels_of_their_own() -> None:
    pooling = tc.define("def pool(float(N) X, int s) -> (O) { O(i) max=! X(s * i + k) where k in 0:s }").pool
    x = whole(129)
    for s in (1, 2, 5):
        expected = x[: 129 // s * s].reshape(-1, s).max(1)
        assert pooling.output_shapes(x, s) == {"O": (129 // s,)}
        np.testing.assert_array_equal(array(pooling(x, s)), expected)
        np.testing.assert_array_equal(array(pooling(x, np.int64(s))), expected)
    assert pooling.compile(x, 2) is pooling.compile(x, np.int32(2))
    assert pooling.compile(x, 2) is not pooling.compile(x, 5)


def test_scalars_that_are_only_values_share_a_kernel() -> None:
    scale = tc.define("def scale(float(N) X, int s) -> (O) { O(i) = X(i) * s }").scale
    x = whole(129)
    for s in (1, 2, 5):
        np.testing.assert_array_equal(array(scale(x, s)), x * s)
    assert scale.compile(x, 2) is scale.compile(x, 5)


# --- gathers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [-1, 7, 2**31 - 1, -(2**31)])
def test_an_index_out_of_range_is_reported(index: int) -> None:
    x, indices = whole(7, 3), np.array([0, 6, 3, index, 1], np.int32)
    good = np.array([6, 0, 3, 3, 1], np.int32)
    # The first call compiles and the second takes the short way; both check, and neither spoils the next one.
    for _ in range(2):
        with pytest.raises(tc.ArgumentError, match="pick: an index into dimension 0 of X is outside of 0:7"):
            DEFINITIONS.pick(x, indices)
        np.testing.assert_array_equal(array(DEFINITIONS.pick(x, good)), x[good])
    with pytest.raises(tc.ArgumentError, match="the results are undefined"):
        DEFINITIONS.pick(torch.from_numpy(x), torch.from_numpy(indices))
    with pytest.raises(tc.ArgumentError, match="pick: "):
        DEFINITIONS.pick.reference(x, indices)


@pytest.mark.parametrize("index", ["I(b,i)", "I(b,i) * I(b,i)", "i * i + int64(I(b,i))"])
@pytest.mark.parametrize("fusion", tc.Fusion, ids=lambda fusion: fusion.value)
def test_a_gather_among_the_only_element_of_a_row_is_checked_like_any_other(index: str, fusion: tc.Fusion) -> None:
    twice = tc.define(
        f"def twice(float(B,N) X, int32(B,N) I) -> (O) {{ C(b,i) = X(b,i) * 2  O(b,i) = C(b,{index}) + C(b,i) }}"
    ).single()
    x, options = whole(5, 1), tc.CpuOptions(schedule=tc.ScheduleOptions(fusion=fusion))
    np.testing.assert_array_equal(array(twice(x, np.zeros((5, 1), np.int32), options=options)), 4 * x)
    with pytest.raises(tc.ArgumentError, match="an index into dimension 1 of C is outside of 0:1"):
        twice(x, np.full((5, 1), 3, np.int32), options=options)


# --- threads and repeated calls ---------------------------------------------------------------------------------------


def test_the_same_bits_with_any_number_of_threads() -> None:
    generator = np.random.default_rng(3)
    a, b = (generator.standard_normal((67, 67)).astype(np.float32) for _ in range(2))
    softmax = tc.define(
        """
        def softmax(float(M,N) X) -> (O) {
            top(i) max=! X(i,j)
            e(i,j) = exp(X(i,j) - top(i))
            total(i) +=! e(i,j)
            O(i,j) = e(i,j) / total(i)
        }
        """
    )
    x = generator.standard_normal((129, 257)).astype(np.float32)
    before = tc.get_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            tc.set_threads(threads)
            assert tc.get_threads() == threads
            results.append((array(DEFINITIONS.mm(a, b)).tobytes(), array(softmax(x)).tobytes()))
    finally:
        tc.set_threads(None)
    assert tc.get_threads() == before
    assert results[0] == results[1] == results[2]


def test_the_short_way_knows_its_arrays() -> None:
    """Calls that alternate between kernels, so that a stale one would be noticed."""
    shapes = [(7, 3), (3, 7), (1, 1)]
    blocks = [whole(*shape, seed=n) for n, shape in enumerate(shapes)]
    calls: list[Any] = [*blocks, blocks[0].T, blocks[0][::-1], *map(torch.from_numpy, blocks)]
    for _ in range(3):
        for x in calls:
            expected = 2 * np.asarray(x) + np.arange(x.shape[1])
            result = DEFINITIONS.affine(x)
            assert type(result) is type(x)
            np.testing.assert_array_equal(array(result), expected)
    # What the thorough way refuses, the short way must not accept.
    for bad in (blocks[0].astype(np.float64), blocks[0].astype(">f4")):
        with pytest.raises(tc.ArgumentError):
            DEFINITIONS.affine(bad)
    followed = DEFINITIONS.affine(torch.ones(7, 3, requires_grad=True))
    assert isinstance(followed, torch.Tensor)
    assert followed.requires_grad


def test_keyword_arguments_choose_target_and_options() -> None:
    x = whole(7, 3)
    expected = 2 * x + np.arange(3)
    for options in (None, tc.CpuOptions(threads=1), tc.CpuOptions(vectorize=False)):
        for target in (None, "cpu", "cpu:x86-64"):
            np.testing.assert_array_equal(array(DEFINITIONS.affine(x, target=target, options=options)), expected)


def test_numbers_of_calls_do_not_make_kernels() -> None:
    x = whole(7, 3)
    kernel = DEFINITIONS.affine.compile(x)
    for _ in range(3):
        DEFINITIONS.affine(x)
        DEFINITIONS.affine(x, out=np.empty_like(x))
    assert DEFINITIONS.affine.compile(x) is kernel
    assert operator.is_(DEFINITIONS.affine.compile(torch.from_numpy(x)), kernel)
