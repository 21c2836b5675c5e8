"""What does not fit is refused, naming the argument, what was expected and what came."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import as_strided

import tc
from tests.programs import run

Array: TypeAlias = np.ndarray
Refused: TypeAlias = Callable[[], object]

DEFINITIONS = tc.define(
    """
    def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }
    def moments(float(M,N) X) -> (least, total) { total(i) +=! X(i,j)  least(i) min=! X(i,j) }
    def affine(float(M,N) X) -> (Y) { Y(i,j) = 2 * X(i,j) + j }
    def axpby(float a, float(N) x, float b) -> (y) { y(i) = a * x(i) + b * y(i) }
    def triples(float(N,3) X) -> (O) { O(i,j) = X(i,j) }
    def pool(float(N) X, int s) -> (O) { O(i) max=! X(s * i + k) where k in 0:s }
    def outer(float(M) x, float(N) y, float(L) z) -> (O) { O(i,j) = x(i) * y(i+j) * z(j) }
    def none() -> (O) { O(i) = i where i in 0:3 }
    """
)
MM, MOMENTS, AFFINE, AXPBY = (DEFINITIONS[name] for name in ("mm", "moments", "affine", "axpby"))
TRIPLES, POOL, OUTER, NONE = (DEFINITIONS[name] for name in ("triples", "pool", "outer", "none"))


def ones(*shape: int, dtype: str = "float32") -> Array:
    return np.ones(shape, dtype)


A, B, X = ones(7, 13), ones(13, 5), ones(9)
# An element at one place, seen as 2^40 rows.
TALL = as_strided(ones(1), (2**40, 1), (0, 0))


def refusals(cases: dict[str, Refused]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("message", "call"), cases.items(), ids=map(str, range(len(cases))))


ARGUMENTS: dict[str, Refused] = {
    # number
    "mm takes 2 arguments (A, B), got 1": lambda: MM(A),
    "mm takes 2 arguments (A, B), got 3": lambda: MM(A, B, A),
    "moments takes 1 argument (X), got 0": MOMENTS,
    "none takes 0 arguments (), got 1": lambda: NONE(A),
    # kind, type and rank
    "argument A of mm: expected an array (NumPy, PyTorch, JAX, CuPy, PyCUDA, DLPack or __array_interface__), got": (
        lambda: MM([[1.0]], B)
    ),
    "argument A of mm: expected element type float32, got float64; convert the array, or declare `float64` in": (
        lambda: MM(A.astype("f8"), B)
    ),
    "argument B of mm: expected element type float32, got bfloat16": (
        lambda: MM(A, torch.ones(13, 5, dtype=torch.bfloat16))
    ),
    "argument A of mm: element type complex64 is not supported; known: bool, int8": lambda: MM(A.astype("c8"), B),
    "argument A of mm: elements of dtype '>f4' are not in this machine's byte order; pass array.astype(": (
        lambda: MM(A.astype(">f4"), B)
    ),
    "argument A of mm: expected 2 dimensions, got 1 dimension (13,)": lambda: MM(A[0], B),
    "argument x of axpby: expected 1 dimension, got 2 dimensions (7, 13)": lambda: AXPBY(1.0, A, 1.0, out=X),
    "argument A of mm: the tensor requires a gradient, which this call cannot give; pass .detach(), or call under": (
        lambda: MM.compile(A, B)(torch.ones(7, 13, requires_grad=True), B)
    ),
    "argument A of mm: its first element lies at address": (
        lambda: MM(np.zeros(7 * 13 * 4 + 1, np.uint8)[1:].view("f4").reshape(7, 13), B)
    ),
    # sizes
    "mm: the size `K` is 13 in `A.1` and 12 in `B.0`": lambda: MM(A, B[1:]),
    "triples: argument `X` is declared with 3 as `X.1`, got shape (4, 4)": lambda: TRIPLES(ones(4, 4)),
    # scalars
    "argument a of axpby: expected a number for float32, got str": lambda: AXPBY("1", X, 1.0, out=X),
    "argument a of axpby: expected one float32, got an array of shape (9,)": lambda: AXPBY(X, X, 1.0, out=X),
    "argument b of axpby: 1e+39 is too large for float32": lambda: AXPBY(1.0, X, 1e39, out=X),
    "argument s of pool: 3.5 is no int32; pass a whole number": lambda: POOL(X, 3.5),
    "argument s of pool: 2147483648 does not fit int32, which holds -2147483648 to 2147483647": lambda: POOL(X, 2**31),
    # 64-bit indexing
    "mm: `C` with shape (1099511627776, 1099511627776) spans more than 9223372036854775807 bytes, beyond 64-bit": (
        lambda: MM(TALL, TALL.T)
    ),
}


@refusals(ARGUMENTS)
def test_arguments_that_do_not_fit(message: str, call: Refused) -> None:
    with pytest.raises(tc.ArgumentError, match=re.escape(message)):
        call()


RESULTS: dict[str, Refused] = {
    "output C of mm: expected shape (7, 5), got (7, 6)": lambda: MM(A, B, out=ones(7, 6)),
    "output C of mm: expected element type float32, got float64": lambda: MM(A, B, out=ones(7, 5, dtype="f8")),
    "output C of mm: expected 2 dimensions, got 1 dimension (7,)": lambda: MM(A, B, out=ones(7)),
    "mm: result `C` has shape (7, 5), got (7, 6)": lambda: MM(A, B, out=ones(6, 7).T),
    "mm has no result 'D'; it has C": lambda: MM(A, B, out={"D": ones(7, 5)}),
    "mm has 1 result (C), out= holds 2": lambda: MM(A, B, out=(ones(7, 5), None)),
    "moments has 2 results (least, total), out= holds 1": lambda: MOMENTS(A, out=(ones(7),)),
    "moments has 2 results (least, total); out= must be a tuple of as many arrays (None for one to be allocated) or a "
    "dictionary by name": lambda: MOMENTS(A, out=ones(7)),
    "output C of mm: expected an array (NumPy": lambda: MM(A, B, out=3),
    "output y of axpby: the definition reads y before it writes it; pass its first value through out=": (
        lambda: AXPBY(1.0, X, 1.0)
    ),
    "output y of axpby: expected shape (9,), got (8,)": lambda: AXPBY(1.0, X, 1.0, out=ones(8)),
    "output C of mm: the array is read-only; pass one that may be written": (
        lambda: MM(A, B, out=np.broadcast_to(ones(5), (7, 5)))
    ),
    "output C of mm: several of its elements share one place in memory (strides (0, 1) for shape (7, 5)); pass": (
        lambda: MM(A, B, out=torch.ones(5).expand(7, 5))
    ),
    "output C of mm: the tensor requires a gradient, which this call cannot give; pass .detach(), or call under": (
        lambda: MM(A, B, out=torch.ones(7, 5, requires_grad=True))
    ),
}


@refusals(RESULTS)
def test_results_that_do_not_fit(message: str, call: Refused) -> None:
    with pytest.raises(tc.ArgumentError, match=re.escape(message)):
        call()


def test_sizes_that_lead_out_of_an_argument_are_refused_with_a_witness() -> None:
    x, z = ones(3), ones(4)
    np.testing.assert_array_equal(OUTER(x, ones(6), z), ones(3, 4))
    with pytest.raises(tc.RangeError, match=r"`y\(i \+ j\)` leaves `y` at i = 2, j = 3: dimension 0 has 5 elements"):
        OUTER(x, ones(5), z)


@pytest.mark.parametrize("stride", [0, -2])
def test_scalars_that_the_ranges_cannot_have(stride: int) -> None:
    with pytest.raises(tc.ArgumentError, match=r"pool: .*: the factor of `i` in a subscript must be positive"):
        POOL(X, stride)


def test_refused_arrays_stay_as_they_are() -> None:
    out = np.full((7, 6), 5, np.float32)
    with pytest.raises(tc.ArgumentError):
        MM(A, B, out=out)
    assert (out == 5).all()


SPECS: dict[str, Refused] = {
    "mm takes 2 arguments (A, B), got 1": lambda: MM.output_shapes((7, 13)),
    "argument A of mm: expected 2 dimensions, got 3 dimensions (7, 13, 1)": (
        lambda: MM.output_shapes((7, 13, 1), (13, 5))
    ),
    "mm: the size `K` is 13 in `A.1` and 12 in `B.0`": lambda: MM.output_shapes((7, 13), (12, 5)),
    "argument A of mm: a shape holds integers, got (7, 13.0)": lambda: MM.output_shapes((7, 13.0), (13, 5)),
    "an array cannot have the shape (7, -13); extents are not negative": lambda: MM.output_shapes((7, -13), (13, 5)),
    "argument A of mm: expected an array (NumPy": lambda: MM.compile([7, 13], (13, 5)),
    "1 stride for 2 dimensions; give one for each": lambda: tc.ArraySpec((7, 13), tc.ScalarType.FLOAT32, (1,)),
    "argument A of mm: expected element type float32, got int8": (
        lambda: MM.compile(tc.ArraySpec((7, 13), tc.ScalarType.INT8), (13, 5))
    ),
    "argument s of pool: expected a number for int32, got tuple": lambda: POOL.compile((9,), (3,)),
    "mm: `A` with shape (4611686018427387904, 1) spans more than 9223372036854775807 bytes, beyond 64-bit indexing": (
        lambda: MM.compile((2**62, 1), (1, 1))
    ),
    "`C` with shape (1099511627776, 1099511627776) spans more than": lambda: MM.output_shapes((2**40, 1), (1, 2**40)),
    "`A` with shape (2, 3) spans more than 9223372036854775807 bytes": (
        lambda: MM.compile(tc.ArraySpec((2, 3), tc.ScalarType.FLOAT32, (-(2**61), 1)), (3, 5))
    ),
}


@refusals(SPECS)
def test_specs_and_shapes_that_do_not_fit(message: str, call: Refused) -> None:
    with pytest.raises(tc.ArgumentError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("f4"), torch.float32])
def test_the_dtype_of_a_spec_is_a_scalar_type(dtype: Any) -> None:
    with pytest.raises(tc.ArgumentError, match=r"an array has a dtype of tc\.ScalarType, such as FLOAT32, got "):
        tc.ArraySpec((7, 13), dtype)


def test_shapes_may_hold_integers_of_any_kind() -> None:
    shape = (np.int64(7), np.uint8(13))
    assert MM.output_shapes(shape, torch.Size((13, 5))) == {"C": (7, 5)}
    assert MM.output_shapes(TALL, TALL[:1]) == {"C": (2**40, 1)}


# --- memory that is shared -------------------------------------------------------------------------------------

SHARING = tc.define(
    """
    def transpose(float(N,N) X) -> (O) { O(i,j) = X(j,i) }
    def blur(float(N) X) -> (O) { O(i) = X(i) + (i + 1 < N ? X(i+1) : 0) }
    def square(float(N,N) X, float(N,N) Y) -> (O) { O(i,j) +=! X(i,k) * Y(k,j) }
    def two(float(N) X) -> (P, Q) { P(i) = 2 * X(i)  Q(i) = X(i) + 1 }
    def sum(float(N) X, float(N) Y) -> (O) { O(i) = X(i) + Y(i) }
    def halo(float(N) X) -> (O) { O(i) = i < N ? X(i) : 0 where i in 0:N+5 }
    """
)


def whole(*shape: int) -> Array:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(np.float32)


SHARED: dict[str, Callable[[Array], object]] = {
    # The witness says which instance overwrites what another one reads.
    "transpose: the output O cannot share the memory of the input X: S0[i, j] -> S0[i', j'] : i = 0 and j = 1 and i' = "
    "1 and j' = 0: the first writes an element of O that the second reads from X; pass a separate array": (
        lambda x: SHARING.transpose(x, out=x)
    ),
    "blur: the output O cannot share the memory of the input X: S0[i] -> S0[i']": lambda x: SHARING.blur(
        x[0], out=x[0]
    ),
    "square: the output O cannot share the memory of the input X: S0_init[": lambda x: SHARING.square(x, x + 1, out=x),
    "square: the output O cannot share the memory of the input Y: S0_init[": lambda x: SHARING.square(x + 1, x, out=x),
    "two: the output P cannot share the memory of the input X: S0[i] -> S1[i']": (
        lambda x: SHARING.two(x[0], out=(x[0], None))
    ),
    "transpose: the output O overlaps the input X; pass a separate array": lambda x: SHARING.transpose(x, out=x.T),
    "blur: the output O overlaps the input X; pass": lambda x: SHARING.blur(x[0, :5], out=x[0, 4:]),
    "sum: the output O overlaps the input Y; pass": lambda x: SHARING.sum(x[0], x[0, ::-1], out=x[0]),
    "sum: the output O is several inputs at once (X, Y); pass a separate array": lambda x: SHARING.sum(
        x[1], x[1], out=x[1]
    ),
    "two: the outputs P and Q share memory; pass separate ones": lambda x: SHARING.two(x[0], out=(x[1], x[1])),
    "two: the outputs P and Q share memory;": lambda x: SHARING.two(x[0], out=(x[1], x.reshape(-1)[10:19])),
    "halo: result `O` has shape (14,), got (9,)": lambda x: SHARING.halo(x[0], out=x[0]),
}


@pytest.mark.parametrize(("message", "call"), SHARED.items(), ids=map(str, range(len(SHARED))))
def test_outputs_that_would_destroy_what_is_read(message: str, call: Callable[[Array], object]) -> None:
    block = whole(9, 9)
    with pytest.raises(tc.ArgumentError, match=re.escape(message)):
        call(block)
    np.testing.assert_array_equal(block, whole(9, 9))


def test_tensors_that_share_memory_with_arrays_are_seen() -> None:
    block = whole(9, 9)
    with pytest.raises(tc.ArgumentError, match="transpose: the output O cannot share the memory of the input X"):
        SHARING.transpose(block, out=torch.from_numpy(block))
    with pytest.raises(tc.ArgumentError, match="transpose: the output O overlaps the input X"):
        SHARING.transpose(torch.from_numpy(block).T, out=block)


def test_what_is_harmless_is_allowed() -> None:
    x = whole(9)
    # Q is the last to read X.
    results = SHARING.two(x, out=(None, x))
    assert isinstance(results, tuple)
    np.testing.assert_array_equal(results[0], 2 * whole(9))
    assert results[1] is x
    np.testing.assert_array_equal(x, whole(9) + 1)
    # Inputs may share memory with each other.
    np.testing.assert_array_equal(SHARING.sum(x, x[::-1]), x + x[::-1])
    # A symmetric product with itself, into another array.
    block = whole(9, 9)
    np.testing.assert_array_equal(SHARING.square(block, block.T, out=np.empty_like(block)), block @ block.T)
    # One element has no order.
    single = whole(1, 1) + 3
    SHARING.transpose(single, out=single)
    assert single == 3
    # Nothing is shared where there is nothing.
    empty = whole(0, 0)
    assert SHARING.transpose(empty, out=empty) is empty


# --- without a compiler ----------------------------------------------------------------------------------------

WITHOUT_COMPILER = """
import numpy as np, tc
mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }").mm
A, B = np.ones((7, 13), np.float32), np.ones((13, 5), np.float32)
for attempt in (lambda: mm(A, B), lambda: mm(A, B), lambda: mm.compile(A, B), lambda: mm.explain(A, B)):
    try:
        attempt()
    except tc.DeviceError as error:
        print(error)
assert (mm.reference(A, B) == 13).all()
assert mm.output_shapes(A, B) == {"C": (7, 5)}
print(tc.targets()["cpu"])
"""


def test_without_a_compiler_calls_say_what_to_install_and_the_oracle_works() -> None:
    lines = run(WITHOUT_COMPILER, environment={"PATH": "/nowhere", "TC_CC": ""}).splitlines()
    expected = "no C compiler: none of cc, gcc, clang is on the PATH; install one (Debian and Ubuntu: apt install gcc;"
    assert len(lines) == 5
    assert all(line.removeprefix("not available: ").startswith(expected) for line in lines)
    assert lines[4].startswith("not available: ")


def test_a_compiler_that_is_not_there_is_named() -> None:
    lines = run(WITHOUT_COMPILER, environment={"TC_CC": "/nowhere/cc -O1"}).splitlines()
    expected = "no C compiler: TC_CC names '/nowhere/cc -O1', which is not a program here; correct or unset it"
    assert lines == [*[expected] * 4, f"not available: {expected}"]
