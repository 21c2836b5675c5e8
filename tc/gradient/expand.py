"""Blocks in which no element is given a value twice: what steps overwrite gets tensors of its own.

The reverse sweep needs the values that each step has read, and an adjoint for each of them.  Of a tensor that a loop
overwrites there are three kinds, for each loop from the outermost to the innermost:

- Each of its elements is given once, and had no value before.  The tensor stays as it is, as in
  ``h(t+1,i) = f(h(t,i))``.
- Each is given once, but had a value, as in ``x(i) = f(x(i-1), x(i+1))``.  What the loop gives is another tensor than
  what was there, and every read is of one of the two, or of either by a condition.
- Others get a dimension for the step: ``c(i) = c(i) * x(t,i)`` becomes ``c_steps(t+1,i) = c_steps(t,i) * x(t,i)``
  (Feautrier, *Array expansion*, 1988).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tc.base.frozen import frozen
from tc.gradient.images import NOTHING, always_misses, missed
from tc.gradient.overwriting import adds, disjoint, overwriting
from tc.gradient.parts import goes_on
from tc.gradient.refusal import refused
from tc.gradient.terms import call, choice
from tc.gradient.versions import over_tensor
from tc.language.algebra.polynomial import Atoms
from tc.language.algebra.rewriting import fresh_name, map_statement, rename
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
    Statement,
    Tensor,
    in_terms_of,
    iterators_in,
    reads_in,
    rebuild,
)
from tc.language.program.written_elements import over_elements


@frozen
class _Place:
    """Where the value of a tensor is: the elements of ``tensor`` with these first subscripts."""

    tensor: str
    first: tuple[Expression, ...] = ()


@frozen
class _Loop:
    """A loop around statements: how many steps there were before one, and how many it has at most."""

    steps: IterationVariable
    time: Expression
    most: Expression


@frozen
class _Once:
    """A tensor whose elements a loop gives once: where it gives them, and where those are that it replaces.

    ``finds``: of a statement and a read, whether it finds what the loop gave before; everything does that is not there.
    """

    new: _Place
    old: _Place | None
    finds: Mapping[tuple[int, Read], bool | Expression]


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
        self.once: Final[dict[str, _Once]] = {}
        self.ahead: Final[list[Statement]] = []
        self.statements: Final[list[Statement]] = []
        self.atoms: Final = Atoms(program.sizes, (scalar.name for scalar in program.scalars))

    def made(self) -> Program:
        for block, group in itertools.groupby(self.program.statements, lambda statement: statement.blocks[:1]):
            own = list(group)
            if block:
                self.loop(own, (), {})
            else:
                self.statements.extend(self.moved(statement) for statement in own)
            self.ahead.extend(own)
        for name in self.program.results:
            if name in self.places:
                self.statements.append(self.copy(self.tensors[name], _Place(name), self.places[name]))
        names = {statement.target for statement in self.statements}
        kept = [t for t in self.tensors.values() if t.role is Role.INPUT or t.name in names]
        return replace(self.program, tensors=tuple(kept), statements=tuple(self.statements))

    def moved(self, statement: Statement) -> Statement:
        """A statement with tensors where they are."""
        found = map_statement(statement, lambda expression: self.found(expression, statement))
        return _written_to(found, self.places.get(statement.target, _Place(statement.target)))

    def found(self, expression: Expression, statement: Statement) -> Expression:
        """An expression of a statement, in terms of where values are."""
        changed = rebuild(expression, lambda child: self.found(child, statement))
        if not isinstance(expression, Read) or not isinstance(changed, Read):
            return changed
        once = self.once.get(expression.tensor)
        if once is None:
            return _at(changed, self.places.get(changed.tensor))
        finds = once.finds.get((id(statement), expression), True)
        if once.old is None or finds is True:
            return _at(changed, once.new)
        if finds is False:
            return _at(changed, once.old)
        return choice(finds, _at(changed, once.new), _at(changed, once.old))

    def loop(self, group: Sequence[Statement], outer: tuple[_Loop, ...], wanted: Mapping[str, _Place]) -> None:
        """The statements of a loop; ``wanted``: where what it gives is asked for."""
        depth = len(outer)
        steps = group[0].iterators[depth]
        time, count = self.since(steps.begin, IteratorReference(steps.name)), self.since(steps.begin, steps.end)
        if iterators_in((count,)):
            count = call("max", count, Literal(0, INDEX_TYPE))
        loops = (*outer, _Loop(steps, time, self.most(count, outer)))
        names = [name for name in dict.fromkeys(s.target for s in group) if name not in self.once]
        given = {name: once for name in names if (once := self.given_once(name, group, outer, wanted)) is not None}
        later: dict[str, _Place] = {}
        after: dict[str, _Place] = {}
        for name in names:
            if name not in given:
                later[name], after[name] = self.stepwise(name, group, loops, count)
        self.once.update(given)
        self.body(group, loops, later)
        for name, once in given.items():
            del self.once[name]
            self.places[name] = once.new
            if once.new == _Place(name):
                del self.places[name]
        self.places.update(after)

    def given_once(
        self, name: str, group: Sequence[Statement], outer: tuple[_Loop, ...], wanted: Mapping[str, _Place]
    ) -> _Once | None:
        """A tensor whose elements a loop gives once; None for others."""
        ahead = () if outer else self.ahead
        found = overwriting(name, group, ahead, len(outer), self.program)
        if found is None or found.again:
            return None
        here = self.places.get(name)
        if not outer and not found.earlier:
            return _Once(here or _Place(name), None, {})
        finds = found.finds
        if finds is None:
            return None
        reads = {(id(group[position]), read): own for (position, read), own in finds.items()}
        if here is None and not outer:
            here = self.places[name] = _Place(self.renamed(name))
        new = wanted.get(name) or (self.place_in(f"{name}_part", name, outer) if outer else _Place(name))
        if here is not None:
            writers = [self.elements(s) for s in group if s.target == name and not adds(s)]
            rest = self.rest(name, writers, new, here, group[0], outer)
            if rest is None:
                return None
            self.statements.extend(rest)
        return _Once(new, here, reads)

    def stepwise(
        self, name: str, group: Sequence[Statement], loops: tuple[_Loop, ...], count: Expression
    ) -> tuple[_Place, _Place]:
        """A dimension for the steps of a loop: where each puts its value, and where that of the last one is."""
        *outer, own = loops
        times = tuple(loop.time for loop in outer)
        has_value = self.has_value(name, outer)
        carried = has_value or _is_read_first(name, group)
        most = self.sum(own.most, 1) if carried else own.most
        tensor = self.declared(f"{name}_steps", name, (*(loop.most for loop in outer), most))
        if has_value:
            self.require_whole(name, group[0])
            # What the first step reads.
            before = self.places.get(name) or _Place(self.renamed(name))
            start = _Place(tensor, (*times, Literal(0, INDEX_TYPE)))
            self.statements.append(self.copy(self.tensors[name], start, before, group[0], outer))
        self.places.pop(name, None)
        if carried:
            self.places[name] = _Place(tensor, (*times, own.time))
            return _Place(tensor, (*times, self.sum(own.time, 1))), _Place(tensor, (*times, count))
        return _Place(tensor, (*times, own.time)), _Place(tensor, (*times, self.sum(count, -1)))

    def body(self, group: Sequence[Statement], loops: tuple[_Loop, ...], later: Mapping[str, _Place]) -> None:
        """One step of a loop; ``later``: where it puts the values of tensors that have a dimension for the step."""
        items = list(_items(group, len(loops)))
        segments = {name: self.segments(name, items, len(loops)) for name in later}
        for item in items:
            own = {s.target: segments[s.target][id(s)] for s in item if s.target in later}
            last = {name: later[name] for name, segment in own.items() if segment is segments[name][None]}
            if len(item[0].blocks) > len(loops):
                self.loop(item, loops, last)
                for name, place in last.items():
                    if self.places[name] != place:
                        self.statements.append(self.copy(self.tensors[name], place, self.places[name], item[0], loops))
                        self.places[name] = place
                continue
            (statement,) = item
            if statement.target in later:
                self.statements.extend(self.step(statement, own[statement.target], last, loops))
            elif statement.target in self.once:
                self.statements.extend(self.single(statement, self.once[statement.target]))

    def single(self, statement: Statement, once: _Once) -> Iterator[Statement]:
        """A statement that gives elements once."""
        own = map_statement(statement, lambda expression: self.found(expression, statement))
        if statement.reduction is None or statement.initialize or adds(statement) or once.old is None:
            yield _written_to(own, once.new)
            return
        yield from self.goes_on(own, statement.target, once.new, once.old)

    def step(
        self, statement: Statement, segment: _Segment, last: Mapping[str, _Place], loops: tuple[_Loop, ...]
    ) -> Iterator[Statement]:
        """A statement whose target has a dimension for the step."""
        name = statement.target
        own = map_statement(statement, lambda expression: self.found(expression, statement))
        if statement is not segment.writers[0]:
            yield _written_to(own, self.places[name])
            return
        before = self.places.get(name)
        place = last.get(name) or self.place_in(f"{name}_part", name, loops)
        replacing = [self.elements(writer) for writer in segment.writers if not adds(writer)]
        rest = None if before is None else self.rest(name, replacing, place, before, statement, loops)
        if rest is None and before is not None:
            raise refused(statement, f"a step that updates a part of `{name}` has no gradient yet")
        if adds(statement):
            yield from rest or ()
        if statement.reduction is None or statement.initialize or adds(statement) or before is None:
            yield _written_to(own, place)
        else:
            yield from self.goes_on(own, name, place, before)
        if not adds(statement):
            yield from rest or ()
        self.places[name] = place

    def goes_on(self, statement: Statement, name: str, place: _Place, before: _Place) -> list[Statement]:
        """A reduction that goes on with the value that is elsewhere."""
        shape, type = self.tensors[place.tensor].shape, self.tensors[name].type
        new = self.declared(f"{name}_new", name, shape[: len(place.first)])

        def value(subscripts: tuple[Expression, ...]) -> Expression:
            return Read(before.tensor, (*before.first, *subscripts[len(place.first) :]), type)

        return goes_on(_written_to(statement, place), shape, value, new)

    def segments(self, name: str, items: Sequence[Sequence[Statement]], depth: int) -> Mapping[int | None, _Segment]:
        """The segments of a step by the statements that write a tensor; the last one also as that of None.

        The writers of a segment write different elements, or add to them, and none reads what another one has written.
        """
        found: dict[int | None, _Segment] = {}
        open_: list[Statement] = []
        for item in items:
            read = any(own.tensor == name for s in item for e in (s.value, *s.subscripts) for own in reads_in(e))
            writers = [s for s in item if s.target == name]
            plain = len(item[0].blocks) == depth
            if open_ and (read or (writers and not (plain and self.goes_with(writers[0], open_, depth)))):
                open_ = []
            if not writers:
                continue
            open_ = [*open_, *writers]
            segment = _Segment(tuple(open_))
            found.update(dict.fromkeys((*map(id, open_), None), segment))
            if not plain:
                open_ = []
        return found

    def goes_with(self, statement: Statement, others: Sequence[Statement], depth: int) -> bool:
        """Whether a statement may write beside others, of which none has been read."""
        if adds(statement):
            return True
        if statement.reduction is not None and not statement.initialize:
            return False
        return disjoint(statement.target, [*map(self.elements, others), self.elements(statement)], depth, self.program)

    def elements(self, statement: Statement) -> Statement:
        """The statement over the elements that it gives, which data do not choose."""
        if statement.reduction is None:
            return statement
        return over_elements(statement, self.tensors[statement.target].shape)

    def rest(
        self,
        name: str,
        writers: Sequence[Statement],
        place: _Place,
        before: _Place,
        beside: Statement,
        loops: Sequence[_Loop],
    ) -> list[Statement] | None:
        """What takes over the elements that no statement writes; None where isl cannot tell which these are."""
        tensor = self.tensors[name]
        iterators = over_tensor(tensor, self.taken)
        steps = beside.iterators[: len(loops)]
        conditions = missed(writers, tensor, [i.name for i in iterators], self.program, steps) if writers else ()
        if conditions is None:
            return None
        return [] if conditions == NOTHING else [self.copy(tensor, place, before, beside, loops, conditions)]

    def require_whole(self, name: str, statement: Statement) -> None:
        """GradientError for a tensor of which some elements have no value that a first step could take over."""
        tensor = self.tensors[name]
        if name in self.places or tensor.role is Role.INPUT:
            return
        writers = [self.elements(own) for own in self.ahead if own.target == name]
        if always_misses(writers, tensor, self.program):
            remedy = "give what they replace a tensor of its own, and copy it to its place at the end of a step"
            raise refused(
                statement, f"steps replace elements of `{name}`, and some have no value before the block: {remedy}"
            )

    def has_value(self, name: str, outer: Sequence[_Loop]) -> bool:
        """Whether there is something that a loop may leave as it is."""
        if name in self.places or outer:
            return name in self.places
        return self.tensors[name].role is Role.INPUT or any(statement.target == name for statement in self.ahead)

    def renamed(self, name: str) -> str:
        """Another name for the value that a tensor has before a block, which is not what it has in the end."""
        own = self.tensors[name]
        if own.role is Role.INPUT:
            return name
        other = self.declared(f"{name}_before", name, ())
        for number, statement in enumerate(self.statements):
            changed = map_statement(statement, lambda expression: rename(expression, {name: other}, {}))
            target = other if statement.target == name else statement.target
            self.statements[number] = replace(changed, target=target)
        return other

    def place_in(self, wanted: str, name: str, loops: Sequence[_Loop]) -> _Place:
        """A tensor for the value that another one has in each step of loops."""
        tensor = self.declared(wanted, name, tuple(loop.most for loop in loops))
        return _Place(tensor, tuple(loop.time for loop in loops))

    def declared(self, wanted: str, like: str, first: tuple[Expression, ...]) -> str:
        """A tensor like another one, with further first dimensions."""
        own, name = self.tensors[like], fresh_name(wanted, self.taken)
        self.taken.add(name)
        self.tensors[name] = Tensor(name, own.type, (*first, *own.shape), Role.TEMPORARY, own.origin)
        return name

    def copy(
        self,
        tensor: Tensor,
        place: _Place,
        source: _Place,
        beside: Statement | None = None,
        loops: Sequence[_Loop] = (),
        conditions: tuple[Expression, ...] = (),
    ) -> Statement:
        """The elements of a tensor from one place to another, in the loops around a statement."""
        iterators = over_tensor(tensor, self.taken)
        subscripts = tuple(IteratorReference(iterator.name) for iterator in iterators)
        value = Read(source.tensor, (*source.first, *subscripts), tensor.type)
        around = () if beside is None else beside.iterators[: len(loops)]
        blocks = () if beside is None else beside.blocks[: len(loops)]
        origin = DerivedOrigin(f"the value of {tensor.name} that is kept", tensor.origin)
        return Statement(
            "",
            (*around, *iterators),
            conditions,
            place.tensor,
            (*place.first, *subscripts),
            None,
            False,
            value,
            (),
            origin,
            blocks,
        )

    def most(self, count: Expression, outer: Sequence[_Loop]) -> Expression:
        """The greatest number of steps of a loop, whose bounds may depend on the loops around it."""
        for loop in reversed(outer):
            name = loop.steps.name
            if name in iterators_in((count,)):
                last = self.sum(loop.steps.end, -1)
                count = call("max", *(in_terms_of(count, {name: value}) for value in (loop.steps.begin, last)))
        return count

    def sum(self, value: Expression, number: int) -> Expression:
        return self.atoms.expression(self.atoms.polynomial(value) + self.atoms.polynomial(Literal(number, INDEX_TYPE)))

    def since(self, begin: Expression, value: Expression) -> Expression:
        return self.atoms.expression(self.atoms.polynomial(value) - self.atoms.polynomial(begin))


@frozen
class _Segment:
    """Statements of a step that write a tensor side by side."""

    writers: tuple[Statement, ...]


def _items(group: Sequence[Statement], depth: int) -> Iterator[list[Statement]]:
    """What stands in a loop: statements, and further loops."""
    for inner, own in itertools.groupby(group, lambda statement: statement.blocks[depth : depth + 1]):
        if inner:
            yield list(own)
        else:
            yield from ([statement] for statement in own)


def _is_read_first(name: str, group: Sequence[Statement]) -> bool:
    """Whether a step reads, or goes on with, what the step before has left."""
    for statement in group:
        if any(read.tensor == name for e in (statement.value, *statement.subscripts) for read in reads_in(e)):
            return True
        if statement.target == name:
            return statement.reduction is not None and not statement.initialize
    return False


def _at(read: Read, place: _Place | None) -> Read:
    return read if place is None else replace(read, tensor=place.tensor, subscripts=(*place.first, *read.subscripts))


def _written_to(statement: Statement, place: _Place) -> Statement:
    return replace(statement, target=place.tensor, subscripts=(*place.first, *statement.subscripts))
