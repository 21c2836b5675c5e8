"""The CUDA C++ of a program: a kernel for every outermost nest, for NVRTC, which includes no header files."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from tc.codegen.dialect import CUDA
from tc.codegen.expressions import Check
from tc.codegen.kernel import KernelPrinter, Scope
from tc.codegen.launches import GridKernel
from tc.codegen.names import names_of
from tc.codegen.numerics import prelude
from tc.codegen.source import heading, parameters_of
from tc.polyhedral.loops import LoopProgram


@dataclass(frozen=True, slots=True)
class CudaSource:
    """The text, its kernels in the order in which they are launched, and the gathers that may report a fault."""

    text: str
    kernels: tuple[GridKernel, ...]
    checks: tuple[Check, ...]


def cuda_source(program: LoopProgram) -> CudaSource:
    """C++20 for ``-default-device``; IEEE values are not given up."""
    names = names_of(program)
    offsets = {buffer.name: 0 for buffer in program.temporaries}
    printer = KernelPrinter(program, names, parameters_of(program, names, offsets, CUDA), CUDA, 0)
    outside = printer.tree(program.root, Scope(variables=names.scalars))
    assert not any(line.strip("{}; ") for line in outside), f"this would run outside of all kernels: {outside}"
    body = "\n".join(line for part in printer.regions for line in (*part, ""))
    types = files("tc.codegen").joinpath("cuda.h").read_text(encoding="utf-8").strip()
    text = "\n\n".join(part for part in (heading(program), types, prelude(body), body) if part)
    return CudaSource(text, tuple(printer.grids), printer.expressions.checks)
