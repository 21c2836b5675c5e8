"""JAX's arrays in and out, where JAX is installed."""

from __future__ import annotations

import numpy as np
import pytest

from tc.errors import ArgumentError
from tc.runtime.arrays import allocator, deliver, describe, describe_output
from tc.runtime.view import Framework
from tc.types import ScalarType

jax = pytest.importorskip("jax")

PLACE = "argument A of mm"
TYPES = [t for t in ScalarType if t.itemsize < 8]


@pytest.mark.parametrize("type", TYPES)
def test_arrays_come_in_and_go_out(type: ScalarType) -> None:
    memory = allocator(Framework.JAX, (7, 5), type)()
    assert isinstance(memory, np.ndarray)
    memory[...] = np.arange(35).reshape(7, 5) % 2
    if type is ScalarType.BFLOAT16:
        memory *= 0x3F80  # the bits of 1
    result = deliver(memory, Framework.JAX, type)
    assert isinstance(result, jax.Array)
    assert np.asarray(result).astype(int).ravel().tolist() == [k % 2 for k in range(35)]
    view = describe(result, PLACE)
    assert (view.type, view.shape, view.strides, view.framework) == (type, (7, 5), (5, 1), Framework.JAX)
    assert (view.address == memory.ctypes.data) or type is ScalarType.BFLOAT16


def test_empty_results() -> None:
    for shape in ((0, 5), ()):
        memory = allocator(Framework.JAX, shape, ScalarType.FLOAT32)()
        assert describe(deliver(memory, Framework.JAX, ScalarType.FLOAT32), PLACE).shape == shape


def test_arrays_are_no_outputs() -> None:
    with pytest.raises(ArgumentError, match="A of mm: JAX arrays never change, so they cannot be outputs"):
        describe_output(jax.numpy.ones(3), PLACE)


def test_tracers_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"A of mm: a traced JAX value has no elements; call .* outside jit"):
        jax.jit(lambda x: describe(x, PLACE))(jax.numpy.ones(3))


def test_wide_results_need_the_wide_mode() -> None:
    with pytest.raises(ArgumentError, match=r"JAX holds no float64 results .*jax\.config\.update"):
        allocator(Framework.JAX, (3,), ScalarType.FLOAT64)()
