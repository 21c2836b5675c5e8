"""From a loop program to the C source of a kernel for the CPU."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Final

from tc.base.faults import Check
from tc.base.frozen import frozen
from tc.base.grid import Argument, GridKernel, Place, Steps
from tc.base.types import Kind, ScalarType
from tc.codegen.index.indices import WideIndexError
from tc.codegen.index.placement import side_by_side
from tc.codegen.printer.context import Scope, context_of
from tc.codegen.printer.kernel import KernelPrinter
from tc.codegen.printer.printed import Printed, line, together
from tc.codegen.printer.routines import FAULT_TYPE, RUNTIME, SCRATCH, Parameter, finished, routine, used
from tc.codegen.text.dialect import EMULATOR, C, Dialect
from tc.codegen.text.fragment import NO_NAMES, Fragment, cast, filled, named
from tc.codegen.text.lines import braced
from tc.codegen.text.names import Names, comment, names_of
from tc.codegen.text.numerics import headers, prelude
from tc.language.isl.affine import parameter_name
from tc.language.program.program import INDEX_TYPE
from tc.language.text.expression_text import expression_text
from tc.polyhedral.analysis.ranges import Range, size_ranges
from tc.polyhedral.generate.block_sums import block_sums
from tc.polyhedral.generate.narrow_ranges import narrow_ranges
from tc.polyhedral.generate.spread_totals import spread_totals
from tc.polyhedral.ir.loops import Buffer, LoopProgram, StatementBody
from tc.polyhedral.proof.printed.verify_spread import find_wrong_spread, prove_spread
from tc.polyhedral.proof.verify_blocks import prove_blocks
from tc.polyhedral.proof.verify_chains import prove_chains
from tc.polyhedral.proof.verify_ranges import prove_ranges

ENTRY: Final = "tc_kernel"
# Formulas in the heading are cut here.
_LONGEST: Final = 120


@frozen
class KernelSource:
    """The source of a kernel; ``checks[n - 1]`` is the gather that stores fault number ``n``.

    A call needs ``shared_bytes`` of memory for temporaries, and ``scratch_bytes`` for every thread.  ``grids``: what
    the machine is to run, in this order, where the source has no entry of its own; ``steps``: which of these it runs
    several times.
    """

    text: str
    checks: tuple[Check, ...]
    shared_bytes: int
    scratch_bytes: int
    grids: tuple[GridKernel, ...] = ()
    steps: tuple[Steps, ...] = ()

    @property
    def digest(self) -> str:
        """A hash of the text and of all that a call must bring."""
        return hashlib.sha256(repr(self).encode("utf-8", "surrogatepass")).hexdigest()


def c_source(program: LoopProgram, vector_bytes: int, dialect: Dialect = C, *, registers: int = 32) -> KernelSource:
    """C11 text that exports ``tc_kernel`` (see ``abi.h``), for so many vector registers of ``vector_bytes``.

    Its arguments are the base addresses of ``program.buffers``, the values of ``program.scalars`` and of
    ``program.sizes``, and the runtime.  It must be compiled with ``-fwrapv`` and without any option that gives up IEEE
    values.
    """
    program = in_blocks(program)
    names = names_of(program)
    offsets, shared_bytes = side_by_side(program.temporaries)
    parameters = parameters_of(program, names, offsets, dialect)
    context = context_of(program, names, parameters, dialect, vector_bytes, registers)
    printed = finished(KernelPrinter(context).tree(program.root, scope_of(program, names, dialect)), dialect)
    if dialect.watches:
        printed = _poisoned(program, names) + printed
    own = used(parameters, printed)
    functions = (*printed.facts.functions, routine(f"{ENTRY}_body", own, printed, dialect), Printed(_entry(own)))
    parts = [
        heading(program),
        "\n".join(f"#include <{header}>" for header in headers(_mentioned(functions), dialect.prelude)),
        files("tc.codegen.prelude").joinpath("abi.h").read_text(encoding="utf-8").strip(),
        *defined(functions, dialect),
    ]
    text = "\n\n".join(part for part in parts if part)
    return KernelSource(text, context.expressions.checks, shared_bytes, printed.facts.scratch_bytes)


def defined(functions: Iterable[Printed], dialect: Dialect) -> tuple[str, str]:
    """The helpers that functions mention, and the functions."""
    functions = tuple(functions)
    text = "\n".join(line for function in functions for line in (*function.lines, ""))
    return prelude(_mentioned(functions), dialect.prelude), text


def _mentioned(functions: Iterable[Printed]) -> frozenset[str]:
    """The names that the functions mention."""
    return NO_NAMES.union(*(function.facts.names for function in functions))


def in_blocks(program: LoopProgram) -> LoopProgram:
    """The program whose long sums have totals, and whose loops keep to the ranges that they read."""
    root = block_sums(program).root if program.blocked is None else program.blocked
    prove_blocks(program, root)
    prove_chains(program, root)
    root = narrow_ranges(root, {body.name: body for body in program.bodies}, size_ranges(program.sizes))
    program = replace(program, root=root, blocked=None)
    prove_ranges(program)
    spread = spread_totals(program, lambda own, root: find_wrong_spread(own, root) is None)
    prove_spread(program, spread.root)
    return spread


def scope_of(program: LoopProgram, names: Names, dialect: Dialect) -> Scope:
    """What is around all loops: the symbolic sizes, under the names that loops have for them."""

    def text(name: str) -> Fragment:
        # Products with iterators of 32 bits have 32 bits.
        own = named(names.scalars[name])
        return cast(dialect.index, own) if dialect.narrow else own

    return Scope(
        variables={parameter_name(name): text(name) for name, _ in program.sizes},
        ranges={parameter_name(name): Range(1, most) for name, most in program.sizes},
    )


def _poisoned(program: LoopProgram, names: Names) -> Printed:
    """Fills temporaries with poison (NaN or -1), so that a read before the first write shows."""
    sizes = ((named(names.tensors[b.name]), b.layout.span * b.layout.type.itemsize) for b in program.temporaries)
    return together(line("__builtin_memset({}, 0xff, {});", pointer, size) for pointer, size in sizes)


def emulator_source(program: LoopProgram) -> KernelSource:
    """``c_source`` of a program for blocks and threads, which looks at every access."""
    return with_narrow_indices(lambda dialect: c_source(program, 0, dialect), EMULATOR)


def with_narrow_indices(make: Callable[[Dialect], KernelSource], dialect: Dialect) -> KernelSource:
    """The source with indices of 32 bits if all of them fit, else of 64: threads have half as many wide registers."""
    try:
        return make(replace(dialect, narrow=True))
    except WideIndexError:
        return make(dialect)


def heading(program: LoopProgram) -> str:
    """The comment at the top of a source: the kernel and the formula of each statement."""
    lines = [f"Kernel {program.name}, generated by Tensor Comprehensions.", *map(_formula, program.bodies)]
    return "\n".join(comment(line) for line in lines)


def _formula(body: StatementBody) -> str:
    """What a statement does, in the language of the definition."""
    subscripts = ", ".join(expression_text(subscript) for subscript in body.subscripts)
    assignment = "=" if body.reduction is None else f"{body.reduction.value}="
    text = f"  {body.name}: {body.target}({subscripts}) {assignment} {expression_text(body.value)}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def parameters_of(
    program: LoopProgram, names: Names, offsets: Mapping[str, int], dialect: Dialect
) -> tuple[Parameter, ...]:
    """The parameters of a kernel: its buffers, scalars and open sizes, and where faults are noted."""
    number = filled("{}{} *", dialect.global_memory, named(dialect.values[FAULT_TYPE]))
    fault = Parameter(number, "", "fault", "runtime->fault", Argument(Place.FAULT), source="runtime")
    scalars = (*program.scalars, *((name, INDEX_TYPE) for name, _ in program.sizes))
    shared = {b.name: f"(void *)(runtime->shared + {offsets[b.name]})" for b in program.temporaries}
    return (
        *(
            _buffer(buffer, names, f"buffers[{n}]", "buffers", Argument(Place.BUFFER, n), dialect)
            for n, buffer in enumerate(program.buffers)
        ),
        *(
            _buffer(buffer, names, shared[buffer.name], "runtime", Argument(Place.TEMPORARY, n), dialect)
            for n, buffer in enumerate(program.temporaries)
        ),
        *(_scalar(name, type, names, n, dialect) for n, (name, type) in enumerate(scalars)),
        fault,
        SCRATCH,
        RUNTIME,
    )


def _buffer(buffer: Buffer, names: Names, argument: str, source: str, given: Argument, dialect: Dialect) -> Parameter:
    const = "" if buffer.writable else "const "
    type = filled("{}{}{} *", dialect.global_memory, const, named(dialect.storage[buffer.layout.type]))
    before = -buffer.layout.offsets.start
    return Parameter(type, dialect.restrict, names.tensors[buffer.name], argument, given, before, source)


def _scalar(name: str, type: ScalarType, names: Names, position: int, dialect: Dialect) -> Parameter:
    argument = f"scalars[{position}].{_member(type)}"
    # Truth values are no arguments in OpenCL.
    own = (dialect.storage if dialect.grids and type is ScalarType.BOOL else dialect.values)[type]
    return Parameter(named(own), "", names.scalars[name], argument, Argument(Place.SCALAR, position), source="scalars")


def _member(type: ScalarType) -> str:
    """The member of ``tc_scalar`` that holds a scalar argument."""
    if type.is_floating:
        return "d" if type is ScalarType.FLOAT64 else "f"
    return "u" if type.kind is Kind.UNSIGNED else "i"


def _entry(used: tuple[Parameter, ...]) -> list[str]:
    arguments = ", ".join(parameter.argument for parameter in used)
    sources = {parameter.source for parameter in used}
    unused = [f"(void){name};" for name in ("buffers", "scalars", "runtime") if name not in sources]
    declaration = f"void {ENTRY}(void *const *buffers, const tc_scalar *scalars, const tc_runtime *runtime)"
    return braced(declaration, [*unused, f"{ENTRY}_body({arguments});"])
