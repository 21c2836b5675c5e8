"""What must be shown about a program: accesses stay inside, and every element is written exactly once.

Most of it follows from the ends of the ranges; isl decides the rest and names a witness where it does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import islpy as isl

from tc.errors import Diagnostic, RangeError, Span
from tc.language.affine import Frame, affine_function, frame_of, guard_domain, iteration_domain
from tc.language.coverage import find_problems
from tc.language.expression_text import expression_text
from tc.language.extremes import Extremes, Interval
from tc.language.polynomial import Atoms
from tc.language.program import (
    DerivedOrigin,
    Expression,
    GuardedRead,
    Literal,
    Origin,
    Program,
    PythonOrigin,
    Read,
    SizeReference,
    Statement,
    TextOrigin,
    guarded_reads,
    walk,
)
from tc.language.report import Report
from tc.language.session import MAX_OPERATIONS, is_out_of_operations, isl_context
from tc.language.specialization import Sizes, Specialization
from tc.language.written import initialization

_NUMBERS: Final = "pass numbers in place of tc.dynamic"


def prove_values(program: Program, report: Report, max_operations: int = MAX_OPERATIONS) -> None:
    """Reports elements that are written twice, or not at all, whatever the sizes are.

    What isl cannot show within ``max_operations`` is left to the proof for given sizes.
    """
    for statement in program.statements:
        # The accesses of the text's own statements were looked at with their places.
        if isinstance(statement.origin, DerivedOrigin):
            _report_inlined(statement, program, report)
    try:
        problems = find_problems(program, max_operations)
    except isl.Error as error:
        if not is_out_of_operations(error):
            raise
        return
    for problem in problems:
        span = span_of(problem.statement.origin)
        if problem.is_overlap:
            report.error(problem.message, span, problem.hint)
        else:
            report.range_error(problem.message, span, problem.hint)


def _report_inlined(statement: Statement, program: Program, report: Report) -> None:
    """Reports an access of an inlined statement that leaves its tensor for all typical sizes."""
    atoms = Atoms(program.sizes, (scalar.name for scalar in program.scalars))
    conditions = [precondition.condition for precondition in program.preconditions]
    if statement.conditions or any(isinstance(e, SizeReference) for c in conditions for e in walk(c)):
        return
    intervals = {i.name: Interval(atoms.polynomial(i.begin), atoms.polynomial(i.end)) for i in statement.iterators}
    if not all(atoms.is_negative(i.begin - i.end) for i in intervals.values()):
        return
    extremes = Extremes(atoms, intervals)
    reads = [guarded.read for guarded in guarded_reads(statement.value) if not guarded.guards]
    for read in (*reads, *statement.required):
        for subscript, extent in zip(read.subscripts, program.tensor(read.tensor).shape, strict=True):
            position = atoms.polynomial(subscript)
            ends = extremes.least(position), extremes.least(atoms.polynomial(extent) - 1 - position)
            if any(end is not None and atoms.is_negative(end) for end in ends):
                report.range_error(
                    f"`{expression_text(read)}` leaves `{read.tensor}` for these ranges, inside the call",
                    span_of(statement.origin),
                )
                return


def prove_specialized(specialization: Specialization, max_operations: int = MAX_OPERATIONS) -> None:
    """Raises RangeError where an access leaves its tensor or a value is not written exactly once.

    All complaints are raised together, each with a witness.  A proof that takes isl more than ``max_operations``
    is refused, too.
    """
    program, sizes = specialization.program, specialization.sizes
    shapes = {tensor.name: tensor.shape for tensor in program.tensors}
    try:
        found = [d for statement in program.statements for d in _leaving(statement, shapes, sizes, max_operations)]
        problems = find_problems(program, max_operations, sizes)
    except isl.Error as error:
        if not is_out_of_operations(error):
            raise
        message = f"{program.name}: the proof of its accesses exceeds isl's budget of {max_operations} operations"
        raise RangeError(Diagnostic(message, hint="simplify subscripts, guards and ranges")) from error
    found += [Diagnostic(p.message, span_of(p.statement.origin), p.hint) for p in problems]
    if found:
        raise RangeError(found, program.source)


def span_of(origin: Origin) -> Span | None:
    """The place in the text to which an origin leads; None for programs that were built in Python."""
    match origin:
        case TextOrigin(span):
            return span
        case DerivedOrigin(_, source):
            return span_of(source)
        case PythonOrigin():
            return None


# The extents of tensors, by name.
_Shapes: TypeAlias = Mapping[str, tuple[Expression, ...]]


def _leaving(statement: Statement, shapes: _Shapes, sizes: Sizes, max_operations: int) -> Iterator[Diagnostic]:
    """Complaints about the ranges and accesses of one statement."""
    for iterator in statement.iterators:
        begin, end = iterator.begin, iterator.end
        is_empty = isinstance(begin, Literal) and isinstance(end, Literal) and end.value <= begin.value
        if isinstance(begin, Literal) and begin.value < 0 and not is_empty:
            yield Diagnostic(
                f"the range of `{iterator.name}` begins at {begin.value}; iterators are never negative",
                span_of(statement.origin),
                "let it start at 0, and shift the subscripts",
            )
            return
    atoms = Atoms(name for name, _ in sizes)
    writing = initialization(statement)
    target = Read(statement.target, statement.subscripts, statement.value.type)
    accesses = [(writing, GuardedRead(target, ()))]
    accesses += [(statement, guarded) for guarded in guarded_reads(statement.value)]
    accesses += [(statement, guarded) for read in statement.required for guarded in guarded_reads(read)]
    doubtful = [
        (running, guarded)
        for running, guarded in dict.fromkeys(accesses)
        if sizes or not _surely_inside(running, guarded.read, shapes[guarded.read.tensor], atoms)
    ]
    if not doubtful:
        return
    with isl_context(max_operations) as context:
        for running, guarded in doubtful:
            frame = frame_of(running, context, sizes=sizes)
            domain = iteration_domain(running, frame)
            if domain is None:
                yield Diagnostic(
                    f"the ranges of `{expression_text(target)}` are not affine for these arguments",
                    span_of(statement.origin),
                    _NUMBERS if sizes else "divide by constants that are not 0",
                )
                return
            if sizes and (problem := _unfit(domain, running, guarded.read, frame)) is not None:
                yield Diagnostic(problem, span_of(statement.origin), _NUMBERS)
                return
            message = _witness(domain.intersect(guard_domain(guarded, frame)), running, guarded.read, shapes, frame)
            if message is not None:
                yield Diagnostic(message, span_of(statement.origin), "narrow the ranges or guard the read")


def _unfit(domain: isl.Set, statement: Statement, read: Read, frame: Frame) -> str | None:
    """Why sizes that stay open do not fit a statement, if they do not: with numbers it is looked at otherwise."""
    for position, iterator in enumerate(statement.iterators):
        if not domain.is_empty() and domain.dim_min_val(position).to_python() < 0:
            return f"the range of `{iterator.name}` begins below 0 for some sizes; iterators are never negative"
    for subscript in read.subscripts:
        gathers = any(isinstance(e, Read) for e in walk(subscript))
        if not gathers and affine_function(subscript, frame) is None:
            return f"the subscripts of `{expression_text(read)}` are not affine while sizes stay open"
    return None


def _surely_inside(statement: Statement, read: Read, shape: tuple[Expression, ...], atoms: Atoms) -> bool:
    """Whether the ends of the ranges alone keep an access inside; subscripts with gathers check themselves."""
    intervals = {i.name: Interval(atoms.polynomial(i.begin), atoms.polynomial(i.end)) for i in statement.iterators}
    if any((length := (i.end - i.begin).constant) is not None and length <= 0 for i in intervals.values()):
        return True
    extremes = Extremes(atoms, intervals)
    for subscript, extent in zip(read.subscripts, shape, strict=True):
        if any(isinstance(e, Read) for e in walk(subscript)):
            continue
        position = atoms.polynomial(subscript)
        least, greatest = extremes.least(position), extremes.greatest(position)
        if least is None or greatest is None or least.constant is None or greatest.constant is None:
            return False
        end = atoms.polynomial(extent).constant
        if least.constant < 0 or end is None or greatest.constant >= end:
            return False
    return True


def _witness(domain: isl.Set, statement: Statement, read: Read, shapes: _Shapes, frame: Frame) -> str | None:
    """Says where an access leaves its tensor; None if isl shows that it never does, or if it checks itself."""
    for dimension, (subscript, extent) in enumerate(zip(read.subscripts, shapes[read.tensor], strict=True)):
        position = affine_function(subscript, frame)
        end = affine_function(extent, frame)
        if position is None or end is None:
            continue
        outside = position.lt_set(frame.constant(0)).union(position.ge_set(end))
        leaving = domain.intersect(outside)
        if not leaving.is_empty():
            point = leaving.lexmin().sample_point()
            names = [iterator.name for iterator in statement.iterators]
            values = [str(point.get_coordinate_val(isl.dim_type.set, d)) for d in range(len(names))]
            names += [name for name, _ in frame.sizes]
            values += [str(point.get_coordinate_val(isl.dim_type.param, d)) for d in range(len(frame.sizes))]
            place = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
            return (
                f"`{expression_text(read)}` leaves `{read.tensor}`{f' at {place}' if place else ''}: "
                f"dimension {dimension} has {expression_text(extent)} elements"
            )
    return None
