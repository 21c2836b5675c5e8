"""A small task with its arrays in a folder, and executables of it that go wrong in a chosen way."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import tc
from tc.artifact.definition import Parsed
from tc.artifact.executable import Executable
from tc.artifact.packing import pack
from tc.base.environment import environment
from tc.compiler import build
from tc.language.lower.specialize import specialize
from tc.language.program.specialization import ArraySpec, Signature, SymbolicSize
from tc.runtime.host.binary import Binary
from tc.runtime.host.c_compiler import compile_shared, find_compiler, kernel_flags
from tc.targets.options import CpuOptions
from tc.targets.target import CpuTarget, parse_target
from tc.tuner.trial.checked_calls import keep_calls, specialized_calls
from tc.tuner.trial.task import Task, parse_task
from tc.tuner.trial.trial_arrays import random_arrays
from tc.tuner.trial.workers import Limits, LocalWorkers

TEXT: Final = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }"
M, K, N = 33, 17, 29
TARGET: Final = parse_target("cpu")
_FLOAT: Final = tc.ScalarType.FLOAT32
TASK: Final = Task(
    TEXT, "mm", Signature((("A", ArraySpec((M, K), _FLOAT)), ("B", ArraySpec((K, N), _FLOAT)))), str(TARGET)
)
# The same for all M up to that one.  Candidates are checked where it is 21, too.
OPEN: Final = replace(TASK, signature=replace(TASK.signature, symbolic=(SymbolicSize(M, (("A", 0),)),)))

# What is done in place of the kernel, or after it; C's buffer is the third.
SEGMENTATION_FAULT: Final = "*(volatile int *)8 = 1;"
ENDLESS_LOOP: Final = 'for (;;) __asm__ volatile("");'
BEYOND_THE_END: Final = f"((float *)buffers[2])[{M * N}] = 1;"
FAR_BEYOND_THE_END: Final = f"((float *)buffers[2])[{M * N} + 4096] = 1;"
BEFORE_THE_BEGINNING: Final = "((float *)buffers[2])[-1] = 1;"
NOT_A_NUMBER: Final = '((float *)buffers[2])[7] = __builtin_nanf("");'
PLAUSIBLE: Final = "((float *)buffers[2])[7] += 1e-3f;"
LAST_BIT: Final = "((uint32_t *)buffers[2])[7] ^= 1;"
FORGOTTEN: Final = ""
INTO_AN_ARGUMENT: Final = "((float *)buffers[0])[0] = 1;"
ALL_MEMORY: Final = "for (;;) __builtin_memset(__builtin_malloc(1 << 26), 1, 1 << 26);"


# Of the task whose M stays open, when it is not the greatest.
PLAUSIBLE_BELOW: Final = f"if (scalars[0].i != {M}) {{ {PLAUSIBLE} }}"
BEYOND_THE_LAST_ROW: Final = f"if (scalars[0].i != {M}) ((float *)buffers[2])[scalars[0].i * {N}] = 1;"


@functools.cache
def right(task: Task = TASK) -> Executable:
    """The default kernel of the task."""
    parsed = Parsed(parse_task(task))
    specialization = specialize(parsed.program, task.signature)
    return build(specialization, parsed.interface, CpuOptions(), TARGET, environment()).executable


@functools.cache
def wrong(deed: str, task: Task = TASK, *, instead: bool = False) -> bytes:
    """The kernel that does something else after, or instead of, its work, packed."""
    executable = right(task)
    head, entry, tail = executable.source.rpartition("tc_kernel_body(")
    call, _, rest = tail.partition(";")
    done = deed if instead else f"{entry}{call};\n{deed}"
    source = head + done + rest
    compiler = find_compiler(environment())
    assert isinstance(TARGET, CpuTarget)
    code = compile_shared(source, kernel_flags(TARGET, compiler), compiler)
    return pack(replace(executable, source=source, binary=Binary(code)))


@contextmanager
def folder(task: Task = TASK) -> Iterator[Path]:
    """The folder with the arrays of the task, and what the oracle makes of them."""
    program = parse_task(task)
    calls = specialized_calls(task, program)
    with TemporaryDirectory() as name:
        keep_calls(calls, random_arrays(program, calls[0], 0), {}, Path(name))
        yield Path(name)


@contextmanager
def workers(limits: Limits | None = None, jobs: int = 1, task: Task = TASK) -> Iterator[LocalWorkers]:
    """Who tries candidates of the task."""
    with folder(task) as name, LocalWorkers(task, name, jobs, limits or Limits()) as pool:
        yield pool
