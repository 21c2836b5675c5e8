"""The functions of a kernel's source; their parameters are what their bodies mention.

Compilers honour ``restrict`` on parameters only, so whatever touches buffers is a function of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.base.grid import Argument
from tc.base.types import ScalarType
from tc.codegen.printer.expressions import FAULTED
from tc.codegen.printer.printed import Printed, line, naming
from tc.codegen.text.dialect import Dialect
from tc.codegen.text.fragment import Fragment, filled, listed, named, names_in
from tc.codegen.text.lines import braced

# Parameter lists longer than this stand on several lines.
_WIDTH: Final = 120

# Of the number of a fault.
FAULT_TYPE: Final = ScalarType.INT32


@frozen
class Parameter:
    """A parameter of routines: ``argument`` is what the entry of the kernel passes for it, ``given`` what run times do.

    ``source``: the argument of the entry that it comes from, if it does.  ``before``: by how many elements the lowest
    one of a buffer lies before the one whose subscripts are 0.
    """

    type: Fragment
    qualifier: str
    name: str
    argument: str
    given: Argument | None = None
    before: int = 0
    source: str = ""

    @property
    def field(self) -> Fragment:
        """The declaration as a member of a structure."""
        return filled("{}{}{}", self.type, "" if self.type.text.endswith("*") else " ", named(self.name))

    @property
    def declaration(self) -> Fragment:
        """The declaration as a parameter of a function."""
        return filled("{}{} {}", self.type, self.qualifier, named(self.name)) if self.qualifier else self.field


# Copy and fill memory past the caches, and wait until other threads see it.
STREAM: Final = "tc_stream"
FILL: Final = "tc_fill"
_STREAM_END: Final = "tc_stream_end"

# The threads of a block, in the emulator.
TEAM: Final = Parameter(filled("{} *", named("tc_team")), "", "team", "team")

# Memory that belongs to the thread that runs the routine.
SCRATCH: Final = Parameter(Fragment("char *"), "restrict", "scratch", "runtime->scratch", source="runtime")

# What runs parallel loops.
RUNTIME: Final = Parameter(Fragment("const tc_runtime *"), "", "runtime", "runtime", source="runtime")


def used(parameters: Iterable[Parameter], printed: Printed) -> tuple[Parameter, ...]:
    """Those of the parameters that the lines mention."""
    return tuple(parameter for parameter in parameters if parameter.name in printed.facts.names)


def finished(printed: Printed, dialect: Dialect) -> Printed:
    """The body of a routine, with what it does when it is done.

    It hands the fault that it may note to the runtime, and waits for what it wrote past the caches.
    """
    names = printed.facts.names
    if STREAM in names or FILL in names:
        printed += line("{}();", named(_STREAM_END))
    if FAULTED not in names:
        return printed
    report = dialect.report.filled(faulted=named(FAULTED))
    return (
        line("{} {} = 0;", dialect.values[FAULT_TYPE], named(FAULTED))
        + printed
        + line("if ({}) {}", named(FAULTED), report)
    )


def routine(name: str, parameters: Iterable[Parameter], body: Printed, dialect: Dialect) -> Printed:
    """A function that the rest of the text calls; it is never inlined, so its parameters stay parameters.

    Of the facts, it has the names.
    """
    declared = [parameter.declaration for parameter in parameters]
    start = f"{dialect.routine} void {name}("
    header = f"{start}{listed(declared) if declared else 'void'})"
    if len(header) > _WIDTH:
        header = start + ",".join(f"\n    {parameter}" for parameter in declared) + ")"
    return Printed(braced(header, body.lines), naming(names_in(*declared) | body.facts.names))


def region(name: str, captured: Sequence[Parameter], body: Printed, *, scratch: bool, dialect: Dialect) -> Printed:
    """The outlined body of a parallel loop, which the runtime calls as ``name`` for ``begin`` to ``end`` - 1.

    ``scratch``: whether it uses the thread's scratch memory.
    """
    index = dialect.index
    own = (SCRATCH,) if scratch else ()
    bounds = (Parameter(named(index), "", bound, bound) for bound in ("begin", "end"))
    arguments = ", ".join((*(f"captured->{p.name}" for p in captured), *(p.name for p in own), "begin", "end"))
    unused = [] if own else [f"(void){SCRATCH.name};"]
    entry = [*unused, f"const struct {name}_context *captured = context;", f"{name}_body({arguments});"]
    return routine(f"{name}_body", (*captured, *own, *bounds), body, dialect).between(
        [*structure(f"{name}_context", captured), ""],
        ["", *braced(f"static void {name}(const void *context, {SCRATCH.field}, {index} begin, {index} end)", entry)],
    )


def structure(name: str, members: Iterable[Parameter]) -> list[str]:
    """A structure with the members."""
    return [*braced(f"struct {name}", (f"{member.field};" for member in members))[:-1], "};"]


def passed(parameters: Iterable[Parameter]) -> Fragment:
    """The names of the parameters with commas between them."""
    return listed(named(parameter.name) for parameter in parameters)


def region_call(name: str, captured: Sequence[Parameter], lower: Fragment, upper: Fragment) -> Printed:
    """Runs the region for the iterations ``lower`` to ``upper`` - 1, on as many threads as the runtime allows."""
    run = line("{0}->parallel_for({0}, {1}, &captured, {2}, {3});", named(RUNTIME.name), name, lower, upper)
    return line("const struct {}_context captured = {{{}}};", name, passed(captured)) + run
