"""Proof that no float32 sum has a long serial chain of additions, counted apart from what cuts them.

A chain is what is added to one float32 value one after the other: terms to a partial sum until it is folded into its
total and begun again, partial sums to a total in float32, and roundings to an element in memory, which a loop with a
total makes one of.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, assert_never

from tc.base.errors import VerificationError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.language.isl.affine import parameter_name
from tc.language.program.program import Read, Reduction, walk
from tc.language.program.specialization import Layout
from tc.language.program.written_elements import scatters
from tc.polyhedral.analysis.accumulate import accumulation, target_iterators
from tc.polyhedral.analysis.element_counts import Count, Elements, Path, most_met, most_trips, moving_loops
from tc.polyhedral.analysis.offsets import Forms
from tc.polyhedral.analysis.ranges import Range, always_runs, range_of
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexExpression,
    Instance,
    Leaf,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    StatementBody,
    variables,
)
from tc.polyhedral.ir.totals import Total

# Additions to one float32 value, one after the other.
LONGEST: Final = 64
# To one in memory, where data say which it is.
LONGEST_SCATTERED: Final = 4096


def prove_chains(program: LoopProgram, after: LoopTree) -> None:
    """VerificationError where a sum of the program, run by the loops ``after``, has a chain of more than 64 additions.

    Or of more than 4,096, where data say to which elements is added.  Of sums in float32; those that have so few terms
    need no proof.
    """
    buffers = (*program.buffers, *program.temporaries, *program.promoted)
    layouts = {buffer.name: buffer.layout for buffer in buffers}
    start = Path({parameter_name(name): Range(1, most) for name, most in program.sizes})
    bodies = {body.name: body for body in program.bodies}
    for body in program.bodies:
        in_float32 = body.reduction is Reduction.ADD and layouts[body.target].type is ScalarType.FLOAT32
        # Terms that read the element itself make a recurrence, of which no partial sums can be made.
        in_parts = in_float32 and not _reads(body, body.target)
        longest = LONGEST_SCATTERED if any(map(scatters, body.subscripts)) else LONGEST
        if in_parts and (body.terms is None or body.terms > longest):
            _Sum(body, bodies, layouts, Forms()).prove(after, start, longest)


def _refused(reason: str) -> VerificationError:
    return VerificationError(f"the blocks of sums are not proven correct: {reason}")


@frozen
class _Chain:
    """Additions of a tree that is run once.

    ``through``: the most without a fold; -infinity where there always is one.  ``head``, ``tail``: before the first
    fold and behind the last one, or without any.  ``longest``: between any two.
    """

    through: Count = 0
    head: Count = 0
    tail: Count = 0
    longest: Count = 0

    def then(self, other: _Chain) -> _Chain:
        """One tree behind the other."""
        return _Chain(
            self.through + other.through,
            max(self.head, self.through + other.head),
            max(other.tail, self.tail + other.through),
            max(self.longest, other.longest, self.tail + other.head),
        )

    def either(self, other: _Chain) -> _Chain:
        """One of two trees."""
        return _Chain(
            max(self.through, other.through),
            max(self.head, other.head),
            max(self.tail, other.tail),
            max(self.longest, other.longest),
        )

    def repeated(self, times: Count) -> _Chain:
        """The tree so many times, at most."""
        if times <= 1 or not self.head:
            return self
        others = max(0, self.through) and max(0, self.through) * (times - 1)
        between = max(0, self.through) and max(0, self.through) * (times - 2)
        meets = self.tail + between + self.head
        return _Chain(
            self.through and self.through * times,
            self.head + others,
            self.tail + others,
            max(self.longest, meets),
        )

    def folded(self, times: Count, every: int, *, always: bool) -> _Chain:
        """The tree so many times, with folds behind every so many; ``always``: at least once.

        How many there were since the last fold is counted on from one run of the loop to the next: so what is left of
        one run is at most what lacks of a fold.
        """
        run = self.repeated(min(times, every))
        if every == 1:
            return _Chain(-math.inf if always else 0, self.head, 0, max(self.longest, run.longest))
        rest = self.repeated(min(times, every - 1))
        return _Chain(0, self.head, rest.tail, max(self.longest, run.longest, run.through))


@frozen
class _Sum:
    """The sum of one statement."""

    body: StatementBody
    bodies: Mapping[str, StatementBody]
    layouts: Mapping[str, Layout]
    forms: Forms

    def prove(self, root: LoopTree, start: Path, longest: int) -> None:
        """VerificationError where more than the ``longest`` chain of roundings may come to one element."""
        roundings = most_met(self._met(root, self.body, start))
        for allocation in _nodes(root):
            if isinstance(allocation, Allocation) and allocation.buffer.name == self.body.target:
                roundings *= self._runs(root, allocation, start)
                break
        if min(roundings, roundings if self.body.terms is None else self.body.terms) > longest:
            raise _refused(f"{self.body.name} adds up to an element more than {longest} times, one after the other")

    # --- in memory

    def _runs(self, root: LoopTree, allocation: Allocation, start: Path) -> Count:
        """In how many runs of the allocation one sum is at most: it is stored by one, and loaded by the next."""
        others = [own for own in self.bodies.values() if own.reduction is None]
        fills = [own for own in others if own.target == self.body.target]
        stores = [
            own for own in others if _reads(own, self.body.target) and any(_reads(fill, own.target) for fill in fills)
        ]
        loops = {node.iterator for node in _nodes(allocation) if isinstance(node, Loop)}
        instances = [node for node in _nodes(allocation) if isinstance(node, Instance)]
        begun = {own.arguments[: self.body.begun] for own in instances if own.statement == self.body.name}
        anew: tuple[IndexExpression, ...] = ()
        if len(begun) == 1:
            anew = tuple(own for own in begun.pop() if not variables(own) & loops)
        return max((most_met(self._met(root, own, start, anew)) for own in stores), default=1)

    def _met(
        self, tree: LoopTree, body: StatementBody, path: Path, anew: tuple[IndexExpression, ...] = ()
    ) -> dict[Elements, Count]:
        """The most instances that come to one element, where a loop with a total is one of them.

        By the ranges of what chooses the elements.  ``anew``: each value of these begins another sum.
        """
        match tree:
            case Instance(statement) if statement == body.name:
                return {self._elements(tree, path): self._times(tree, path, path, anew)}
            case Leaf():
                return {}
            case Block(children):
                counts: dict[Elements, Count] = {}
                for child in children:
                    for elements, count in self._met(child, body, path, anew).items():
                        counts[elements] = counts.get(elements, 0) + count
                return counts
            case Guard(_, then, None):
                return self._met(then, body, path, anew)
            case Guard(_, then, otherwise):
                assert otherwise is not None
                branches = [self._met(branch, body, path, anew) for branch in (then, otherwise)]
                return _at_hull([elements for branch in branches for elements in branch], max(map(most_met, branches)))
            case Allocation(buffer, inner):
                inside = path.from_here() if buffer.name == body.target else path
                return self._met(inner, body, inside, anew)
            case Loop(totals=totals) if (total := _total_of(totals, body)) is not None:
                if body is self.body:
                    self._prove_total(tree, total, path)
                runs = [(own, inside) for own, inside in _instances(tree, path) if own.statement == body.name]
                found = [self._elements(own, inside) for own, inside in runs]
                return _at_hull(found, max((self._times(own, path, inside, anew) for own, inside in runs), default=0))
            case Loop():
                return self._met(tree.body, body, path.inside(tree), anew)
            case _:
                assert_never(tree)

    def _elements(self, instance: Instance, path: Path) -> Elements:
        body = self.bodies[instance.statement]
        chosen = target_iterators(body).union(body.iterators[: body.begun])
        pairs = zip(body.iterators, instance.arguments, strict=True)
        return tuple(range_of(argument, path.ranges) for name, argument in pairs if name in chosen)

    def _times(self, instance: Instance, path: Path, whole: Path, anew: tuple[IndexExpression, ...]) -> Count:
        """How many iterations of the loops on a path come to one sum; ``whole``: the path on to the instance."""
        body = self.bodies[instance.statement]
        anew = (*anew, *instance.arguments[: body.begun])
        moving = moving_loops(instance, body, self.layouts[body.target], whole, self.forms, anew)
        inside = {iterator: trips for iterator, trips in whole.trips.items() if iterator not in path.trips}
        return moving.repeated(path.trips, inside)

    # --- in a loop with a total

    def _prove_total(self, loop: Loop, total: Total, path: Path) -> None:
        apart = self._apart(loop, total, path)
        chain = self.chain(loop, apart, path)
        longest = max(chain.longest, chain.head, chain.tail)
        if longest > LONGEST:
            raise _refused(f"a partial sum of {self.body.name} has up to {longest} terms, more than {LONGEST}")
        folds = self.folds(loop, path)
        if not total.wide and folds > LONGEST:
            raise _refused(f"a total of {self.body.name} in float32 has up to {folds} partial sums")

    def _apart(self, loop: Loop, total: Total, path: Path) -> frozenset[str]:
        """The loops each of whose iterations adds to another partial sum."""
        if total.buffer is None:
            found = accumulation(loop, self.bodies, path.ranges, several=True, always=True)
            in_lanes = found is not None and found.lanes is not None
            loops = [node for node in _nodes(loop) if isinstance(node, Loop)]
            return frozenset(own.iterator for own in loops if in_lanes and own.kind is LoopKind.REDUCTION)
        apart: frozenset[str] | None = None
        for instance, inside in _instances(loop, path):
            if instance.statement == self.body.name:
                chosen = moving_loops(instance, self.body, self.layouts[total.buffer], inside, self.forms).choosing
                single = frozenset(iterator for iterator, shared in chosen.items() if shared == 1)
                apart = single if apart is None else apart & single
        return apart or frozenset()

    def chain(self, tree: LoopTree, apart: frozenset[str], path: Path) -> _Chain:
        """What is added to one partial sum."""
        match tree:
            case Instance(statement) if statement == self.body.name:
                return _Chain(1, 1, 1, 1)
            case Leaf():
                return _Chain()
            case Block(children):
                whole = _Chain()
                for child in children:
                    whole = whole.then(self.chain(child, apart, path))
                return whole
            case Guard(_, then, otherwise):
                return self.chain(then, apart, path).either(
                    _Chain() if otherwise is None else self.chain(otherwise, apart, path)
                )
            case Allocation(_, body):
                return self.chain(body, apart, path)
            case Loop():
                inside = self.chain(tree.body, apart, path.inside(tree))
                times = 1 if tree.iterator in apart else most_trips(tree, path.ranges)
                every = [fold.every for fold in tree.folds if fold.statement == self.body.name]
                always = always_runs(tree, path.ranges)
                if every:
                    return inside.folded(times, every[0], always=always)
                # Where the loop may not run at all, there is no fold in it either.
                whole = inside.repeated(times)
                return whole if always else whole.either(_Chain())
            case _:
                assert_never(tree)

    def folds(self, tree: LoopTree, path: Path) -> Count:
        """How often partial sums go into a total, at most."""
        match tree:
            case Leaf():
                return 0
            case Block(children):
                return sum(self.folds(child, path) for child in children)
            case Guard(_, then, otherwise):
                return max(self.folds(branch, path) for branch in (then, otherwise) if branch is not None)
            case Allocation(_, body):
                return self.folds(body, path)
            case Loop():
                times, inside = most_trips(tree, path.ranges), self.folds(tree.body, path.inside(tree))
                every = [fold.every for fold in tree.folds if fold.statement == self.body.name]
                return (inside and inside * times) + (-(-times // every[0]) if every else 0)
            case _:
                assert_never(tree)


def _total_of(totals: Iterable[Total], body: StatementBody) -> Total | None:
    return next((total for total in totals if total.statement == body.name), None)


def _at_hull(elements: list[Elements], count: Count) -> dict[Elements, Count]:
    if not elements:
        return {}
    ranges = zip(*elements, strict=True)
    return {tuple(Range(min(r.least for r in own), max(r.most for r in own)) for own in map(list, ranges)): count}


def _reads(body: StatementBody, tensor: str) -> bool:
    expressions = (body.value, *body.subscripts)
    return any(isinstance(part, Read) and part.tensor == tensor for whole in expressions for part in walk(whole))


def _instances(tree: LoopTree, path: Path) -> Iterator[tuple[Instance, Path]]:
    """Every instance with the loops around it."""
    match tree:
        case Instance():
            yield tree, path
        case Loop():
            yield from _instances(tree.body, path.inside(tree))
        case _:
            for part in _parts(tree):
                yield from _instances(part, path)


def _nodes(tree: LoopTree) -> Iterator[LoopTree]:
    """The tree and all trees in it, in no order."""
    waiting = [tree]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += _parts(found)


def _parts(tree: LoopTree) -> tuple[LoopTree, ...]:
    match tree:
        case Leaf():
            return ()
        case Block(children):
            return children
        case Guard(_, then, otherwise):
            return (then,) if otherwise is None else (then, otherwise)
        case Allocation(_, body) | Loop(body=body):
            return (body,)
        case _:
            assert_never(tree)
