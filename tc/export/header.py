"""``kernels.h``: a prototype for every exported kernel, below what its caller must know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tc.artifact.convention import Operand
from tc.artifact.fault_report import check_said
from tc.base.counted import bytes_text
from tc.base.faults import DIVERGED, OUTSIDE
from tc.base.types import Kind, ScalarType
from tc.export.c_text import comment
from tc.export.exported import Exported
from tc.export.sizes import extents_said, open_sizes, places_said
from tc.language.program.specialization import contiguous_strides
from tc.runtime.loaded_kernel import NO_MEMORY
from tc.targets.target import EmulatorTarget, OpenClTarget

_HEAD: Final = """\
// The kernels of this folder, exported by Tensor Comprehensions.  The README says how to build and call them.
//
// Kernels for processors have a prototype.  Those of GPUs have none: what to launch stands in the table in kernels.c.

#ifndef TC_KERNELS_H
#define TC_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "call.h"
"""
_TAIL: Final = """\
#ifdef __cplusplus
}
#endif

#endif
"""


def header(kernels: Sequence[Exported]) -> str:
    """The text of the file."""
    return "\n".join((_HEAD, *(f"{_part(kernel)}\n" for kernel in kernels), _TAIL))


def _part(kernel: Exported) -> str:
    lines = [comment(line) for line in _description(kernel)]
    if kernel.host is not None:
        lines.append(f"void {kernel.name}(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime);")
    return "\n".join(lines)


def _description(kernel: Exported) -> Iterator[str]:
    convention = kernel.executable.convention
    interface = convention.interface
    yield f"{interface.name}({', '.join(interface.arguments)}) -> ({', '.join(interface.results)}): {kernel.file}"
    yield from (f"    {line}" for line in kernel.program.splitlines() if line.strip())
    for number, operand in enumerate(convention.operands):
        yield f"  buffers[{number}]  {_operand(kernel, operand)}"
    for number, scalar in enumerate(interface.scalars):
        fixed = dict(convention.signature.scalars).get(scalar.name)
        made = "" if fixed is None else f", must be {fixed}, which the kernel is made for"
        yield f"  scalars[{number}].{_member(scalar.type)}  {scalar.name}: {scalar.type}{made}"
    for number, size in enumerate(open_sizes(kernel), len(interface.scalars)):
        yield f"  scalars[{number}].i  {size.name}: {places_said(size)}, from 1 to {size.most}"
    for output, input in convention.signature.aliases:
        yield f"  {output} is the memory of {input}"
    yield f"  needs {_memory(kernel)}"
    yield f"  for {kernel.executable.target} with options: {kernel.options}"
    if kernel.time:
        yield f"  {kernel.time}"
    yield from (f"  fault {number}: {check_said(check)}" for number, check in enumerate(convention.checks, 1))
    if isinstance(kernel.executable.target, EmulatorTarget):
        yield f"  fault {NO_MEMORY}: no memory; {DIVERGED}, {OUTSIDE}: a mistake of the compiler"


def _operand(kernel: Exported, operand: Operand) -> str:
    interface, layout = kernel.executable.convention.interface, operand.layout
    shape = "".join(f"[{extent}]" for extent in extents_said(kernel, layout))
    text = f"{operand.name}: {layout.type}{shape}"
    if layout.strides != contiguous_strides(layout.shape):
        text += f", strides {', '.join(map(str, layout.strides))} in elements"
        if layout.offsets.start < 0:
            where = "lowest element" if isinstance(kernel.executable.target, OpenClTarget) else "element 0"
            text += f", given by the address of the {where}"
    if operand.name not in interface.results:
        return text + (", read and written" if operand.writable else ", read")
    return text + (", read and written" if interface.tensor(operand.name).in_out else ", written")


def _memory(kernel: Exported) -> str:
    convention = kernel.executable.convention
    if kernel.host is None:
        shared = max((grid.shared_bytes for grid in convention.grids), default=0)
        return f"{bytes_text(sum(convention.temporaries))} for temporaries, and {bytes_text(shared)} for every block"
    memory = convention.memory
    return f"{bytes_text(memory.shared)} for temporaries, and {bytes_text(memory.scratch)} for every thread"


def _member(type: ScalarType) -> str:
    """The member of ``tc_scalar`` that holds such a value."""
    if type.is_floating:
        return "d" if type is ScalarType.FLOAT64 else "f"
    return "u" if type.kind is Kind.UNSIGNED else "i"
