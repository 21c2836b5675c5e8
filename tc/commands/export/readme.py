"""``README.txt``: what is in an exported folder, and how a program calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.export.c_text import integer
from tc.export.c_types import c_type
from tc.export.exported import Exported
from tc.export.sizes import open_sizes

_README: Final = """\
Kernels that tc-cache has exported
==================================

{names}

kernels.h says of each what it computes, what it is given and what it needs; kernels.c has the same as a table,
tc_kernels, for programs that look for it (call.h).

Kernels for processors (.c)
---------------------------

    make                                                  # libkernels.a, and libkernels_threads.a
    cc program.c -I. libkernels.a -lm                     # calls run on one thread
    cc program.c -I. libkernels_threads.a -lm -pthread    # calls run on as many threads as they are told

A program:

{example}

Kernels are made for processors with certain instructions (.target): on others, the program stops.

Kernels for GPUs (.cu, .cl)
---------------------------

The program compiles .file with the options .flags, by NVRTC or by the driver of OpenCL, and launches the grids of the
table in their order with the arguments that it names.  (-cl-fp32-correctly-rounded-divide-sqrt is for devices that
know it: on others, divisions and square roots are less exact.)
"""
_EXAMPLE: Final = """\
#include "kernels.h"

int main(void) {{
{arrays}
  void *buffers[] = {{{names}}};
{scalars}  return tc_call(tc_find("{name}"), buffers, {given}, 1);
}}"""


def readme(kernels: Sequence[Exported]) -> str:
    """The text of the file."""
    names = "\n".join(f"    {kernel.name}" for kernel in kernels)
    hosted = [kernel for kernel in kernels if kernel.host is not None]
    example = _example(hosted[0]) if hosted else "(there is no kernel for processors in this folder)"
    return _README.format(names=names, example="\n".join(f"    {line}".rstrip() for line in example.splitlines()))


def _example(kernel: Exported) -> str:
    convention = kernel.executable.convention
    arrays, names = [], []
    for number, operand in enumerate(convention.operands):
        layout, name = operand.layout, f"b{number}"
        start = f" + {-layout.offsets.start}" if layout.offsets.start else ""
        arrays.append(f"  static {c_type(layout.type)} {name}[{max(len(layout.offsets), 1)}];")
        names.append(f"{name}{start}")
    values = ["{0}" for _ in convention.interface.scalars]
    values += [f"{{.i = {integer(size.most)}}}" for size in open_sizes(kernel)]
    scalars = f"  tc_scalar scalars[] = {{{', '.join(values)}}};\n" if values else ""
    return _EXAMPLE.format(
        arrays="\n".join(arrays),
        names=", ".join(names),
        scalars=scalars,
        name=kernel.name,
        given="scalars" if scalars else "NULL",
    )
