"""Which version of which compiler makes the kernels of a target."""

from __future__ import annotations

import functools
import shlex
from pathlib import Path
from typing import assert_never

from tc.base.environment import Environment
from tc.runtime.host.c_compiler import Compiler, answer, find_compiler
from tc.targets.target import CpuTarget, CudaTarget, EmulatorTarget, OpenClTarget, Target


def compiler_version(target: Target, settings: Environment) -> str:
    """What makes binaries for ``target`` here; DeviceError if there is no such compiler."""
    match target:
        case CpuTarget() | EmulatorTarget():
            return _version(find_compiler(settings))
        case CudaTarget():
            from tc.runtime.cuda.nvrtc import nvrtc_version

            return nvrtc_version()
        case OpenClTarget():
            from tc.runtime.opencl.opencl import opencl_device

            return opencl_device().version
        case _:
            assert_never(target)


@functools.cache
def _version(compiler: Compiler) -> str:
    """The first line of ``--version``, without the program's own name, and the arguments that ``TC_CC`` adds."""
    first = next(iter(answer(compiler, "--version").splitlines()), "").strip()
    own = Path(compiler.command[0]).name
    return " ".join((first.removeprefix(own).strip() or own, *map(shlex.quote, compiler.command[1:])))
