"""What users of other systems have reported about gradients, each by the place where they did."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tc
from tests.gradient.differences import as_array, as_tuple, assert_derivatives


def torch_gradients(value: torch.Tensor, weight: np.ndarray, *tensors: torch.Tensor) -> list[np.ndarray]:
    found = torch.autograd.grad(value, tensors, torch.from_numpy(weight))
    return [own.numpy() for own in found]


def test_halide_7385_a_diagonal_has_a_gradient_on_the_diagonal_alone() -> None:
    f = tc.define("def f(double(N,N) x) -> (y) { y(i) = x(i,i) }").single()
    d = np.array([1.0, 2, 3])
    np.testing.assert_array_equal(f.gradient()(np.ones((3, 3)), d), np.diag(d))


@pytest.mark.parametrize(("stride", "kernel", "extent"), [(3, 2, 12), (3, 2, 11), (2, 3, 9), (4, 1, 9)])
def test_holes_of_strided_convolutions_are_0(stride: int, kernel: int, extent: int) -> None:
    f = tc.define(
        f"def f(double(N,C,W) I, double(F,C,K) K) -> (O) {{ O(n,f,w) +=! I(n,c,{stride}*w+k) * K(f,c,k) }}"
    ).single()
    rng = np.random.default_rng(0)
    image, weights = rng.standard_normal((2, 3, extent)), rng.standard_normal((4, 3, kernel))
    i, w = (torch.from_numpy(own).requires_grad_() for own in (image, weights))
    value = torch.nn.functional.conv1d(i, w, stride=stride)
    d = rng.standard_normal(value.shape)
    for found, wanted in zip(as_tuple(f.gradient()(image, weights, d)), torch_gradients(value, d, i, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_fan_out_is_added_up() -> None:
    f = tc.define(
        "def f(double(N) x) -> (y, z) { t(i) = x(i) * x(i)  y(i) = t(i) + x(i)  z(i) = t(i) * t(i) }"
    ).single()
    x, d, e = np.array([1.0, 2, -3]), np.array([1.0, 10, 100]), np.array([0.5, -1, 2])
    np.testing.assert_allclose(as_array(f.gradient()(x, d, e)), d * (2 * x + 1) + e * 4 * x**3)


def test_tensor_comprehensions_605_convolutions_with_kernels_greater_than_1() -> None:
    f = tc.define(
        "def conv(double(N,C,H,W) I, double(F,C,KH,KW) W1) -> (O) { O(n,f,h,w) +=! I(n,c,h+kh,w+kw) * W1(f,c,kh,kw) }"
    ).single()
    rng = np.random.default_rng(0)
    image, weights = rng.standard_normal((2, 3, 7, 6)), rng.standard_normal((4, 3, 3, 2))
    i, w = (torch.from_numpy(own).requires_grad_() for own in (image, weights))
    value = torch.nn.functional.conv2d(i, w)
    d = rng.standard_normal(value.shape)
    for found, wanted in zip(as_tuple(f.gradient()(image, weights, d)), torch_gradients(value, d, i, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_tensor_comprehensions_227_what_is_written_after_it_was_read() -> None:
    f = tc.define(
        """
        def fcrelu(double(B,M) I, double(N,M) W, double(N) b) -> (O) {
            O(i,j) = b(j) where i in 0:B
            O(i,j) += I(i,k) * W(j,k)
            O(i,j) = fmax(O(i,j), 0)
        }"""
    ).single()
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape) for shape in ((5, 4), (3, 4), (3,))]
    i, w, b = (torch.from_numpy(own).requires_grad_() for own in given)
    value = torch.relu(torch.nn.functional.linear(i, w, b))
    d = rng.standard_normal(value.shape)
    for found, wanted in zip(as_tuple(f.gradient()(*given, d)), torch_gradients(value, d, i, w, b), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("expression", "x"),
    [
        ("x(i) < 1 ? x(i) : sqrt(x(i) - 1)", [0.0, 0.5]),  # JAX 347
        ("x(i) > 0 ? sqrt(x(i)) : 0", [0.0, 4.0]),  # JAX 1052
        ("x(i) == 0 ? 1 : sin(x(i)) / x(i)", [0.0, 2.0]),  # JAX 5798
        ("x(i) > 0 ? log(x(i)) : 0", [-1.0, 0.0]),
        ("x(i) != 0 ? 1 / x(i) : 0", [0.0, 2.0]),
    ],
)
def test_jax_347_1052_5798_no_nan_from_branches_that_are_not_taken(expression: str, x: list[float]) -> None:
    f = tc.define(f"def f(double(N) x) -> (y) {{ y(i) = {expression} }}").single()
    for target in ("cpu", "emulator"):
        found = f.gradient()(np.array(x), np.ones(len(x)), target=target)
        assert np.isfinite(np.asarray(found)).all()


def test_pytorch_56734_a_maximum_splits_between_its_ties() -> None:
    f = tc.define("def f(double(N,M) x) -> (y) { y(i) max=! x(i,j) }").single()
    x = np.array([[1.0, 3, 3, 0], [2, 2, 2, 2], [5, 1, 1, 1]])
    d = np.array([6.0, 8, 10])
    split, first = f.gradient()(x, d), f.gradient(ties="first")(x, d)
    t = torch.from_numpy(x).requires_grad_()
    np.testing.assert_array_equal(split, torch_gradients(t.amax(1), d, t)[0])
    np.testing.assert_array_equal(first, torch_gradients(t.max(1).values, d, t)[0])


def test_maxima_of_what_relu_has_cut_off() -> None:
    """Zeros behind a rectifier tie all the time; never does each of them get the whole."""
    f = tc.define(
        "def f(double(N,H) x) -> (y) { r(n,h) = fmax(x(n,h), 0)  y(n,h) max=! r(n,2*h+k) where k in 0:2 }"
    ).single()
    x = np.random.default_rng(0).standard_normal((3, 12))
    t = torch.from_numpy(x).requires_grad_()
    value = torch.nn.functional.max_pool1d(torch.relu(t), 2)
    d = np.ones(value.shape)
    np.testing.assert_array_equal(f.gradient(ties="first")(x, d), torch_gradients(value, d, t)[0])
    assert as_array(f.gradient()(x, d)).sum() <= d.sum()


def test_nan_has_no_gradient_to_share() -> None:
    f = tc.define("def f(double(N) x) -> (y) { y max=! x(i) }").single()
    found = f.gradient()(np.array([1.0, np.nan, 2]), np.array(1.0))
    np.testing.assert_array_equal(found, [0, 0, 0])


def test_products_with_zeros() -> None:
    f = tc.define("def f(double(N,M) x) -> (y) { y(i) *=! x(i,j) }").single()
    x = np.array([[2.0, 3, 4], [0, 3, 4], [0, 0, 4]])
    t = torch.from_numpy(x).requires_grad_()
    d = np.array([1.0, 2, 3])
    np.testing.assert_allclose(as_array(f.gradient()(x, d)), torch_gradients(t.prod(1), d, t)[0])


def test_an_index_that_is_not_read_is_not_checked() -> None:
    f = tc.define("def f(double(E) T, int32(N) I, double(N) m) -> (y) { y(i) = m(i) > 0 ? T(I(i)) : 0 }").single()
    table, index, mask = np.arange(4.0), np.array([1, 99, 3], np.int32), np.array([1.0, 0, 1])
    np.testing.assert_array_equal(f.gradient("T")(table, index, mask, np.array([5.0, 6, 7])), [0, 5, 0, 7])


def test_guards_keep_reads_inside() -> None:
    f = tc.define(
        "def f(double(N) x) -> (y) { y(i) = (i > 0 ? x(i-1) : 0) + (i < N-1 ? x(i+1) : 0) where i in 0:N }"
    ).single()
    np.testing.assert_array_equal(f.gradient()(np.zeros(4), np.array([1.0, 2, 4, 8])), [2, 5, 10, 4])


@pytest.mark.parametrize("type", ["half", "bfloat16"])
def test_adjoints_of_halves_are_added_up_in_float32(type: str) -> None:
    f = tc.define(f"def f({type}(N) x, {type}(N,M) A) -> (y) {{ y(i,j) = x(i) * A(i,j) }}").single()
    dtype = torch.float16 if type == "half" else torch.bfloat16
    x, a = torch.ones(1, dtype=dtype), torch.full((1, 3000), 1.0, dtype=dtype)
    found = f.gradient("x")(x, a, torch.ones((1, 3000), dtype=dtype))
    assert isinstance(found, torch.Tensor)
    assert found.dtype is dtype
    assert float(found[0]) == pytest.approx(3000, rel=1e-2)


def test_conditions_that_fold_to_ones_on_sizes_are_asked_of_no_call() -> None:
    f = tc.define("def f(float(N) x, float(M) w) -> (y) { y(i) = (i % 1 < M - 4 ? x(i) * w(i % 1) : x(i)) }").single()
    x, w = np.ones(3, np.float32), np.full(4, 5, np.float32)
    d_x, d_w = as_tuple(f.gradient()(x, w, x))
    np.testing.assert_array_equal(d_x, x)
    np.testing.assert_array_equal(d_w, np.zeros(4))
    np.testing.assert_array_equal(as_array(f.jvp("x")(x, w, x)), x)


def test_extents_that_only_a_call_knows() -> None:
    text = """
    def f(float(N) x) -> (B) {
        A(i % 4) +=! x(i)
        B(l) = A(l) * A(l) where l in 0:A.0
    }"""
    f = tc.define(text).single()
    x = np.arange(6, dtype=np.float32)
    sums = np.array([0 + 4, 1 + 5, 2, 3], np.float32)
    np.testing.assert_array_equal(as_array(f(x)), sums**2)
    np.testing.assert_array_equal(as_array(f.gradient()(x, np.ones(4, np.float32))), 2 * sums[[0, 1, 2, 3, 0, 1]])


EXTENTS = {
    "y(i % 3) +=! x(i) * w(i)": "y0 == min(3, N)",
    "y(i / 2) max=! x(i) * w(i)": "y0 == (N + 1) / 2",
    "y(i % N) +=! x(i) * w(i)": "",
    "y((i + j) / 2 + 2 * ((i + j) % 2)) +=! x(i) * w(j)": "",
}


@pytest.mark.parametrize("statement", EXTENTS)
def test_extents_of_adjoints_are_said_in_sizes_where_that_is_known(statement: str) -> None:
    f = tc.define(f"def f(double(N) x, double(N) w) -> (y) {{ {statement} }}").single()
    gradient = f.gradient()
    assert EXTENTS[statement] in str(gradient)
    assert "y.0" not in str(gradient)
    for size in (1, 2, 5, 8):
        x, w = np.random.default_rng(size).random((2, size))
        assert_derivatives(f, {"x": x, "w": w}, kernels=False)
    nothing = np.zeros(0)
    assert [part.shape for part in as_tuple(gradient(nothing, nothing, f(nothing, nothing)))] == [(0,), (0,)]


def test_what_comes_in_has_extents_of_its_own() -> None:
    text = str(tc.define("def f(double(N) x) -> (y) { y(i % N) += x(i) * x(i) }").single().gradient())
    assert "float64(y0) y, float64(y0) d_y" in text
    assert "==" not in text


def test_what_data_choose_beside_a_part_of_a_tensor_has_all_of_its_elements() -> None:
    f = tc.define("""
    def f(double(M,M) B, int32(H) C, double(N) A) -> (I, W) {
        W(j) = B(j % 3, j) + A(j)
        I(m,l) = exp(B(C(m), l))
    }""").single()
    rng = np.random.default_rng(0)
    given = {"B": rng.standard_normal((5, 5)), "C": np.array([4, 0, 4], np.int32), "A": rng.standard_normal(2)}
    assert_derivatives(f, given)
    assert as_array(f.gradient("B")(*given.values(), np.ones((3, 5)), np.ones(2))).shape == (5, 5)
