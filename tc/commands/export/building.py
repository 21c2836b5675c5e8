"""``Makefile`` and ``README.txt``: how an exported folder becomes a library, and how a program calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.commands.export.c_text import integer
from tc.commands.export.compile_options import own_flags
from tc.commands.export.selection import Exported
from tc.commands.export.sizes import open_sizes
from tc.runtime.host.c_compiler import GCC_ONLY, OPTIMIZATION

_MAKEFILE: Final = """\
# GNU make.  Kernels must be compiled with these options: they keep IEEE values, and results that do not depend on the
# compiler's mood.  Never add -ffast-math, neither here nor where the program is linked.

CFLAGS := -std=gnu11 -fPIC {common}
# What GCC needs and others may not know.
CFLAGS += $(foreach flag,{gcc},$(shell $(CC) $(flag) -Werror -E -x c /dev/null >/dev/null 2>&1 && echo $(flag)))

KERNELS := {objects}

all: libkernels.a libkernels_threads.a

# Calls run on one thread, with nothing but the C library ...
libkernels.a: $(KERNELS) kernels.o call_plain.o
\t$(AR) rcs $@ $^

# ... or on many, those of pool.c (Linux, -pthread).
libkernels_threads.a: $(KERNELS) kernels.o call_threads.o pool.o
\t$(AR) rcs $@ $^

{own}
kernels.o call_plain.o call_threads.o pool.o: CFLAGS := -std=gnu11 -fPIC -O2 -pthread
$(KERNELS): Makefile
kernels.o: kernels.h call.h pool.h
call_plain.o call_threads.o: call.h pool.h
pool.o: pool.h workspace.h

clean:
\trm -f *.o *.a

.PHONY: all clean
"""
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
_TYPES: Final = {
    "float32": "float",
    "float64": "double",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
    "float8_e4m3fn": "uint8_t",
    "float8_e5m2": "uint8_t",
    "bool": "uint8_t",
}


def makefile(kernels: Sequence[Exported]) -> str:
    """The text of the file."""
    hosted = [kernel for kernel in kernels if kernel.host is not None]
    own = (f"{kernel.name}.o: CFLAGS += {' '.join(own_flags(kernel))}" for kernel in hosted)
    return _MAKEFILE.format(
        common=" ".join(OPTIMIZATION),
        gcc=" ".join(GCC_ONLY),
        objects=" ".join(f"{kernel.name}.o" for kernel in hosted),
        own="\n".join(own),
    )


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
        type = _TYPES.get(layout.type.value, f"{layout.type}_t")
        start = f" + {-layout.offsets.start}" if layout.offsets.start else ""
        arrays.append(f"  static {type} {name}[{max(len(layout.offsets), 1)}];")
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
