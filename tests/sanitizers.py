"""Kernels and the thread pool under GCC's sanitizers, in processes that are started for that.

A sanitizer is two things: options for the compiler, which ``TC_CC`` carries, and a library that must be in the process
before anything else is, which ``LD_PRELOAD`` brings.  It then sees every allocation, those of NumPy and PyTorch too, so
that there are red zones around the arrays of a call; memory that kernels do not touch themselves is not watched.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
from enum import Enum
from pathlib import Path


class Sanitizer(Enum):
    """What watches a kernel while it runs."""

    NONE = "none"
    ADDRESS = "address"  # and undefined behaviour
    THREAD = "thread"


# -fsanitize=undefined leaves out conversions of floats that an integer cannot hold.
_FLAGS = {
    Sanitizer.ADDRESS: ("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
    Sanitizer.THREAD: ("-fsanitize=thread",),
}
_LIBRARIES = {Sanitizer.ADDRESS: "libasan.so", Sanitizer.THREAD: "libtsan.so"}
# AddressSanitizer looks for the original of what throws exceptions before islpy brings it.
_EXCEPTIONS = "libstdc++.so.6"
# The interpreter never frees everything at its end; that is no leak of ours.
_SETTINGS = {
    Sanitizer.ADDRESS: {"ASAN_OPTIONS": "detect_leaks=0"},
    Sanitizer.THREAD: {"TSAN_OPTIONS": "halt_on_error=1"},
}
_HEADLINE = re.compile(r"(?:ERROR|WARNING): (\w+Sanitizer: [\w-]+(?: (?!on)[a-z]+)?)|(runtime error): (.*)")
_WORDS = 6
# Long, and of no use without the process.
_LEGEND = re.compile(r"Shadow bytes around the buggy address:.*", re.DOTALL)


def variables(sanitizer: Sanitizer) -> dict[str, str]:
    """Of the environment of a process whose kernels are watched; LookupError where that cannot be had."""
    if sanitizer is Sanitizer.NONE:
        return {}
    compiler = shutil.which("gcc")
    if compiler is None:
        raise LookupError("sanitizers need gcc, which is not on the PATH")
    libraries = [_library(compiler, name) for name in (_LIBRARIES[sanitizer], _EXCEPTIONS)]
    # The compiler itself need not be watched.
    command = shlex.join(("env", "-u", "LD_PRELOAD", compiler, *_FLAGS[sanitizer]))
    return {"LD_PRELOAD": " ".join(libraries), "TC_CC": command, **_SETTINGS[sanitizer]}


def under(sanitizer: Sanitizer) -> tuple[str, ...]:
    """The command that runs a watched process: ThreadSanitizer of GCC 12 may crash where addresses are random."""
    fixes = sanitizer is Sanitizer.THREAD and shutil.which("setarch") is not None
    return ("setarch", "-R") if fixes else ()


def _library(compiler: str, name: str) -> str:
    """Where a library of gcc lies."""
    command = (compiler, f"-print-file-name={name}")
    file = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(file).is_absolute():
        raise LookupError(f"this gcc has no {name}")
    return file


@functools.cache
def missing(sanitizer: Sanitizer) -> str | None:
    """Why kernels cannot run under the sanitizer here, or None."""
    try:
        added = variables(sanitizer)
    except LookupError as error:
        return str(error)
    # On some systems the addresses that ThreadSanitizer wants are taken.
    program = (*under(sanitizer), sys.executable, "-c", "import numpy")
    done = subprocess.run(program, env={**os.environ, **added}, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"Python does not start under it: {done.stderr.strip()}"


def headline(log: str) -> str | None:
    """The kind of the first mistake that a sanitizer reported in what a process printed."""
    found = _HEADLINE.search(log)
    if found is None:
        return None
    if found[1] is not None:
        return found[1]
    # Only words: addresses and values differ from run to run.
    words = [word for word in found[3].split() if word.isalpha()]
    return f"{found[2]}: {' '.join(words[:_WORDS])}"


def report(log: str) -> str:
    """What a process printed, without the sanitizer's map of its memory."""
    return _LEGEND.sub("", log).strip()
