"""Linear recurrences in parts: ``h(t+1) = a(t) h(t) + b(t)`` need not wait for all steps before.

A part of the steps takes any state ``s`` to ``A s + H``.  ``A`` and ``H`` of all parts are found side by side, from 1
and from 0; then ``c(p+1) = A(p) c(p) + H(p)`` says with which state each part begins; then the steps of all parts run
side by side, from there, as the program has them.  The parts are carried in float64: states are those of the program,
but for the rounding of the carries.  With ``t = p*L + q``:

    A(p,i) = 1  H(p,i) = 0        for q in 0:L { A(p,i) = a(t,i) * A(p,i)  H(p,i) = a(t,i) * H(p,i) + b(t,i) }
    c(0,i) = h(0,i)               for p in 0:P-1 { c(p+1,i) = A(p,i) * c(p,i) + H(p,i) }
    w(p,i) = c(p,i)               for q in 0:L { w(p,i) = a(t,i) * w(p,i) + b(t,i)  h(t+1,i) = w(p,i) }

That the program means the same is proven by ``tc.polyhedral.proof.verify_recurrences``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.algebra.rewriting import fresh_name
from tc.language.isl.affine import access_relation, frame_of, iteration_domain
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Cast,
    DerivedOrigin,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Read,
    Role,
    Statement,
    Tensor,
    Unary,
    in_terms_of,
    reads_in,
    rebuild,
    touches,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.polyhedral.ir.recurrences import LinearRecurrence
from tc.polyhedral.schedule.scan import Scanning

_CARRIED: Final = ScalarType.FLOAT64
_ONE, _NOTHING = Literal(1.0, _CARRIED), Literal(0.0, _CARRIED)


def part_recurrences(
    specialization: Specialization, context: isl.Context, scanning: Scanning
) -> tuple[Specialization, tuple[LinearRecurrence, ...]]:
    """The program with linear recurrences of few rows and many steps in parts, before the blocks that they stood in."""
    parting = _Parting(specialization, context, scanning)
    statements = list(specialization.program.statements)
    for statement in specialization.program.statements:
        read = parting.state_read(statement)
        if read is None:
            continue
        first = next(n for n, own in enumerate(statements) if own.blocks[:1] == statement.blocks)
        statements.remove(statement)
        statements[first:first] = parting.in_parts(statement, read)
    program = replace(specialization.program, tensors=tuple(parting.tensors), statements=tuple(statements))
    return replace(specialization, program=program, layouts=parting.layouts), tuple(parting.done)


class _Parting:
    """Collects the tensors of parts, and what became of which statement."""

    def __init__(self, specialization: Specialization, context: isl.Context, scanning: Scanning) -> None:
        self.program = specialization.program
        self.context = context
        self.scanning = scanning
        self.tensors = list(self.program.tensors)
        self.layouts = dict(specialization.layouts)
        self.aliased = {name for pair in specialization.signature.aliases for name in pair}
        self.symbolic = bool(specialization.sizes)
        self.done: list[LinearRecurrence] = []
        self.blocks = max((block for s in self.program.statements for block in s.blocks), default=-1)
        self.names = {statement.name for statement in self.program.statements}

    def state_read(self, statement: Statement) -> Read | None:
        """The read of the state before, of a statement that is a linear recurrence worth the second pass."""
        counts = [_count(iterator) for iterator in statement.iterators]
        if len(statement.blocks) != 1 or None in counts or self.symbolic or statement.target in self.aliased:
            return None
        steps, *rest = (count or 0 for count in counts)
        if not self.scanning.divides(math.prod(rest), steps) or steps <= self.scanning.length(steps):
            return None
        plain = not (statement.reduction or statement.conditions or statement.required or statement.owned)
        if not plain or self.layouts[statement.target].type is not ScalarType.FLOAT32:
            return None
        reads = [read for read in reads_in(statement.value) if read.tensor == statement.target]
        if len(reads) != 1 or _linear(statement.value, reads[0], _NOTHING, {}, homogeneous=False) is None:
            return None
        return reads[0] if self.is_first_order(statement, reads[0]) and self.may_leave(statement) else None

    def is_first_order(self, statement: Statement, read: Read) -> bool:
        """Whether each step reads what the step before wrote at the same place, and the first what no step writes."""
        frame = frame_of(statement, self.context)
        domain, extents = iteration_domain(statement, frame), self.layouts[statement.target].shape
        if domain is None:
            return False
        written = access_relation(statement.target, statement.subscripts, extents, frame).intersect_domain(domain)
        found = access_relation(statement.target, read.subscripts, extents, frame).intersect_domain(domain)
        if not (written.is_injective() and written.is_single_valued() and found.is_single_valued()):
            return False
        before = written.reverse()  # { element -> the step that wrote it }
        waits = found.apply_range(before)
        width = domain.dim(isl.dim_type.set)
        kept = ", ".join(f"i{n}" for n in range(1, width))
        others = f", {kept}" if kept else ""
        name = domain.get_tuple_name()
        shift = isl.Map.read_from_str(self.context, f"{{ {name}[t{others}] -> {name}[t - 1{others}] }}")
        return bool(waits.is_equal(shift.intersect_domain(domain).intersect_range(domain)))

    def may_leave(self, statement: Statement) -> bool:
        """Whether what it reads is there before the block, and nothing in the block needs what it overwrites."""
        others = [own for own in self.program.statements if own is not statement and own.blocks[:1] == statement.blocks]
        read = {own.tensor for own in reads_in(statement.value)} | {statement.target}
        if any(own.target in read for own in others):
            return False
        users = [own for own in others if touches(own, statement.target)]
        return all(self.comes_later(statement, own) for own in users)

    def comes_later(self, statement: Statement, user: Statement) -> bool:
        """Whether every element of the target that the user reads in a step was written by then, or never is."""
        frame, own = frame_of(statement, self.context), frame_of(user, self.context)
        domain, users = iteration_domain(statement, frame), iteration_domain(user, own)
        if domain is None or users is None:
            return False
        extents = self.layouts[statement.target].shape
        written = access_relation(statement.target, statement.subscripts, extents, frame).intersect_domain(domain)
        every = self.program.statements
        behind = every.index(user) > every.index(statement)
        reads = [part for x in (user.value, *user.subscripts, *user.conditions) for part in reads_in(x)]
        for read in reads:
            if read.tensor == statement.target:
                found = access_relation(read.tensor, read.subscripts, extents, own).intersect_domain(users)
                pairs = written.apply_range(found.reverse())
                order = isl.Map.lex_gt_first if behind else isl.Map.lex_ge_first
                if not pairs.intersect(order(pairs.get_space(), 1)).is_empty():
                    return False
        return True

    def in_parts(self, statement: Statement, read: Read) -> list[Statement]:
        """The statements that stand for one."""
        cut = _cut(statement, self.scanning)
        part, rest, values = cut.part, cut.rest, {cut.step.name: cut.number}
        places = tuple(IteratorReference(iterator.name) for iterator in rest)
        shape = (cut.count, *(_count(iterator) or 0 for iterator in rest))
        factors, offsets, carries, states = (
            self.tensor(statement, kind, shape, type)
            for kind, type in (("factors", _CARRIED), ("offsets", _CARRIED), ("carries", _CARRIED), ("states", None))
        )
        at = (IteratorReference(part.name), *places)
        base = replace(statement, blocks=(), iterators=(part, *rest), subscripts=at)
        walked = replace(base, iterators=(cut.inner, part, *rest), conditions=cut.inside)
        before = (replace(part, end=_number(cut.count - 1)), *rest)

        def linear(state: Tensor, *, homogeneous: bool) -> Expression:
            own = Read(state.name, at, state.type)
            found = _linear(statement.value, read, own, values, homogeneous=homogeneous)
            assert found is not None
            return found

        def carried(tensor: Tensor) -> Read:
            return Read(tensor.name, at, tensor.type)

        next_part = (_sum(IteratorReference(part.name), _number(1)), *places)
        moved = Binary(BinaryOperator.MULTIPLY, carried(factors), carried(carries), _CARRIED)
        going_on = Binary(BinaryOperator.ADD, moved, carried(offsets), _CARRIED)
        first = in_terms_of(read, {cut.step.name: _number(0)})
        state = Read(states.name, at, states.type)
        again = _replaced(in_terms_of(statement.value, values), in_terms_of(read, values), state)
        own, between, last = (self.block() for _ in range(3))
        stored = tuple(in_terms_of(subscript, values) for subscript in statement.subscripts)
        made = [
            replace(base, target=factors.name, value=_ONE),
            replace(base, target=offsets.name, value=_NOTHING),
            replace(walked, target=factors.name, value=linear(factors, homogeneous=True), blocks=own),
            replace(walked, target=offsets.name, value=linear(offsets, homogeneous=False), blocks=own),
            replace(
                base,
                iterators=rest,
                target=carries.name,
                subscripts=(_number(0), *places),
                value=Cast(first, _CARRIED),
            ),
            replace(base, iterators=before, target=carries.name, subscripts=next_part, value=going_on, blocks=between),
            replace(base, target=states.name, value=Cast(carried(carries), states.type)),
            replace(walked, target=states.name, value=again, blocks=last),
            replace(walked, subscripts=stored, value=state, blocks=last),
        ]
        return self.recorded(statement, cut, (factors, offsets, carries, states), made)

    def recorded(
        self, statement: Statement, cut: _Cut, tensors: tuple[Tensor, Tensor, Tensor, Tensor], made: list[Statement]
    ) -> list[Statement]:
        """The statements under names of their own, noted for the proof; ``tensors``: in the order of the note."""
        named = [replace(one, name=self.named(statement, suffix)) for one, suffix in zip(made, _SUFFIXES, strict=True)]
        origin = DerivedOrigin("a linear recurrence in parts", statement.origin)
        factors, offsets, carries, states = (tensor.name for tensor in tensors)
        self.done.append(
            LinearRecurrence(
                statement.name,
                cut.step.name,
                cut.number,
                cut.part.name,
                cut.inner.name,
                factors,
                offsets,
                carries,
                states,
                tuple(one.name for one in named),
            )
        )
        return [replace(one, origin=origin) for one in named]

    def block(self) -> tuple[int, ...]:
        self.blocks += 1
        return (self.blocks,)

    def named(self, statement: Statement, suffix: str) -> str:
        name = fresh_name(f"{statement.name}_{suffix}", self.names)
        self.names.add(name)
        return name

    def tensor(self, statement: Statement, kind: str, shape: tuple[int, ...], type: ScalarType | None) -> Tensor:
        """A new temporary, of the type of the states where none is given."""
        own = self.layouts[statement.target].type if type is None else type
        name = fresh_name(f"{statement.target}_{kind}", {tensor.name for tensor in self.tensors})
        origin = DerivedOrigin("a linear recurrence in parts", statement.origin)
        tensor = Tensor(name, own, tuple(map(_number, shape)), Role.TEMPORARY, origin)
        self.tensors.append(tensor)
        self.layouts[name] = Layout(own, shape, contiguous_strides(shape))
        return tensor


_SUFFIXES: Final = (
    "factors_first",
    "offsets_first",
    "factors",
    "offsets",
    "carries_first",
    "carries",
    "states_first",
    "states",
    "store",
)


@frozen
class _Cut:
    """How the loop ``step`` around the loops ``rest`` is cut into ``count`` parts.

    ``part`` and ``inner`` count parts and the steps of one; ``number``: what ``step`` is there; ``inside``: what is
    true of all steps that there are beside the ends of these loops.
    """

    step: IterationVariable
    rest: tuple[IterationVariable, ...]
    count: int
    part: IterationVariable
    inner: IterationVariable
    number: Expression
    inside: tuple[Expression, ...]


def _cut(statement: Statement, scanning: Scanning) -> _Cut:
    step, *rest = statement.iterators
    steps = _count(step) or 0
    length = scanning.length(steps)
    count = -(-steps // length)
    taken = {iterator.name for iterator in statement.iterators}
    part = IterationVariable(fresh_name(f"{step.name}_part", taken), _number(0), _number(count))
    inner = IterationVariable(fresh_name(f"{step.name}_step", taken), _number(0), _number(length))
    number = _sum(_times(IteratorReference(part.name), length), IteratorReference(inner.name))
    inside = () if steps == count * length else (_less(number, steps),)
    return _Cut(step, tuple(rest), count, part, inner, number, inside)


def _linear(
    value: Expression, read: Read, state: Expression, values: Mapping[str, Expression], *, homogeneous: bool
) -> Expression | None:
    """The value for another state, in float64, or what is left of it without the terms that no state is in.

    None where it is not linear in the state that it reads.
    """
    if value == read:
        return state

    def inner(part: Expression) -> Expression | None:
        return _linear(part, read, state, values, homogeneous=homogeneous)

    def wide(part: Expression) -> Expression:
        return Cast(in_terms_of(part, values), _CARRIED)

    match value:
        case Unary(UnaryOperator.NEGATE, operand):
            found = inner(operand)
            return None if found is None else Unary(UnaryOperator.NEGATE, found, _CARRIED)
        case Binary(operator, left, right) if operator in _LINEAR:
            on_left = any(own == read for own in reads_in(left))
            if not on_left and operator is BinaryOperator.DIVIDE:
                return None
            found, other = inner(left if on_left else right), wide(right if on_left else left)
            if found is None:
                return None
            if homogeneous and operator in (BinaryOperator.ADD, BinaryOperator.SUBTRACT):
                negative = operator is BinaryOperator.SUBTRACT and not on_left
                return Unary(UnaryOperator.NEGATE, found, _CARRIED) if negative else found
            return Binary(operator, *((found, other) if on_left else (other, found)), _CARRIED)
        case _:
            return None


_LINEAR: Final = (BinaryOperator.ADD, BinaryOperator.SUBTRACT, BinaryOperator.MULTIPLY, BinaryOperator.DIVIDE)


def _replaced(value: Expression, read: Expression, state: Read) -> Expression:
    def change(part: Expression) -> Expression:
        return state if part == read else rebuild(part, change)

    return change(value)


def _count(iterator: IterationVariable) -> int | None:
    """How many values an iterator has that begins at 0; None for others."""
    match iterator.begin, iterator.end:
        case Literal(0), Literal(end):
            return max(0, int(end))
        case _:
            return None


def _number(value: int) -> Literal:
    return Literal(value, INDEX_TYPE)


def _sum(left: Expression, right: Expression) -> Expression:
    return Binary(BinaryOperator.ADD, left, right, INDEX_TYPE)


def _times(value: Expression, number: int) -> Expression:
    return Binary(BinaryOperator.MULTIPLY, _number(number), value, INDEX_TYPE)


def _less(value: Expression, end: int) -> Expression:
    return Binary(BinaryOperator.LESS, value, _number(end), ScalarType.BOOL)
