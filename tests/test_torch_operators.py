"""Comprehensions as operators of PyTorch: its own checks on the corpus, compiled without a graph break, in batches."""

from __future__ import annotations

import math
import re
import uuid
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import tc
from tests.comprehensions.case import Case
from tests.comprehensions.corpus import CASES
from tests.gradient.differentiable import least_sizes
from tests.turns import every

SOFTMAX = """
def softmax(double(N,D) x, double a) -> (y) {
    m(n) max=! a * x(n,d)
    e(n,d) = exp(a * x(n,d) - m(n))
    s(n) +=! e(n,d)
    y(n,d) = e(n,d) / s(n)
}"""
# All that PyTorch checks of an operator.
CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
SCALE = "def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }"


def fresh() -> str:
    """A name that no other test has registered."""
    return f"tests::op_{uuid.uuid4().hex}"


def _definition(case: Case) -> tc.Comprehension:
    definitions = tc.define(case.text)
    return definitions.single() if case.definition is None else definitions[case.definition]


ACCEPTED = [case for case in CASES if not case.in_out]


@pytest.mark.parametrize("case", every(60, ACCEPTED), ids=lambda case: case.name)
def test_pytorch_accepts_the_corpus(case: Case) -> None:
    f = _definition(case)
    types = {tensor.name: tensor.type for tensor in f.interface.tensors}
    arguments: list[Any] = []
    for name, value in case.make_inputs(np.random.default_rng(0), least_sizes(case)).items():
        if name not in types:
            arguments.append(np.asarray(value).item())
            continue
        tensor = torch.from_numpy(np.array(value))
        arguments.append(tensor.requires_grad_() if tensor.is_floating_point() else tensor)
    operator = f.torch_op(fresh())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = torch.library.opcheck(operator.default, tuple(arguments))
    assert found == dict.fromkeys(CHECKS, "SUCCESS")


def test_derivatives_of_all_orders() -> None:
    operator = tc.define(SOFTMAX).torch_op(fresh())
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: operator(v, 2.0), (x,))
    assert torch.autograd.gradgradcheck(lambda v: operator(v, 2.0), (x,))


def test_some_arguments_require_gradients() -> None:
    operator = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").torch_op(fresh())
    a, b = torch.randn(3, 4), torch.randn(4, 5, requires_grad=True)
    operator(a, b).sum().backward()
    assert a.grad is None
    assert b.grad is not None
    torch.testing.assert_close(b.grad, a.sum(0)[:, None].expand(4, 5))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_without_a_graph_break(dynamic: bool) -> None:
    operator = tc.define(SOFTMAX).torch_op(fresh())

    @torch.compile(fullgraph=True, dynamic=dynamic, backend="aot_eager")
    def compiled(x: torch.Tensor) -> torch.Tensor:
        return operator(2 * x, 1.5) * 3  # type: ignore[no-any-return]

    for size in (3, 4, 7):
        x = torch.randn(size, 5, dtype=torch.float64, requires_grad=True)
        result, expected = compiled(x), 3 * torch.softmax(3 * x, 1)
        torch.testing.assert_close(result, expected)
        weights = torch.randn_like(result)
        found, wanted = (torch.autograd.grad((y * weights).sum(), x) for y in (result, expected))
        torch.testing.assert_close(found, wanted)


def test_extents_are_symbols_to_pytorch() -> None:
    text = "def pool(float(W) x, int32 k) -> (y) { y(w) max=! x(3*w + i) where i in 0:k, w in 0:max(1, (W - k) / 3) }"
    operator = tc.define(text).torch_op(fresh())
    compiled = torch.compile(lambda x: operator(x, 3) + 1, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in (9, 14, 30):
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x), operator(x, 3) + 1)


def test_batches_are_calls_of_their_members() -> None:
    operator = tc.define(SOFTMAX).torch_op(fresh())
    x = torch.randn(4, 3, 5, dtype=torch.float64)
    torch.testing.assert_close(torch.vmap(lambda v: operator(v, 2.0))(x), torch.softmax(2 * x, 2))
    torch.testing.assert_close(
        torch.vmap(lambda v: operator(v, 2.0), in_dims=1, out_dims=1)(x), torch.softmax(2 * x, 2)
    )


def test_integers_and_several_results() -> None:
    text = "def f(int32(N) x, bool b, int64 k) -> (y, large) { y(i) = b ? x(i) * k : 0  large(i) = x(i) > 1 }"
    operator = tc.define(text).torch_op(fresh())
    y, large = operator(torch.arange(4, dtype=torch.int32), True, 5)
    assert (y.tolist(), large.tolist()) == ([0, 5, 10, 15], [False, False, True, True])
    assert not y.requires_grad


def test_names() -> None:
    f = tc.define(SCALE).single()
    name = fresh()
    f.torch_op(name)
    for wrong, message in (
        (name, f"there is an operator {name} already; take another name"),
        ("scale", "an operator of PyTorch is named as in 'ns::name', got 'scale'"),
        ("a::b::c", "an operator of PyTorch is named as in 'ns::name', got 'a::b::c'"),
    ):
        with pytest.raises(tc.OptionsError, match=re.escape(message)):
            f.torch_op(wrong)
    add = tc.define("def add(float(N) x) -> (y) { y(i) += x(i) }")
    message = "add changes results that come in, and operators change nothing; begin its results with `=` or `+=!`"
    with pytest.raises(tc.OptionsError, match=re.escape(message)):
        add.torch_op(fresh())


def test_what_has_no_gradient_is_an_operator_all_the_same() -> None:
    operator = tc.define("def f(float(N) x) -> (y) { y(i) = lgamma(x(i)) }").torch_op(fresh())
    result = operator(torch.ones(3, requires_grad=True))
    assert result.tolist() == [0, 0, 0]
    assert math.isclose(float(operator(torch.full((1,), 4.0))), math.log(6), rel_tol=1e-6)
