"""Results in files: those of every call come back in their order."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tc.base.types import ScalarType
from tc.reference.evaluate import Result
from tc.reference.kept import keep_results, kept_results


def test_results_come_back_in_their_order_call_by_call(tmp_path: Path) -> None:
    def result(value: int) -> Result:
        values = np.array([float(value)])
        return Result(ScalarType.FLOAT32, values, np.zeros(1), np.zeros(1, np.bool_))

    for call in (0, 1, 10):
        keep_results({f"r{number}": result(100 * call + number) for number in range(12)}, tmp_path, call)
    for call in (0, 1, 10):
        found = kept_results(tmp_path, call)
        assert [one.values.item() for one in found] == [100 * call + number for number in range(12)]
        assert {one.type for one in found} == {ScalarType.FLOAT32}
    assert kept_results(tmp_path, 2) == ()
