"""PyTorch as it is where there are GPUs, on the simulated driver: tensors whose memory is that of a device."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

import tc
from tc.runtime.frameworks import torch_arrays
from tc.runtime.frameworks.device_array import DeviceArray
from tc.runtime.frameworks.torch_arrays import torch_dtype


class Tensor(torch.Tensor):
    """A tensor on a GPU."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]
    is_cuda = True
    device = torch.device("cuda", 0)


def over(array: DeviceArray, shape: tuple[int, ...], offset: int = 0) -> Any:
    """A contiguous tensor over memory of a device, from byte ``offset`` on."""
    memory = (ctypes.c_char * array.nbytes).from_address(array.address)
    memory.__dict__["owner"] = array
    count, dtype = math.prod(shape), torch_dtype(array.type)
    tensor = torch.frombuffer(memory, dtype=dtype, count=count, offset=offset).reshape(shape).as_subclass(Tensor)
    tensor.device = torch.device("cuda", array.memory.device)
    return tensor


def on_gpu(array: np.ndarray, device: int = 0) -> Any:
    """A contiguous copy."""
    return over(tc.to_device(array, device), array.shape)


@contextmanager
def tensors_on_gpus() -> Iterator[list[int]]:
    """In the block, PyTorch's tensors are those of ``on_gpu``; the list holds its current stream, which may change."""

    def empty(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Any:
        return on_gpu(np.empty(shape, str(dtype).removeprefix("torch.")), device.index)

    def stream(device: int) -> int:
        assert isinstance(device, int)
        return current[0]

    current = [0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "Tensor", Tensor)
        patch.setattr(torch, "empty", empty)
        patch.setattr(torch_arrays, "_raw_stream", stream)
        yield current
