"""Accesses that leave their tensor: the ends of ranges accept quickly, and only isl, with an index, refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import islpy as isl

from tc.base.frozen import frozen
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.extremes import Extremes, Interval
from tc.language.algebra.polynomial import Atoms
from tc.language.isl.affine import Frame, affine_function
from tc.language.program.guards import GuardedRead, guarded_reads
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    IteratorReference,
    Literal,
    Read,
    SizeReference,
    Statement,
    walk,
)
from tc.language.prove.written import initialization
from tc.language.text.expression_text import expression_text

# The extents of tensors, by name.
Shapes: TypeAlias = Mapping[str, tuple[Expression, ...]]


@frozen
class Access:
    """One access of a statement; ``running``: the statement with the instances that make it."""

    running: Statement
    guarded: GuardedRead
    writes: bool

    @property
    def read(self) -> Read:
        """What is read."""
        return self.guarded.read


def accesses_of(statement: Statement) -> tuple[Access, ...]:
    """The write, every read, and what ``exists`` names, each once."""
    target = Read(statement.target, statement.subscripts, statement.value.type)
    written = Access(initialization(statement), GuardedRead(target, ()), writes=True)
    values = (*statement.subscripts, statement.value, *statement.required)
    # Without the statement, whose hash visits all of it.
    reads = dict.fromkeys(guarded for value in values for guarded in guarded_reads(value))
    return (written, *[Access(statement, guarded, writes=False) for guarded in reads])


def gathers(subscript: Expression) -> bool:
    """Whether a subscript reads a tensor: its values are checked where they are known, in the kernel."""
    return any(isinstance(e, Read) for e in walk(subscript))


def intervals_of(statement: Statement, atoms: Atoms) -> dict[str, Interval]:
    """The range of every iterator."""
    return {i.name: Interval(atoms.polynomial(i.begin), atoms.polynomial(i.end)) for i in statement.iterators}


def surely_inside(access: Access, shape: tuple[Expression, ...], atoms: Atoms) -> bool:
    """Whether the ends of ranges that are numbers keep an access inside."""
    intervals = intervals_of(access.running, atoms)
    if any((length := (i.end - i.begin).constant) is not None and length <= 0 for i in intervals.values()):
        return True
    extremes = Extremes(atoms, intervals)
    for subscript, extent in zip(access.read.subscripts, shape, strict=True):
        if gathers(subscript):
            continue
        position = atoms.polynomial(subscript)
        least, greatest = extremes.least(position), extremes.greatest(position)
        if least is None or greatest is None or least.constant is None or greatest.constant is None:
            return False
        end = atoms.polynomial(extent).constant
        if least.constant < 0 or end is None or greatest.constant >= end:
            return False
    return True


def is_suspect(access: Access, shape: tuple[Expression, ...], atoms: Atoms) -> bool:
    """Whether the ends of ranges let an access leave for all sizes: a bound may do so that no subscript attains."""
    whole = {i.name: i.end for i in access.running.iterators if i.begin == Literal(0, INDEX_TYPE)}
    doubtful = [
        (subscript, extent)
        for subscript, extent in zip(access.read.subscripts, shape, strict=True)
        if not (isinstance(subscript, IteratorReference) and whole.get(subscript.name) == extent)
        and not gathers(subscript)
    ]
    intervals = intervals_of(access.running, atoms) if doubtful else {}
    for subscript, extent in doubtful:
        extremes = Extremes(atoms, intervals)
        position = atoms.polynomial(subscript)
        for asked in (position, atoms.polynomial(extent) - 1 - position):
            least = extremes.least(asked)
            if least is not None and atoms.is_negative(least):
                return True
    return False


@frozen
class Leaving:
    """One subscript of an access, and the instances for which it is outside."""

    access: Access
    dimension: int
    extent: Expression
    position: isl.PwAff
    instances: isl.Set

    def message(self, frame: Frame) -> str:
        """What leaves which tensor, with the first instance that does."""
        place, value = self._first(frame)
        read, where = self.access.read, f" at {place}" if place else ""
        if self.access.writes and value < 0:
            return f"`{read.tensor}` would be written at subscript {value}, below 0{where and ','}{where}"
        extent = expression_text(self.extent)
        elements = f"{extent} {'element' if extent == '1' else 'elements'}"
        return f"`{expression_text(read)}` leaves `{read.tensor}`{where}: dimension {self.dimension} has {elements}"

    def hint(self, frame: Frame) -> str | None:
        """What to do about a write; reads have remedies of their own."""
        if not self.access.writes:
            return None
        subscript = expression_text(self.access.read.subscripts[self.dimension])
        if self._first(frame)[1] < 0:
            negative = negative_remainder(self.access.read.subscripts[self.dimension])
            return f"shift the subscript `{subscript}` to start at 0{negative and '; '}{negative}"
        end = f"{self.access.read.tensor}.{self.dimension}"
        return f"leave out what lies outside: add `{subscript} < {end}` to the `where`"

    def _first(self, frame: Frame) -> tuple[str, int]:
        """The first instance, for the least sizes where they are open, and the subscript there."""
        point = with_least_parameters(self.instances, len(frame.names)).lexmin().sample_point()
        iterators = [iterator.name for iterator in self.access.running.iterators]
        names = [*iterators, *frame.parameters, *(name for name, _ in frame.sizes)]
        values = [point.get_coordinate_val(isl.dim_type.set, d) for d in range(len(iterators))]
        values += [point.get_coordinate_val(isl.dim_type.param, d) for d in range(len(frame.names))]
        place = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
        return place, int(self.position.eval(point).to_python())


def negative_remainder(subscript: Expression) -> str:
    """What to say of a remainder by a number or a size in a subscript that is below 0; nothing if there is none."""
    for part in walk(subscript):
        match part:
            case Binary(BinaryOperator.REMAINDER, Binary() as left, (Literal() | SizeReference()) as right):
                whole = Binary(BinaryOperator.ADD, part, right, INDEX_TYPE)
                mended = expression_text(Binary(BinaryOperator.REMAINDER, whole, right, INDEX_TYPE))
                said, dividend = expression_text(part), expression_text(left)
                return f"`{said}` is negative where `{dividend}` is, as in C, and `{mended}` is not"
            case _:
                pass
    return ""


def with_least_parameters(instances: isl.Set, parameters: int) -> isl.Set:
    """The instances for the least values of the parameters that have a least one, each after those before it."""
    for position in range(parameters):
        values = instances.params().move_dims(isl.dim_type.set, 0, isl.dim_type.param, position, 1)
        least = values.project_out_all_params().dim_min_val(0)
        if least.is_int():
            instances = instances.fix_val(isl.dim_type.param, position, least)
    return instances


def leaving(access: Access, domain: isl.Set, shape: tuple[Expression, ...], frame: Frame) -> Iterator[Leaving]:
    """The subscripts that leave within a domain; those that are not affine check themselves in the kernel."""
    for dimension, (subscript, extent) in enumerate(zip(access.read.subscripts, shape, strict=True)):
        position, end = affine_function(subscript, frame), affine_function(extent, frame)
        if position is None or end is None:
            continue
        outside = domain.intersect(position.lt_set(frame.constant(0)).union(position.ge_set(end)))
        if not outside.is_empty():
            yield Leaving(access, dimension, extent, position, outside)
