"""Array expansion: what the steps of a block overwrite gets a dimension for the step.

The reverse sweep needs the values that each step has read.  A tensor whose elements each step writes anew, as in
``c(i) = c(i) * x(t,i)``, becomes one that keeps the values of all steps, ``c_steps(t+1,i) = c_steps(t,i) * x(t,i)``
(Feautrier, *Array expansion*, 1988).  Tensors of which every step writes other elements stay as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from tc.base.frozen import frozen
from tc.gradient.images import is_everything, is_one_to_one, missed
from tc.gradient.parts import goes_on, in_parts, over_written
from tc.gradient.refusal import refused
from tc.gradient.versions import over_tensor
from tc.language.algebra.polynomial import Atoms
from tc.language.algebra.rewriting import fresh_name, map_statement, rename
from tc.language.program.program import (
    INDEX_TYPE,
    DerivedOrigin,
    Expression,
    IteratorReference,
    Literal,
    Program,
    Read,
    Role,
    Statement,
    Tensor,
    iterators_in,
    reads_in,
    rebuild,
)


@frozen
class _Place:
    """Where the value of a tensor is now: the elements of ``tensor`` with these first subscripts."""

    tensor: str
    first: tuple[Expression, ...] = ()


def expanded(program: Program) -> Program:
    """The program in which no step of a block overwrites what another statement or step has written."""
    if not any(statement.blocks for statement in program.statements):
        return program
    return _Expansion(program).made()


class _Expansion:
    def __init__(self, program: Program) -> None:
        self.program: Final = program
        self.tensors: Final = {tensor.name: tensor for tensor in program.tensors}
        self.taken: Final = {*program.sizes, *self.tensors, *(scalar.name for scalar in program.scalars)}
        self.taken.update(iterator.name for s in program.statements for iterator in s.iterators)
        self.places: Final[dict[str, _Place]] = {}
        self.statements: Final[list[Statement]] = []
        self.atoms: Final = Atoms(program.sizes, (scalar.name for scalar in program.scalars))

    def made(self) -> Program:
        for block, group in itertools.groupby(self.program.statements, lambda statement: statement.blocks[:1]):
            if block:
                self.block(list(group))
            else:
                for statement in group:
                    self.statements.append(self.moved(statement))
        for name in self.program.results:
            if name in self.places:
                self.statements.append(self.copy(self.tensors[name], (), self.places[name]))
        names = {statement.target for statement in self.statements}
        kept = [t for t in self.tensors.values() if t.role is Role.INPUT or t.name in names]
        return replace(self.program, tensors=tuple(kept), statements=tuple(self.statements))

    def moved(self, statement: Statement) -> Statement:
        """A statement outside of blocks, with tensors where they are."""
        found = map_statement(statement, self.found)
        place = self.places.get(statement.target)
        if place is None:
            return found
        return replace(found, target=place.tensor, subscripts=(*place.first, *found.subscripts))

    def found(self, expression: Expression) -> Expression:
        changed = rebuild(expression, self.found)
        if isinstance(changed, Read) and changed.tensor in self.places:
            place = self.places[changed.tensor]
            return replace(changed, tensor=place.tensor, subscripts=(*place.first, *changed.subscripts))
        return changed

    def block(self, group: Sequence[Statement]) -> None:
        """The statements of one block."""
        if any(len(statement.blocks) > 1 for statement in group):
            raise refused(group[0], "a `for` inside of another one has no gradient yet")
        steps = group[0].iterators[0]
        group = in_parts(group, self.like)
        time, count = self.since(steps.begin, IteratorReference(steps.name)), self.since(steps.begin, steps.end)
        unstable = [name for name in dict.fromkeys(s.target for s in group) if self.is_overwritten(name, group)]
        later: dict[str, _Place] = {}
        for name in unstable:
            carried = self.is_carried(name, group)
            own = self.declared(name, count, extra=carried)
            if carried:
                # What comes in is what the first step reads.
                before = self.places.get(name) or _Place(self.renamed(name))
                self.statements.append(self.copy(own, (Literal(0, INDEX_TYPE),), before))
            later[name] = _Place(own.name, (self.sum(time, 1) if carried else time,))
            self.places[name] = _Place(own.name, (time,))
        last = self.since(Literal(1, INDEX_TYPE), count)
        begun: set[str] = set()
        for statement in group:
            self.statements.extend(self.step(statement, later, begun))
        for name in unstable:
            carried = self.is_carried(name, group)
            self.places[name] = _Place(later[name].tensor, (count if carried else last,))

    def like(self, name: str) -> str:
        """A tensor like another one."""
        other = fresh_name(f"{name}_part", self.taken)
        self.taken.add(other)
        self.tensors[other] = replace(self.tensors[name], name=other, role=Role.TEMPORARY)
        return other

    def renamed(self, name: str) -> str:
        """Another name for the value that a tensor has before its first block, which is not what it has in the end."""
        own = self.tensors[name]
        if own.role is Role.INPUT:
            return name
        other = fresh_name(f"{name}_before", self.taken)
        self.taken.add(other)
        self.tensors[other] = replace(own, name=other, role=Role.TEMPORARY)
        for number, statement in enumerate(self.statements):
            changed = map_statement(statement, lambda expression: rename(expression, {name: other}, {}))
            target = other if statement.target == name else statement.target
            self.statements[number] = replace(changed, target=target)
        return other

    def step(self, statement: Statement, later: dict[str, _Place], begun: set[str]) -> Iterator[Statement]:
        """A statement of a block; ``begun``: the tensors that this step has written already."""
        target = statement.target
        changed = map_statement(statement, self.found)
        if target not in later:
            reads = (read for read in reads_in(statement.value) if read.tensor == target)
            if any(read.subscripts == statement.subscripts for read in reads):
                raise refused(
                    statement, f"a step that updates `{target}` in place has no gradient yet: name the result"
                )
            yield changed
            return
        place = later[target]
        continues = statement.reduction is not None and not statement.initialize and target not in begun
        own = replace(changed, target=place.tensor, subscripts=(*place.first, *changed.subscripts))
        if continues:
            before = self.places[target]
            value = Read(before.tensor, (*before.first, *changed.subscripts), self.tensors[target].type)
            new = self.declared(
                f"{target}_new", self.tensors[place.tensor].shape[0], extra=True, like=self.tensors[target]
            )
            yield from goes_on(own, value, new.name)
        else:
            yield own
        if target not in begun and not self.is_whole(statement) and self.is_kept(target, later):
            yield from self.rest(statement, place)
        begun.add(target)
        self.places[target] = place

    def is_whole(self, statement: Statement) -> bool:
        """Whether each step writes all elements."""
        inner = over_written(statement)
        inner = replace(inner, iterators=inner.iterators[len(statement.blocks) :], blocks=())
        return is_one_to_one(inner) and is_everything(inner, self.tensors[statement.target])

    def is_kept(self, target: str, later: dict[str, _Place]) -> bool:
        """Whether steps read what steps before them have left."""
        return later[target].first != self.places[target].first

    def rest(self, statement: Statement, place: _Place) -> Iterator[Statement]:
        """The elements that a step leaves as they are."""
        tensor = self.tensors[statement.target]
        iterators = over_tensor(tensor, self.taken)
        subscripts = tuple(IteratorReference(iterator.name) for iterator in iterators)
        conditions = missed(over_written(statement), tensor, [i.name for i in iterators], self.program)
        if conditions is None:
            raise refused(statement, f"a step that updates a part of `{tensor.name}` has no gradient yet")
        if conditions == ():
            return
        before = self.places[tensor.name]
        yield replace(
            statement,
            iterators=(*statement.sequence, *iterators),
            conditions=conditions,
            target=place.tensor,
            subscripts=(*place.first, *subscripts),
            reduction=None,
            initialize=False,
            value=Read(before.tensor, (*before.first, *subscripts), tensor.type),
            required=(),
            distinct=(),
        )

    def is_overwritten(self, name: str, group: Sequence[Statement]) -> bool:
        """Whether steps may write what others have written: no subscript is the step and a constant."""
        time = group[0].iterators[0].name
        return not all(
            any(self.is_step(subscript, time) for subscript in statement.subscripts)
            for statement in group
            if statement.target == name
        )

    def is_step(self, subscript: Expression, time: str) -> bool:
        """Whether a subscript is the step, or its opposite, and something that is the same for all steps."""
        found, step = self.atoms.polynomial(subscript), self.atoms.polynomial(IteratorReference(time))
        return any(not iterators_in((self.atoms.expression(rest),)) for rest in (found - step, found + step))

    def is_carried(self, name: str, group: Sequence[Statement]) -> bool:
        """Whether a step reads, or goes on with, what the step before has left."""
        for statement in group:
            if any(read.tensor == name for e in (statement.value, *statement.subscripts) for read in reads_in(e)):
                return True
            if statement.target == name:
                return statement.reduction is not None and not statement.initialize
        return False

    def declared(self, name: str, count: Expression, *, extra: bool, like: Tensor | None = None) -> Tensor:
        """A tensor with a first dimension for the steps; ``extra``: and for what was there before them."""
        own = self.tensors[name] if like is None else like
        wanted = fresh_name(f"{name}_steps" if like is None else name, self.taken)
        self.taken.add(wanted)
        shape = (self.sum(count, 1) if extra else count, *own.shape)
        self.tensors[wanted] = Tensor(wanted, own.type, shape, Role.TEMPORARY, own.origin)
        return self.tensors[wanted]

    def copy(self, tensor: Tensor, first: tuple[Expression, ...], source: _Place) -> Statement:
        """All elements of a tensor with these first subscripts."""
        inner = replace(tensor, shape=tensor.shape[len(first) :])
        iterators = over_tensor(inner, self.taken)
        rest = tuple(IteratorReference(iterator.name) for iterator in iterators)
        value = Read(source.tensor, (*source.first, *rest), tensor.type)
        origin = DerivedOrigin(f"the value of {tensor.name} outside of steps", tensor.origin)
        return Statement("", iterators, (), tensor.name, (*first, *rest), None, False, value, (), origin)

    def sum(self, value: Expression, number: int) -> Expression:
        return self.atoms.expression(self.atoms.polynomial(value) + self.atoms.polynomial(Literal(number, INDEX_TYPE)))

    def since(self, begin: Expression, value: Expression) -> Expression:
        return self.atoms.expression(self.atoms.polynomial(value) - self.atoms.polynomial(begin))
