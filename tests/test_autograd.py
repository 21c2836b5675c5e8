"""Tensors that require gradients: taken where PyTorch asks for none, refused where it would have to be given one."""

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
    r"the tensor requires a gradient, which tc does not compute; pass \.detach\(\), or call under torch\.no_grad\(\)"
)
WITHOUT: list[Callable[[], AbstractContextManager[object]]] = [torch.no_grad, torch.inference_mode]
TENSORS: list[Callable[[], torch.Tensor]] = [
    lambda: torch.arange(4.0, requires_grad=True),
    lambda: torch.nn.Parameter(torch.arange(4.0)),
    lambda: torch.arange(4.0, requires_grad=True) * 1,
]


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
        # What was warmed there is still refused here, also by kernels.
        with pytest.raises(tc.ArgumentError, match=f"argument x of twice: {MESSAGE}"):
            twice(x)
        assert plain(twice(x.detach())) == [0, 2, 4, 6]
    kernel = twice.compile(x)
    with without():
        kernel(x)
    with pytest.raises(tc.ArgumentError, match=MESSAGE):
        kernel(x)


def test_what_was_refused_is_taken_later() -> None:
    twice, x = tc.define(str(TWICE)), torch.ones(4, requires_grad=True)
    twice(x.detach())
    with pytest.raises(tc.ArgumentError, match=MESSAGE):
        twice(x)
    with torch.no_grad(), only_the_short_way():
        assert plain(twice(x)) == [2] * 4
        with torch.enable_grad(), pytest.raises(tc.ArgumentError, match=MESSAGE):
            twice(x)


def test_every_thread_has_its_own_mode() -> None:
    twice, x = tc.define(str(TWICE)), torch.ones(4, requires_grad=True)
    refused: list[str] = []

    def other() -> None:
        try:
            twice(x)
        except tc.ArgumentError as error:
            refused.append(str(error))

    with torch.no_grad():
        twice(x)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(refused) == 1


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
    with pytest.raises(tc.ArgumentError, match=f"argument x of both: {MESSAGE}"):
        BOTH(x)


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
