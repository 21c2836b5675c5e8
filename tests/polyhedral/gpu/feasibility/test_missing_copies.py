"""Copies that isl's loops leave out cost shared memory, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tc.base.errors import VerificationError
from tc.reference.compare import compare
from tests.turns import one_in

BAND = "C(i,j) +=! T(i,k) * B(k,j) where i in 0:N, k in 0:N, k - i in 0:WIDTH"
OF_ARGUMENTS = f"def f(float(N,N) T, float(N,M) B) -> (C) {{ {BAND} }}"
OF_TEMPORARIES = f"def f(float(N,N) A, float(N,M) B) -> (C) {{ T(i,k) = 2.0 * A(i,k)  {BAND} }}"
SIZES = [(2, 17, 5), (2, 33, 16), (4, 20, 9), (4, 65, 9)]


def check(text: str, n: int, m: int) -> str:
    """The kernel by default options agrees with the oracle; its source."""
    rng, f = np.random.default_rng(n), tc.define(text).f
    arrays = rng.standard_normal((n, n), np.float32), rng.standard_normal((n, m), np.float32)
    kernel = f.compile(*arrays, target="emulator")
    assert compare(f.oracle(*arrays)["C"], np.asarray(kernel(*arrays))).ok
    return kernel.source


@pytest.mark.parametrize(("width", "n", "m"), SIZES)
def test_tiles_of_bands_are_copied_whole(width: int, n: int, m: int) -> None:
    source = check(OF_ARGUMENTS.replace("WIDTH", str(width)), n, m)
    assert "_T = (float *)(team->shared" in source
    assert "_B = (float *)(team->shared" in source


@one_in(2)
@pytest.mark.parametrize(("width", "n", "m"), SIZES)
def test_bands_of_what_is_written_are_right(width: int, n: int, m: int) -> None:
    """The rest of a tile may be written meanwhile, so that only the band could be copied."""
    assert "_pack" not in check(OF_TEMPORARIES.replace("WIDTH", str(width)), n, m)


def test_loops_without_some_copies_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were it not for both, the proof would refuse what isl makes of bands."""
    text = OF_ARGUMENTS.replace("WIDTH", "2")
    monkeypatch.setattr("tc.polyhedral.transform.promotion.fill", lambda places, _elements, _box: places)
    assert "_pack" not in check(text, 17, 5)
    monkeypatch.setattr(
        "tc.polyhedral.gpu.feasibility.infeasible_buffers.has_missing_copies", lambda _root, _scop: False
    )
    with pytest.raises(VerificationError, match="an instance never runs: S0_pack"):
        check(text, 17, 5)
