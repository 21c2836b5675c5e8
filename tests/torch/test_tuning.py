"""Tuning models of PyTorch: what was measured decides who computes a part."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tc.base.environment import environment
from tc.cache.content.configured import Configuration, Mode
from tc.graph.preparation import prepared
from tc.store.cached import KernelCache
from tc.torch.backend import backend
from tc.torch.compiled import Compiled
from tc.torch.fx.shares import Share, shares_of
from tc.torch.passing import layout_of
from tc.torch.report import Report
from tc.torch.trials import tried
from tc.tuner.trial.budget import Budget


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def cache_at(path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelCache:
    """The cache of this process from now on, as far as models of PyTorch are concerned."""
    cache = KernelCache(Configuration(str(path), Mode.STORE, None, own=False), environment())
    monkeypatch.setattr("tc.torch.kept.process_cache", lambda: cache)
    return cache


def report_of(x: torch.Tensor, **options: Any) -> Report:
    """What became of a function that was called once."""
    torch._dynamo.reset()
    report = Report()
    made = torch.compile(lambda x: x.exp() + 1, backend=functools.partial(backend, report=report, options=options))
    torch.testing.assert_close(made(x), x.exp() + 1)
    return report


def test_a_part_is_left_to_pytorch_where_that_was_measured_to_be_quicker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tc.torch.trials._SECONDS", 0.01)
    cache, x = cache_at(tmp_path / "cache.db", monkeypatch), torch.linspace(-1, 1, 5)
    first = report_of(x)
    (part,) = first.parts[0].compiled
    assert str(first).endswith("part 0: 1 kernel, planned here, not tuned")
    digest = part.digest([layout_of(x)])
    assert digest is not None

    slow, quick = (lambda: time.sleep(2e-3)), (lambda: None)
    tried(cache, digest, slow, {Share.ALL: quick})
    report = report_of(x)
    (left,) = report.parts[0].compiled
    assert re.search(r"part 0: 0 kernels, left to PyTorch: measured \d+\.\d us", str(report))
    assert (left.executions, [trials.best for trials in left.trials]) == ((), [Share.ALL])
    for fallback in ("unsupported", "never"):
        said = str(report_of(x, fallback=fallback))
        assert re.search(r"part 0: 1 kernel, planned here, tuned: ours \d+,\d{3}\.\d us, \d+\.\d us by PyTorch", said)
    # Another trial takes the place of the first one.
    tried(cache, digest, quick, {Share.ALL: slow})
    said = str(report_of(x))
    assert re.search(r"part 0: 1 kernel, planned here, tuned: ours \d+\.\d us, \d+,\d{3}\.\d us by PyTorch", said)
    assert "not tuned" in str(report_of(x[1:]))


def test_some_operators_are_left_to_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tc.torch.trials._SECONDS", 0.01)
    cache = cache_at(tmp_path / "cache.db", monkeypatch)
    given = torch.rand(1, 2, 5, 5), torch.rand(3, 2, 2, 2), torch.rand(6, 4)

    def function(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (torch.nn.functional.conv2d(x, w).relu() - 1).sum((2, 3)) @ v[:3].exp() @ v.t()

    def report_of_function() -> tuple[Report, Compiled]:
        torch._dynamo.reset()
        report = Report()
        made = torch.compile(function, backend=functools.partial(backend, report=report))
        torch.testing.assert_close(made(*given), function(*given))
        (part,) = report.parts[0].compiled
        return report, part

    _, part = report_of_function()
    shares = {share: len(share.of(part.module)) for share in shares_of(part.module)}
    every = len(Share.ALL.of(part.module))
    # The transposed view of the last product is its own; the slice is not.
    assert shares == {Share.ALL: every, Share.CONVOLUTIONS: 1, Share.PRODUCTS: 3, Share.BOTH: 4}
    digest = part.digest([layout_of(one) for one in given])
    assert digest is not None
    slow, quick = (lambda: time.sleep(2e-3)), (lambda: None)
    for share in (Share.CONVOLUTIONS, Share.PRODUCTS, Share.BOTH):
        tried(cache, digest, slow, {other: quick if other is share else slow for other in Share})
        report, part = report_of_function()
        assert f", {share} left to PyTorch: measured " in str(report)
        assert part.executions


def test_a_graph_is_tuned_at_its_first_call_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_at(tmp_path / "cache.db", monkeypatch)
    asked: list[tuple[list[str], Budget]] = []

    def tune(graphs: Sequence[Any], settings: Any, _target: Any, request: Any, then: Callable[..., None]) -> None:
        assert all(prepared(graph, settings).memory.graph.outputs for _, graph, _ in graphs)
        asked.append(([name for name, _, _ in graphs], request.budget))

    monkeypatch.setattr("tc.torch.tuning.tune_together", tune)
    made = torch.compile(
        lambda x: torch.special.airy_ai(x * 2) + 1, backend=functools.partial(backend, options={"tune": "10m"})
    )
    x = torch.linspace(-1, 1, 5)
    for _ in range(2):
        torch.testing.assert_close(made(x), torch.special.airy_ai(x * 2) + 1)
    assert asked == [(["inference 0", "inference 1"], Budget(seconds=600))]


@pytest.mark.slow
def test_what_was_tuned_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, brief_searches: None) -> None:
    del brief_searches
    x = torch.linspace(-1, 1, 5)
    # Without a cache of its own, the process keeps what was found for itself.
    assert "part 0: 1 kernel, plan from the cache, tuned: ours " in str(report_of(x, tune="1 trial", fallback="never"))
    cache = cache_at(tmp_path / "cache.db", monkeypatch)
    monkeypatch.setattr("tc.api.tuning.configured", lambda _: cache._configuration)
    for options in ({"tune": "1 trial"}, {}):
        text = str(report_of(x, fallback="never", **options))
        assert "part 0: 1 kernel, plan from the cache, tuned: ours " in text
