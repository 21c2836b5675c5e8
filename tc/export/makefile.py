"""``Makefile``: how an exported folder becomes a library for programs that run on processors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.export.compile_options import own_flags
from tc.export.exported import Exported
from tc.runtime.host.c_compiler import GCC_ONLY, OPTIMIZATION

_MAKEFILE: Final = """\
# GNU make.  Kernels must be compiled with these options: they keep IEEE values, and results that do not depend on the
# compiler's mood.  Never add -ffast-math, neither here nor where the program is linked.

KERNEL_FLAGS := -std=gnu11 -fPIC {common}
# What GCC needs and others may not know.
KERNEL_FLAGS += $(foreach flag,{gcc},$(shell $(CC) $(flag) -Werror -E -x c /dev/null >/dev/null 2>&1 && echo $(flag)))

KERNELS := {objects}

all: {library}.a {library}_threads.a

# Calls run on one thread, with nothing but the C library ...
{library}.a: $(KERNELS) {beside} call_plain.o
\t$(AR) rcs $@ $^

# ... or on many, those of pool.c (Linux, -pthread).
{library}_threads.a: $(KERNELS) {beside} call_threads.o pool.o
\t$(AR) rcs $@ $^

$(KERNELS): %.o: %.c Makefile
	$(CC) $(KERNEL_FLAGS) -c $< -o $@
{own}

CFLAGS ?= -O2
{beside} call_plain.o call_threads.o pool.o: override CFLAGS += -std=gnu11 -fPIC -pthread
{beside}: kernels.h call.h pool.h
call_plain.o call_threads.o: call.h pool.h
pool.o: pool.h workspace.h
{more}
clean:
\trm -f *.o *.a{programs}

.PHONY: all clean
"""
_PROGRAM: Final = """
# The program of {program}.c.
{program}: {program}.o {library}_threads.a
\t$(CC) $^ -o $@ -lm -pthread
{program}.o: override CFLAGS += -std=gnu11
"""


def makefile(
    kernels: Sequence[Exported],
    library: str = "libkernels",
    beside: Sequence[str] = ("kernels.o",),
    program: str | None = None,
) -> str:
    """The text of the file.

    ``library``: where the name of the library begins.  ``beside``: its objects, kernels aside.  ``program``: the name
    of a source with a program that uses the library, if there is one.
    """
    hosted = [kernel for kernel in kernels if kernel.host is not None]
    alike: dict[tuple[str, ...], list[str]] = {}
    for kernel in hosted:
        alike.setdefault(own_flags(kernel), []).append(f"{kernel.name}.o")
    own = (f"{' '.join(objects)}: KERNEL_FLAGS += {' '.join(flags)}" for flags, objects in alike.items())
    return _MAKEFILE.format(
        common=" ".join(OPTIMIZATION),
        gcc=" ".join(GCC_ONLY),
        objects=" ".join(f"{kernel.name}.o" for kernel in hosted),
        library=library,
        beside=" ".join(beside),
        own="\n".join(own),
        more="" if program is None else _PROGRAM.format(program=program, library=library),
        programs="" if program is None else f" {program}",
    )
