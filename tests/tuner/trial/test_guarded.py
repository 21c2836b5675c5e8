"""Arrays between guard pages, which show out-of-bounds writes."""

from __future__ import annotations

import numpy as np
import pytest

from tc.tuner.trial.guarded import GuardedArray
from tests.programs import run


@pytest.mark.parametrize("shape", [(), (1,), (7, 13), (1024,), (3, 0), (4096, 5)])
@pytest.mark.parametrize("type", ["float32", "int8", "float64"])
def test_they_are_arrays_that_begin_as_poison(shape: tuple[int, ...], type: str) -> None:
    guarded = GuardedArray(shape, np.dtype(type))
    assert guarded.array.shape == shape
    assert guarded.array.dtype == type
    assert (guarded.array.reshape(-1).view(np.uint8) == 0xFB).all()
    guarded.array[...] = 1
    assert guarded.is_intact


def test_the_rest_of_the_last_page_is_watched() -> None:
    guarded = GuardedArray((10,), np.dtype(np.float32))
    beyond = np.lib.stride_tricks.as_strided(guarded.array, (11,), (4,))
    beyond[10] = 0
    assert not guarded.is_intact


@pytest.mark.parametrize("strides", [(40, 4), (-40, 4), (4, 12), (12, 4), (0, 0)])
def test_what_lies_between_elements_is_watched(strides: tuple[int, int]) -> None:
    shape = (5, 3) if strides != (0, 0) else (1, 1)
    guarded = GuardedArray(shape, np.dtype(np.float32), strides)
    guarded.write(np.ones(shape, np.float32))
    assert guarded.array.strides == strides
    assert guarded.is_intact
    if strides[0] in (40, -40):
        np.lib.stride_tricks.as_strided(guarded.array, (5, 4), strides)[2, 3] = 0
        assert not guarded.is_intact


@pytest.mark.parametrize("offset", [-1, 4096, 1 << 19, -(1 << 19)])
def test_what_is_farther_away_stops_the_process(offset: int) -> None:
    program = f"""
import ctypes, os, numpy as np
from tc.tuner.trial.guarded import GuardedArray
guarded = GuardedArray((10,), np.dtype(np.uint8))
child = os.fork()
if child == 0:
    ctypes.memset(guarded.array.ctypes.data + {offset}, 0, 1)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert int(run(program)) in (-11, -7)
