"""PyTorch's tensors in and out.  Imported only when an argument is a tensor."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Final

import torch

from tc.base.errors import ArgumentError, DeviceError
from tc.base.types import ScalarType
from tc.runtime.host.pages import FRESH_BYTES, LEAST_BYTES, prefer_huge_pages
from tc.runtime.host.recycle import result_blocks
from tc.runtime.views.view import (
    DEFAULT_STREAM,
    ArrayView,
    CudaMemory,
    Fingerprint,
    Framework,
    Stream,
    check_address,
    element_strides,
    row_major,
    unsupported_type,
)

_DTYPES: Final = MappingProxyType({type: getattr(torch, type.value) for type in ScalarType})
_TYPES: Final = MappingProxyType({dtype: type for type, dtype in _DTYPES.items()})


def torch_dtype(type: ScalarType) -> torch.dtype:
    """PyTorch's dtype for ``type``."""
    dtype: torch.dtype = _DTYPES[type]
    return dtype


def describe_torch(tensor: torch.Tensor, place: str) -> ArrayView:
    """The view of a dense tensor; on a GPU, it is ready on PyTorch's current stream."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        raise ArgumentError(f"{place}: a {_kind(tensor)} tensor has no dense elements; pass .to_dense()")
    if tensor.device.type == "meta":
        raise ArgumentError(f"{place}: a meta tensor has a shape but no elements; pass a tensor on the CPU")
    if tensor.device.type not in ("cpu", "cuda"):
        raise DeviceError(f"{place}: the tensor is on {tensor.device}, which no target reads; pass .cpu()")
    type = _TYPES.get(tensor.dtype)
    if type is None:
        raise unsupported_type(str(tensor.dtype), place)
    if tensor.is_neg():
        raise ArgumentError(f"{place}: the tensor's memory holds its negation; pass .resolve_neg()")
    shape = tuple(tensor.shape)
    address = _address(tensor, place)
    check_address(address, tensor.numel(), tensor.element_size(), place)
    strides = element_strides(shape, tuple(tensor.stride()), 1, place)
    memory = None if tensor.device.type == "cpu" else _cuda_memory(tensor.device)
    return ArrayView(
        address, shape, strides, type, True, Framework.TORCH, tensor, None, memory, followed=is_followed(tensor)
    )


def is_followed(tensor: torch.Tensor) -> bool:
    """Whether autograd follows what is computed from a tensor: under ``no_grad`` and ``inference_mode`` it does not."""
    return tensor.requires_grad and torch.is_grad_enabled()


def torch_fingerprint(tensor: torch.Tensor) -> Fingerprint | None:
    """A dense tensor on a GPU that autograd does not follow."""
    try:
        if not tensor.is_cuda or is_followed(tensor) or tensor.is_neg():
            return None
        device = tensor.device
        what = (tensor.dtype, device, tensor.shape, tensor.stride())
        address = tensor.data_ptr()
    except RuntimeError:  # not dense, or a wrapper of torch.func
        return None
    return (what, address, _stream(_current_stream(device.index))) if address else None


def _cuda_memory(device: torch.device) -> CudaMemory:
    return CudaMemory(device.index, _stream(_current_stream(device.index)))


def _stream(handle: int) -> Stream:
    return _numbered_stream(handle) if handle else DEFAULT_STREAM


def _current_stream(device: int) -> int:
    """The handle of PyTorch's stream."""
    if _raw_stream is not None:
        return _raw_stream(device)
    handle: int = torch.cuda.current_stream(device).cuda_stream
    return handle


def _kind(tensor: torch.Tensor) -> str:
    return "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")


def _address(tensor: torch.Tensor, place: str) -> int:
    try:
        return tensor.data_ptr()
    except RuntimeError as error:  # a wrapper of torch.func or of a tracer
        raise ArgumentError(f"{place}: the tensor has no memory of its own ({error}); pass a plain tensor") from error


def torch_allocator(shape: tuple[int, ...], type: ScalarType) -> Callable[[], torch.Tensor]:
    """A function that allocates an uninitialized, contiguous tensor; large ones on huge pages, as NumPy's are."""
    element = torch.empty((), dtype=torch_dtype(type), device="cpu")
    count = math.prod(shape)
    # Half as long as torch.empty takes to read the shape and the options.  All elements of the pattern are one, so that
    # it takes no memory, and what is made like it is contiguous.
    pattern = element.expand(shape) if count > 1 else element.new_empty(shape)
    allocate = functools.partial(torch.empty_like, pattern)
    contiguous = row_major(shape)
    size = count * type.itemsize
    if size < LEAST_BYTES:
        return allocate

    def allocate_large() -> torch.Tensor:
        tensor = allocate()
        prefer_huge_pages(tensor.data_ptr(), size)
        return tensor

    def allocate_fresh() -> torch.Tensor:
        storage = torch.from_numpy(result_blocks().lease(size)[:size]).untyped_storage()
        return element.new_empty(0).set_(storage, 0, shape, contiguous)

    return allocate_large if size < FRESH_BYTES else allocate_fresh


def torch_cuda_allocator(shape: tuple[int, ...], type: ScalarType, memory: CudaMemory) -> Callable[[], torch.Tensor]:
    """A function that allocates an uninitialized, contiguous tensor for work on the stream of ``memory``."""
    device, dtype = torch.device("cuda", memory.device), torch_dtype(type)

    def allocate() -> torch.Tensor:
        if _current_stream(memory.device) == memory.stream.handle:
            return torch.empty(shape, dtype=dtype, device=device)
        # PyTorch takes the handle 0 for a wish to have any stream.
        handle = memory.stream.handle
        stream = _external_stream(handle, device) if handle else torch.cuda.default_stream(device)
        with torch.cuda.stream(stream):
            return torch.empty(shape, dtype=dtype, device=device)

    return allocate


# A stream of PyTorch lives as long as the process.
_numbered_stream: Final = functools.lru_cache(maxsize=1024)(Stream)
# Takes a tenth of the time of the public function; compiled graphs of PyTorch use it.  Absent where there is no CUDA.
_raw_stream: Final[Callable[[int], int] | None] = getattr(torch._C, "_cuda_getCurrentRawStream", None)
_external_stream: Final[Callable[..., torch.cuda.Stream]] = torch.cuda.ExternalStream

# Tells autograd that a tensor was changed in place, so that a backward pass over its old value fails.
mark_written: Final[Callable[..., object]] = torch.autograd.graph.increment_version
