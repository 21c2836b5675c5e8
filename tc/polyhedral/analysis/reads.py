"""What statements read and touch: in their bodies, and as access relations."""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl

from tc.language.isl.affine import Frame, affine_function, isl_name
from tc.language.program.guards import guarded_reads
from tc.language.program.program import Expression, InRange, IteratorReference, Read, children, iterators_in, walk
from tc.language.program.specialization import Sizes
from tc.language.program.within import ranges_in
from tc.polyhedral.ir.loops import StatementBody
from tc.polyhedral.ir.scop import Scop, ScopStatement
from tc.polyhedral.ir.tree import statement_names


def value_reads(body: StatementBody) -> list[Read]:
    """The reads of a statement's value, in the order of its access relations."""
    return [guarded.read for guarded in guarded_reads(body.value)]


def data_ranges(body: StatementBody) -> tuple[InRange, ...]:
    """The ranges that read tensors, inside of which the statement does something."""
    return ranges_in(body.value)


def ranging_iterators(body: StatementBody) -> frozenset[str]:
    """The iterators that ``data_ranges`` depend on: each value of one of them has another range."""
    return iterators_in(bound for inside in data_ranges(body) for bound in (inside.begin, inside.end))


def ranged_iterators(body: StatementBody) -> frozenset[str]:
    """The iterators that ``data_ranges`` bound, and those that they depend on."""
    return iterators_in(inside.index for inside in data_ranges(body)) | ranging_iterators(body)


def accesses(body: StatementBody) -> Iterator[tuple[str, tuple[Expression, ...]]]:
    """Tensor and subscripts of everything the statement touches, its target first."""
    yield body.target, body.subscripts
    for expression in (*body.subscripts, body.value):
        for part in walk(expression):
            if isinstance(part, Read):
                yield part.tensor, part.subscripts


def used_as_values(value: Expression) -> frozenset[str]:
    """Iterators that an expression uses other than to choose elements."""
    found, pending = set[str](), [value]
    while pending:
        expression = pending.pop()
        if isinstance(expression, IteratorReference):
            found.add(expression.name)
        if not isinstance(expression, Read):
            pending += children(expression)
    return frozenset(found)


def program_names(domain: isl.UnionSet, scop: Scop) -> list[str]:
    """Statements below, in program order."""
    below = set(statement_names(domain))
    return [statement.name for statement in scop.statements if statement.name in below]


def has_affine_subscripts(read: Read, statement: ScopStatement, sizes: Sizes) -> bool:
    """Whether subscripts are affine functions of iterators and open sizes, and so proven to be inside the tensor."""
    frame = Frame(statement.domain.get_ctx(), statement.name, statement.body.iterators, sizes=sizes)
    return all(affine_function(subscript, frame) is not None for subscript in read.subscripts)


def touches(statement: ScopStatement, tensor: str) -> bool:
    """Whether the statement reads or writes the tensor, in the sense of the program."""
    relations = (*statement.reads, *statement.writes)
    return any(relation.get_tuple_name(isl.dim_type.out) == isl_name(tensor) for relation in relations)
