"""Windows that move by two elements: vectors of every second element, and nothing behind the last one is read."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tests.levels import runs
from tests.programs import run
from tests.translated import translated

POOL = "def f({type}(C,W) x) -> (y) {{ y(c,w) {update} x(c,2*w+j) where j in 0:{window} }}"
LEVELS = ("cpu:x86-64", "cpu:x86-64-v3", "cpu:x86-64-v4")


@pytest.mark.parametrize("target", [target for target in LEVELS if runs(target)])
@pytest.mark.parametrize("update", ["max=!", "+=!"])
@pytest.mark.parametrize("type", ["float", "double"])
def test_values_are_those_of_the_definition(target: str, update: str, type: str) -> None:
    f = tc.define(POOL.format(type=type, update=update, window=3)).single()
    rng = np.random.default_rng(0)
    for columns in (9, 16, 33, 64, 71, 131):
        x = rng.standard_normal((5, columns)).astype("float32" if type == "float" else "float64")
        assert compare(f.oracle(x)["y"], np.asarray(f.compile(x, target=target)(x))).ok, columns


@pytest.mark.parametrize(("target", "count"), [("cpu:x86-64-v3", 8), ("cpu:x86-64-v4", 16)])
def test_vectors_have_every_second_element(target: str, count: int) -> None:
    f = tc.define(POOL.format(type="float", update="max=!", window=3)).single()
    text = translated(f, (64, 131), target=target).source.text
    assert f"tc_load_second_float32x{count}(" in text
    assert f"tc_load_second_part_float32x{count}(" in text or f"tc_load_second_float32x{count // 2}(" in text
    third = tc.define(POOL.format(type="float", update="max=!", window=3).replace("2*w", "3*w")).single()
    assert "tc_load_second" not in translated(third, (64, 131), target=target).source.text


AT_THE_END = """
import ctypes
import mmap
import numpy as np
import tc

libc = ctypes.CDLL(None, use_errno=True)
for columns in (3, 8, 17, 31, 32, 33, 47, 64, 79):
    pages = mmap.mmap(-1, 4 * mmap.PAGESIZE)
    memory = np.frombuffer(pages, np.uint8)
    last = ctypes.c_void_p(memory.ctypes.data + 3 * mmap.PAGESIZE)
    x = np.frombuffer(pages, np.float32, 3 * columns, 3 * mmap.PAGESIZE - 12 * columns).reshape(3, columns)
    x[:] = np.arange(3 * columns).reshape(3, columns)
    assert libc.mprotect(last, mmap.PAGESIZE, 0) == 0
    for window in (1, 2, 3):
        text = f"def f(float(C,W) x) -> (y) {{ y(c,w) max=! x(c,2*w+j) where j in 0:{window} }}"
        found = np.asarray(tc.define(text).single()(x))
        assert np.array_equal(found, x[:, window - 1 :: 2][:, : found.shape[1]]), (columns, window)
print("done")
"""


@pytest.mark.slow
def test_nothing_is_read_behind_an_array() -> None:
    assert run(AT_THE_END) == "done\n"
