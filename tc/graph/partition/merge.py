"""Temporaries whose place the result of a pointwise statement takes: one tensor where the kernel had two.

A register tile then holds an element from its first term to its last operation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tc.language.program.program import (
    Expression,
    IteratorReference,
    Program,
    Read,
    Role,
    Statement,
    Tensor,
    reads_in,
    rebuild,
    touches,
)


def merged(program: Program) -> Program:
    """The program with such temporaries written in the place of the results that they become."""
    found: tuple[str, str] | None = _pair(program)
    while found is not None:
        program = _renamed(program, *found)
        found = _pair(program)
    return program


def _pair(program: Program) -> tuple[str, str] | None:
    """A temporary, and the tensor that takes its place; None if there is none."""
    tensors = {tensor.name: tensor for tensor in program.tensors}
    for at, statement in enumerate(program.statements):
        if not _is_pointwise(statement) or any(touches(s, statement.target) for s in program.statements[:at]):
            continue
        later = program.statements[at + 1 :]
        for read in reads_in(statement.value):
            own = tensors[read.tensor]
            ends = own.role is Role.TEMPORARY and not any(touches(s, own.name) for s in later)
            # What another statement reads in between would be an earlier value of the result.
            ends = ends and all(s.target == own.name or not touches(s, own.name) for s in program.statements[:at])
            if ends and _alike(own, tensors[statement.target]) and _in_place(statement, own.name):
                return own.name, statement.target
    return None


def _is_pointwise(statement: Statement) -> bool:
    """Whether a statement writes every element of its target once."""
    names = [subscript.name for subscript in statement.subscripts if isinstance(subscript, IteratorReference)]
    plain = statement.reduction is None and not statement.blocks and not statement.conditions
    return plain and len(names) == len(statement.iterators) == len(statement.subscripts) == len(set(names))


def _alike(one: Tensor, other: Tensor) -> bool:
    return one.type is other.type and one.shape == other.shape


def _in_place(statement: Statement, tensor: str) -> bool:
    """Whether a statement reads the tensor at the place that it writes, and nowhere else."""
    reads = [read for read in reads_in(statement.value) if read.tensor == tensor]
    return all(read.subscripts == statement.subscripts for read in reads)


def _renamed(program: Program, old: str, new: str) -> Program:
    """The program in which one tensor has the name of another, and is no longer one of its own."""

    def changed(expression: Expression) -> Expression:
        found = rebuild(expression, changed)
        return replace(found, tensor=new) if isinstance(found, Read) and found.tensor == old else found

    statements = tuple(_with_names(statement, changed, old, new) for statement in program.statements)
    tensors = tuple(tensor for tensor in program.tensors if tensor.name != old)
    return replace(program, statements=statements, tensors=tensors)


def _with_names(statement: Statement, changed: Callable[[Expression], Expression], old: str, new: str) -> Statement:
    required = tuple(read for one in statement.required if isinstance(read := changed(one), Read))
    return replace(
        statement,
        target=new if statement.target == old else statement.target,
        value=changed(statement.value),
        subscripts=tuple(map(changed, statement.subscripts)),
        conditions=tuple(map(changed, statement.conditions)),
        required=required,
    )
