"""From push form to pull form: sums over what comes to an element, instead of elements to which instances add.

``d_I(h+p) += d_O(h) * K(p)`` adds to each element from several instances.  With another ``h`` for ``h + p``, and ``p``
counted from its other end, that is ``d_I(h) +=! P(h+p) * K(KH-1-p)``, where ``P`` is ``d_O`` with zeros before and
behind it: no read needs a guard, and the loops are those of the convolution itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.gradient.terms import number
from tc.gradient.versions import over_tensor
from tc.gradient.workspace import Workspace
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.polynomial import Atoms
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    DerivedOrigin,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Read,
    Reduction,
    Select,
    Statement,
    in_terms_of,
    iterators_in,
    reads_in,
    rebuild,
)


@frozen
class _Slide:
    """A dimension of the target whose subscript is ``own + window``, two iterators; ``own`` is eliminated."""

    dimension: int
    own: IterationVariable
    window: IterationVariable


def pulled(statement: Statement, workspace: Workspace) -> list[Statement]:
    """The statement in pull form, behind the one that pads what it reads; the statement itself if it has none."""
    if statement.reduction is not Reduction.ADD or statement.blocks or statement.conditions:
        return [statement]
    slides = _slides(statement)
    if not slides:
        return [statement]
    padded = _padded(statement, slides)
    return [statement] if padded is None else _Pull(statement, slides, padded, workspace).made()


def _slides(statement: Statement) -> list[_Slide]:
    """The dimensions in which instances slide over the target; none if they do otherwise in another one."""
    ranges = {iterator.name: iterator for iterator in statement.iterators}
    found: list[_Slide] = []
    for dimension, subscript in enumerate(statement.subscripts):
        match subscript:
            case IteratorReference():
                continue
            case Binary(BinaryOperator.ADD, IteratorReference(first), IteratorReference(second)) if first != second:
                found.append(_Slide(dimension, ranges[first], ranges[second]))
            case _:
                return []
    names = [name for slide in found for name in (slide.own.name, slide.window.name)]
    plain = [own.name for own in statement.subscripts if isinstance(own, IteratorReference)]
    return found if len({*names, *plain}) == len(names) + len(plain) else []


def _padded(statement: Statement, slides: Sequence[_Slide]) -> Read | None:
    """The only read that moves with the eliminated iterators, which are subscripts of it; None if there is none."""
    names = {slide.own.name for slide in slides}
    windows = {slide.window.name for slide in slides}
    begun = all(i.begin == Literal(0, INDEX_TYPE) and not iterators_in((i.end,)) for i in statement.iterators)
    moving = [read for read in reads_in(statement.value) if iterators_in((read,)) & names]
    others = iterators_in((_without(statement.value, moving[0]),)) if len(set(moving)) == 1 else names
    if not begun or others & names:
        return None
    read = moving[0]
    plain = [own.name for own in read.subscripts if isinstance(own, IteratorReference)]
    is_moved = len(plain) == len(read.subscripts) == len(set(plain)) and names <= set(plain)
    return read if is_moved and not windows & set(plain) else None


def _without(value: Expression, read: Read) -> Expression:
    return Literal(0, INDEX_TYPE) if value == read else rebuild(value, lambda child: _without(child, read))


@frozen
class _Pull:
    statement: Statement
    slides: Sequence[_Slide]
    read: Read
    workspace: Workspace

    def made(self) -> list[Statement]:
        statement, target = self.statement, self.workspace.tensors[self.statement.target]
        ends = {slide.own.name: target.shape[slide.dimension] for slide in self.slides}
        source = self.workspace.tensors[self.read.tensor]
        windows = {slide.own.name: slide.window for slide in self.slides}
        names = [own.name for own in self.read.subscripts if isinstance(own, IteratorReference)]
        shape = tuple(
            self.sum(ends[name], windows[name].end, -1) if name in windows else extent
            for name, extent in zip(names, source.shape, strict=True)
        )
        padded = self.workspace.declare(f"{source.name}_padded", source.type, shape, statement.origin)
        subscripts = tuple(
            Binary(BinaryOperator.ADD, IteratorReference(n), IteratorReference(windows[n].name), INDEX_TYPE)
            if n in windows
            else IteratorReference(n)
            for n in names
        )
        turned: dict[str, Expression] = {
            window.name: self.difference(self.sum(window.end, -1), IteratorReference(window.name))
            for window in windows.values()
        }
        value = self.turned(statement.value, turned, Read(padded.name, subscripts, source.type))
        own = replace(
            statement,
            iterators=tuple(replace(i, end=ends.get(i.name, i.end)) for i in statement.iterators),
            subscripts=tuple(
                IteratorReference(slide.own.name) if (slide := self.sliding(dimension)) else subscript
                for dimension, subscript in enumerate(statement.subscripts)
            ),
            value=value,
        )
        return [self.padding(padded.name, names, windows), own]

    def sliding(self, dimension: int) -> _Slide | None:
        return next((slide for slide in self.slides if slide.dimension == dimension), None)

    def turned(self, value: Expression, windows: dict[str, Expression], padded: Read) -> Expression:
        """The value with windows counted from their other ends, and what is padded instead of the read."""
        if value == self.read:
            return padded
        if isinstance(value, IteratorReference):
            return windows.get(value.name, value)
        return rebuild(value, lambda child: self.turned(child, windows, padded))

    def padding(self, name: str, names: Sequence[str], windows: dict[str, IterationVariable]) -> Statement:
        """What the read gives, behind as many zeros as the windows are wide, less one, and before more of them."""
        tensor = self.workspace.tensors[name]
        iterators = over_tensor(tensor, self.workspace.taken)
        ranges = {iterator.name: iterator for iterator in self.statement.iterators}
        places: dict[str, Expression] = {}
        inside: list[Expression] = []
        for own, iterator in zip(names, iterators, strict=True):
            here = IteratorReference(iterator.name)
            places[own] = here
            if own in windows:
                first = self.sum(windows[own].end, -1)
                places[own] = self.difference(here, first)
                inside.append(Binary(BinaryOperator.GREATER_EQUAL, here, first, ScalarType.BOOL))
                inside.append(Binary(BinaryOperator.LESS, here, self.sum(first, ranges[own].end), ScalarType.BOOL))
        condition = reduce(lambda left, right: Binary(BinaryOperator.AND, left, right, ScalarType.BOOL), inside)
        value = Select(condition, in_terms_of(self.read, places), number(0, tensor.type), tensor.type)
        origin = DerivedOrigin(f"{self.read.tensor} with zeros around it", self.statement.origin)
        subscripts = tuple(IteratorReference(iterator.name) for iterator in iterators)
        return Statement("", iterators, (), name, subscripts, None, False, value, (), origin)

    def sum(self, *parts: Expression | int) -> Expression:
        atoms = Atoms(self.workspace.program.sizes, ())
        values = (Literal(own, INDEX_TYPE) if isinstance(own, int) else own for own in parts)
        total = atoms.polynomial(Literal(0, INDEX_TYPE))
        for value in values:
            total = total + atoms.polynomial(value)
        return atoms.expression(total)

    def difference(self, left: Expression, right: Expression) -> Expression:
        atoms = Atoms(self.workspace.program.sizes, ())
        return atoms.expression(atoms.polynomial(left) - atoms.polynomial(right))
