"""The lines that run the kernels of a model in order, in C for processors and for CUDA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from tc.export.c_text import comment, listed
from tc.graph.export.program import Launch, ModelProgram
from tc.graph.memory.places import Memory, Place


def body(
    program: ModelProgram, launch: Callable[[Launch, Sequence[str]], str], copy: Callable[[str, str, int], str]
) -> str:
    """The lines; ``launch`` gives those that call for operands, ``copy`` those for target, source and bytes.

    Weights are at ``w``, the arena is at ``a``, arrays have the names of the parameters; ``error`` is declared.
    """
    return "\n".join(_lines(program, launch, copy))


def _lines(
    program: ModelProgram, launch: Callable[[Launch, Sequence[str]], str], copy: Callable[[str, str, int], str]
) -> Iterator[str]:
    for step in program.launches:
        yield f"  {comment(step.said)}"
        yield launch(step, [_address(program, place) for place in step.operands])
        yield "  if (error != 0) return error;"
    for one in program.copies:
        yield f"  {comment(f'output {one.output}')}"
        yield copy(_address(program, one.target), _address(program, one.source), one.bytes)


def unused(names: Sequence[str]) -> str:
    """A statement after which the compiler does not warn of parameters that are not used."""
    return listed("  ", [f"(void){name}" for name in names], ";")


def missing(program: ModelProgram, nothing: str) -> str:
    """Statements that refuse arrays that are not there, unless they have no elements."""
    arrays = (one.c_name for one in (*program.inputs, *program.outputs) if one.bytes)
    return "\n".join(f"  if ({name} == {nothing}) return {program.owner.upper()}_BAD_ARGUMENT;" for name in arrays)


def _address(program: ModelProgram, place: Place) -> str:
    offset = place.offset
    match place.memory:
        case Memory.INPUT:
            base = program.inputs[place.number].c_name
        case Memory.OUTPUT:
            base = program.outputs[place.number].c_name
        case Memory.CONSTANT:
            base = "w"
            offset += program.weights.tensors[place.number].offset
        case Memory.ARENA:
            base = "a"
        case _:
            assert_never(place.memory)
    return f"{base} + {offset}" if offset else base
