"""``kernels.c``: what every exported kernel is, as a table that C programs read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from tc.artifact.convention import Operand
from tc.base.grid import Argument, GridKernel, Place, launches
from tc.base.types import ScalarType
from tc.export.c_text import array, integer, numbers, string
from tc.export.compile_options import own_flags
from tc.export.exported import Exported
from tc.export.sizes import open_sizes
from tc.export.sources import renamed

_HEAD: Final = """\
// What the kernels of this folder are, exported by Tensor Comprehensions.  call.h explains it.

#include "kernels.h"

#include <string.h>

const tc_exported tc_kernels[] = {
"""
_TAIL: Final = """\
};

const int64_t tc_kernel_count = $count;

const tc_exported *tc_find(const char *name) {
  for (int64_t i = 0; i < tc_kernel_count; i++)
    if (strcmp(tc_kernels[i].name, name) == 0) return &tc_kernels[i];
  return NULL;
}
"""
_PLACES: Final = {
    Place.BUFFER: "TC_BUFFER",
    Place.TEMPORARY: "TC_TEMPORARY",
    Place.SCALAR: "TC_SCALAR",
    Place.FAULT: "TC_FAULT",
    Place.STEP: "TC_STEP",
}


def launch_table(kernels: Sequence[Exported]) -> str:
    """The text of the file; ValueError for a number that is none of ours."""
    entries = ("\n".join(("  {", *(f"    {line}," for line in _entry(kernel)), "  },\n")) for kernel in kernels)
    # No array is empty.
    return "".join((_HEAD, *entries, *(() if kernels else ("  {0},\n",)), _TAIL.replace("$count", str(len(kernels)))))


def _entry(kernel: Exported) -> Iterator[str]:
    executable = kernel.executable
    convention, interface = executable.convention, executable.convention.interface
    yield f".name = {string(kernel.name)}"
    yield f".definition = {string(interface.name)}"
    yield f".target = {string(str(executable.target))}"
    yield f".file = {string(kernel.file)}"
    yield f".flags = {string(' '.join(own_flags(kernel)))}"
    yield f".entry = {'NULL' if kernel.host is None else kernel.name}"
    yield f".operand_count = {len(convention.operands)}"
    yield f".operands = {array('tc_operand', (_operand(kernel, operand) for operand in convention.operands))}"
    scalars = [(scalar.name, scalar.type) for scalar in interface.scalars]
    scalars += [(size.name, ScalarType.INT64) for size in open_sizes(kernel)]
    parameters = (f"{{{string(name)}, {string(type.value)}}}" for name, type in scalars)
    yield f".scalar_count = {len(scalars)}"
    yield f".scalars = {array('tc_parameter', parameters)}"
    yield f".most_threads = {integer(executable.most_threads)}"
    if kernel.host is not None:
        yield f".shared_bytes = {integer(convention.memory.shared)}"
        yield f".scratch_bytes = {integer(convention.memory.scratch)}"
    yield f".temporary_count = {len(convention.temporaries)}"
    yield f".temporaries = {numbers(convention.temporaries)}"
    order = [(convention.grids[n], steps) for n, steps in launches(len(convention.grids), convention.steps)]
    own = renamed(kernel)
    yield f".grid_count = {len(order)}"
    yield f".grids = {array('tc_grid', (_grid(grid, own.get(grid.name, grid.name), steps) for grid, steps in order))}"
    yield f".seconds = {kernel.seconds!r}"
    yield f".default_seconds = {kernel.default_seconds!r}"


def _operand(kernel: Exported, operand: Operand) -> str:
    interface, layout = kernel.executable.convention.interface, operand.layout
    size = layout.type.itemsize
    read = operand.name in interface.arguments or interface.tensor(operand.name).in_out
    values = (
        string(operand.name),
        string(layout.type.value),
        str(len(layout.shape)),
        numbers(layout.shape),
        numbers(layout.strides),
        integer(len(layout.offsets) * size),
        integer(-layout.offsets.start * size),
        str(int(operand.writable)),
        str(int(read)),
    )
    return f"{{{', '.join(values)}}}"


def _grid(grid: GridKernel, name: str, steps: tuple[int, ...]) -> str:
    if grid.maps:
        raise ValueError(
            f"{name} copies boxes of tensors that only the CUDA driver can describe; compile it with "
            "tensor_cores=tc.TensorCores.WARPGROUPS"
        )
    arguments = (replace(a, number=steps[a.number]) if a.place is Place.STEP else a for a in grid.arguments)
    values = (
        string(name),
        f"{{{', '.join(map(integer, grid.grid[:3]))}}}",
        f"{{{', '.join(map(integer, grid.block[:3]))}}}",
        integer(grid.shared_bytes),
        str(len(grid.arguments)),
        array("tc_argument", map(_argument, arguments)),
    )
    return f"{{{', '.join(values)}}}"


def _argument(argument: Argument) -> str:
    return f"{{{_PLACES[argument.place]}, {integer(argument.number)}}}"
