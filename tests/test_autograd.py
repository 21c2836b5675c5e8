"""Tensors that require gradients: PyTorch follows calls, and is refused what it could not follow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest
import torch

import tc
from tc.dispatch.arguments import bind
from tests.short_way import only_the_short_way, the_thorough_way

DEFINITIONS = tc.define(
    """
    def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }
    def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }
    def where(float(N) x) -> (count, large) { count +=! int32(x(i) > 1)  large(i) = x(i) > 1 }
    def both(float(N) x) -> (y, large) { y(i) = 2 * x(i)  large(i) = x(i) > 1 }
    """
)
SCALE, TWICE, WHERE, BOTH = (DEFINITIONS[name] for name in DEFINITIONS)
MESSAGE = (
    r"the tensor requires a gradient, which this call cannot give; pass \.detach\(\), or call under torch\.no_grad\(\)"
)
WITHOUT: list[Callable[[], AbstractContextManager[object]]] = [torch.no_grad, torch.inference_mode]
TENSORS: list[Callable[[], torch.Tensor]] = [
    lambda: torch.arange(4.0, requires_grad=True),
    lambda: torch.nn.Parameter(torch.arange(4.0)),
    lambda: torch.arange(4.0, requires_grad=True) * 1,
]


def slope(result: object, x: torch.Tensor) -> list[float]:
    """The derivative of the sum of a result, which knows how it came about."""
    assert isinstance(result, torch.Tensor)
    assert result.requires_grad
    values: list[float] = torch.autograd.grad(result.sum(), x)[0].tolist()
    return values


def as_tensor(result: object) -> torch.Tensor:
    assert isinstance(result, torch.Tensor)
    return result


def as_tensors(results: object) -> tuple[torch.Tensor, ...]:
    assert isinstance(results, tuple)
    return results


def plain(result: object) -> list[float]:
    assert isinstance(result, torch.Tensor)
    assert not result.requires_grad
    values: list[float] = result.tolist()
    return values


@pytest.mark.parametrize("without", WITHOUT)
@pytest.mark.parametrize("make", TENSORS)
def test_without_gradients_they_are_tensors_like_others(
    make: Callable[[], torch.Tensor], without: Callable[[], AbstractContextManager[object]]
) -> None:
    twice = tc.define(str(TWICE))
    x = make()
    for _ in range(2):
        with without():
            assert plain(twice(x)) == [0, 2, 4, 6]
            with only_the_short_way():
                assert plain(twice(x)) == [0, 2, 4, 6]
        # What was warmed there is followed here.
        assert slope(twice(x), x) == [2] * 4
        assert plain(twice(x.detach())) == [0, 2, 4, 6]
    kernel = twice.compile(x)
    with without():
        kernel(x)
    with pytest.raises(tc.ArgumentError, match=MESSAGE):
        kernel(x)


def test_what_was_not_followed_is_so_later() -> None:
    twice, x = tc.define(str(TWICE)), torch.ones(4, requires_grad=True)
    twice(x.detach())
    assert slope(twice(x), x) == [2] * 4
    with torch.no_grad(), only_the_short_way():
        assert plain(twice(x)) == [2] * 4
    with torch.no_grad(), torch.enable_grad():
        assert slope(twice(x), x) == [2] * 4


def test_every_thread_has_its_own_mode() -> None:
    twice, x = tc.define(str(TWICE)), torch.ones(4, requires_grad=True)
    found: list[list[float]] = []
    with torch.no_grad():
        twice(x)
        thread = threading.Thread(target=lambda: found.append(slope(twice(x), x)))
        thread.start()
        thread.join()
    assert found == [[2] * 4]


@pytest.mark.parametrize("make", TENSORS)
def test_integers_and_truth_values_have_no_gradient(make: Callable[[], torch.Tensor]) -> None:
    where, x = tc.define(str(WHERE)), make()
    with the_thorough_way():
        where(x)
    for way in (only_the_short_way, nullcontext):
        with way():
            results = where(x)
        assert isinstance(results, tuple)
        assert [plain(result) for result in results] == [2, [False, False, True, True]]
    y, large = as_tensors(BOTH(x))
    assert (y.requires_grad, large.requires_grad) == (True, False)
    assert slope(y, x) == [2] * 4


@pytest.mark.parametrize("without", WITHOUT)
def test_outputs(without: Callable[[], AbstractContextManager[object]]) -> None:
    twice = tc.define(str(TWICE))
    x, leaf = torch.arange(4.0), torch.nn.Parameter(torch.zeros(4))
    for _ in range(2):
        with without():
            assert twice(x, out=leaf) is leaf
        assert leaf.tolist() == [0, 2, 4, 6]
        with pytest.raises(tc.ArgumentError, match=f"output y of twice: {MESSAGE}"):
            twice(x, out=leaf)
        # A result that is brought cannot be differentiated either.
        with pytest.raises(tc.ArgumentError, match=f"argument x of twice: {MESSAGE}"):
            twice(leaf, out=torch.zeros(4))
    with torch.inference_mode():
        out = torch.zeros(4)
        for _ in range(2):
            twice(leaf, out=out)
    assert out.tolist() == [0, 4, 8, 12]


def test_scalars() -> None:
    x, a = torch.arange(4.0), torch.tensor(3.0, requires_grad=True)
    for _ in range(2):
        with torch.no_grad():
            assert plain(SCALE(x, a)) == [0, 3, 6, 9]
        with pytest.raises(tc.ArgumentError, match=f"argument a of scale: {MESSAGE}"):
            SCALE(x, a)


def test_where_nothing_runs_nothing_is_followed() -> None:
    x = torch.arange(4.0, requires_grad=True)
    assert TWICE.output_shapes(x) == {"y": (4,)}
    assert np.asarray(TWICE.reference(x)).tolist() == [0, 2, 4, 6]
    assert TWICE.compile(x).signature == TWICE.compile((4,)).signature
    assert "ranges" in TWICE.explain(x).lower()


def test_a_change_is_seen_by_backward_passes() -> None:
    weight, saved = torch.ones(4, requires_grad=True), torch.ones(4)
    total = (weight * saved).sum()
    with torch.no_grad():
        for _ in range(2):
            TWICE(weight, out=saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(total, weight)


def test_views_say_whether_they_are_followed() -> None:
    x = torch.ones(4, requires_grad=True)
    assert bind(WHERE.interface, (x,), None).inputs["x"].followed
    with torch.no_grad():
        assert not bind(WHERE.interface, (x,), None).inputs["x"].followed


ATTENTION = """
def attention(double(N,D) Q, double(M,D) K, double(M,D) V) -> (O) {
    s(n,m) +=! Q(n,d) * K(m,d)
    g(n) max=! s(n,m)
    e(n,m) = exp(s(n,m) - g(n))
    t(n) +=! e(n,m)
    O(n,d) +=! e(n,m) / t(n) * V(m,d)
}"""


def test_first_and_second_derivatives_are_checked_by_pytorch() -> None:
    definition = tc.define(ATTENTION).single()

    def attention(*arguments: torch.Tensor) -> torch.Tensor:
        return as_tensor(definition(*arguments))

    torch.manual_seed(0)
    given = [torch.randn(n, 3, dtype=torch.double, requires_grad=True) for n in (4, 5, 5)]
    assert torch.autograd.gradcheck(attention, given)
    assert torch.autograd.gradgradcheck(attention, given)
    assert torch.autograd.gradcheck(attention, (given[0], given[1].detach(), given[2]))


def test_transformations_of_functions() -> None:
    product = tc.define("def mm(double(M,K) A, double(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").single()
    torch.manual_seed(0)
    batch, b = torch.randn(6, 3, 4, dtype=torch.double), torch.randn(4, 5, dtype=torch.double)

    def total(a: torch.Tensor) -> torch.Tensor:
        result = as_tensor(product(a, b))
        return (result * result).sum()

    def wanted(a: torch.Tensor) -> torch.Tensor:
        return ((a @ b) * (a @ b)).sum()

    grad, vmap = torch.func.grad, torch.func.vmap
    assert torch.allclose(vmap(lambda a: as_tensor(product(a, b)))(batch), batch @ b)
    assert torch.allclose(grad(total)(batch[0]), grad(wanted)(batch[0]))
    assert torch.allclose(vmap(grad(total))(batch), vmap(grad(wanted))(batch))


def test_tensors_that_outlive_a_transformation_are_what_they_hold() -> None:
    f = tc.define("def f(double(N) x) -> (y) { y(i) = 2 * x(i) }").single()
    kept: list[torch.Tensor] = []

    def total(x: torch.Tensor) -> torch.Tensor:
        kept.append(x * 3)
        return kept[0].sum()

    torch.func.grad(total)(torch.ones(3, dtype=torch.double, requires_grad=True))
    assert as_tensor(f(kept[0])).tolist() == [6, 6, 6]


def test_a_layer_learns() -> None:
    statements = "y(n,o) = b(o) where n in 0:B  y(n,o) += x(n,i) * W(o,i)"
    layer = tc.define(f"def f(float(B,I) x, float(O,I) W, float(O) b) -> (y) {{ {statements} }}")
    torch.manual_seed(0)
    x, target = torch.randn(64, 5), torch.randn(64, 3)
    weights, bias = torch.nn.Parameter(torch.zeros(3, 5)), torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([weights, bias], lr=0.3)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(as_tensor(layer(x, weights, bias)), target)
        weights.grad, bias.grad = torch.autograd.grad(loss, [weights, bias])
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses == sorted(losses, reverse=True)


def test_results_that_nothing_depends_on_have_no_part() -> None:
    f = tc.define("def f(double(N) x) -> (y, z) { y(i) = x(i) * x(i)  z(i) = sin(x(i)) }").single()
    x = torch.tensor([1.0, 2.0], dtype=torch.double, requires_grad=True)
    y, _ = as_tensors(f(x))
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [2, 4]


def test_what_has_no_gradient_says_so_when_it_is_called() -> None:
    f = tc.define("def f(float(N) x) -> (y) { y(i) = lgamma(x(i)) }").single()
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(tc.GradientError, match="`lgamma` has no gradient"):
        f(x)
    with torch.no_grad():
        assert plain(f(x)) == [0, 0, 0]


def test_gradients_inherit_numerics_and_no_sizes() -> None:
    options = tc.CpuOptions(tc.ScheduleOptions(tile=(4, 4)), numerics=tc.Numerics(reassociate=True))
    f = tc.define("def f(float(N) x, float(N,M) A) -> (y) { y(j) +=! x(i) * A(i,j) }", options=options).single()
    assert f.gradient().compile((5,), (5, 6), (6,)).asked == tc.CpuOptions(numerics=options.numerics)
    x = torch.ones(3, requires_grad=True)
    y = f(x, torch.ones(3, 4), options=options)
    assert slope(y, x) == [4, 4, 4]
