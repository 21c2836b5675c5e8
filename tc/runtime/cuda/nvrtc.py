"""NVRTC, the compiler of CUDA C++ that is a library: text becomes the binary of one architecture, without a GPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

from tc.base.errors import CompileError, DeviceError
from tc.runtime.host.binary import Binary, KernelUse
from tc.runtime.host.c_compiler import keep, kept_text

_INSTALL: Final = "install both, for example by: pip install 'tensor-comprehensions[cuda]'"
# Without --use_fast_math: subnormals are kept, divisions and roots are rounded correctly.  Sums of products are fused,
# as everywhere else.
_FLAGS: Final = ("--std=c++20", "-default-device", "--fmad=true", "--ptxas-options=-v")
# NVRTC keeps what it compiled, where there is a driver, and ptxas says nothing of what is taken from there.
_ANEW: Final = "--no-cache"
_SUCCESS: Final = 0


def nvrtc_flags(architecture: str) -> tuple[str, ...]:
    """Options with which kernels are compiled."""
    return (f"--gpu-architecture={architecture}", *_FLAGS)


def nvrtc_version() -> str:
    """The compiler and its release; DeviceError if it is not here."""
    nvrtc = _load()
    major, minor = _checked(nvrtc, *nvrtc.nvrtcVersion())
    return f"NVRTC {major}.{minor}"


def check_architecture(architecture: str) -> None:
    """DeviceError if NVRTC is not here, or knows no such architecture."""
    nvrtc = _load()
    known = [f"sm_{number}" for number in _checked(nvrtc, *nvrtc.nvrtcGetSupportedArchs())[0]]
    if architecture.removesuffix("a") not in known:
        raise DeviceError(
            f"{nvrtc_version()} does not compile for {architecture}, only for {', '.join(known)}; "
            "install another version of nvidia-cuda-nvrtc"
        )


@contextmanager
def compiling_cuda(source: str, architecture: str) -> Iterator[Callable[[], Binary]]:
    """Compiles beside the work in the block: what it gets waits for the binary.

    CompileError with NVRTC's log, and with the place where the source was kept.
    """
    with ThreadPoolExecutor(1) as executor:
        yield executor.submit(compile_cuda, source, architecture).result


def compile_cuda(source: str, architecture: str) -> Binary:
    """CUDA C++ compiled for an architecture; errors are those of ``compiling_cuda``.  Safe from many threads."""
    nvrtc, flags = _load(), nvrtc_flags(architecture)
    binary = _compiled(nvrtc, source, flags)
    return binary if binary.kernels else _compiled(nvrtc, source, (*flags, _ANEW))


def _compiled(nvrtc: Any, source: str, flags: tuple[str, ...]) -> Binary:
    (program,) = _checked(nvrtc, *nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], []))
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
        log = _text(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).decode(errors="replace")
        if int(status) != _SUCCESS:
            raise CompileError(
                f"NVRTC refused the generated source ({status.name})\n{kept_text(keep(source, 'kernel.cu'))}\n"
                f"options: {' '.join(flags)}\n{log.strip()}"
            )
        code = _text(nvrtc, program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    return Binary(code, kernel_uses(log))


_ENTRY: Final = re.compile(r"Compiling entry function '(\w+)'")
_FRAME: Final = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS: Final = re.compile(r"Used (\d+) registers")
_SHARED: Final = re.compile(r"(\d+) bytes smem")  # on the line of the registers, where there is any


def kernel_uses(log: str) -> dict[str, KernelUse]:
    """What ptxas, asked with ``-v``, says of every kernel."""
    found: dict[str, KernelUse] = {}
    entry, frame = "", (0, 0, 0)
    for line in log.splitlines():
        if (match := _ENTRY.search(line)) is not None:
            entry = match[1]
        elif (match := _FRAME.search(line)) is not None:
            frame = (int(match[1]), int(match[2]), int(match[3]))
        elif (match := _REGISTERS.search(line)) is not None:
            shared = _SHARED.search(line)
            found[entry] = KernelUse(int(match[1]), *frame, 0 if shared is None else int(shared[1]))
    return found


def _load() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise DeviceError(f"CUDA kernels are compiled with cuda-bindings and nvidia-cuda-nvrtc; {_INSTALL}") from error
    try:
        nvrtc.nvrtcVersion()
    except RuntimeError as error:
        raise DeviceError(f"NVRTC cannot be loaded ({error}); {_INSTALL}") from error
    return nvrtc


def _text(nvrtc: Any, program: Any, size: Callable[[Any], Any], get: Callable[[Any, bytes], Any]) -> bytes:
    (length,) = _checked(nvrtc, *size(program))
    buffer = bytes(length)
    _checked(nvrtc, *get(program, buffer))
    return buffer.rstrip(b"\0") if get is nvrtc.nvrtcGetProgramLog else buffer


def _checked(nvrtc: Any, status: Any, *results: Any) -> tuple[Any, ...]:
    if int(status) != _SUCCESS:
        raise DeviceError(f"NVRTC failed: {nvrtc.nvrtcGetErrorString(status)[1].decode()}")
    return results
