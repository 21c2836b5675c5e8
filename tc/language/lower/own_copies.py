"""Statements in blocks that read other elements of their target than the one that they write.

A statement reads its whole right-hand side before it writes.  Where a step may write what another instance of it reads,
as in ``d(i,j) min= d(i,k) + d(k,j)``, it reads a copy, of those elements only, that another statement makes before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tc.grammar.syntax import UnaryOperator
from tc.language.algebra.extents import Writing, written_extent
from tc.language.algebra.fold import convert_literal
from tc.language.algebra.polynomial import Atoms
from tc.language.algebra.rewriting import fresh_name
from tc.language.draft.rules import is_piecewise_affine
from tc.language.program.guards import GuardedRead, guarded_reads
from tc.language.program.program import (
    INDEX_TYPE,
    DerivedOrigin,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Read,
    Role,
    Select,
    Statement,
    Tensor,
    Unary,
    iterators_in,
    rebuild,
    walk,
)
from tc.language.program.written_elements import chosen_by
from tc.language.prove.leaving import intervals_of
from tc.language.prove.written import gives_elements
from tc.language.prove.written_before import may_be_overwritten


def with_own_copies(program: Program) -> Program:
    """The program, with a copy of what a step may overwrite before another instance of a statement reads it."""
    suspects = [statement for statement in program.statements if statement.blocks and any(_own_reads(statement))]
    if not suspects:
        return program
    copier = _Copier(program)
    statements = tuple(found for statement in program.statements for found in copier.copied(statement))
    if len(statements) == len(program.statements):
        return program
    names = {tensor.name for tensor in copier.tensors}
    prefix = program.statements[0].name.rstrip("0123456789")
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in names):
        prefix += "_"
    numbered = tuple(replace(statement, name=f"{prefix}{n}") for n, statement in enumerate(statements))
    order = {name: n for n, name in reversed(list(enumerate(s.target for s in numbered)))}
    given = [tensor for tensor in copier.tensors if tensor.role is Role.INPUT]
    written = sorted((t for t in copier.tensors if t.role is not Role.INPUT), key=lambda tensor: order[tensor.name])
    return replace(program, tensors=(*given, *written), statements=numbered)


def _own_reads(statement: Statement) -> Iterator[GuardedRead]:
    """Reads of the target at other subscripts than those that are written."""
    for guarded in guarded_reads(statement.value):
        read = guarded.read
        if read.tensor == statement.target and (statement.initialize or read.subscripts != statement.subscripts):
            yield guarded


class _Copier:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.tensors = list(program.tensors)

    def copied(self, statement: Statement) -> Iterator[Statement]:
        """The statement, behind copies of what it would overwrite."""
        found: dict[Read, list[GuardedRead]] = {}
        for guarded in _own_reads(statement) if statement.blocks else ():
            found.setdefault(guarded.read, []).append(guarded)
        copies: dict[Read, Read] = {}
        for read, reads in found.items():
            if any(may_be_overwritten(self.program, statement, guarded) for guarded in reads):
                elements = self.copy_of_elements(statement, reads)
                copy = elements or self.copy_of_all(statement)
                copies[read] = Read(copy.target, read.subscripts if elements is None else copy.subscripts, read.type)
                yield copy
        yield replace(statement, value=_with_reads(statement.value, copies)) if copies else statement

    def copy_of_elements(self, statement: Statement, reads: Sequence[GuardedRead]) -> Statement | None:
        """A copy of the elements that a read finds, one for each value of its iterators; None unless these form a box.

        ``reads``: that read, on the conditions on which it is made.
        """
        (read,) = {guarded.read for guarded in reads}
        names = iterators_in(read.subscripts)
        steps = {iterator.name for iterator in statement.sequence}
        kept = tuple(i for i in statement.iterators if i.name in names and i.name not in steps)
        known = {*steps, *(iterator.name for iterator in kept)}
        guards = {guarded.guards for guarded in reads}
        if (
            len(guards) > 1
            or any(isinstance(part, Read) for subscript in read.subscripts for part in walk(subscript))
            or iterators_in(bound for iterator in kept for bound in (iterator.begin, iterator.end))
        ):
            return None
        conditions = [condition for condition in statement.conditions if iterators_in((condition,)) <= known]
        found: Expression = read
        for condition, value in next(iter(guards)):
            if not is_piecewise_affine(condition) or not iterators_in((condition,)) <= known:
                return None
            holds = condition if value else Unary(UnaryOperator.NOT, condition, condition.type)
            if iterators_in((condition,)):
                conditions.append(holds)
            else:  # as a condition of a statement, it would be one that all calls must meet
                found = Select(holds, found, convert_literal(Literal(0, INDEX_TYPE), read.type), read.type)
        subscripts = tuple(IteratorReference(iterator.name) for iterator in kept)
        return self.copy(statement, (*statement.sequence, *kept), tuple(conditions), subscripts, found)

    def copy_of_all(self, statement: Statement) -> Statement:
        """A copy of the whole target."""
        tensor = self.program.tensor(statement.target)
        taken = {*(t.name for t in self.tensors), *self.program.sizes, *(s.name for s in self.program.scalars)}
        taken |= {iterator.name for iterator in statement.sequence}
        iterators: list[IterationVariable] = []
        for extent in tensor.shape:
            iterators.append(IterationVariable(fresh_name("i", taken), Literal(0, INDEX_TYPE), extent))
            taken.add(iterators[-1].name)
        subscripts = tuple(IteratorReference(iterator.name) for iterator in iterators)
        value = Read(tensor.name, subscripts, tensor.type)
        return self.copy(statement, (*statement.sequence, *iterators), (), subscripts, value)

    def copy(
        self,
        statement: Statement,
        iterators: tuple[IterationVariable, ...],
        conditions: tuple[Expression, ...],
        subscripts: tuple[Expression, ...],
        value: Expression,
    ) -> Statement:
        reason = f"{statement.target} is read in the step that overwrites it"
        origin = DerivedOrigin(reason, statement.origin)
        taken = {*(t.name for t in self.tensors), *self.program.sizes, *(s.name for s in self.program.scalars)}
        taken |= {iterator.name for s in self.program.statements for iterator in s.iterators}
        name = fresh_name(f"{statement.target}_before", taken)
        copied = replace(
            statement,
            iterators=iterators,
            conditions=conditions,
            target=name,
            subscripts=subscripts,
            reduction=None,
            initialize=False,
            value=value,
            required=(),
            origin=origin,
        )
        self.tensors.append(Tensor(name, value.type, self.shape_of(copied), Role.TEMPORARY, origin))
        return copied

    def shape_of(self, copy: Statement) -> tuple[Expression, ...]:
        """The extents of what a copy writes, which are those of a definition that has the copy as a statement."""
        atoms = Atoms(self.program.sizes)
        written, gives, ranges = chosen_by(copy.subscripts), gives_elements(copy), intervals_of(copy, atoms)
        writings = (
            Writing(copy.target, dimension, subscript, written, ranges, copy.conditions, gives)
            for dimension, subscript in enumerate(copy.subscripts)
        )
        return tuple(atoms.expression(written_extent(writing, atoms)) for writing in writings)


def _with_reads(expression: Expression, copies: Mapping[Read, Read]) -> Expression:
    if isinstance(expression, Read) and expression in copies:
        return copies[expression]
    return rebuild(expression, lambda child: _with_reads(child, copies))
