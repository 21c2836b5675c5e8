"""The kernels of a grid: what their pointers promise."""

from __future__ import annotations

import re

import pytest

import tc
from tests.opencl import require

NOTHING = tc.GpuOptions(register_accumulators=0, shared_memory=0, split_k_threads=(), shuffles=False)


def pointers(text: str, *shapes: tuple[int, ...], target: str) -> dict[str, bool]:
    """The tensors of the kernel, and whether a restricted pointer leads to each."""
    source = tc.define(text).single().compile(*shapes, target=target, options=NOTHING).source
    found = re.findall(r"\*(?:(__restrict__|restrict) )?t_(\w+)[,)]", source)
    return {name: bool(word) for word, name in found}


@pytest.mark.parametrize("target", ["cuda:sm_90", "opencl"])
def test_what_threads_hand_each_other_is_not_behind_restricted_pointers(target: str) -> None:
    """Compilers may keep what is read through those, past barriers before which another thread writes there."""
    require(target)
    softmax = """
    def softmax(float(N, D) I) -> (O, tmp) {
      tmp(n) max=! I(n, d)
      O(n, d) = exp(I(n, d) - tmp(n))
      tmp(n) +=! O(n, d)
      O(n, d) = O(n, d) / tmp(n)
    }
    """
    found = pointers(softmax, (7, 129), target=target)
    assert (found["I"], found["tmp"]) == (True, False)


def test_what_a_thread_writes_for_itself_is() -> None:
    add = "def add(float(N) x, float(N) y) -> (z) { z(i) = x(i)  z(i) += y(i) }"
    assert pointers(add, (100,), (100,), target="cuda:sm_90") == {"x": True, "y": True, "z": True}
    # All threads wait for each other, and read nothing of what they have written.
    twice = "def twice(float(N) x) -> (y, z) { y(i) = x(i)  z(i) +=! x(j) where i in 0:N }"
    assert pointers(twice, (100,), target="cuda:sm_90")["y"]


def test_loops_of_unknown_length_are_unrolled_by_powers_of_two() -> None:
    """NVRTC 13.5 forgets what is left over otherwise."""
    sums = tc.define("def sums(float(M,N) X) -> (O) { O(m) +=! X(m,n) where n in 0:m+1 }").sums
    for tile, expected in ((3, 2), (5, 4), (8, 8), (12, 8)):
        options = tc.GpuOptions(tc.ScheduleOptions(tile=(4, tile)), block=(4,), shared_memory=0, split_k_threads=())
        source = sums.compile((40, 40), target="cuda:sm_90", options=options).source
        counts = re.findall(r"#pragma unroll (\d+)\n *for \(int c\d = 0; c\d < min", source)
        assert counts == [str(expected)], source
