"""The loops of a chain of products, whose blocks go through all keys with some rows.

Each warp has 16 rows: the sums of both products lie in its lanes as its instructions want, and so does all that is done
key by key between them.  What the second product multiplies goes through shared memory, where other lanes have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import replace
from functools import reduce
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.polyhedral.gpu.tensor.tile_shapes import GROUP, PAIR
from tc.polyhedral.ir.chained import AT_A_TIME, KEYS, QUADS, ROWS, STEPS, Chain, Link, Part
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Filter, Leaf, Member, Node, ScheduleTree, Sequence

# Rows of a warp, in two eights.
_WARP_ROWS: Final = 16
# Threads along y.
_Y: Final = ROWS * GROUP // _WARP_ROWS


def chain_products(tree: ScheduleTree, scop: Scop) -> ScheduleTree:
    """The tree in which the statements of the chain, if there is one, are one kernel."""
    if scop.chain is None:
        return tree
    builder = _Builder(scop, scop.chain)
    domain = builder.domain(builder.places)
    filters, first = list[Filter](), None
    nests = tree.root.filters if isinstance(tree.root, Sequence) else (Filter(tree.domain.universe(), tree.root),)
    for branch in nests:
        own = branch.domain.intersect(tree.domain)
        if own.intersect(domain).is_empty():
            filters.append(branch)
            continue
        if not own.is_subset(domain):
            return tree
        first = len(filters) if first is None else first
    filters.insert(first or 0, Filter(domain.universe(), builder.kernel()))
    return replace(tree, root=Sequence(tuple(filters)) if len(filters) > 1 else filters[0].child)


def _statements(link: Link, scop: Scop) -> list[str]:
    """Those of the scop that a link has become, in order."""
    names = {own.name for own in scop.statements}
    suffixes = (
        ("_total_handed", "_total_init", "_total", "_total_round") if link.part is Part.REDUCTION else ("_round",)
    )
    wanted = [f"{link.statement}_init", link.statement, *(link.statement + own for own in suffixes)]
    return [name for name in wanted if name in names]


@frozen
class _Place:
    """How a statement lies: expressions of its iterators ``i0, i1, ...``, "" where it has none.

    ``around``: what blocks have, and the row behind it.  ``lane``: along x.  ``steps``: of a sum of its own.
    """

    name: str
    link: Link
    around: tuple[str, ...]
    lane: str
    key: str = ""
    column: str = ""
    steps: str = ""

    @property
    def row(self) -> str:
        return self.around[-1]


class _Builder:
    def __init__(self, scop: Scop, chain: Chain) -> None:
        self.scop: Final = scop
        self.chain: Final = chain
        self.places: Final = [self.place(link, name) for link in chain.links for name in _statements(link, scop)]

    def place(self, link: Link, name: str) -> _Place:
        """Where instances of a statement belong."""
        iterators = self.scop.statement(name).body.iterators
        at = {iterator: f"i{n}" for n, iterator in enumerate(iterators)}
        own = _Place(name, link, tuple(f"i{n}" for n in range(self.chain.around)), "0")
        last = f"i{self.chain.around}"
        match link.part:
            case Part.SCORES | Part.KEYS:
                key = at[link.column]
                return replace(own, lane=_lane(key), key=key, steps=at.get(link.steps, ""))
            case Part.SUMS | Part.COLUMNS:
                return replace(own, lane=_lane(last), column=last, key=at.get(link.steps, ""))
            case Part.REDUCTION if name == link.statement:
                step = f"i{self.chain.around + 1}"
                return replace(own, lane=last, key=f"{2 * QUADS} * floor({step}/2) + 2 * {last} + {step} mod 2")
            case Part.REDUCTION if name in (f"{link.statement}_init", f"{link.statement}_total_handed"):
                return replace(own, lane=last)
            case _:
                return replace(own, steps=last if len(iterators) > self.chain.around else "")

    def domain(self, places: Items[_Place]) -> isl.UnionSet:
        """The instances of statements."""
        every = (isl.UnionSet.from_set(self.scop.statement(own.name).domain) for own in places)
        return reduce(isl.UnionSet.union, every)

    # --- the phases

    def kernel(self) -> Node:
        """The blocks and threads around them."""
        blocks = [self.member([(own, own.around[n]) for own in self.places]) for n in range(self.chain.around - 1)]
        blocks.append(self.member([(own, f"floor({own.row}/{ROWS})") for own in self.places]))
        y = self.member([(own, f"{own.row} mod {_Y}") for own in self.places])
        x = self.member([(own, own.lane) for own in self.places])
        members = (
            *(replace(own, kind=LoopKind.BLOCK) for own in blocks),
            replace(y, kind=LoopKind.THREAD, launched=_Y),
            replace(x, kind=LoopKind.THREAD, launched=QUADS),
        )
        filters = [own for phase in self.chain.phases for own in self.phase(phase)]
        return Band(members, permutable=True, child=Sequence(tuple(filters)))

    def phase(self, phase: int) -> Iterator[Filter]:
        """What is begun, the loop over keys, and what follows it."""
        own = [place for place in self.places if place.link.phase == phase]
        along = [place for place in own if place.key]
        before = [place for place in own if not place.key and place.name == f"{place.link.statement}_init"]
        behind = [place for place in own if place not in along and place not in before]
        yield from map(self.branch, before)
        if along:
            tile = self.member([(place, f"floor(({place.key})/{KEYS})") for place in along], coincident=False)
            inside = Sequence(tuple(map(self.branch, along)))
            yield Filter(self.domain(along).universe(), Band((tile,), permutable=True, child=inside))
        yield from map(self.branch, behind)

    # --- single statements

    def branch(self, place: _Place) -> Filter:
        """The loops of one statement in a tile: those over points of which each thread has its own are inside."""
        rows = replace(self.one(place, f"floor({place.row}/{_Y}) mod {ROWS // _Y}"), digit=True)
        points = [rows, *self.points(place)]
        if place.name == place.link.statement and place.link.part in (Part.SCORES, Part.SUMS):
            # Operands in shared memory are as large as whole instructions only where some tile is whole.
            most = min(AT_A_TIME, self.chain.steps // STEPS * STEPS)
            step, size = (place.steps, most) if place.steps else (place.key, KEYS)
            tile = self.one(place, f"floor({step}/{size})", coincident=False)
            instruction = self.one(place, f"floor(({step} mod {size})/{STEPS})", coincident=False)
            inside = replace(self.one(place, f"({step} mod {size}) mod {STEPS}", coincident=False), in_group=True)
            nest = Band((instruction, inside, *points), permutable=True, child=Leaf())
            return Filter(self.domain([place]).universe(), Band((tile,), permutable=True, child=nest))
        if place.steps:
            points.append(self.one(place, place.steps, coincident=False))
        return Filter(self.domain([place]).universe(), Band(tuple(points), permutable=True, child=Leaf()))

    def points(self, place: _Place) -> list[Member]:
        """The loops over the keys of a tile, or over columns, that a thread has: pairs of them."""
        points, size = (place.column, self.chain.columns) if place.column else (place.key, KEYS)
        if not points:
            return []
        coincident, inside = place.link.part is not Part.REDUCTION, f"({points}) mod {size}"
        blocks = self.one(place, f"floor(({inside})/{PAIR * QUADS})", coincident=coincident)
        pair = self.one(place, f"({inside}) mod {PAIR}", coincident=coincident)
        return [replace(blocks, digit=True), replace(pair, in_group=True, digit=True)]

    def one(self, place: _Place, value: str, *, coincident: bool = True) -> Member:
        """A loop of one statement."""
        return self.member([(place, value)], coincident=coincident)

    def member(self, values: Items[tuple[_Place, str]], *, coincident: bool = True) -> Member:
        """A loop whose value each of the statements has by an expression."""
        function = isl.UnionPwAff.empty(isl.Space.params_alloc(self.scop.context, 0))
        for place, value in values:
            statement = self.scop.statement(place.name)
            names = ", ".join(f"i{n}" for n in range(len(statement.body.iterators)))
            text = f"{{ {place.name}[{names}] -> [({value})] }}"
            own = isl.PwAff.read_from_str(self.scop.context, text).intersect_domain(statement.domain)
            function = function.union_add(isl.UnionPwAff.from_pw_aff(own))
        return Member(function, coincident)


def _lane(points: str) -> str:
    """The lane along x of one of several points in a row."""
    return f"floor({points}/{PAIR}) mod {QUADS}"
