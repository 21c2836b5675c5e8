"""The machine's C compiler: found, called and, when it refuses, quoted."""

from __future__ import annotations

import errno
import functools
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tc.base.environment import Environment
from tc.base.errors import CompileError, DeviceError
from tc.base.frozen import frozen
from tc.runtime.host.disk import temporary_folder
from tc.runtime.host.flags import SHARED
from tc.runtime.host.scratch import no_room, told_of_room
from tc.targets.target import HostTarget, machine_name, processor

# Never -ffast-math or -Ofast, neither here nor at link time: the start-up code they link in turns subnormals off
# for the whole process that loads the library.
# No vectors of straight-line code: sums of comparisons as narrow integers come out negative there (GCC 12, from SSE 4.1
# on), and loops that are meant for lanes are vectorized as loops.
OPTIMIZATION: Final = (
    "-O3",
    "-fno-tree-slp-vectorize",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp-simd",
    "-ffp-contract=fast",
)
# Operands stay where they are, instead of moving through memory from one iteration to the next; and constants are not
# followed bit by bit, which took a third of the time for a convolution.
# What an iteration has read is read again by the next one rather than handed on to it: where GCC 12 hands it on, the
# loop is no longer one for lanes, and rows of a layer norm's backward pass took twice as long on one thread.
# And no conclusions from what a routine does to what its calls are good for: where induction variables became
# addresses, GCC 12 takes the stores of a routine for none, and leaves its calls out.
# Outer loops stay outside of lanes: copies of an iteration whose elements are a power of two apart become one group to
# GCC 12, which reads all that lies between two lanes. Pools of 11 by 11 of 64 by 64 pixels took 113 ms instead of 0.2.
GCC_ONLY: Final = (
    "-fno-predictive-commoning",
    "-fno-tree-pre",
    "-fno-tree-bit-ccp",
    "-fno-ipa-pure-const",
    "-fno-ipa-modref",
    "-fno-loop-unroll-and-jam",
)
LIBRARIES: Final = ("-lm",)

# Five minutes: a hundred times what the largest kernel takes; a compiler that hangs must not hang the program.
TIMEOUT: Final = 300.0
_ANSWER_TIMEOUT: Final = 10.0
# Bytes in a folder for temporary files that no kernel comes out of, whatever language the compiler complains in.
_LEAST_ROOM: Final = 1 << 16

_CANDIDATES: Final = ("cc", "gcc", "clang")
_INSTALL: Final = (
    "install one (Debian and Ubuntu: apt install gcc; Fedora: dnf install gcc; Alpine: apk add gcc musl-dev)"
)


@frozen
class Compiler:
    """A C compiler: its command, and an identity that changes whenever the program on disk does."""

    command: tuple[str, ...]
    identity: str


def find_compiler(environment: Environment) -> Compiler:
    """The compiler that ``TC_CC`` names, else the first of cc, gcc and clang; DeviceError when there is none."""
    if environment.compiler is not None:
        try:
            command = tuple(shlex.split(environment.compiler))
        except ValueError as error:
            raise DeviceError(f"TC_CC={environment.compiler!r} is not a command: {error}") from error
        program = shutil.which(command[0]) if command else None
        if program is None:
            raise DeviceError(
                f"no C compiler: TC_CC names {environment.compiler!r}, which is not a program here; correct or unset it"
            )
        return _compiler(program, command[1:])
    for name in _CANDIDATES:
        program = shutil.which(name)
        if program is not None:
            return _compiler(program, ())
    raise DeviceError(
        f"no C compiler: none of {', '.join(_CANDIDATES)} is on the PATH; {_INSTALL}, or name one in TC_CC"
    )


def _compiler(program: str, arguments: Sequence[str]) -> Compiler:
    file = Path(program).resolve()
    status = file.stat()
    identity = f"{shlex.join((str(file), *arguments))} {status.st_size} {status.st_mtime_ns}"
    return Compiler((program, *arguments), identity)


def check_compiles(target: HostTarget, compiler: Compiler) -> None:
    """DeviceError, with the name of one that does, when ``compiler`` makes code for another machine than ``target``."""
    triplet = _triplet(compiler)
    if triplet is None or machine_name(triplet.partition("-")[0]) == target.machine:
        return
    if target.machine == processor().machine:
        remedy = "unset TC_CC, or name a compiler for this machine in it"
    else:
        cross = f"{target.machine}-linux-gnu"
        package = f"gcc-{cross.replace('_', '-')}"
        remedy = f"name a cross compiler in TC_CC, as in TC_CC={cross}-gcc (Debian and Ubuntu: apt install {package})"
    raise DeviceError(
        f"target '{target}' needs a C compiler for {target.machine}, and {shlex.join(compiler.command)} "
        f"makes code for {triplet}; {remedy}"
    )


@functools.cache
def _triplet(compiler: Compiler) -> str | None:
    """What ``compiler`` makes code for, as in ``x86_64-linux-gnu``; None if it does not say."""
    found = re.fullmatch(r"\w+(-[\w.]+)+", answer(compiler, "-dumpmachine").strip())
    return None if found is None else found[0]


def answer(compiler: Compiler, question: str) -> str:
    """What ``compiler`` prints when it is asked for itself; empty if it refuses."""
    status, log = _run((*compiler.command, question), _ANSWER_TIMEOUT)
    return log if status == 0 else ""


def kernel_flags(target: HostTarget, compiler: Compiler) -> tuple[str, ...]:
    """Options with which ``compiler`` compiles kernels for ``target``."""
    further = GCC_ONLY if _knows(compiler, GCC_ONLY) else tuple(flag for flag in GCC_ONLY if _knows(compiler, (flag,)))
    return (*SHARED, *OPTIMIZATION, *further, *target.flags)


@functools.cache
def _knows(compiler: Compiler, flags: tuple[str, ...]) -> bool:
    status, _ = _run((*compiler.command, *flags, "-Werror", "-E", "-x", "c", os.devnull), _ANSWER_TIMEOUT)
    return status == 0


def compile_shared(source: str, flags: Sequence[str], compiler: Compiler, *, timeout: float = TIMEOUT) -> bytes:
    """The shared library that ``compiler`` makes of the C text ``source``.

    Nothing stays on disk, unless the compiler refuses: CompileError then holds its log and the place where the
    source was kept.  Safe from many threads and processes.
    """
    with compiling(source, flags, compiler, timeout=timeout) as library:
        return library()


@contextmanager
def compiling(
    source: str, flags: Sequence[str], compiler: Compiler, *, timeout: float = TIMEOUT
) -> Iterator[Callable[[], bytes]]:
    """``compile_shared`` beside the work in the block: what it gets waits for the library.

    A compiler that still works when the block ends is stopped.
    """
    with temporary_folder() as folder:
        text, library = folder / "kernel.c", folder / "kernel.so"
        with told_of_room():
            text.write_text(source, encoding="utf-8")
        command = (*compiler.command, *flags, "-o", str(library), str(text), *LIBRARIES)

        with _started(command) as answer:

            def compiled() -> bytes:
                status, log = answer(timeout)
                if status == 0 and library.exists():
                    return library.read_bytes()
                if os.strerror(errno.ENOSPC) in log or shutil.disk_usage(folder).free < _LEAST_ROOM:
                    raise no_room()
                kept = keep(source, "kernel.c")
                reason = f"gave up after {timeout:g} s" if status is None else f"exit status {status}"
                place = str(text if kept is None else kept)
                printed = log.replace(str(text), place).strip() or "(no output)"
                raise CompileError(
                    f"the C compiler refused the generated source ({reason})\n"
                    f"{kept_text(kept)}\ncommand: {shlex.join(command).replace(str(text), place)}\n{printed}"
                )

            yield compiled


def _run(command: Sequence[str], timeout: float) -> tuple[int | None, str]:
    """Exit status (None: stopped after ``timeout`` seconds) and everything the command printed."""
    with _started(command) as answer:
        return answer(timeout)


@contextmanager
def _started(command: Sequence[str]) -> Iterator[Callable[[float], tuple[int | None, str]]]:
    """The command at work until the block ends; what the block gets waits for its answer, as ``_run`` does."""
    try:
        # A group of its own, because the compiler is a driver whose children must be stopped with it; the session stays
        # ours, so that who kills this process finds them.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    except OSError as error:
        raise DeviceError(f"the C compiler {command[0]!r} cannot be started: {error.strerror}; {_INSTALL}") from error

    def answer(timeout: float) -> tuple[int | None, str]:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return None, output.decode(errors="replace")
        return process.returncode, output.decode(errors="replace")

    with process:
        try:
            yield answer
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)


def keep(source: str, name: str) -> Path | None:
    """The file in which a source that a compiler refused stays; None where none can be written."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="tc-refused-"))
    except OSError:
        return None
    try:
        file = folder / name
        file.write_text(source, encoding="utf-8")
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return file


def kept_text(kept: Path | None) -> str:
    """Where ``keep`` has put a source, in words."""
    if kept is None:
        return "the source is not kept, because no temporary file can be written; name a writable folder in TMPDIR"
    return f"source kept in: {kept}"
