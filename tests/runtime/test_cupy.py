"""CuPy's arrays, by a stand-in for CuPy."""

from __future__ import annotations

import importlib
import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import pytest

import tc
from tc.runtime.view import DEFAULT_STREAM, CudaMemory


def test_elements_that_cupy_does_not_have_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(_shape: tuple[int, ...], dtype: object) -> object:
        if str(dtype) == "bfloat16":
            raise ValueError(f"Unsupported dtype {dtype}")
        return dtype

    cupy = ModuleType("cupy")
    cupy.__dict__.update(
        __version__="13.0",
        ndarray=object,
        empty=empty,
        cuda=SimpleNamespace(Device=nullcontext, ExternalStream=nullcontext),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.delitem(sys.modules, "tc.runtime.cupy_arrays", raising=False)
    allocator = importlib.import_module("tc.runtime.cupy_arrays").cupy_allocator
    monkeypatch.delitem(sys.modules, "tc.runtime.cupy_arrays")
    memory = CudaMemory(0, DEFAULT_STREAM)
    assert str(allocator((3,), tc.ScalarType.FLOAT16, memory)()) == "float16"
    allocate = allocator((3,), tc.ScalarType.BFLOAT16, memory)
    with pytest.raises(
        tc.ArgumentError,
        match=r"^CuPy 13\.0 holds no bfloat16 results \(Unsupported dtype bfloat16\); pass out= with an array of "
        r"another framework, or update CuPy$",
    ):
        allocate()
