"""The least work of a call, bytes and operations, counted from its definition and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tc.language.program.program import (
    Binary,
    Call,
    Expression,
    Program,
    Read,
    Role,
    Statement,
    Unary,
    iterators_in,
    walk,
)
from tc.language.program.specialization import Specialization
from tc.language.program.within import ranges_in
from tc.language.program.written_elements import written_iterators
from tc.tuner.roofline.instances import points
from tc.tuner.roofline.roofline import Work

Array: TypeAlias = npt.NDArray[Any]


def least_work(specialization: Specialization, arguments: Mapping[str, Array]) -> Work | None:
    """The least work of a call, which counts nothing of tables that are looked up; None where it is not counted."""
    reads = [e for s in specialization.program.statements for e in walk(s.value) if isinstance(e, Read)]
    tables = {r.tensor for r in reads if any(isinstance(e, Read) for s in r.subscripts for e in walk(s))}
    try:
        return _work(specialization, arguments, dict.fromkeys(tables, 0))
    except ValueError:
        return None


def work(specialization: Specialization, arguments: Mapping[str, Array], indices: Mapping[str, str]) -> Work:
    """The work of a call.  ``indices``: per argument that holds indices, the argument whose rows they choose.

    ValueError if a range of a statement depends on its iterators, or data decide which instances there are.
    """
    rows = {table: _distinct_rows(arguments[name], arguments[table]) for name, table in indices.items()}
    return _work(specialization, arguments, rows)


def _work(specialization: Specialization, arguments: Mapping[str, Array], chosen: Mapping[str, int]) -> Work:
    program = specialization.program
    read = sum(chosen.get(name, array.nbytes) for name, array in arguments.items())
    results = [specialization.layouts[tensor.name] for tensor in program.tensors if tensor.role is Role.OUTPUT]
    written = sum(layout.size * layout.type.itemsize for layout in results)
    return Work(operations(program), read, written)


def _distinct_rows(indices: Array, table: Array) -> int:
    rows = int(np.unique(indices).size)
    return rows * int(table[0].nbytes)


def operations(program: Program) -> int:
    """Floating-point operations of a specialized program; a call of a function counts as one.

    ValueError if a range of a statement depends on its iterators, or data decide which instances there are.
    """
    return sum(_instances(statement) * _operations_each(statement) for statement in program.statements)


def _instances(statement: Statement) -> int:
    if ranges_in(statement.value):
        raise ValueError(f"the instances of {statement.name} are not counted: data say what its ranges are")
    running = _running(statement)
    return points([own for own in statement.iterators if own.name not in running], statement.conditions)


def _running(statement: Statement) -> frozenset[str]:
    """Reduced iterators up to, or from, an iterator of the elements on which the value does not depend.

    Such totals go on from element to element, each with one term, or as many, more.
    """
    written = {iterator.name for iterator in written_iterators(statement)}
    growing = written - iterators_in((statement.value,))
    ends = {i.name: iterators_in((i.begin, i.end)) for i in statement.iterators if i.name not in written}
    connected = iterators_in(statement.conditions).union(*ends.values())
    return frozenset(
        name
        for name, used in ends.items()
        if statement.reduction is not None and used and used <= growing and name not in connected
    )


def _operations_each(statement: Statement) -> int:
    computed = sum(map(_computes, walk(statement.value)))
    return computed + (statement.reduction is not None)


def _computes(expression: Expression) -> bool:
    return isinstance(expression, Unary | Binary | Call) and expression.type.is_floating
