"""Tiling of perfect and imperfect nests (paper, Section 5.3).

A tiled member becomes a tile loop where it stands and a point loop.  Parallel point loops are sunk: they carry no
dependence, so they may run below any other loop, and they are replicated into every branch below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias, assert_never

import islpy as isl

from tc.base.errors import OptionsError
from tc.base.frozen import frozen
from tc.language.isl.pieces import functions_of, pieces_of
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence
from tc.polyhedral.transform.digits import Digit, loops_over_digits


@frozen
class Cut:
    """How one member is tiled: the size, 0 for not at all, and the kind of the loop over a tile's points.

    ``within``: the points are walked in two loops, over groups of so many and inside a group; 0 for one loop.
    ``threads``: how many of a block share the points, if that was asked for; 0 for the default.  ``run``: neighbouring
    points that each of them has, where that does not follow from the distribution.  ``last``: among the
    dimensions of a grid and its blocks, it comes behind all others.  ``whole``: the loop is one tile, for the threads
    of a block; a grid has no dimension for it.  ``blocked``: points are dealt in runs where the distribution is left
    open.  ``digits``: of the number of a point, the lowest one first, where they say which thread has it.
    ``innermost``: of several loops that reduce, points of this one are walked inside of those of all others.
    """

    size: int
    points: LoopKind = LoopKind.SEQUENTIAL
    within: int = 0
    threads: int = 0
    run: int = 0
    last: bool = False
    whole: bool = False
    blocked: bool = False
    digits: tuple[Digit, ...] = ()
    innermost: bool = False


WHOLE: Final = Cut(0)
# A tile for every iteration, of which no thread has a part.
_ONE: Final = Cut(1, last=True)

# What messages say of the order of the sizes.
OUTERMOST_FIRST: Final = "tile begins with the outermost loop"

# The cuts of a band's members, given the instances below it, the number of members above it on its path, and the
# points of tiles that will be sunk through it.
ChooseCuts: TypeAlias = Callable[[Band, isl.UnionSet, int, tuple[Member, ...]], tuple[Cut, ...]]


def explicit_sizes(sizes: tuple[int, ...], *, rounded: bool = False) -> ChooseCuts:
    """Sizes for the members along every path, outermost first; 0 and members beyond the end are not tiled.

    Loops of register tiles, those inside groups, those over chunks of steps and those over partial results that blocks
    have are not counted; of the last, every tile is one iteration.  ``rounded``: tiles hold whole groups; otherwise
    OptionsError where a size is no multiple of the register tile's.
    """

    def cut(size: int, member: Member) -> Cut:
        step = step_of(member)
        return Cut(_in_steps(-(-size // step) * step if rounded else size, step))

    def choose(band: Band, _domain: isl.UnionSet, depth: int, _points: tuple[Member, ...]) -> tuple[Cut, ...]:
        own = zip(sizes_at(sizes, band, depth), band.members, strict=True)
        return tuple(_ONE if member.split and member.coincident else cut(size, member) for size, member in own)

    return choose


def sizes_at(sizes: tuple[int, ...], band: Band, depth: int) -> tuple[int, ...]:
    """The sizes that belong to the members of a band with ``depth`` members above it; 0 for none."""
    own = [position for position, member in enumerate(band.members) if is_counted(member)]
    chosen = dict(zip(own, sizes[depth:], strict=False))
    return tuple(chosen.get(position, 0) for position in range(len(band.members)))


def _in_steps(size: int, step: int) -> int:
    if size % step:
        raise OptionsError(
            f"tile size {size} is not a multiple of {step}, the size of the register tile of the same loop; "
            "change one of them"
        )
    return size // step


def step_of(member: Member) -> int:
    """How many iterations one iteration of the member stands for: those of its register tile."""
    # Of a statement each, of which some may be outside of the loop.
    parts = [part for function in functions_of(member.function) for _, part in pieces_of(function)]
    single = [part.get_div(0) for part in parts if part.dim(isl.dim_type.div) == 1]
    return max((int(division.get_denominator_val().to_python()) for division in single), default=1)


def is_register(member: Member) -> bool:
    """Whether the member is a loop of a register tile."""
    return member.kind in (LoopKind.REGISTER, LoopKind.VECTOR)


def is_counted(member: Member) -> bool:
    """Whether the member is one of those that sizes of tiles are given for: a loop of the schedule."""
    around = member.kind.is_mapped or member.kind is LoopKind.LAUNCH
    return not (is_register(member) or around or member.in_group or member.split or member.chunks)


def stays_whole(member: Member, domain: isl.UnionSet) -> bool:
    """Whether a loop is never tiled: points of one that carries dependences would stay around all of its statements."""
    return not member.coincident and domain.n_set() > 1


def in_groups(member: Member, size: int) -> tuple[Member, Member]:
    """A loop over groups of so many iterations, and one over the iterations of a group."""
    value = isl.Val.int_from_si(member.function.get_ctx(), size)
    kind = LoopKind.SEQUENTIAL if member.kind is LoopKind.VECTOR else member.kind
    group = replace(member, function=member.function.scale_down_val(value).floor(), kind=kind)
    return group, replace(member, function=member.function.mod_val(value), in_group=True)


def tile_tree(tree: ScheduleTree, choose: ChooseCuts) -> ScheduleTree:
    """Tile every band by the sizes chosen for it; points of parallel members end up at the leaves."""
    return replace(tree, root=_Tiler(choose).tile(tree.root, tree.domain, 0, ()))


@frozen
class _Tiler:
    choose: ChooseCuts

    def tile(self, node: Node, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> Node:
        """The subtree with its own bands tiled and the point loops from above sunk into it."""
        match node:
            case Leaf():
                return Band(points, permutable=True, child=node) if points else node
            case Sequence(filters):
                if all(isinstance(branch.child, Leaf) for branch in filters):
                    return Band(points, permutable=True, child=node) if points else node
                return Sequence(tuple(self.branch(f, domain, depth, points) for f in filters))
            case Band():
                return self.band(node, domain, depth, points)
            case Extension():
                raise AssertionError("buffers are placed in tiled trees, so tiling comes first")
            case _:
                assert_never(node)

    def branch(self, branch: Filter, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> Filter:
        inside = domain.intersect(branch.domain)
        kept = tuple(replace(p, function=p.function.intersect_domain(branch.domain)) for p in points)
        return replace(branch, child=self.tile(branch.child, inside, depth, kept))

    def band(self, band: Band, domain: isl.UnionSet, depth: int, points: tuple[Member, ...]) -> Node:
        if any(member.kind is LoopKind.LAUNCH for member in band.members):
            return replace(band, child=self.tile(band.child, domain, depth, points))
        cuts = self.choose(band, domain, depth, points)
        tiles: list[Member] = []
        carried: list[Member] = []
        innermost: list[Member] = []
        sunk = list(points)
        for member, cut in zip(band.members, cuts, strict=True):
            if cut.size in (0, 1) or member.chunks or stays_whole(member, domain):
                tiles.append(member)
                continue
            value = isl.Val.int_from_si(member.function.get_ctx(), cut.size)
            tiles.append(replace(member, function=member.function.scale_down_val(value).floor()))
            point = Member(member.function.mod_val(value), member.coincident, cut.points)
            if cut.digits:
                sunk.extend(loops_over_digits(point, cut.digits))
                continue
            walked = sunk if member.coincident else innermost if cut.innermost and band.permutable else carried
            walked.extend(in_groups(point, cut.within) if cut.within else (point,))
        carried += innermost
        counted = sum(map(is_counted, band.members))
        if carried and not band.permutable:
            # What a step needs of the one before may lie in another tile of the loops inside.
            inside = self.tile(band.child, domain, depth + counted, tuple(sunk))
            below: Node = Band(tuple(carried), permutable=False, child=inside)
        else:
            below = self.tile(band.child, domain, depth + counted, (*carried, *sunk))
        return Band(_without_single(tuple(tiles), domain), band.permutable, below)


def _without_single(tiles: tuple[Member, ...], domain: isl.UnionSet) -> tuple[Member, ...]:
    """The loops over tiles without those of reductions that fit one, where others go on reducing.

    What is copied for a tile is copied below the innermost of them, and that should be one that runs.
    """
    going_on = tuple(member for member in tiles if member.coincident or extent_of(member.function, domain) > 1)
    return tiles if all(member.coincident for member in going_on) else going_on
