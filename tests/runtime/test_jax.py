"""JAX's arrays in and out, where JAX is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tc.base.errors import ArgumentError
from tc.base.types import ScalarType
from tc.runtime.cuda.deferred_free import Borrower
from tc.runtime.frameworks.arrays import allocator, deliver, describe, describe_output
from tc.runtime.views.view import Framework
from tests.waiting import wait_until

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


class OnGpu:
    """What is asked of a result on a GPU."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def lend(self, stream: int | None, borrower: Borrower) -> object:
        return stream, borrower


def test_memory_of_a_gpu_is_lent_to_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names a stream, as its ``from_dlpack`` does, and computes on another one."""
    from tc.runtime.frameworks.jax_arrays import deliver_device_array

    def from_dlpack(array: Any) -> object:
        return array.__dlpack_device__(), array.__dlpack__(stream=0x777)

    monkeypatch.setattr(jax.dlpack, "from_dlpack", from_dlpack)
    memory: Any = OnGpu()
    assert deliver_device_array(memory) == ((2, 0), (0x777, Borrower.JAX))


def test_the_end_of_what_jax_was_given_comes() -> None:
    from tc.runtime.frameworks.jax_arrays import JaxEnd

    end = JaxEnd(jax.numpy.ones(3))
    wait_until(end.done)
