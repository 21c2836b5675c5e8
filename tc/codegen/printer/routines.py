"""The functions of a kernel's source; their parameters are what their bodies mention.

Compilers honour ``restrict`` on parameters only, so whatever touches buffers is a function of its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tc.base.grid import Argument
from tc.codegen.printer.expressions import FAULTED
from tc.codegen.text.dialect import Dialect

# Parameter lists longer than this stand on several lines.
_WIDTH: Final = 120
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of routines: ``argument`` is what the entry of the kernel passes for it, ``given`` what run times do.

    ``source``: the argument of the entry that it comes from, if it does.  ``before``: by how many elements the lowest
    one of a buffer lies before the one whose subscripts are 0.
    """

    type: str
    qualifier: str
    name: str
    argument: str
    given: Argument | None = None
    before: int = 0
    source: str = ""

    @property
    def field(self) -> str:
        """The declaration as a member of a structure."""
        return f"{self.type}{self.name}" if self.type.endswith("*") else f"{self.type} {self.name}"

    @property
    def declaration(self) -> str:
        """The declaration as a parameter of a function."""
        return f"{self.type}{self.qualifier} {self.name}" if self.qualifier else self.field


# Copies memory past the caches.
STREAM: Final = "tc_stream"

# The threads of a block, in the emulator.
TEAM: Final = Parameter("tc_team *", "", "team", "team")

# Memory that belongs to the thread that runs the routine.
SCRATCH: Final = Parameter("char *", "restrict", "scratch", "runtime->scratch", source="runtime")


def indented(lines: Iterable[str]) -> list[str]:
    """The lines one level deeper."""
    return ["  " + line for line in lines]


def braced(header: str, lines: Iterable[str]) -> list[str]:
    """A block after a header, which may be empty."""
    return [f"{header} {{".lstrip(), *indented(lines), "}"]


def mentions(lines: Iterable[str], name: str) -> bool:
    """Whether a name occurs in the lines, comments aside."""
    return any(name in line and name in _WORD.findall(_code(line)) for line in lines)


def mentioned(parameters: Iterable[Parameter], lines: Iterable[str]) -> tuple[Parameter, ...]:
    """Those of the parameters whose names occur in the lines, comments aside."""
    words = set(_WORD.findall("\n".join(map(_code, lines))))
    return tuple(parameter for parameter in parameters if parameter.name in words)


def _code(line: str) -> str:
    return line.partition("//")[0]


def finished(lines: Sequence[str], names: Collection[str], dialect: Dialect) -> list[str]:
    """The body of a routine, with what it does when it is done; ``names``: those that the lines say.

    It hands the fault that it may note to the runtime, and waits for what it wrote past the caches.
    """
    lines = [*lines, f"{STREAM}_end();"] if STREAM in names else list(lines)
    if FAULTED not in names:
        return lines
    report = f"if ({FAULTED}) {dialect.report.format(faulted=FAULTED)}"
    return [f"int32_t {FAULTED} = 0;", *lines, report]


def routine(name: str, parameters: Sequence[str], lines: Sequence[str], dialect: Dialect) -> list[str]:
    """A function that the rest of the text calls; it is never inlined, so its parameters stay parameters."""
    start = f"{dialect.routine} void {name}("
    header = f"{start}{', '.join(parameters) or 'void'})"
    if len(header) > _WIDTH:
        header = start + ",".join(f"\n    {parameter}" for parameter in parameters) + ")"
    return braced(header, lines)


def region(
    name: str, captured: Sequence[Parameter], lines: Sequence[str], *, scratch: bool, dialect: Dialect
) -> list[str]:
    """The outlined body of a parallel loop, which the runtime calls as ``name`` for ``begin`` to ``end`` - 1.

    ``scratch``: whether it uses the thread's scratch memory.
    """
    index = dialect.index
    own = (SCRATCH,) if scratch else ()
    bounds = (*(p.declaration for p in own), f"{index} begin", f"{index} end")
    arguments = ", ".join((*(f"captured->{p.name}" for p in captured), *(p.name for p in own), "begin", "end"))
    unused = [] if own else [f"(void){SCRATCH.name};"]
    entry = [*unused, f"const struct {name}_context *captured = context;", f"{name}_body({arguments});"]
    return [
        *braced(f"struct {name}_context", (f"{p.field};" for p in captured))[:-1],
        "};",
        "",
        *routine(f"{name}_body", (*(p.declaration for p in captured), *bounds), lines, dialect),
        "",
        *braced(f"static void {name}(const void *context, {SCRATCH.field}, {index} begin, {index} end)", entry),
    ]


def region_call(name: str, captured: Sequence[Parameter], lower: str, upper: str) -> list[str]:
    """Runs the region for the iterations ``lower`` to ``upper`` - 1, on as many threads as the runtime allows."""
    return [
        f"const struct {name}_context captured = {{{', '.join(p.name for p in captured)}}};",
        f"runtime->parallel_for(runtime, {name}, &captured, {lower}, {upper});",
    ]
