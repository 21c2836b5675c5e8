"""Arrays of every framework on a GPU, made of NumPy's and copied back."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pytest

import tc


@dataclass(frozen=True, slots=True)
class Framework:
    """``package``: what must be there.  ``to_device`` and ``to_host`` copy; ``writes``: arrays may be outputs."""

    package: str
    to_device: Callable[[np.ndarray], Any]
    to_host: Callable[[Any], np.ndarray]
    writes: bool = True

    def require(self) -> None:
        """Skips the test where the package is missing, or has no GPU."""
        pytest.importorskip(self.package)
        try:
            self.to_device(np.zeros(1, np.float32))
        except (RuntimeError, AssertionError, ImportError, tc.DeviceError) as error:
            pytest.skip(f"{self.package} has no GPU here: {error}")
        except Exception as error:
            # Packages whose errors are of classes of their own.
            if not type(error).__module__.startswith(("cupy", "pycuda")):
                raise
            pytest.skip(f"{self.package} has no GPU here: {error}")

    def copied(self, array: Any) -> np.ndarray:
        """A result; it is an array of ours where no argument was one of the framework's."""
        from tc.runtime.frameworks.device_array import DeviceArray

        return array.numpy() if isinstance(array, DeviceArray) else self.to_host(array)


def _to_torch(array: np.ndarray) -> Any:
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.uint16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(np.ascontiguousarray(array)).cuda()


def _from_torch(tensor: Any) -> np.ndarray:
    import ml_dtypes
    import torch

    if tensor.dtype is torch.bfloat16:
        bits: np.ndarray = tensor.view(torch.uint16).cpu().numpy()
        return bits.view(ml_dtypes.bfloat16)
    found: np.ndarray = tensor.cpu().numpy()
    return found


def _to_cupy(array: np.ndarray) -> Any:
    import cupy

    return cupy.asarray(array)


def _from_cupy(array: Any) -> np.ndarray:
    import cupy

    found: np.ndarray = cupy.asnumpy(array)
    return found


def _to_jax(array: np.ndarray) -> Any:
    # Others want memory, too, in this process and in those that it starts.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    jax.config.update("jax_enable_x64", True)
    # The first device is a GPU where there is one; JAX would compute on the processor otherwise.
    (device, *_) = jax.devices("gpu")
    return jax.device_put(array, device)


def _to_pycuda(array: np.ndarray) -> Any:
    importlib.import_module("pycuda.autoprimaryctx")
    from pycuda import gpuarray

    return gpuarray.to_gpu(np.ascontiguousarray(array))


FRAMEWORKS: Final[Mapping[str, Framework]] = MappingProxyType(
    {
        "torch": Framework("torch", _to_torch, _from_torch),
        "cupy": Framework("cupy", _to_cupy, _from_cupy),
        "jax": Framework("jax", _to_jax, np.asarray, writes=False),
        "pycuda": Framework("pycuda", _to_pycuda, lambda array: array.get()),
        "own": Framework("cuda.bindings", tc.to_device, lambda array: array.numpy()),
    }
)
