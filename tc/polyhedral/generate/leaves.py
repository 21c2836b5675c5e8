"""Which nodes the instances of a schedule become at the leaves of loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Final, TypeAlias

from tc.base.frozen import frozen
from tc.language.program.program import Read
from tc.polyhedral.ir.loops import Barrier, Copy, IndexExpression, Instance
from tc.polyhedral.ir.scop import Promotion, Scop

_Pattern: TypeAlias = Instance | Copy | Barrier


@frozen
class Leaves:
    """``patterns``: nodes without arguments, by name; what has another name becomes a plain ``Instance``."""

    patterns: Mapping[str, _Pattern] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def barriers(self) -> frozenset[str]:
        """The names of the barriers."""
        return frozenset(name for name, pattern in self.patterns.items() if isinstance(pattern, Barrier))

    def node(self, name: str, arguments: tuple[IndexExpression, ...]) -> _Pattern:
        """The node of what the schedule calls so."""
        return replace(self.patterns.get(name, Instance(name, ())), arguments=arguments)


PLAIN: Final = Leaves()


def leaves_of(scop: Scop, streamed: frozenset[str] = frozenset()) -> Leaves:
    """Those of a mapped program; ``streamed``: the results that are stored with non-temporal stores."""
    buffers = {promotion.buffer.name for promotion in scop.promotions}
    patterns: dict[str, _Pattern] = {copy.statement: copy for copy in _copies(scop)}
    patterns |= {barrier.statement: barrier for barrier in _barriers(scop)}
    for statement in scop.statements:
        value = statement.body.value
        if statement.body.target in streamed and isinstance(value, Read) and value.tensor in buffers:
            own = patterns.get(statement.name, Instance(statement.name, ()))
            assert isinstance(own, Instance)
            patterns[statement.name] = replace(own, nontemporal=True)
    return Leaves(MappingProxyType(patterns))


def _barriers(scop: Scop) -> Iterator[Barrier]:
    """One at which no copy is awaited waits for all of them.  What is swizzled is read by matrix instructions."""
    fenced = any(promotion.buffer.swizzle for promotion in scop.promotions)
    for name in scop.barrier_names:
        awaited = [own.pending for own in scop.awaits.values() if own.barrier == name]
        yield Barrier(name, (), min(awaited, default=0) if scop.awaits else None, fenced)


def _copies(scop: Scop) -> Iterator[Copy]:
    for promotion in scop.promotions:
        if promotion.stores is not None:
            yield Copy(promotion.stores, ())
        if promotion.loads is not None:
            yield _load(promotion, promotion.loads, scop)


def _load(promotion: Promotion, name: str, scop: Scop) -> Copy:
    """A gather is synchronous: its index is read and checked first."""
    if promotion.gathered is None:
        awaited = scop.awaits.get(name)
        return Copy(name, (), group=None if awaited is None else awaited.barrier)
    readers = [
        statement.name
        for statement in scop.statements
        if any(access.buffer == promotion.buffer.name and access.reads for access in statement.promoted)
    ]
    return Copy(name, (), gathers_for=readers[-1] if readers else None)
