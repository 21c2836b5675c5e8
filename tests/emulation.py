"""Kernels for aarch64 on another machine: cross-compiled, and run by qemu.

``emulated`` puts qemu in the place of the processor, so that whole calls, tests and random programs run there.  Every
launch copies the memory of its buffers to a process of its own and back.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

import tc.runtime.host.pool
from tc.artifact.executable import Executable
from tc.base.environment import Environment
from tc.base.types import ScalarType
from tc.dispatch.arguments import Arguments
from tc.dispatch.sites import HostSite
from tc.language.program.specialization import Layout
from tc.runtime.loaded_kernel import Memory
from tests.codegen.harness import slot

TARGET: Final = "cpu:armv8-a"
COMPILER: Final = "aarch64-linux-gnu-gcc"
_EMULATOR: Final = "qemu-aarch64"
_LOADER: Final = "ld-linux-aarch64.so.1"
_DRIVER: Final = Path(__file__).with_name("emulated.c")


def missing() -> str | None:
    """Why kernels for aarch64 cannot be made and run here, or None."""
    absent = [name for name in (COMPILER, _EMULATOR) if shutil.which(name) is None]
    if absent:
        return f"{' and '.join(absent)} not on the PATH"
    return None if _libraries().is_absolute() else f"{COMPILER} has no C library"


@contextmanager
def emulated() -> Iterator[None]:
    """Kernels for aarch64 can be called: ``Comprehension.compile`` and calls for ``TARGET`` work as they do there."""
    settings = Environment(compiler=COMPILER)
    with (
        patch("tc.api.kernels.environment", lambda: settings),
        patch("tc.dispatch.kernel.load", _load),
        patch("tc.dispatch.kernel.site_of", _site),
    ):
        yield


def _site(kernel: Any, executable: Executable, bound: Arguments) -> HostSite:
    """What ``tc.dispatch.sites.site_of`` does for a processor that is there."""
    return HostSite(kernel, executable.convention, executable.most_threads, bound.framework)


def _load(executable: Executable) -> EmulatedKernel:
    """What ``tc.artifact.executable.load`` does for a processor that is there."""
    convention = executable.convention
    layouts = tuple(operand.layout for operand in convention.operands)
    types = tuple(scalar.type for scalar in convention.interface.scalars)
    return EmulatedKernel(executable.binary.code, layouts, types, len(convention.signature.symbolic), convention.memory)


@dataclass(frozen=True, slots=True)
class EmulatedKernel:
    """A kernel that runs in the emulator; like ``LoadedKernel``.  ``open``: how many sizes follow its scalars."""

    binary: bytes
    layouts: tuple[Layout, ...]
    scalars: tuple[ScalarType, ...]
    open: int
    memory: Memory

    def launch(self, addresses: Sequence[int], scalars: Sequence[int | float], threads: int) -> int:
        """Runs the kernel on buffers at ``addresses`` and returns its fault."""
        sizes = tuple(int(size) for size in scalars[len(scalars) - self.open :])
        layouts = [layout.at(sizes) for layout in self.layouts]
        ranges = [_range(address, layout) for address, layout in zip(addresses, layouts, strict=True)]
        blocks = _merged(ranges)
        words = [len(addresses)]
        for address, (begin, _) in zip(addresses, ranges, strict=True):
            number = next(n for n, (first, last) in enumerate(blocks) if first <= begin <= last)
            words += number, address - blocks[number][0]
        sent = [struct.pack("=Q", len(blocks))]
        sent += [struct.pack("=Q", end - begin) + ctypes.string_at(begin, end - begin) for begin, end in blocks]
        sent += [struct.pack(f"={len(words) + 1}Q", *words, len(scalars))]
        types = (*self.scalars, *(ScalarType.INT64 for _ in sizes))
        sent += [slot(value, type) for value, type in zip(scalars, types, strict=True)]
        received = _run(self.binary, threads, self.memory, b"".join(sent))
        (fault,), position = struct.unpack_from("=q", received), 8
        for begin, end in blocks:
            ctypes.memmove(begin, received[position : position + end - begin], end - begin)
            position += end - begin
        assert position == len(received)
        return int(fault)


def _range(address: int, layout: Layout) -> tuple[int, int]:
    """The bytes that a buffer occupies; strides may be negative."""
    size = layout.type.itemsize
    if not layout.size:
        return address, address
    steps = [(extent - 1) * stride * size for extent, stride in zip(layout.shape, layout.strides, strict=True)]
    return address + sum(min(step, 0) for step in steps), address + sum(max(step, 0) for step in steps) + size


def _merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes in ranges that neither overlap nor touch, in order."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def _run(binary: bytes, threads: int, memory: Memory, launch: bytes) -> bytes:
    with TemporaryDirectory(prefix="tc-emulated-") as folder:
        driver, kernel = Path(folder, "driver"), Path(folder, "kernel.so")
        driver.write_bytes(_driver())
        driver.chmod(0o700)
        kernel.write_bytes(binary)
        needs = (str(threads), str(memory.shared), str(memory.scratch))
        command = (_EMULATOR, "-L", str(_libraries()), str(driver), str(kernel), *needs)
        # What is preloaded here is not for the other processor.
        variables = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        done = subprocess.run(command, input=launch, capture_output=True, env=variables, check=False)
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr.decode(errors='replace')}"
    return done.stdout


@functools.cache
def _libraries() -> Path:
    """The folder under which the emulated processor finds ``lib``."""
    command = (COMPILER, f"-print-file-name={_LOADER}")
    loader = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    return loader.parent.parent


@functools.cache
def _driver() -> bytes:
    """The program that runs one launch, with the pool in it."""
    include = Path(tc.runtime.__file__).parent
    with TemporaryDirectory(prefix="tc-emulated-") as folder:
        program = Path(folder, "driver")
        flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{include}")
        subprocess.run((COMPILER, *flags, str(_DRIVER), "-o", str(program), "-ldl"), check=True)
        return program.read_bytes()
