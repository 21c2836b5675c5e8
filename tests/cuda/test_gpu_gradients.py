"""Derivatives by PyTorch on a GPU: autograd, its checks of operators, compiled models, layers."""

from __future__ import annotations

import uuid
import warnings
from typing import Any

import numpy as np
import pytest

import tc
from tests.comprehensions.case import Case
from tests.comprehensions.corpus import CASES
from tests.cuda.frameworks import FRAMEWORKS
from tests.gradient.differentiable import DIFFERENTIABLE, least_sizes
from tests.turns import every

pytestmark = pytest.mark.gpu

SOFTMAX = """
def softmax(float(N,D) x, float a) -> (y) {
    m(n) max=! a * x(n,d)
    e(n,d) = exp(a * x(n,d) - m(n))
    s(n) +=! e(n,d)
    y(n,d) = e(n,d) / s(n)
}"""
LINEAR = """
def linear(float(B,I) x, float(O,I) W, float(O) b) -> (y) {
    y(n,o) = b(o) where n in 0:B
    y(n,o) += x(n,i) * W(o,i)
}"""


def torch_or_skip() -> Any:
    FRAMEWORKS["torch"].require()
    import torch

    torch.set_float32_matmul_precision("highest")
    return torch


def fresh() -> str:
    """A name that no other test has registered."""
    return f"tests::gpu_{uuid.uuid4().hex}"


def definition_of(case: Case) -> tc.Comprehension:
    definitions = tc.define(case.text)
    return definitions.single() if case.definition is None else definitions[case.definition]


def followed(case: Case, where: str) -> tuple[tc.Comprehension, list[Any]]:
    """The definition of a case and its arguments, as tensors that require gradients where they can."""
    import torch

    f = definition_of(case)
    names = {tensor.name for tensor in f.interface.tensors}
    arguments: list[Any] = []
    for name, value in case.make_inputs(np.random.default_rng(0), least_sizes(case)).items():
        if name not in names:
            arguments.append(np.asarray(value).item())
            continue
        tensor = torch.from_numpy(np.array(value)).to(where)
        arguments.append(tensor.requires_grad_() if tensor.is_floating_point() else tensor)
    return f, arguments


@pytest.mark.parametrize("case", every(3, [c for c in DIFFERENTIABLE if not c.in_out]), ids=lambda case: case.name)
def test_gradients_are_those_of_the_processor(case: Case) -> None:
    torch = torch_or_skip()
    found = []
    for where in ("cpu", "cuda"):
        f, arguments = followed(case, where)
        results: Any = f(*arguments)
        results = [r for r in (results if isinstance(results, tuple) else (results,)) if r.requires_grad]
        learned = [v for v in arguments if isinstance(v, torch.Tensor) and v.requires_grad]
        if not results or not learned:
            pytest.skip("nothing depends on what requires gradients")
        weights = [torch.ones_like(result) for result in results]
        found.append(torch.autograd.grad(results, learned, weights, allow_unused=True))
    for cpu, gpu in zip(*found, strict=True):
        assert (cpu is None) == (gpu is None)
        if cpu is not None:
            assert gpu.is_cuda
            half = cpu.dtype in (torch.float16, torch.bfloat16)
            torch.testing.assert_close(gpu.cpu(), cpu, rtol=2e-2 if half else 1e-3, atol=2e-2 if half else 1e-3)


def test_derivatives_of_all_orders() -> None:
    torch = torch_or_skip()
    softmax = tc.define(SOFTMAX.replace("float", "double")).single()
    x = torch.randn(3, 5, dtype=torch.float64, device="cuda", requires_grad=True)
    for call in (softmax, softmax.torch_op(fresh())):
        assert torch.autograd.gradcheck(lambda v, call=call: call(v, 2.0), (x,))
        assert torch.autograd.gradgradcheck(lambda v, call=call: call(v, 2.0), (x,))


@pytest.mark.parametrize("case", every(30, [c for c in CASES if not c.in_out]), ids=lambda case: case.name)
def test_pytorch_accepts_operators(case: Case) -> None:
    torch = torch_or_skip()
    f, arguments = followed(case, "cuda")
    operator = f.torch_op(fresh())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = torch.library.opcheck(operator.default, tuple(arguments))
    assert set(found.values()) == {"SUCCESS"}


def test_compiled_models_hold_operators() -> None:
    torch = torch_or_skip()
    operator = tc.define(SOFTMAX).torch_op(fresh())
    compiled = torch.compile(lambda v: operator(v * 2, 1.5).relu() + 1, fullgraph=True)
    x = torch.randn(30, 70, device="cuda", requires_grad=True)
    expected = torch.softmax(3 * x, 1) + 1
    torch.testing.assert_close(compiled(x), expected)
    weights = torch.randn_like(expected)
    (own,), (theirs,) = (torch.autograd.grad(value, x, weights) for value in (compiled(x), expected))
    torch.testing.assert_close(own, theirs, rtol=1e-4, atol=1e-5)


def test_operators_work_in_batches() -> None:
    torch = torch_or_skip()
    operator = tc.define(SOFTMAX).torch_op(fresh())
    x = torch.randn(4, 3, 50, device="cuda")
    torch.testing.assert_close(torch.func.vmap(lambda v: operator(v, 2.0))(x), torch.softmax(2 * x, -1))


def test_a_layer_is_trained() -> None:
    torch = torch_or_skip()
    torch.manual_seed(0)
    layer = tc.torch.Module(LINEAR, {"W": (3, 4), "b": torch.zeros(3)}, device="cuda")
    inputs, wanted = torch.randn(64, 4, device="cuda"), torch.randn(3, 4, device="cuda")
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = (layer(inputs) - inputs @ wanted.T).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 1e-3 * losses[0]


def test_gradients_are_taken_on_the_current_stream() -> None:
    torch = torch_or_skip()
    product = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").single()
    a, b = (torch.randn(128, 128, device="cuda", requires_grad=True) for _ in range(2))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1 << 26)
        found: Any = product(a * 2, b)
        found.sum().backward()
    stream.synchronize()
    torch.testing.assert_close(b.grad, (2 * a.detach()).sum(0)[:, None].expand(128, 128), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("columns", [7, 4000])
def test_the_same_bits_in_every_call(columns: int) -> None:
    torch = torch_or_skip()
    gradient = tc.define(SOFTMAX).single().gradient("x")
    x, weights = (torch.randn(300, columns, device="cuda") for _ in range(2))
    first: Any = gradient(x, 2.0, weights)
    for _ in range(5):
        assert torch.equal(gradient(x, 2.0, weights), first)
