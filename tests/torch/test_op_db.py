"""What PyTorch lists of its operators, with its samples: ours gives what eager gives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.torch import op_db
from tests.torch.op_db import Kind

ENTRIES = op_db.entries()
# One of so many runs by default, with one sample.
SHARE = 30


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    torch._dynamo.reset()


def test_some_samples() -> None:
    outcomes = [op_db.check(name, op, most=1) for name, op in list(ENTRIES.items())[::SHARE]]
    assert [(one.name, one.why) for one in outcomes if one.kind in (Kind.ERROR, Kind.WRONG)] == []
    assert sum(one.kind is Kind.WHOLE for one in outcomes) > len(outcomes) * 0.7
