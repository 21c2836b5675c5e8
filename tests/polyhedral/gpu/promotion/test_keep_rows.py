"""Rows that nests of one block read again are in shared memory, where threads have too much of them for registers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from unittest.mock import patch

import islpy as isl
import numpy as np
import pytest

import tc
from tc.polyhedral.attempts import first_attempt
from tc.polyhedral.gpu.promotion import promote_shared
from tc.polyhedral.gpu.promotion.distribute_copies import Distributed
from tc.polyhedral.ir import tree
from tc.polyhedral.ir.tree import Node
from tc.reference.compare import compare
from tc.targets.machine import GPUS
from tc.targets.options import GpuOptions
from tests.comprehensions.corpus import CASES
from tests.gpu_cases import check
from tests.polyhedral.support import specialized
from tests.turns import one_in

# 129 elements in a row are more than two threads would have in registers.
TWO = tc.GpuOptions(block=(2,))
NORM = """
def norm(float(N,D) X) -> (s, q, O) {
  s(n) +=! X(n,d)
  q(n) +=! X(n,d) * X(n,d)
  O(n,d) = (X(n,d) - s(n) / D) * rsqrt(q(n) / D - (s(n) / D) * (s(n) / D) + 1e-5)
}
"""
SUMS = "def sums(float(N,D) X) -> (s, q) { s(n) +=! X(n,d)  q(n) +=! X(n,d) * X(n,d) }"


@one_in(2)
@pytest.mark.parametrize("options", [TWO, tc.GpuOptions(block=(2,), split_k_threads=())], ids=["parts", "whole"])
@pytest.mark.parametrize("name", ["softmax", "layer_norm", "batch_norm"])
def test_the_corpus_agrees_with_the_oracle(name: str, options: tc.GpuOptions) -> None:
    (case,) = (case for case in CASES if case.name == name)
    check(case, case.large_ragged_sizes, options)


def test_only_copies_read_memory() -> None:
    pytest.importorskip("cuda.bindings")
    text = tc.define(NORM).norm.compile((3, 300), target="cuda:sm_90", options=TWO).source
    lines = [line for line in text.splitlines() if "t_X[" in line]
    assert lines
    assert all("&t_shared" in line for line in lines)
    assert "tc_copy_piece<aligned, true, 16>(&t_shared" in text


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        (128, TWO, NORM),  # few enough for registers
        (300, tc.GpuOptions(block=(2,), shared_memory=1000), NORM),  # no room
        (300, TWO, SUMS),  # read once
    ],
    ids=["short", "no room", "once"],
)
def test_other_rows_stay_in_memory(columns: int, options: tc.GpuOptions, text: str) -> None:
    source = tc.define(text).single().compile((3, columns), target="emulator", options=options).source
    assert not re.search(r"t_shared\d+_X", source)


@pytest.mark.parametrize("shape", [(3, 300), (2, 301), (5, 514)])
def test_rows_of_any_length_agree_with_the_oracle(shape: tuple[int, int]) -> None:
    definition, x = tc.define(NORM).norm, np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    found, expected = definition(x, target="emulator", options=TWO), definition.oracle(x)
    assert isinstance(found, tuple)
    for name, values in zip(("s", "q", "O"), found, strict=True):
        assert compare(expected[name], np.asarray(values)).ok, name


def test_a_row_that_takes_a_multiprocessor_gets_it() -> None:
    machine = GPUS["sm_90"]
    for columns, taken in ((36864, machine.most_shared), (1024, machine.block_shared), (1 << 20, machine.block_shared)):
        attempt = first_attempt(specialized(NORM, ((4, columns),)), GpuOptions(), machine)
        (decision,) = (own for own in attempt.decisions if own.option == "shared_memory")
        assert decision.taken == taken
    few = GpuOptions(shared_memory=1000)
    asked = first_attempt(specialized(NORM, ((4, 36864),)), few, machine)
    assert "shared_memory" not in {decision.option for decision in asked.decisions}


def test_a_row_that_threads_read_before_it_is_there_is_refused() -> None:
    after = promote_shared._after

    def before(dealt: Sequence[Distributed], node: Node, domain: isl.UnionSet) -> tree.Sequence:
        copies = after(dealt, node, domain)
        return tree.Sequence((*copies.filters[1:], *copies.filters[:1]))

    with patch.object(promote_shared, "_after", before), pytest.raises(tc.VerificationError):
        tc.define(NORM).norm.compile((3, 302), target="emulator", options=TWO)
