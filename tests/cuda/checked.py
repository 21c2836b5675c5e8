"""A case of the corpus on a GPU, with the arrays of a framework, against the oracle."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tests.comprehensions.case import Case, Sizes
from tests.cuda.frameworks import Framework
from tests.gpu_cases import fitting

MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm


def check(case: Case, sizes: Sizes, options: tc.GpuOptions, framework: Framework) -> None:
    """The results are the oracle's, and of the arguments' framework."""
    framework.require()
    definitions = tc.define(case.text)
    comprehension = definitions[case.definition] if case.definition else definitions.single()
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    inputs, outputs = case.make_inputs(rng, sizes), case.make_outputs(rng, sizes)
    if outputs and not framework.writes:
        pytest.skip("arrays of this framework never change")
    expected = comprehension.oracle(*inputs.values(), out=outputs or None)
    given = [framework.to_device(a) if isinstance(a, np.ndarray) else a for a in inputs.values()]
    out = {name: framework.to_device(array) for name, array in outputs.items()} or None
    found = fitting(lambda chosen: comprehension(*given, out=out, target="cuda", options=chosen), options)
    results = found if isinstance(found, tuple) else (found,)
    for name, array in zip(comprehension.program.results, results, strict=True):
        comparison = compare(expected[name], framework.copied(array))
        assert comparison.ok, f"{name}: {comparison}"
