"""The CUDA C++ of a program: a kernel for every outermost nest, for NVRTC, which includes no header files."""

from __future__ import annotations

from importlib.resources import files

from tc.codegen.dialect import CUDA, Dialect
from tc.codegen.kernel import KernelPrinter, Scope
from tc.codegen.names import names_of
from tc.codegen.numerics import prelude
from tc.codegen.placement import side_by_side
from tc.codegen.source import KernelSource, heading, parameters_of, with_narrow_indices
from tc.polyhedral.loops import LoopProgram


def cuda_source(program: LoopProgram) -> KernelSource:
    """C++20 for ``-default-device``, to be compiled without any option that gives up IEEE values."""
    return with_narrow_indices(lambda dialect: _cuda_source(program, dialect), CUDA)


def _cuda_source(program: LoopProgram, dialect: Dialect) -> KernelSource:
    names = names_of(program)
    offsets, shared_bytes = side_by_side(program.temporaries)
    printer = KernelPrinter(program, names, parameters_of(program, names, offsets, dialect), dialect, 0)
    outside = printer.tree(program.root, Scope(variables=names.scalars))
    assert not any(line.strip("{}; ") for line in outside), f"this would run outside of all kernels: {outside}"
    body = "\n".join(line for part in printer.regions for line in (*part, ""))
    types = files("tc.codegen").joinpath("cuda.h").read_text(encoding="utf-8").strip()
    text = "\n\n".join(part for part in (heading(program), types, prelude(body), body) if part)
    return KernelSource(text, printer.expressions.checks, shared_bytes, printer.scratch_bytes, tuple(printer.grids))
