"""Proof of linear recurrences in parts: every state is that of the program, if numbers are not rounded.

It starts from the statement ``h(t+1) = v(t, h(t))`` of the program, and asks nothing of the pass but names, and what
the iterator of the steps is in terms of those of parts.

1. ``v`` is linear in the state that it reads, which is the one that the step before wrote, or a first one that no step
   writes.  Nothing else that it reads changes in the block, and nothing in the block reads an element before the step
   that overwrites it.
2. Steps of parts are the steps of the program, one for one.  Two that follow each other in the program do so in a part,
   or the first is the last of a part and the second the first of the next one: in one question to isl.
3. Beside each other, ``v`` without the terms that no state is in goes on from 1, and all of it from 0.  By induction
   over the steps of a part, a state ``s`` at its beginning becomes ``factors * s + offsets``.
4. Carries begin with the first state and go on so, from part to part: by induction, each is the state at its beginning.
   From there, the steps of the program compute the states, and store each where it does.

That the statements run in the order of the program is ``tc.polyhedral.proof.verify``.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import Final

import islpy as isl

from tc.base.errors import VerificationError
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.isl.affine import access_relation, affine_function, frame_of, iteration_domain
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Cast,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Read,
    Role,
    Statement,
    Unary,
    children,
    in_terms_of,
    rebuild,
    touches,
    walk,
)
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.recurrences import LinearRecurrence

_WIDE: Final = ScalarType.FLOAT64
_COUNT: Final = 9


def prove_recurrences(
    before: Specialization, after: Specialization, made: Items[LinearRecurrence], context: isl.Context
) -> None:
    """VerificationError where ``after`` is not ``before`` with these recurrences in parts."""
    found = find_wrong_recurrence(before, after, made, context)
    if found is not None:
        raise VerificationError(f"the parts of recurrences are not proven correct: {found}")


def find_wrong_recurrence(
    before: Specialization, after: Specialization, made: Items[LinearRecurrence], context: isl.Context
) -> Counterexample | None:
    """The first difference, or None."""
    wanted, left = list(before.program.statements), list(after.program.statements)
    for own in made:
        statement = next((one for one in wanted if one.name == own.statement), None)
        group = [one for one in left if one.name in own.statements]
        if statement is None or tuple(one.name for one in group) != own.statements or len(group) != _COUNT:
            return Counterexample(Violation.CHANGED, f"the statements that stand for {own.statement}")
        first = left.index(group[0])
        # Right before the block that the statement stood in: it is put there, and must have been of that block.
        if left[first : first + _COUNT] != group:
            return Counterexample(Violation.CHANGED, f"the place of {own.statement}")
        found = _Parts(before, after, context, statement, own, tuple(group)).wrong()
        if found is not None:
            return found
        begin = next(n for n, one in enumerate(wanted) if one.blocks[:1] == statement.blocks)
        rest = [one for one in wanted if one is not statement]
        if [one.name for one in left[:first]] != [one.name for one in rest[:begin]]:
            return Counterexample(Violation.CHANGED, f"the place of {own.statement}")
        wanted = [*rest[:begin], *group, *rest[begin:]]
    if wanted != left:
        return Counterexample(Violation.CHANGED, "other statements")
    kept = tuple(tensor for tensor in after.program.tensors if tensor in before.program.tensors)
    return None if kept == before.program.tensors else Counterexample(Violation.CHANGED, "other tensors")


@dataclass(frozen=True)
class _Parts:
    """The statements that stand for one of the program."""

    before: Specialization
    after: Specialization
    context: isl.Context
    statement: Statement
    made: LinearRecurrence
    group: tuple[Statement, ...]

    @property
    def program(self) -> Program:
        return self.after.program

    def wrong(self) -> Counterexample | None:
        """What is wrong with them, or None."""
        read = self.state_read()
        if read is None or not self.is_alone(read):
            return Counterexample(Violation.CHANGED, f"{self.statement.name} is no linear recurrence")
        for name in (self.made.factors, self.made.offsets, self.made.carries, self.made.states):
            if not self.is_own(name):
                return Counterexample(Violation.CHANGED, f"{name} is not of {self.statement.name} alone")
        for own, right in zip(self.group, self.right(read), strict=True):
            if replace(own, name="", origin=right.origin) != replace(right, name=""):
                return Counterexample(Violation.CHANGED, own.name)
        if not self.has_blocks_of_its_own() or not self.follows():
            return Counterexample(Violation.CHANGED, f"the steps of {self.statement.name}")
        return None

    # --- 1. what the program says

    def state_read(self) -> Read | None:
        """The only read of the target, at the state before."""
        statement = self.statement
        plain = (statement.reduction, statement.conditions, statement.required, statement.owned) == (None, (), (), None)
        reads = [own for own in walk(statement.value) if isinstance(own, Read) and own.tensor == statement.target]
        if not plain or statement.atomic or len(statement.blocks) != 1 or len(reads) != 1:
            return None
        if self.before.layouts[statement.target].type is not ScalarType.FLOAT32:
            return None
        domain, extents = self.domain(statement), self.before.layouts[statement.target].shape
        frame = frame_of(statement, self.context)
        to, source = (
            access_relation(statement.target, subscripts, extents, frame).intersect_domain(domain)
            for subscripts in (statement.subscripts, reads[0].subscripts)
        )
        alone = source.is_single_valued() and to.is_single_valued() and to.is_injective()
        # From the step that wrote a state to the one that reads it.
        return reads[0] if alone and to.apply_range(source.reverse()).is_equal(self.next(domain)) else None

    def is_alone(self, read: Read) -> bool:
        """Whether the block changes nothing that the statement reads, and needs nothing that it overwrites."""
        aliased = {name for pair in self.before.signature.aliases for name in pair}
        others = [
            own
            for own in self.before.program.statements
            if own is not self.statement and own.blocks[:1] == self.statement.blocks
        ]
        needed = {own.tensor for own in walk(self.statement.value) if isinstance(own, Read)}
        if self.statement.target in aliased or any(own.target in needed for own in others):
            return False
        return all(self.sees_what_was_written(own) for own in others if touches(own, read.tensor))

    def sees_what_was_written(self, user: Statement) -> bool:
        """Whether no element that another statement of the block reads is written in a later step."""
        statement, target = self.statement, self.statement.target
        extents = self.before.layouts[target].shape
        own = access_relation(target, statement.subscripts, extents, frame_of(statement, self.context))
        steps = own.intersect_domain(self.domain(statement)).reverse()  # { element -> step }
        when = steps.project_out(isl.dim_type.out, 1, steps.dim(isl.dim_type.out) - 1).reset_tuple_id(isl.dim_type.out)
        order = self.before.program.statements
        late = "a <= b" if order.index(user) < order.index(statement) else "a < b"
        pairs = isl.Map.read_from_str(self.context, f"{{ [a] -> [b] : {late} }}")
        frame, domain = frame_of(user, self.context), self.domain(user)
        reads = (part for x in (user.value, *user.subscripts, *user.conditions) for part in walk(x))
        for read in reads:
            if not isinstance(read, Read) or read.tensor != target:
                continue
            found = access_relation(target, read.subscripts, extents, frame).intersect_domain(domain)
            now = isl.Map.identity(domain.get_space().map_from_set()).reset_tuple_id(isl.dim_type.out)
            now = now.project_out(isl.dim_type.out, 1, now.dim(isl.dim_type.out) - 1)
            written = found.apply_range(when)
            if not written.intersect(now.apply_range(pairs)).is_empty():
                return False
        return True

    # --- 3. and 4. what the statements do

    def right(self, read: Read) -> Items[Statement]:
        """The statements as they have to be, apart from their names."""
        made, statement = self.made, self.statement
        inner, part = self.group[2].iterators[0], self.group[0].iterators[0]
        rest = statement.iterators[1:]
        names = tuple(IteratorReference(own.name) for own in rest)
        at = (IteratorReference(made.part), *names)
        values = {made.step: made.value}
        plain = replace(statement, blocks=(), conditions=(), iterators=(part, *rest), subscripts=at)
        steps = replace(plain, iterators=(inner, part, *rest), conditions=self.group[2].conditions)
        factors, offsets, carries = (Read(name, at, _WIDE) for name in (made.factors, made.offsets, made.carries))
        state = Read(made.states, at, ScalarType.FLOAT32)
        zero, one = Literal(0, INDEX_TYPE), Literal(1, INDEX_TYPE)
        earlier = replace(part, end=Literal(_end(part) - 1, INDEX_TYPE))
        going_on = Binary(BinaryOperator.ADD, Binary(BinaryOperator.MULTIPLY, factors, carries, _WIDE), offsets, _WIDE)
        moved = Binary(BinaryOperator.ADD, IteratorReference(made.part), one, INDEX_TYPE)

        def in_block(own: Statement, number: int, target: str, value: Expression) -> Statement:
            return replace(own, target=target, value=value, blocks=self.group[number].blocks)

        first = Cast(in_terms_of(read, {made.step: zero}), _WIDE)
        return (
            replace(plain, target=made.factors, value=Literal(1.0, _WIDE)),
            replace(plain, target=made.offsets, value=Literal(0.0, _WIDE)),
            in_block(steps, 2, made.factors, self.linear(2, read, factors, alone=True)),
            in_block(steps, 3, made.offsets, self.linear(3, read, offsets, alone=False)),
            replace(plain, target=made.carries, subscripts=(zero, *names), iterators=rest, value=first),
            replace(in_block(plain, 5, made.carries, going_on), iterators=(earlier, *rest), subscripts=(moved, *names)),
            replace(plain, target=made.states, value=Cast(carries, ScalarType.FLOAT32)),
            in_block(steps, 7, made.states, _with_state(statement.value, read, values, state)),
            replace(
                in_block(steps, 8, statement.target, state),
                subscripts=tuple(in_terms_of(subscript, values) for subscript in statement.subscripts),
            ),
        )

    def linear(self, number: int, read: Read, state: Read, *, alone: bool) -> Expression:
        """The value of a statement if it is the program's for another state, in float64; what it is not, if not.

        ``alone``: without the terms that no state is in.
        """
        found, wanted = self.group[number].value, self.statement.value
        values = {self.made.step: self.made.value}

        def same(new: Expression, old: Expression) -> bool:
            if old == read:
                return new == state
            if not any(part == read for part in walk(old)):
                return new == Cast(in_terms_of(old, values), _WIDE)
            match new, old:
                case Unary(UnaryOperator.NEGATE, operand, type), Unary(UnaryOperator.NEGATE, other):
                    return type is _WIDE and same(operand, other)
                case _, Binary(BinaryOperator.ADD, left, right) if alone:
                    return same(new, left if _has(left, read) else right)
                case _, Binary(BinaryOperator.SUBTRACT, left, _) if alone and _has(left, read):
                    return same(new, left)
                case Unary(UnaryOperator.NEGATE, operand, type), Binary(BinaryOperator.SUBTRACT, _, right) if alone:
                    return type is _WIDE and same(operand, right)
                case Binary(operator, first, second, type), Binary(other, left, right) if operator is other:
                    divides = other is BinaryOperator.DIVIDE and _has(right, read)
                    linear = other in _LINEAR and not divides and type is _WIDE
                    return linear and same(first, left) and same(second, right)
                case _:
                    return False

        return found if same(found, wanted) else wanted

    def is_own(self, name: str) -> bool:
        """Whether a tensor is a temporary that these statements alone touch, of the right type and shape."""
        tensor = self.program.tensor(name)
        counts = tuple(_end(own) for own in self.group[0].iterators)
        type = ScalarType.FLOAT32 if name == self.made.states else _WIDE
        fresh = all(own.name != name for own in self.before.program.tensors)
        users = all(touches(own, name) <= (own in self.group) for own in self.program.statements)
        layout = self.after.layouts[name]
        return fresh and users and tensor.role is Role.TEMPORARY and (tensor.type, layout.shape) == (type, counts)

    # --- 2. the order of the steps

    def has_blocks_of_its_own(self) -> bool:
        """Whether the steps stand in three blocks, which nothing else stands in."""
        one, two, three = (self.group[number].blocks for number in (2, 5, 7))
        blocks = [own.blocks for own in self.group]
        wanted = [(), (), one, one, (), two, (), three, three]
        others = {block for own in self.program.statements if own not in self.group for block in own.blocks}
        return (
            blocks == wanted
            and all(len(own) == 1 for own in (one, two, three))
            and len({*one, *two, *three}) == 3
            and not others & {*one, *two, *three}
        )

    def follows(self) -> bool:
        """Whether the steps of the parts are those of the program, in their order."""
        walked, steps = self.group[2], self.domain(self.statement)
        part, inner = self.made.part, self.made.inner
        if [own.name for own in walked.iterators[:2]] != [inner, part] or self.group[0].iterators[0].name != part:
            return False
        domain, frame = self.domain(walked), frame_of(walked, self.context)
        stands_for = isl.Map.from_domain(domain)
        for own in self.statement.iterators:
            value = self.made.value if own.name == self.made.step else IteratorReference(own.name)
            function = affine_function(value, frame)
            if function is None:
                return False
            stands_for = stands_for.flat_range_product(isl.Map.from_pw_aff(function))
        stands_for = stands_for.set_tuple_name(isl.dim_type.out, self.statement.name)
        if not (stands_for.is_bijective() and stands_for.range().is_equal(steps)):
            return False
        inside = self.next(domain)  # in one part, from step to step
        ends, begins = domain.subtract(inside.domain()), domain.subtract(inside.range())
        width = domain.dim(isl.dim_type.set)
        rest = "".join(f", i{n}" for n in range(2, width))
        name = domain.get_tuple_name()
        across = isl.Map.read_from_str(self.context, f"{{ {name}[q, p{rest}] -> {name}[r, p + 1{rest}] }}")
        across = across.intersect_domain(ends).intersect_range(begins)
        followed = inside.union(across).apply_domain(stands_for).apply_range(stands_for)
        first = isl.Set.read_from_str(self.context, f"{{ {name}[q, p{rest}] : p = 0 }}").intersect(begins)
        wanted = self.next(steps)
        return bool(followed.is_equal(wanted) and first.apply(stands_for).is_equal(steps.subtract(wanted.range())))

    def next(self, domain: isl.Set) -> isl.Map:
        """``{ instance -> the same one a step later }``, of those in the domain."""
        rest = "".join(f", i{n}" for n in range(1, domain.dim(isl.dim_type.set)))
        name = domain.get_tuple_name()
        later = isl.Map.read_from_str(self.context, f"{{ {name}[t{rest}] -> {name}[t + 1{rest}] }}")
        return later.intersect_domain(domain).intersect_range(domain)

    def domain(self, statement: Statement) -> isl.Set:
        found = iteration_domain(statement, frame_of(statement, self.context))
        assert found is not None, "ranges are affine"
        return found


_LINEAR: Final = (BinaryOperator.ADD, BinaryOperator.SUBTRACT, BinaryOperator.MULTIPLY, BinaryOperator.DIVIDE)


def _has(value: Expression, read: Read) -> bool:
    return value == read or any(_has(part, read) for part in children(value))


def _with_state(value: Expression, read: Read, values: dict[str, Expression], state: Read) -> Expression:
    """The value at a step of a part, with another state in place of the one that it reads."""
    if value == read:
        return state
    if isinstance(value, IteratorReference):
        return values.get(value.name, value)
    return rebuild(value, lambda part: _with_state(part, read, values, state))


def _end(iterator: IterationVariable) -> int:
    match iterator.begin, iterator.end:
        case Literal(0), Literal(end):
            return int(end)
        case _:
            return -1
