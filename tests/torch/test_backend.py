"""``torch.compile``: graphs that are captured whole or in part, sizes, layouts, mutation, gradients."""

from __future__ import annotations

import functools
import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import tc.torch
from tc.base.errors import OptionsError
from tc.graph.ir.values import Value
from tc.torch.backend import backend
from tc.torch.fx.claims import refused
from tc.torch.fx.operation import Operation
from tc.torch.report import Report

Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Function, report: Report | None = None, **options: Any) -> Function:
    dynamic = options.pop("dynamic", False)
    own = functools.partial(backend, report=report, options=options)
    return torch.compile(function, backend=own, dynamic=dynamic)


def whole(report: Report) -> bool:
    return all(not part.counts and not part.failures for part in report.parts)


def test_a_function_becomes_one_part() -> None:
    report = Report()
    x, y = torch.randn(7, 5), torch.randn(5)
    found = compiled(lambda x, y: torch.tanh(x * 2 + y).t().exp(), report)(x, y)
    torch.testing.assert_close(found, torch.tanh(x * 2 + y).t().exp())
    assert whole(report)
    assert [len(part.compiled) for part in report.parts] == [1]
    assert "inference: 5 nodes, 1 parts of ours" in str(report)


def test_gradients_are_those_of_eager_pytorch() -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x * w).relu() * x.exp()

    report = Report()
    inputs = [torch.randn(3, 5, requires_grad=True), torch.randn(5, requires_grad=True)]
    weight = torch.randn(3, 5)
    found = torch.autograd.grad(compiled(function, report)(*inputs), inputs, weight)
    wanted = torch.autograd.grad(function(*inputs), inputs, weight)
    torch.testing.assert_close(found, wanted)
    assert [part.kind for part in report.parts] == ["forward", "backward"]


def test_what_has_no_rule_stays_pytorchs() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = torch.special.airy_ai(x * 2)
        return found + 1

    report = Report()
    x = torch.randn(4)
    torch.testing.assert_close(compiled(function, report)(x), function(x))
    (part,) = report.parts
    assert dict(part.counts) == {"aten.special_airy_ai.default": 1}
    assert part.left["aten.special_airy_ai.default"] == "is not supported"
    assert part.places["aten.special_airy_ai.default"].startswith(__file__)
    assert len(part.compiled) == 2


def test_nothing_may_stay_pytorchs_where_that_is_forbidden() -> None:
    message = r"fallback='never': aten.special_airy_ai.default is not supported \(.*test_backend.py:\d+\)"
    with pytest.raises(Exception, match=message):
        compiled(lambda x: torch.special.airy_ai(x) + 1, fallback="never")(torch.randn(4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fallbck": "never"}, "backend 'tc' has no option 'fallbck'; did you mean 'fallback'?"),
        ({"fallback": "often"}, "fallback must be one of measured, unsupported, never, got 'often'"),
        ({"tune": "often"}, "'often' is no budget; write a time as '8h'"),
        ({"tune": 600}, "tune must be a budget, such as '10m' or '200 trials', got 600"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message) as raised:
        compiled(torch.exp, None, **options)(torch.randn(3))
    assert isinstance(raised.value.__cause__ or raised.value, OptionsError | Exception)


def test_modes_are_refused_in_words() -> None:
    with pytest.raises(Exception, match="backend 'tc' has no mode 'reduce-overhead', which is of Inductor"):
        torch.compile(torch.exp, backend="tc", mode="reduce-overhead")(torch.randn(3))


def test_sizes_may_change() -> None:
    report = Report()
    function = compiled(lambda x: (x * x.shape[0]).reshape(-1)[1:], report, dynamic=True)
    for rows in (3, 4, 9):
        x = torch.randn(rows, 5)
        torch.testing.assert_close(function(x), (x * rows).reshape(-1)[1:])
    assert whole(report)
    assert len(report.parts) == 1


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (1, 0, 2, 3), (3, 2, 1, 0)])
def test_results_lie_in_memory_as_pytorchs_do(order: tuple[int, ...]) -> None:
    back = [order.index(axis) for axis in range(4)]
    x = torch.randn(2, 3, 4, 5).permute(order).contiguous().permute(back)
    found = compiled(lambda x: (x + 1).relu())(x)
    wanted = (x + 1).relu()
    torch.testing.assert_close(found, wanted)
    assert found.stride() == wanted.stride()


def test_inputs_with_gaps_and_repeated_elements() -> None:
    x = torch.randn(6, 8)
    for own in (x[::2, 1::3], x[:, :1].expand(6, 8), x.t()[3:5], torch.randn(()), torch.randn(0, 3)):
        torch.testing.assert_close(compiled(lambda x: x * 2 - 1)(own), own * 2 - 1)


def test_inputs_may_be_changed() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        y[1:].add_(x[0])
        return x + y.sum()

    ours = [torch.randn(3, 4), torch.randn(3, 4)]
    theirs = [one.clone() for one in ours]
    torch.testing.assert_close(compiled(function)(*ours), function(*theirs))
    torch.testing.assert_close(ours, theirs)


def test_results_may_be_views_of_inputs_and_of_each_other() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x + 1
        return x.view(-1), x, y, y[0], y.t()

    x = torch.randn(3, 4)
    found, wanted = compiled(function)(x), function(x)
    torch.testing.assert_close(found, wanted)
    assert found[0].data_ptr() == x.data_ptr()
    found[2].zero_()
    assert float(found[3].abs().sum()) == 0
    assert [one.stride() for one in found] == [one.stride() for one in wanted]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8])
def test_types(dtype: torch.dtype) -> None:
    x = (torch.rand(3, 5) * 10).to(dtype)
    report = Report()

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * 3 + 1, x / 2, x > 4, x * 1.5, (x > 2) & (x < 7)

    found, wanted = compiled(function, report)(x), function(x)
    assert [one.dtype for one in found] == [one.dtype for one in wanted]
    torch.testing.assert_close(found, wanted)
    assert whole(report)


def test_complex_numbers_stay_pytorchs() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.fft.fft(x * 2)) + 1

    x = torch.randn(8)
    torch.testing.assert_close(compiled(function)(x), function(x))


def test_autocast() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return torch.nn.functional.gelu(x @ x.t()).float() + 1

    x = torch.randn(8, 8)
    torch.testing.assert_close(compiled(function)(x), function(x), rtol=2e-2, atol=2e-2)


def test_a_part_that_cannot_be_compiled_is_run_by_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    from tc.base.errors import GraphError
    from tc.torch import graphs as module

    def refuse(*_: object) -> None:
        raise GraphError("it cannot be planned")

    monkeypatch.setattr(module, "prepared", refuse)
    report = Report()
    x = torch.randn(3)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.testing.assert_close(compiled(torch.exp, report)(x), x.exp())
    assert "tc: PyTorch runs a part of the inference: it cannot be planned" in [str(one.message) for one in said]
    assert "run by PyTorch: it cannot be planned" in str(report)
    with pytest.raises(Exception, match="it cannot be planned"):
        compiled(torch.exp, fallback="never")(x)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("shown", [True, False])
def test_terminals_alone_show_how_far_it_is(shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Terminal() if shown else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((80, 24)))
    monkeypatch.setattr("tc.api.progress.PATIENCE", -1.0)
    compiled(lambda x: x.exp() * 2)(torch.randn(3))
    steps = ("reading inference [", "importing inference 0 [", "planning inference 0 [", "compiling [")
    assert [f"tc: {step}" in stream.getvalue() for step in steps] == [shown] * len(steps)
    assert shown or stream.getvalue() == ""


def test_explain_says_what_runs_where() -> None:
    model = torch.nn.Sequential(torch.nn.GELU(), torch.nn.Tanh())
    text = str(tc.torch.explain(model, torch.randn(3, 4, requires_grad=True)))
    assert "forward: " in text
    assert "backward: " in text
    assert " us at best, not tuned\n    1 x gelu_tanh(3x4)" in text


def test_tensors_on_other_devices_stay_pytorchs() -> None:
    report = Report()
    x = torch.randn(3, device="meta")
    assert compiled(lambda x: x * 2, report)(x).device.type == "meta"
    (part,) = report.parts
    assert part.left["aten.mul.Tensor"].startswith("works on another device")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_numbers_beside_halves_are_not_rounded_but_for_comparisons(dtype: torch.dtype) -> None:
    x = (torch.arange(-40, 40) / 7).to(dtype)
    functions: list[Function] = [
        lambda x: x * 0.85,
        lambda x: x + 0.1,
        lambda x: x / 0.7,
        lambda x: x.sub(x, alpha=0.3),
    ]
    for function in functions:
        torch.testing.assert_close(compiled(function)(x), function(x.float()).to(dtype), rtol=0, atol=0)
        torch._dynamo.reset()
    tenth = torch.tensor([0.1, 0.2], dtype=dtype)
    assert compiled(lambda x: x == 0.1)(tenth).tolist() == [True, False]


def test_strides_of_dimensions_of_one_element_are_pytorchs() -> None:
    w = torch.randn(4, 3, 1, 1).to(memory_format=torch.channels_last)
    x = torch.randn(2, 1, 5, 5).to(memory_format=torch.channels_last)
    for given in (w, x, torch.randn(1, 1)):
        found, wanted = compiled(lambda x: (x * 2, x + 1))(given), (given * 2, given + 1)
        torch.testing.assert_close(found, wanted)
        assert [one.stride() for one in found] == [one.stride() for one in wanted]


def test_a_result_of_another_type_than_pytorchs_is_not_taken() -> None:
    def rule(operation: Operation) -> Value:
        text = "def wide(float32(N) X) -> (Y) {\n    Y(i) = float64(X(i))\n}"
        return operation.builder.call(text, operation.value("self"))[0]

    module = make_fx(torch.relu, tracing_mode="fake")(torch.ones(5))
    found = refused(module, {torch.ops.aten.relu.default: rule}, lambda done, what: None)
    assert list(found.values()) == ["has a rule that gives float64 for result 0, which is float32"]
