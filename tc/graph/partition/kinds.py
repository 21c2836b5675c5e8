"""What kinds of programs nodes are, which decides what may share a kernel with what."""

from __future__ import annotations

import functools
from enum import Enum

from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call
from tc.language.program.program import IteratorReference, Literal, Program, Read, reads_in


class Kind(Enum):
    """A program as a neighbour in a kernel."""

    POINTWISE = "pointwise"  # one statement, each element of which depends on those at its place
    MOVEMENT = "movement"  # elements come from other places, nothing is computed of several
    REDUCTION = "reduction"  # anything else


@functools.lru_cache(maxsize=4096)
def kind_of(program: Program) -> Kind:
    """The kind of a program."""
    return _kind(program)


def kinds_of(graph: Graph) -> list[Kind | None]:
    """The kind of each node's program, None for those that have none; each program is looked at once."""
    programs = {id(node.program): node.program for node in graph.nodes if isinstance(node, Call)}
    # To look at one takes less time than to hash it.
    found = {number: _kind(program) for number, program in programs.items()}
    return [found[id(node.program)] if isinstance(node, Call) else None for node in graph.nodes]


def _kind(program: Program) -> Kind:
    if any(statement.reduction is not None or statement.blocks for statement in program.statements):
        return Kind.REDUCTION
    if len(program.statements) != 1 or len(program.results) != 1:
        return Kind.MOVEMENT if len(program.results) == 1 else Kind.REDUCTION
    (statement,) = program.statements
    own = [subscript.name for subscript in statement.subscripts if isinstance(subscript, IteratorReference)]
    if len(own) != len(statement.subscripts) or len(own) != len(statement.iterators) or statement.conditions:
        return Kind.MOVEMENT
    return Kind.POINTWISE if all(_in_place(read, own) for read in reads_in(statement.value)) else Kind.MOVEMENT


def _in_place(read: Read, own: list[str]) -> bool:
    """Whether a read is at the place that is written, along the last dimensions, or at 0 of one that is broadcast."""
    if len(read.subscripts) > len(own):
        return False
    names = own[len(own) - len(read.subscripts) :]
    for subscript, name in zip(read.subscripts, names, strict=True):
        match subscript:
            case IteratorReference(found) if found == name:
                continue
            case Literal(0):
                continue
            case _:
                return False
    return True
