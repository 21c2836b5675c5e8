"""``Makefile`` of a model for CUDA: the library of the host's program, which holds the binaries of the kernels."""

from __future__ import annotations

from typing import Final

from tc.export.compile_options import own_flags
from tc.graph.export.program import ModelProgram

_MAKEFILE: Final = """\
# GNU make.  Kernels are compiled already (.cubin); `make cubins` compiles them anew, by NVRTC.

CUDA ?= /usr/local/cuda
# The library of the driver, and NVRTC with the folder of its header.
DRIVER ?= -L$(CUDA)/lib64/stubs -lcuda
NVRTC ?= -L$(CUDA)/lib64 -lnvrtc
NVRTC_INCLUDE ?= $(CUDA)/include

CFLAGS ?= -O2
override CFLAGS += -std=gnu11 -fPIC -I$(CUDA)/include

all: lib{owner}.a

lib{owner}.a: model.o kernels.o cubins.o
\t$(AR) rcs $@ $^

model.o: model.c model.h kernels.h call.h pool.h launch.h weights.h
kernels.o: kernels.h call.h pool.h
cubins.o: cubins.s {cubins}
\t$(CC) -c $< -o $@

# The program of main.c.
main: main.o lib{owner}.a
\t$(CC) $^ -o $@ $(DRIVER)
main.o: main.c model.h files.h

cubins: compile
{compiled}

compile: compile.c
\t$(CC) -std=gnu11 -O1 -I$(NVRTC_INCLUDE) $< -o $@ $(NVRTC)

clean:
\trm -f *.o *.a main compile

.PHONY: all clean cubins
"""


def cuda_makefile(program: ModelProgram) -> str:
    """The text of the file."""
    kernels = program.kernels
    return _MAKEFILE.format(
        owner=program.owner,
        cubins=" ".join(f"{kernel.name}.cubin" for kernel in kernels),
        compiled="\n".join(
            f"\t./compile {kernel.file} {kernel.name}.cubin {' '.join(own_flags(kernel))}" for kernel in kernels
        ),
    )
