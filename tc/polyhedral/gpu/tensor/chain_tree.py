"""The loops of a chain of products, whose blocks go through all keys with some rows.

Each warp has 16 rows: the sums of both products lie in its lanes as its instructions want, and so does all that is done
key by key between them.  What the second product multiplies goes through shared memory, where other lanes have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.language.isl.pieces import sets_of
from tc.polyhedral.gpu.tensor.chains import KEYS, ROWS
from tc.polyhedral.gpu.tensor.warp_tiles import GROUP, PAIR, QUADS
from tc.polyhedral.ir.chained import Chain, Link, Part
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Filter, Leaf, Member, Node, ScheduleTree, Sequence

# Rows of a warp, which are eight apart from each other in it, and steps of an instruction.
_WARP_ROWS: Final = 16
_STEPS: Final = 16
# Steps of the first product whose operands lie in shared memory at a time.
_AT_A_TIME: Final = 64
# Threads along y.
_Y: Final = ROWS * GROUP // _WARP_ROWS


def chain_products(tree: ScheduleTree, scop: Scop) -> ScheduleTree:
    """The tree in which the statements of the chain, if there is one, are one kernel."""
    if scop.chain is None or not isinstance(tree.root, Sequence):
        return tree
    names = {name for link in scop.chain.links for name in _statements(link, scop)}
    every = [_own(scop, name) for name in names]
    domain = every[0]
    for own in every[1:]:
        domain = domain.union(own)
    places = [n for n, branch in enumerate(tree.root.filters) if not branch.domain.intersect(domain).is_empty()]
    inside = [branch for n, branch in enumerate(tree.root.filters) if n in places]
    if any(not branch.domain.intersect(tree.domain).is_subset(domain) for branch in inside):
        return tree
    chained = Filter(domain.universe(), _Builder(scop, scop.chain).kernel())
    filters = [branch for n, branch in enumerate(tree.root.filters) if n not in places]
    filters.insert(places[0], chained)
    return replace(tree, root=Sequence(tuple(filters)) if len(filters) > 1 else chained.child)


def _own(scop: Scop, name: str) -> isl.UnionSet:
    return isl.UnionSet.from_set(scop.statement(name).domain)


_SUFFIXES: Final = ("init", "round")


def _statements(link: Link, scop: Scop) -> list[str]:
    """Those of the scop that a link has become, in order."""
    names = {own.name for own in scop.statements}
    suffixes = ("_total_handed", "_total_init", "_total") if link.part is Part.REDUCTION else ("_round",)
    wanted = [f"{link.statement}_init", link.statement, *(link.statement + own for own in suffixes)]
    return [name for name in wanted if name in names]


@frozen
class _Place:
    """How a statement lies: expressions of its iterators ``i0, i1, ...`` for rows, keys and columns."""

    name: str
    link: Link
    around: tuple[str, ...]
    row: str
    key: str | None
    column: str | None
    lane: str
    steps: str | None


class _Builder:
    def __init__(self, scop: Scop, chain: Chain) -> None:
        self.scop: Final = scop
        self.chain: Final = chain
        self.places: Final = [self.place(link, name) for link in chain.links for name in _statements(link, scop)]

    def place(self, link: Link, name: str) -> _Place:
        """Where instances of a statement belong."""
        iterators = self.scop.statement(name).body.iterators
        at = {iterator: f"i{n}" for n, iterator in enumerate(iterators)}
        around = tuple(f"i{n}" for n in range(self.chain.around))
        key = column = steps = None
        lane = "0"
        match link.part:
            case Part.SCORES:
                key, steps = at[link.column], at.get(link.steps)
            case Part.KEYS:
                key = at[link.column]
            case Part.SUMS:
                column, key = at.get(link.column, f"i{self.chain.around}"), at.get(link.steps)
            case Part.COLUMNS:
                column = at[link.column]
            case Part.REDUCTION:
                part = f"i{self.chain.around}"
                if name == link.statement:
                    step = f"i{self.chain.around + 1}"
                    key = f"{2 * QUADS} * floor({step}/2) + 2 * {part} + {step} mod 2"
                    lane = part
                elif name in (f"{link.statement}_init", f"{link.statement}_total_handed"):
                    lane = part
                else:
                    steps = part if len(iterators) > self.chain.around else None
            case Part.ROW:
                pass
        points = column or key
        if points is not None and link.part is not Part.REDUCTION:
            lane = f"floor(({points})/{PAIR}) mod {QUADS}"
        return _Place(name, link, around[:-1], around[-1], key, column, lane, steps)

    # --- members

    def member(self, places: Items[_Place], value: dict[str, str], *, coincident: bool, **more: object) -> Member:
        """A loop whose value each of the statements has by an expression."""
        function = isl.UnionPwAff.empty(isl.Space.params_alloc(self.scop.context, 0))
        for own in places:
            count = len(self.scop.statement(own.name).body.iterators)
            names = ", ".join(f"i{n}" for n in range(count))
            text = f"{{ {own.name}[{names}] -> [({value[own.name]})] }}"
            part = isl.PwAff.read_from_str(self.scop.context, text)
            function = function.union_add(isl.UnionPwAff.from_pw_aff(part.intersect_domain(self.scop.statement(own.name).domain)))
        return replace(Member(function, coincident), **more)  # type: ignore[arg-type]

    def of_all(self, places: Items[_Place], value: object, **more: object) -> Member:
        raise NotImplementedError

    def kernel(self) -> Node:
        """The blocks and threads around the phases."""
        every = self.places
        members = [
            self.member(every, {p.name: p.around[n] for p in every}, coincident=True, kind=LoopKind.BLOCK)
            for n in range(self.chain.around - 1)
        ]
        members += [
            self.member(every, {p.name: f"floor({p.row}/{ROWS})" for p in every}, coincident=True, kind=LoopKind.BLOCK),
            self.member(
                every, {p.name: f"{p.row} mod {_Y}" for p in every}, coincident=True, kind=LoopKind.THREAD, launched=_Y
            ),
            self.member(
                every, {p.name: p.lane for p in every}, coincident=True, kind=LoopKind.THREAD, launched=QUADS
            ),
        ]
        filters = [own for phase in self.chain.phases for own in self.phase(phase)]
        return Band(tuple(members), permutable=True, child=Sequence(tuple(filters)))

    def phase(self, phase: int) -> Iterator[Filter]:
        """What is begun, the loop over keys, and what follows it."""
        own = [place for place in self.places if place.link.phase == phase]
        along = [p for p in own if self.is_along_keys(p)]
        begun = [p for p in own if p.name == f"{p.link.statement}_init" and p not in along and p.link.goes_along_keys]
        yield from (self.branch([p], self.nest(p)) for p in begun)
        if along:
            tile = self.member(along, {p.name: f"floor(({p.key})/{KEYS})" for p in along}, coincident=False)
            inside = Sequence(tuple(self.branch([p], self.nest(p)) for p in along))
            yield self.branch(along, Band((tile,), permutable=True, child=inside))
        yield from (self.branch([p], self.nest(p)) for p in own if p not in along and p not in begun)

    def is_along_keys(self, place: _Place) -> bool:
        return place.key is not None

    def branch(self, places: Items[_Place], node: Node) -> Filter:
        domain = _own(self.scop, places[0].name)
        for own in places[1:]:
            domain = domain.union(_own(self.scop, own.name))
        return Filter(domain.universe(), node)

    def nest(self, place: _Place) -> Node:
        """The loops of one statement in a tile: those over points inside, of which each thread has its own."""
        name, link = place.name, place.link
        rows = self.one(place, f"floor({place.row}/{_Y}) mod {ROWS // _Y}", digit=True)
        is_product = link.part in (Part.SCORES, Part.SUMS) and name == link.statement
        points = [rows, *self.points(place, coincident=name == link.statement and link.part is not Part.REDUCTION or name.endswith(_SUFFIXES))]
        if is_product and link.part is Part.SCORES:
            steps = place.steps
            return Band(
                (self.one(place, f"floor({steps}/{_AT_A_TIME})", coincident=False),),
                permutable=True,
                child=Band((*self.steps(place, f"{steps} mod {_AT_A_TIME}"), *points), permutable=True, child=Leaf()),
            )
        if is_product:
            return Band(
                (self.one(place, f"floor({place.key}/{KEYS})", coincident=False),),
                permutable=True,
                child=Band((*self.steps(place, f"{place.key} mod {KEYS}"), *points), permutable=True, child=Leaf()),
            )
        if place.steps is not None:
            points.append(self.one(place, place.steps, coincident=False))
        return Band(tuple(points), permutable=True, child=Leaf())

    def steps(self, place: _Place, step: str) -> list[Member]:
        """Instructions, one after the other, and the steps of each."""
        return [
            self.one(place, f"floor(({step})/{_STEPS})", coincident=False),
            self.one(place, f"({step}) mod {_STEPS}", coincident=False, in_group=True),
        ]

    def points(self, place: _Place, *, coincident: bool) -> list[Member]:
        """The loops over keys of a tile, or over columns, that a thread has: pairs of them."""
        points, size = (place.column, self.chain.columns) if place.column is not None else (place.key, KEYS)
        if points is None:
            return []
        inside = f"({points}) mod {size}"
        return [
            self.one(place, f"floor(({inside})/{PAIR * QUADS})", coincident=coincident, digit=True),
            self.one(place, f"({inside}) mod {PAIR}", coincident=coincident, in_group=True, digit=True),
        ]

    def one(self, place: _Place, value: str, *, coincident: bool = True, **more: object) -> Member:
        return self.member([place], {place.name: value}, coincident=coincident, **more)
