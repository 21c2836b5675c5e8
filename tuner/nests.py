"""From a specialized program to the loops that a search space is made for."""

from __future__ import annotations

from tc.language.program import IterationVariable, Literal, written_iterators
from tc.language.specialization import Specialization
from tc.tuner.nest import Nest


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
