"""What PyTorch lists of its operators, with its samples: ours gives what eager gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

# One of so many entries runs by default, with one sample; all samples run in so many tests.
SHARE = 45
CHUNKS = 64
LIMIT = 600.0


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    torch._dynamo.reset()


def test_some_samples() -> None:
    from tests.torch.op_db import Kind, check, entries  # which takes seconds, and many tests are collected without it

    outcomes = [check(name, op, most=1, gradients=True) for name, op in list(entries().items())[::SHARE]]
    assert [(one.name, one.why) for one in outcomes if one.kind in (Kind.ERROR, Kind.WRONG)] == []
    assert sum(one.kind is Kind.WHOLE for one in outcomes) > len(outcomes) * 0.7


@pytest.mark.slow
@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_all_samples(chunk: int, gradients: bool) -> None:
    from tests.torch.op_db import Kind, checked_apart, entries

    every = list(entries().items())[chunk::CHUNKS]
    outcomes = [checked_apart(name, op, LIMIT, gradients=gradients) for name, op in every]
    assert [(one.name, one.why) for one in outcomes if one.kind in (Kind.ERROR, Kind.WRONG)] == []


def test_what_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.torch.op_db import Kind, check, entries

    monkeypatch.setattr("tc.torch.passing.tensor_of", lambda array, dtype: torch.zeros(array.shape, dtype=dtype))
    found = check("exp", entries()["exp"], most=1)
    assert (found.kind, found.samples) == (Kind.WRONG, 1)
    assert "Tensor-likes are not close" in found.why
