"""From a specialized program to the loops that a search space is made for."""

from __future__ import annotations

from typing import Final

from tc.language.program.program import (
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Read,
    Role,
    Select,
    Statement,
    iterators_in,
    walk,
)
from tc.language.program.specialization import Layout, Specialization
from tc.language.program.written_elements import is_scatter, written_iterators
from tc.targets.target import CpuTarget, OpenClTarget, Target
from tc.tuner.space.nest import Nest

# The smallest of the values that are tried for it, but for 0.
_LEAST_STREAMED: Final = 1 << 20


def nest_of(specialization: Specialization) -> Nest:
    """The loops of all statements; a range that is not made of numbers counts as long as the longest dimension."""
    statements = specialization.program.statements
    longest = max((extent for layout in specialization.layouts.values() for extent in layout.shape), default=1)
    extents: dict[str, int] = {}
    reduced: list[str] = []
    independent = 0
    for number, statement in enumerate(statements):
        written = written_iterators(statement)
        for place, iterator in enumerate(statement.iterators):
            name = f"{number}.{place}"
            extents[name] = max(1, _extent(iterator, longest))
            if statement.reduction is not None and iterator not in written:
                reduced.append(name)
        if statement.reduction is not None:
            independent = max(independent, len(written))
    depth = max((len(statement.iterators) for statement in statements), default=0)
    return Nest(extents, depth, independent, tuple(reduced))


def _extent(iterator: IterationVariable, longest: int) -> int:
    match iterator:
        case IterationVariable(_, Literal(begin), Literal(end)):
            return int(end) - int(begin)
        case _:
            return longest


def silent_options(specialization: Specialization, target: Target) -> frozenset[str]:
    """The names of options that change nothing for this program on this target."""
    program, silent = specialization.program, set[str]()
    statements = program.statements
    if not any(_is_gather(e) for s in statements for root in (s.value, *s.subscripts) for e in walk(root)):
        silent.add("gather_prefetch")
    if not any(map(is_scatter, statements)):
        silent |= {"scatter_owners", "scatter_parts"}
    scans = any(map(_may_grow, statements))
    if not scans:
        silent.add("scans")
    if not scans and not any(tensor.role is Role.TEMPORARY for tensor in program.tensors):
        silent.add("local_temporaries")
    if not any(statement.reduction is not None for statement in statements):
        silent |= {"register_accumulators", "packed_operands", "register_tile", "vector_axis"}
    largest = max((_bytes(specialization.layouts[name]) for name in program.results), default=0)
    if not (isinstance(target, CpuTarget) and target.streams) or largest < _LEAST_STREAMED:
        silent.add("nontemporal_stores")
    if isinstance(target, OpenClTarget):
        silent |= {"min_blocks_per_multiprocessor", "shuffles"}
    return frozenset(silent)


def _may_grow(statement: Statement) -> bool:
    """Whether the terms of a reduction depend on which element they are of, as those of a scan do."""
    written = {iterator.name for iterator in written_iterators(statement)}
    names = {iterator.name for iterator in statement.iterators}
    selects = (part.condition for part in walk(statement.value) if isinstance(part, Select))
    bounds = ((IteratorReference(i.name), i.begin, i.end) for i in statement.iterators)
    tied = (iterators_in(own) for own in (*bounds, *((condition,) for condition in (*statement.conditions, *selects))))
    return statement.reduction is not None and any(own & written and own & (names - written) for own in tied)


def _is_gather(expression: Expression) -> bool:
    return isinstance(expression, Read) and any(isinstance(e, Read) for s in expression.subscripts for e in walk(s))


def _bytes(layout: Layout) -> int:
    return layout.size * layout.type.itemsize
