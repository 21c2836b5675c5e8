"""Runs through a loop tree, and tells in order what it prefetches and which instances it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tc.polyhedral.ir.loops import Allocation, Block, Guard, Instance, Loop, LoopTree, Prefetch
from tests.polyhedral.enumeration import index


@dataclass(frozen=True)
class Asked:
    """A prefetch, from the element ``offset`` on."""

    prefetch: Prefetch
    offset: int


@dataclass(frozen=True)
class Run:
    """An instance of a statement."""

    statement: str
    point: tuple[int, ...]


def events(tree: LoopTree, values: Mapping[str, int], *, instances: bool) -> Iterator[Asked | Run]:
    """``instances``: also those, not only the prefetches."""
    match tree:
        case Loop() if instances or _asks(tree):
            for value in range(index(tree.lower, values), index(tree.upper, values) + 1, tree.step):
                inside = {**values, tree.iterator: value}
                yield from events(tree.body, inside, instances=instances)
        case Block(children):
            for child in children:
                yield from events(child, values, instances=instances)
        case Allocation(_, body):
            yield from events(body, values, instances=instances)
        case Guard(condition, then, otherwise):
            chosen = then if index(condition, values) else otherwise
            if chosen is not None:
                yield from events(chosen, values, instances=instances)
        case Prefetch(offset=offset):
            yield Asked(tree, index(offset, values))
        case Instance(statement, arguments) if instances:
            yield Run(statement, tuple(index(argument, values) for argument in arguments))
        case _:
            pass


def _asks(tree: LoopTree) -> bool:
    match tree:
        case Prefetch():
            return True
        case Loop(body=body):
            return _asks(body)
        case Block(children):
            return any(map(_asks, children))
        case Allocation(_, body):
            return _asks(body)
        case Guard(_, then, otherwise):
            return _asks(then) or (otherwise is not None and _asks(otherwise))
        case _:
            return False
