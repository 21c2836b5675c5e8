"""CuPy's arrays, by a stand-in for CuPy."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import pytest

import tc
from tc.runtime.views.view import DEFAULT_STREAM, CudaMemory, Stream


class Cupy:
    """A stand-in, with the streams of a version, on any number of devices; ``used``: those that allocations are for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
        self.current = 0
        self.used: list[int] = []
        self._device = -1
        cuda = SimpleNamespace(Device=self._on, get_current_stream=self._current_stream, Stream=SimpleNamespace())
        if version == "13.0":
            cuda.ExternalStream = self._made_current
        else:
            cuda.Stream.from_external = lambda stream: self._made_current(stream.__cuda_stream__()[1])
        cupy = ModuleType("cupy")
        cupy.__dict__.update(__version__=version, ndarray=object, empty=self._empty, cuda=cuda)
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        monkeypatch.delitem(sys.modules, "tc.runtime.frameworks.cupy_arrays", raising=False)
        self.allocator = importlib.import_module("tc.runtime.frameworks.cupy_arrays").cupy_allocator
        monkeypatch.delitem(sys.modules, "tc.runtime.frameworks.cupy_arrays")

    @contextmanager
    def _on(self, device: int) -> Iterator[None]:
        before, self._device = self._device, device
        yield
        self._device = before

    def _current_stream(self, device: int) -> object:
        assert device == self._device
        return SimpleNamespace(ptr=self.current)

    @contextmanager
    def _made_current(self, handle: int) -> Iterator[None]:
        before, self.current = self.current, handle
        yield
        self.current = before

    def _empty(self, _shape: tuple[int, ...], dtype: object) -> object:
        if str(dtype) == "bfloat16":
            raise ValueError(f"Unsupported dtype {dtype}")
        self.used.append(self.current)
        return dtype


@pytest.mark.parametrize("version", ["13.0", "14.0"])
def test_results_are_allocated_for_the_stream_of_the_call(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    cupy = Cupy(monkeypatch, version)
    for cupy.current, stream in ((0, 0), (1, 0), (7, 0), (0, 7), (7, 7)):
        before = cupy.current
        cupy.allocator((3,), tc.ScalarType.FLOAT32, CudaMemory(1, Stream(stream)))()
        assert cupy.current == before
    # 1 names the default stream, too.
    assert cupy.used == [0, 1, 0, 7, 7]


def test_elements_that_cupy_does_not_have_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    allocator = Cupy(monkeypatch, "13.0").allocator
    memory = CudaMemory(0, DEFAULT_STREAM)
    assert str(allocator((3,), tc.ScalarType.FLOAT16, memory)()) == "float16"
    allocate = allocator((3,), tc.ScalarType.BFLOAT16, memory)
    with pytest.raises(
        tc.ArgumentError,
        match=r"^CuPy 13\.0 holds no bfloat16 results \(Unsupported dtype bfloat16\); pass out= with an array of "
        r"another framework, or update CuPy$",
    ):
        allocate()
