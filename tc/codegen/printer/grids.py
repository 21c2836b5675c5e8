"""The source of a program for machines that run grids: a kernel for every outermost nest, without header files."""

from __future__ import annotations

from dataclasses import replace

from tc.base.grid import Steps
from tc.codegen.printer.context import Scope, context_of, one_after_another
from tc.codegen.printer.kernel import KernelPrinter
from tc.codegen.printer.launches import launch
from tc.codegen.printer.printed import Printed
from tc.codegen.printer.source import (
    KernelSource,
    defined,
    heading,
    in_blocks,
    parameters_of,
    scope_of,
    with_narrow_indices,
)
from tc.codegen.text.dialect import CUDA, OPENCL, Dialect
from tc.codegen.text.names import names_of
from tc.polyhedral.analysis.ranges import size_ranges
from tc.polyhedral.generate.sink_guards import sink_guards
from tc.polyhedral.ir.loops import Block, IndexLiteral, Loop, LoopKind, LoopProgram, LoopTree
from tc.polyhedral.proof.verify_sunk_guards import prove_sunk_guards


def cuda_source(program: LoopProgram) -> KernelSource:
    """C++20 for NVRTC's ``-default-device``, to be compiled without any option that gives up IEEE values."""
    program = in_blocks(program)
    return with_narrow_indices(lambda dialect: _source(program, dialect), CUDA)


def opencl_source(program: LoopProgram) -> KernelSource:
    """OpenCL C 1.2, to be compiled without any option that gives up IEEE values.

    No barrier is in a branch that depends on open sizes: behind one, PoCL 3.0 ignores conditions.
    """
    program = in_blocks(program)
    if program.sizes:
        root = sink_guards(program.root, size_ranges(program.sizes))
        prove_sunk_guards(program, root)
        program = replace(program, root=root)
    return with_narrow_indices(lambda dialect: _source(program, dialect), OPENCL)


def _source(program: LoopProgram, dialect: Dialect) -> KernelSource:
    names = names_of(program)
    # Every temporary is an argument of its own.
    offsets = {buffer.name: 0 for buffer in program.temporaries}
    context = context_of(program, names, parameters_of(program, names, offsets, dialect), dialect, 0, 0)
    printer = KernelPrinter(context)
    facts = _launched(printer, program.root, scope_of(program, names, dialect)).facts
    text = "\n\n".join(part for part in (heading(program), *defined(facts.functions, dialect)) if part)
    memory = sum(buffer.layout.span * buffer.layout.type.itemsize for buffer in program.temporaries)
    return KernelSource(text, context.expressions.checks, memory, facts.scratch_bytes, facts.grids, facts.steps)


def _launched(printer: KernelPrinter, tree: LoopTree, scope: Scope) -> Printed:
    """The kernels of all nests, and how often they are launched."""
    match tree:
        case Block(children):
            return one_after_another(children, scope, lambda child, here: _nest(printer, child, here))
        case _:
            return _nest(printer, tree, scope)


def _nest(printer: KernelPrinter, tree: LoopTree, scope: Scope) -> Printed:
    match tree:
        case Loop(_, IndexLiteral(first), IndexLiteral(last), step, LoopKind.LAUNCH, body):
            facts = _launched(printer, body, scope.inside(tree)).facts
            assert not facts.steps, "steps are launched inside of no others"
            return Printed((), replace(facts, steps=(Steps(0, len(facts.grids) - 1, first, last + 1, step),)))
        case _:
            return launch(printer, tree, scope)
