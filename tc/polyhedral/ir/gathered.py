"""Gathers: accesses through an index that is itself read, and the elements that a copy of them holds."""

from __future__ import annotations

from collections.abc import Iterable

import islpy as isl

from tc.base.frozen import frozen
from tc.language.program.program import (
    INDEX_TYPE,
    Expression,
    IteratorReference,
    Literal,
    Read,
    children,
    in_terms_of,
    iterators_in,
    rebuild,
    walk,
)


@frozen
class Gathered:
    """What a read finds through an index that is read, too: one element for all values of the iterators it mentions.

    ``name``: of the tensor that has these elements, which is nowhere.  ``read``: in terms of the ``iterators`` of the
    statement that it is from, of which those that it mentions are the subscripts.
    """

    name: str
    read: Read
    iterators: tuple[str, ...]

    @property
    def subscripts(self) -> tuple[str, ...]:
        """The iterators that the read mentions, in the order of the statement."""
        used = iterators_in(self.read.subscripts)
        return tuple(iterator for iterator in self.iterators if iterator in used)

    @property
    def inside(self) -> int:
        """How many reads there are inside of it."""
        return len(self.tensors) - 1

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensor that is read, and that of every index."""
        return tuple(part.tensor for part in walk(self.read) if isinstance(part, Read))

    def at(self, subscripts: Iterable[Expression]) -> tuple[Expression, ...]:
        """The subscripts of the read that finds the element with these subscripts."""
        values = dict(zip(self.subscripts, subscripts, strict=True))
        return tuple(in_terms_of(subscript, values) for subscript in self.read.subscripts)

    def matched(self, value: Expression) -> tuple[Expression, ...] | None:
        """The subscripts of the element that another expression finds; None if it finds it in another way."""
        found: dict[str, Expression] = {}
        if not _matches(self.read, value, frozenset(self.subscripts), found) or len(found) < len(self.subscripts):
            return None
        return tuple(found[name] for name in self.subscripts)

    def relation(self, domain: isl.Set) -> isl.Map:
        """``{ instance -> element }`` of the statement's instances."""
        own = [f"i{n}" for n in range(len(self.iterators))]
        element = [own[self.iterators.index(name)] for name in self.subscripts]
        text = f"{{ [{', '.join(own)}] -> [{', '.join(element)}] }}"
        relation = isl.Map.read_from_str(domain.get_ctx(), text)
        relation = relation.set_tuple_name(isl.dim_type.in_, domain.get_tuple_name())
        return relation.set_tuple_name(isl.dim_type.out, self.name).intersect_domain(domain)


def _matches(pattern: Expression, value: Expression, names: frozenset[str], found: dict[str, Expression]) -> bool:
    """Whether the value is the pattern with iterators of these names replaced, each by one expression."""
    if isinstance(pattern, IteratorReference) and pattern.name in names:
        return found.setdefault(pattern.name, value) == value
    below, other = list(children(pattern)), list(children(value))
    if len(below) != len(other) or _without_children(pattern) != _without_children(value):
        return False
    return all(_matches(a, b, names, found) for a, b in zip(below, other, strict=True))


def _without_children(expression: Expression) -> Expression:
    return rebuild(expression, lambda _: Literal(0, INDEX_TYPE))
