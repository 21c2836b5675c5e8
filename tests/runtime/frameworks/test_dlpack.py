"""Any exporter of DLPack is read in place, of either version, and kept alive as long as its view."""

from __future__ import annotations

import ctypes
import gc
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from tc.base.errors import ArgumentError, DeviceError
from tc.base.types import ScalarType
from tc.runtime.frameworks.arrays import describe, describe_output
from tc.runtime.views.view import Framework

PLACE = "argument A of mm"


class Exporter:
    """An array of an unknown framework."""

    def __init__(self, array: np.ndarray | torch.Tensor, *, versioned: bool = True) -> None:
        self.array = array
        self.versioned = versioned

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None) -> object:
        if max_version is not None and not self.versioned:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(max_version=max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self.array.__dlpack_device__()
        return int(kind), int(index)


@pytest.mark.parametrize("versioned", [True, False])
def test_strided_arrays_are_read_in_place(versioned: bool) -> None:
    array = np.arange(7 * 129, dtype=np.int16).reshape(7, 129)[::-2, 3::5]
    exporter = Exporter(array, versioned=versioned)
    view = describe(exporter, PLACE)
    assert (view.address, view.shape, view.strides) == (array.ctypes.data, (4, 26), (-258, 5))
    assert (view.type, view.writable, view.framework) == (ScalarType.INT16, True, Framework.OTHER)
    assert view.owner is exporter


@pytest.mark.parametrize("type", list(ScalarType))
def test_every_type(type: ScalarType) -> None:
    exporter = Exporter(torch.zeros(7, dtype=getattr(torch, type.value)))
    assert describe(exporter, PLACE).type is type


def test_zero_dimensions_and_zero_elements() -> None:
    assert describe(Exporter(np.array(3.0)), PLACE).shape == ()
    assert describe(Exporter(np.ones((0, 7))), PLACE).strides == (7, 1)


def test_read_only_arrays_stay_read_only() -> None:
    array = np.ones(7)
    array.flags.writeable = False
    assert not describe(Exporter(array), PLACE).writable
    with pytest.raises(ArgumentError, match="read-only"):
        describe_output(Exporter(array), PLACE)


def test_the_memory_lives_as_long_as_the_view() -> None:
    class Array(np.ndarray):
        pass

    class Copying(Exporter):
        """Exports a copy, of which there is no other reference."""

        def __dlpack__(self, *, max_version: tuple[int, int] | None = None) -> object:
            copy = np.array(self.array).view(Array)
            copies.append(weakref.ref(copy))
            return copy.__dlpack__(max_version=max_version)

    copies: list[weakref.ref[Array]] = []
    view = describe(Copying(np.ones(1031)), PLACE)
    gc.collect()
    assert copies[0]() is not None
    assert ctypes.c_double.from_address(view.address).value == 1.0
    del view
    gc.collect()
    assert copies[0]() is None


@dataclass
class Failing:
    """An exporter that does not deliver what the protocol promises."""

    result: object
    device: tuple[int, int] = (1, 0)

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None) -> object:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


def test_refusals() -> None:
    with pytest.raises(DeviceError, match="A of mm: the array is on rocm:1, which no target reads; copy it to the CPU"):
        describe(Failing(None, (10, 1)), PLACE)
    with pytest.raises(DeviceError, match="the array is on device type 99:0"):
        describe(Failing(None, (99, 0)), PLACE)
    with pytest.raises(ArgumentError, match="A of mm: the array cannot be exported through DLPack: no luck"):
        describe(Failing(BufferError("no luck")), PLACE)
    with pytest.raises(ArgumentError, match="A of mm: __dlpack__ returned NoneType, not a fresh DLPack object"):
        describe(Failing(None), PLACE)
    with pytest.raises(ArgumentError, match="element type DLPack code 5, 64 bits, 1 lane is not supported"):
        describe(Exporter(np.ones(3, np.complex64)), PLACE)


def test_a_consumed_export_is_refused() -> None:
    exported = np.ones(3).__dlpack__()
    kept = torch.utils.dlpack.from_dlpack(exported)
    with pytest.raises(ArgumentError, match="returned PyCapsule, not a fresh DLPack object"):
        describe(Failing(exported), PLACE)
    assert kept.tolist() == [1.0, 1.0, 1.0]
