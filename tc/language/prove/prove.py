"""What must be shown about a program: accesses stay inside, and every element is written exactly once.

Most of it follows from the ends of the ranges; isl decides the rest and names a witness where it does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import islpy as isl

from tc.base.errors import Diagnostic, RangeError, Span
from tc.base.frozen import frozen
from tc.language.algebra.fold import substitute
from tc.language.algebra.polynomial import LEAST_SIZE, Atoms
from tc.language.isl.affine import Frame, affine_function, frame_of, guard_domain, iteration_domain
from tc.language.isl.parameters import integer_parameters, possible_parameters
from tc.language.isl.session import MAX_OPERATIONS, is_out_of_operations, isl_context
from tc.language.program.program import (
    DerivedOrigin,
    Expression,
    Literal,
    Origin,
    Program,
    PythonOrigin,
    Read,
    Statement,
    TextOrigin,
)
from tc.language.program.report import Report
from tc.language.program.specialization import Sizes, Specialization
from tc.language.prove.coverage import find_problems
from tc.language.prove.leaving import (
    Access,
    Shapes,
    accesses_of,
    gathers,
    is_suspect,
    leaving,
    surely_inside,
)
from tc.language.prove.remedies import remedy
from tc.language.prove.symbolic import NUMBERS, OPEN_DIVISORS
from tc.language.prove.written_before import find_unwritten
from tc.language.text.expression_text import expression_text

# The place of a read of a statement in the text.
PlaceOf: TypeAlias = Callable[[Statement, Read], Span | None]


def prove_values(
    program: Program,
    report: Report,
    max_operations: int = MAX_OPERATIONS,
    place_of: PlaceOf | None = None,
) -> None:
    """Reports accesses that leave their tensor, and elements that are written twice or not at all, for all sizes.

    What isl cannot show within ``max_operations`` is left to the proof for given sizes.  ``place_of``: where reads
    stand in the text; None where only the places of statements are known.
    """
    try:
        atoms = Atoms(program.sizes, (scalar.name for scalar in program.scalars))
        found = [d for statement in program.statements for d in _always_leaving(statement, program, atoms, place_of)]
        unwritten = [] if found else find_unwritten(program, max_operations)
        early = {read.tensor for _, read in unwritten}
        problems = [] if found else find_problems(program, max_operations)
        problems = [problem for problem in problems if problem.statement.target not in early]
    except isl.Error as error:
        if not is_out_of_operations(error):
            raise
        return
    for diagnostic in found:
        report.range_error(diagnostic.message, diagnostic.span, diagnostic.hint)
    for problem in problems:
        span = span_of(problem.statement.origin)
        if problem.is_overlap:
            report.error(problem.message, span, problem.hint)
        else:
            report.range_error(problem.message, span, problem.hint)
    for problem, read in unwritten:
        span = span_of(problem.statement.origin) if place_of is None else place_of(problem.statement, read)
        report.error(problem.message, span, problem.hint)


def _always_leaving(
    statement: Statement, program: Program, atoms: Atoms, place_of: PlaceOf | None
) -> Iterator[Diagnostic]:
    """The first access of a statement that leaves its tensor for all sizes, among those without guards."""
    accesses = [access for access in accesses_of(statement) if not access.guarded.guards]
    suspects = [a for a in accesses if is_suspect(a, program.tensor(a.read.tensor).shape, atoms)]
    if not suspects:
        return
    with isl_context() as context:
        names = integer_parameters(program)
        possible = possible_parameters(program, context, names, LEAST_SIZE)
        # Sizes of 0 often leave no instances, which says nothing; where they leave some, they may be what is meant.
        empty_too = possible_parameters(program, context, names, 0)
        for access in suspects:
            frame = frame_of(access.running, context, names)
            domain = iteration_domain(access.running, frame)
            if domain is None or possible.is_empty():
                continue
            shape = program.tensor(access.read.tensor).shape
            running = domain.intersect_params(empty_too)
            outside = [found.instances.params() for found in leaving(access, running, shape, frame)]
            for found in leaving(access, domain.intersect_params(possible), shape, frame):
                if possible.is_subset(found.instances.params()) and any(map(running.params().is_subset, outside)):
                    inside = ", inside the call" if isinstance(statement.origin, DerivedOrigin) else ""
                    span = span_of(statement.origin)
                    yield Diagnostic(
                        f"{found.message(frame)}{inside}",
                        span if place_of is None else place_of(statement, access.read),
                        found.hint(frame) or remedy(statement, (access.read,), program),
                    )
                    return


@frozen
class _General:
    """A statement before its sizes were known: remedies are written in its terms."""

    program: Program
    statement: Statement
    values: Mapping[Expression, Expression]

    def specialized(self, read: Read) -> Expression:
        return substitute(read, self.values)

    def as_written(self, access: Access, accesses: Sequence[Access]) -> Access:
        """An access among those of the specialized statement, as the text has it: without cases for open divisors."""
        own = [self.specialized(a.read) for a in accesses_of(self.statement)]
        read = own[accesses.index(access)] if len(own) == len(accesses) else access.read
        return replace(access, guarded=replace(access.guarded, read=read)) if isinstance(read, Read) else access


def prove_specialized(
    specialization: Specialization,
    definition: Program,
    values: Mapping[Expression, Expression],
    max_operations: int = MAX_OPERATIONS,
) -> None:
    """Raises RangeError where an access leaves its tensor or a value is not written exactly once.

    ``definition``: the program before its sizes and scalars got their ``values``; remedies are written in its terms.
    All complaints are raised together, each with a witness.  A proof that takes isl more than ``max_operations`` is
    refused, too.
    """
    program, sizes = specialization.program, specialization.sizes
    shapes = {tensor.name: tensor.shape for tensor in program.tensors}
    try:
        found = [
            diagnostic
            for statement, general in zip(program.statements, definition.statements, strict=True)
            for diagnostic in _complaints(
                statement, _General(definition, general, values), shapes, sizes, max_operations
            )
        ]
        unwritten = find_unwritten(program, max_operations, sizes)
        early = {read.tensor for _, read in unwritten}
        problems = find_problems(program, max_operations, sizes, definition)
        problems = [*(problem for problem, _ in unwritten), *(p for p in problems if p.statement.target not in early)]
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


def _complaints(
    statement: Statement, general: _General, shapes: Shapes, sizes: Sizes, max_operations: int
) -> Iterator[Diagnostic]:
    """Complaints about the ranges and accesses of one statement."""
    span = span_of(statement.origin)
    for iterator in statement.iterators:
        begin, end = iterator.begin, iterator.end
        is_empty = isinstance(begin, Literal) and isinstance(end, Literal) and end.value <= begin.value
        if isinstance(begin, Literal) and begin.value < 0 and not is_empty:
            yield Diagnostic(
                f"the range of `{iterator.name}` begins at {begin.value}; iterators are never negative",
                span,
                "let it start at 0, and shift the subscripts",
            )
            return
    atoms = Atoms(name for name, _ in sizes)
    accesses = accesses_of(statement)
    doubtful = [a for a in accesses if sizes or not surely_inside(a, shapes[a.read.tensor], atoms)]
    if not doubtful:
        return
    found: list[tuple[str, str | None, Read]] = []
    with isl_context(max_operations) as context:
        for access in doubtful:
            frame = frame_of(access.running, context, sizes=sizes)
            domain = iteration_domain(access.running, frame)
            if domain is None:
                message = f"the ranges of `{expression_text(accesses[0].read)}` are not affine for these arguments"
                yield Diagnostic(message, span, OPEN_DIVISORS if sizes else "divide by constants that are not 0")
                return
            if sizes and (problem := _unfit(domain, access, frame)) is not None:
                yield Diagnostic(problem, span, OPEN_DIVISORS if "affine" in problem else NUMBERS)
                return
            reached = domain.intersect(guard_domain(access.guarded, frame))
            first = next(leaving(access, reached, shapes[access.read.tensor], frame), None)
            if first is not None:
                first = replace(first, access=general.as_written(access, accesses))
                found.append((first.message(frame), first.hint(frame), access.read))
    if found:
        outside = {read for _, hint, read in found if hint is None}
        reads = tuple(a.read for a in accesses_of(general.statement) if general.specialized(a.read) in outside)
        for message, hint, _ in found:
            yield Diagnostic(message, span, hint or remedy(general.statement, reads, general.program))


def _unfit(domain: isl.Set, access: Access, frame: Frame) -> str | None:
    """Why sizes that stay open do not fit a statement, if they do not: with numbers it is looked at otherwise."""
    for position, iterator in enumerate(access.running.iterators):
        if not domain.is_empty() and domain.dim_min_val(position).to_python() < 0:
            return f"the range of `{iterator.name}` begins below 0 for some sizes; iterators are never negative"
    for subscript in access.read.subscripts:
        if not gathers(subscript) and affine_function(subscript, frame) is None:
            return f"the subscripts of `{expression_text(access.read)}` are not affine while sizes stay open"
    return None
