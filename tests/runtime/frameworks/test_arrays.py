"""Arrays of NumPy and PyTorch, and of anything that follows their protocols, in and out."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import as_strided

from tc.base.errors import ArgumentError, TCError
from tc.base.types import ScalarType
from tc.dispatch.warm import call_key
from tc.runtime.frameworks.arrays import allocator, deliver, describe, describe_output
from tc.runtime.frameworks.borrow import borrow
from tc.runtime.frameworks.torch_arrays import mark_written, torch_dtype
from tc.runtime.views.view import ArrayView, Framework
from tests.waiting import PATIENCE

PLACE = "argument A of mm"
block = np.arange(7 * 129, dtype=np.float32).reshape(7, 129)
tensor = torch.arange(7 * 129, dtype=torch.float32).reshape(7, 129)

NUMPY_VIEWS = [
    block,
    block.T,
    block[::-1, ::-2],
    block[:, 3:4],
    block[2:2],
    np.broadcast_to(block[0], (3, 129)),
    np.array(3.0),
    block.view(np.matrix),
    np.zeros((0, 5), np.int8),
]
TORCH_VIEWS = [
    tensor,
    tensor.T,
    tensor[::2, 5::3],
    tensor[1].expand(4, 129),
    torch.tensor(3),
    torch.zeros(0, 7),
    torch.ones(5, dtype=torch.bfloat16),
]


def elements(view: ArrayView) -> list[object]:
    """The elements of a view, read through its address and strides, in row-major order."""
    values: list[object] = borrow(view).ravel().tolist()
    return values


@pytest.mark.parametrize("array", NUMPY_VIEWS, ids=lambda a: f"{a.dtype}{a.shape}{a.strides}")
def test_numpy_views_are_read_in_place(array: np.ndarray) -> None:
    view = describe(array, PLACE)
    assert (view.shape, view.type.value, view.framework) == (array.shape, array.dtype.name, Framework.NUMPY)
    assert elements(view) == np.asarray(array).ravel().tolist()
    assert view.writable is array.flags.writeable
    assert view.size == array.size


@pytest.mark.parametrize("array", TORCH_VIEWS, ids=lambda t: f"{t.dtype}{tuple(t.shape)}{t.stride()}")
def test_torch_views_are_read_in_place(array: torch.Tensor) -> None:
    view = describe(array, PLACE)
    assert (view.shape, torch_dtype(view.type), view.framework) == (tuple(array.shape), array.dtype, Framework.TORCH)
    assert elements(view) == array.reshape(-1).tolist()
    assert view.writable


def test_strides_that_say_nothing_are_canonical() -> None:
    assert describe(block[:, 3:4], PLACE).strides == (129, 1)
    assert describe(block[3:4, 2:], PLACE).strides == (127, 1)
    assert describe(block[2:2], PLACE).strides == (129, 1)
    assert describe(as_strided(np.ones(1), (1, 1), (3, 5)), PLACE).strides == (1, 1)


@pytest.mark.parametrize("type", list(ScalarType))
def test_every_type_comes_in_and_goes_out(type: ScalarType) -> None:
    for framework in (Framework.NUMPY, Framework.TORCH, Framework.OTHER):
        memory = allocator(framework, (7, 5), type)()
        view = describe_output(memory, PLACE)
        assert (view.type, view.shape, view.strides) == (type, (7, 5), (5, 1))
        assert deliver(memory, framework, type) is memory
        assert isinstance(memory, torch.Tensor if framework is Framework.TORCH else np.ndarray)


def test_numpy_types_are_known_by_what_they_are() -> None:
    assert describe(np.ones(3, np.longlong), PLACE).type is ScalarType.INT64
    assert describe(np.ones(3, np.uintc), PLACE).type is ScalarType.UINT32
    assert describe(np.ones(3, ml_dtypes.bfloat16), PLACE).type is ScalarType.BFLOAT16


def test_bfloat16_without_ml_dtypes_says_what_to_install() -> None:
    program = """
import sys
sys.modules["ml_dtypes"] = None
from tc.runtime.frameworks.borrow import borrow
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tc.base.types import ScalarType
try: numpy_dtype(ScalarType.BFLOAT16)
except Exception as error: print(type(error).__name__, error)
"""
    command = (sys.executable, "-c", program)
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert printed.stdout.startswith("ArgumentError NumPy has no bfloat16 of its own: pip install ml_dtypes")


Making = Callable[[], object]

REFUSED: list[tuple[Making, type[TCError], str]] = [
    (lambda: np.ones(3, np.complex64), ArgumentError, "element type complex64 is not supported; known: bool, int8"),
    (lambda: np.ones(3, object), ArgumentError, "element type object is not supported"),
    (lambda: np.ones(3, np.longdouble), ArgumentError, "element type float128 is not supported"),
    (lambda: np.ones(3, "M8[s]"), ArgumentError, "element type datetime64[s] is not supported"),
    (lambda: np.ones(3, "S4"), ArgumentError, "element type bytes32 is not supported"),
    (lambda: np.ones(3, [("x", "f4")]), ArgumentError, "element type void32 is not supported"),
    (lambda: np.ones(3, ml_dtypes.float8_e3m4), ArgumentError, "element type float8_e3m4 is not supported"),
    (lambda: np.ones(3, ">f4"), ArgumentError, "dtype '>f4' are not in this machine's byte order; pass array.astype("),
    (lambda: np.ones(3, "f4,u1")["f0"], ArgumentError, "a stride of 5 bytes is no multiple of the element size, 4"),
    (lambda: np.zeros(17, "u1")[1:].view("f4"), ArgumentError, "which is not aligned to 4 bytes; pass a copy"),
    (lambda: np.ma.masked_less(np.ones(3), 2), ArgumentError, "masked arrays are not supported; pass array.filled("),
    (
        lambda: [1.0, 2.0],
        ArgumentError,
        "expected an array (NumPy, PyTorch, JAX, CuPy, PyCUDA, DLPack or __array_",
    ),
    (lambda: 3.0, ArgumentError, "got float; numpy.asarray makes one"),
    (lambda: None, ArgumentError, "got NoneType"),
    (lambda: torch.eye(3).to_sparse(), ArgumentError, "a sparse_coo tensor has no dense elements; pass .to_dense()"),
    (lambda: torch.eye(3).to_sparse_csr(), ArgumentError, "a sparse_csr tensor has no dense elements"),
    (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), ArgumentError, "a nested tensor has no dense"),
    (lambda: torch.ones(3, device="meta"), ArgumentError, "a meta tensor has a shape but no elements"),
    (
        lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
        ArgumentError,
        "element type torch.qint8 is not",
    ),
    (lambda: torch.ones(3, dtype=torch.complex64), ArgumentError, "element type torch.complex64 is not supported"),
    (
        lambda: torch.ones(3, dtype=torch.complex64).conj().imag,
        ArgumentError,
        "its negation; pass .resolve_neg()",
    ),
    (lambda: torch._efficientzerotensor(3), ArgumentError, "the array has no memory of its own"),
    (
        lambda: torch.frombuffer(bytearray(9), dtype=torch.float32, offset=1, count=2),
        ArgumentError,
        "which is not aligned to 4 bytes",
    ),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("make", "error", "message"), REFUSED, ids=map(str, range(len(REFUSED))))
def test_refusals_name_place_reason_and_remedy(make: Making, error: type[TCError], message: str) -> None:
    array = make()
    with pytest.raises(error) as caught:
        describe(array, PLACE)
    assert str(caught.value).startswith(f"{PLACE}: ")
    assert message in str(caught.value)
    # The quick way stops at what no key tells apart; element types and strides are in the key.
    key = call_key((array,), None)
    assert key is None or any(word in message for word in ("element type", "stride", "byte order"))


def test_tensors_without_memory_are_refused() -> None:
    def inside(item: torch.Tensor) -> torch.Tensor:
        describe(item, PLACE)
        return item

    with pytest.raises(ArgumentError, match="the tensor has no memory of its own"):
        torch.vmap(inside)(tensor)


class Interface:
    """An array that only has NumPy's interface."""

    def __init__(self, array: np.ndarray, **changes: object) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, **changes}


def test_the_array_interface_is_read_in_place() -> None:
    array = Interface(block[::-2, 1:])
    view = describe(array, PLACE)
    assert view.framework is Framework.OTHER
    assert view.owner is array
    assert elements(view) == block[::-2, 1:].ravel().tolist()
    read_only = Interface(block, data=(block.ctypes.data, True))
    assert not describe(read_only, PLACE).writable
    with pytest.raises(ArgumentError, match="A of mm: its __array_interface__ is not valid"):
        describe(Interface(block, shape="nonsense"), PLACE)


def test_borrowed_arrays_share_memory_and_keep_it_alive() -> None:
    array = np.arange(9.0)
    borrowed = borrow(describe(array[::-2], PLACE))
    assert np.shares_memory(borrowed, array)
    assert not borrowed.flags.writeable
    del array
    gc.collect()
    assert borrowed.tolist() == [8.0, 6.0, 4.0, 2.0, 0.0]


def test_numbers_of_numpy_are_read_but_never_written() -> None:
    assert elements(describe(np.float64(3), PLACE)) == [3.0]
    with pytest.raises(ArgumentError, match="read-only"):
        describe_output(np.float64(3), PLACE)


def test_outputs_must_be_writable_and_free_of_overlap() -> None:
    assert describe_output(block[::-1, ::2].T, PLACE).address == block[-1:].ctypes.data
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match="A of mm: the array is read-only; pass one that may be written"):
        describe_output(frozen, PLACE)
    message = r"A of mm: several of its elements share one place in memory \(strides \(0, 1\) for shape \(3, 129\)\)"
    with pytest.raises(ArgumentError, match=message):
        describe_output(torch.ones(129).expand(3, 129), PLACE)
    with pytest.raises(ArgumentError, match="several of its elements"):
        describe_output(as_strided(np.ones(9), (3, 3), (16, 8)), PLACE)


def test_autograd_learns_of_writes() -> None:
    weight = torch.ones(3, requires_grad=True)
    other = torch.ones(3)
    total = (weight * other).sum()
    mark_written(other)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(total, weight)
