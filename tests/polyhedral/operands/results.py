"""What programs with rewritten operands compute, and what is said of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import tc
from tc.reference.compare import compare


def require_right(text: str, shapes: Sequence[tuple[int, ...]]) -> str:
    """Compares results on the processor with the oracle; returns the explanation."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    f = tc.define(text).single()
    found = f(*arrays, target="cpu")
    results = found if isinstance(found, tuple) else (found,)
    for (result, own), value in zip(f.oracle(*arrays).items(), results, strict=True):
        assert compare(own, np.asarray(value)).ok, result
    return str(f.explain(*arrays, target="cpu"))
