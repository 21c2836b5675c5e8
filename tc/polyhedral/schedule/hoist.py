"""Loop-invariant parts of values, where compilers do not find them: along lanes, but not along the loops around.

``y(n,c,p) = x(n,c,p) * rsqrt(s(n,p))`` computes each root once for every ``c``: it is the same in every iteration of
that loop, but another one in each lane, so that it has no register to stay in.  ``r(n,p) = rsqrt(s(n,p))`` is computed
once, and read (partial redundancy elimination at the level of statements: Knoop, Rüthing and Steffen, *Lazy code
motion*, PLDI 1992).

This proposes; ``tc.polyhedral.proof.rewrites.verify_hoisted`` says whether values are those of the program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import fresh_name
from tc.language.program.guards import guarded_reads
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    DerivedOrigin,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Read,
    Role,
    Select,
    Statement,
    Tensor,
    children,
    iterators_in,
    reads_in,
    rebuild,
    walk,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.language.program.within import ranges_in
from tc.language.program.written_elements import is_scatter
from tc.polyhedral.ir.hoisted import Hoisted
from tc.polyhedral.schedule.scatter import length_of

# Instances that share a value, from which on it is worth memory.
_LEAST_USES: Final = 8
# Vectors do these in one instruction.
_CHEAP: Final = frozenset({"abs", "ceil", "fabs", "floor", "fma", "fmax", "fmin", "max", "min", "round", "trunc"})


def hoist_invariants(specialization: Specialization) -> Iterator[tuple[Specialization, Hoisted]]:
    """The program with one more part of a value computed once, as often as there is one that gains by it."""
    for name in [own.name for own in specialization.program.statements]:
        statement = next(own for own in specialization.program.statements if own.name == name)
        while (part := _part(statement, specialization)) is not None:
            specialization, statement, made = _hoisted(statement, part, specialization)
            yield specialization, made


def _part(statement: Statement, specialization: Specialization) -> Expression | None:
    """The largest part that is the same for many instances, and another one in each lane."""
    plain = not (statement.blocks or statement.conditions or statement.counts or statement.atomic or statement.required)
    if not plain or statement.owned is not None or is_scatter(statement) or ranges_in(statement.value):
        return None
    lengths = {own.name: length_of(own) or 0 for own in statement.iterators if own.begin == Literal(0, INDEX_TYPE)}
    if len(lengths) < len(statement.iterators) or not all(lengths.values()):
        return None
    strides = specialization.layouts[statement.target].strides
    lanes = iterators_in(own for own, step in zip(statement.subscripts, strides, strict=True) if step == 1)
    return next((own for own in _unconditional(statement.value) if _gains(own, statement, lengths, lanes)), None)


def _unconditional(value: Expression) -> Iterator[Expression]:
    """The parts of a value that are evaluated in any case, outer ones first."""
    yield value
    match value:
        case Read():
            return
        case Select(condition):
            yield from _unconditional(condition)
        case Binary(BinaryOperator.AND | BinaryOperator.OR, left):
            yield from _unconditional(left)
        case _:
            for part in children(value):
                yield from _unconditional(part)


def _gains(part: Expression, statement: Statement, lengths: Mapping[str, int], lanes: frozenset[str]) -> bool:
    used = iterators_in((part,))
    if part.type not in (ScalarType.FLOAT32, ScalarType.FLOAT64) or not lanes or not lanes <= used:
        return False
    uses = math.prod(length for name, length in lengths.items() if name not in used)
    return uses >= _LEAST_USES and _is_costly(part) and _reads_plainly(part, statement)


def _is_costly(part: Expression) -> bool:
    return any(
        (isinstance(own, Call) and own.function not in _CHEAP)
        or (isinstance(own, Binary) and own.operator is BinaryOperator.DIVIDE and own.type.is_floating)
        for own in walk(part)
        if not isinstance(own, Read)
    )


def _reads_plainly(part: Expression, statement: Statement) -> bool:
    """Whether it reads something, in any case, of what the statement does not write, and where no data say."""
    reads = [own.read for own in guarded_reads(part) if not own.guards]
    every = tuple(reads_in(part))
    plain = all(not any(reads_in(subscript)) for own in every for subscript in own.subscripts)
    return bool(every) and len(reads) == len(every) and plain and all(own.tensor != statement.target for own in every)


def _hoisted(
    statement: Statement, part: Expression, specialization: Specialization
) -> tuple[Specialization, Statement, Hoisted]:
    program = specialization.program
    iterators = _lanes_last(statement, part, specialization)
    shape = tuple(length_of(own) or 0 for own in iterators)
    places = tuple(IteratorReference(own.name) for own in iterators)
    tensor = fresh_name(f"{statement.target}_part", {own.name for own in program.tensors} | set(program.sizes))
    name = fresh_name(f"{statement.name}_part", {own.name for own in program.statements})
    origin = DerivedOrigin("the same for many instances", statement.origin)
    making = Statement(name, iterators, (), tensor, places, None, False, part, (), origin)

    def change(expression: Expression) -> Expression:
        return Read(tensor, places, part.type) if expression == part else rebuild(expression, change)

    changed = replace(statement, value=change(statement.value))
    statements = list[Statement]()
    for own in program.statements:
        statements += [making, changed] if own.name == statement.name else [own]
    extents = tuple(Literal(extent, INDEX_TYPE) for extent in shape)
    tensors = (*program.tensors, Tensor(tensor, part.type, extents, Role.TEMPORARY, origin))
    layouts = {**specialization.layouts, tensor: Layout(part.type, shape, contiguous_strides(shape))}
    after = replace(program, tensors=tensors, statements=tuple(statements))
    return replace(specialization, program=after, layouts=layouts), changed, Hoisted(statement.name, name, tensor)


def _lanes_last(
    statement: Statement, part: Expression, specialization: Specialization
) -> tuple[IterationVariable, ...]:
    """The iterators of a part, in the order in which the target has them in memory."""
    used, strides = iterators_in((part,)), specialization.layouts[statement.target].strides

    def distance(own: IterationVariable) -> int:
        moving = zip(statement.subscripts, strides, strict=True)
        return max((step for subscript, step in moving if own.name in iterators_in((subscript,))), default=1 << 62)

    kept = (own for own in statement.iterators if own.name in used)
    return tuple(sorted(kept, key=distance, reverse=True))
