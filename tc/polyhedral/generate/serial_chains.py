"""How many additions to one element of a float32 sum follow each other: its chains, and how long they may be.

Loops say what follows each other, whatever the options, the target and the passes were.  A loop with totals
(``tc.polyhedral.generate.block_sums``) counts as one addition, since what it adds up is rounded once where it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Final, assert_never

from tc.base.frozen import frozen
from tc.base.remembered import Remembered
from tc.language.program.program import Read, walk
from tc.language.program.specialization import Layout
from tc.language.program.terms import is_product_of_two
from tc.polyhedral.analysis.accumulate import target_iterators
from tc.polyhedral.analysis.element_counts import Count, Elements, Path, most_met, moving_loops
from tc.polyhedral.analysis.offsets import Forms
from tc.polyhedral.analysis.ranges import Range, range_of
from tc.polyhedral.analysis.scattered import is_scatter
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexExpression,
    Leaf,
    Loop,
    LoopTree,
    Scheduled,
    StatementBody,
    leaves,
    variables,
)

# Additions that may follow each other in float32: of products in a tile, and of other terms.
MOST: Final = 64
MOST_PLAIN: Final = 32
# In memory, where data say to which element is added (``tc.reference.accumulate`` has it, too).
_MOST_SCATTERED: Final = 4096
# Sums that come back to memory, and are rounded to float32, so often, one after the other.
_MOST_ROUNDINGS: Final = 2


def most_additions(body: StatementBody) -> int:
    """The most additions that may follow each other in the sum of a statement."""
    if is_scatter(body):
        return _MOST_SCATTERED
    return MOST if is_product_of_two(body.value) else MOST_PLAIN


def most_rounded(body: StatementBody) -> int:
    """How often a sum may be rounded to float32 where it is kept, one time after the other."""
    if is_scatter(body):
        return _MOST_SCATTERED
    return MOST if is_product_of_two(body.value) else _MOST_ROUNDINGS


@frozen
class Chains:
    """The chains of the sums of a program, whose statements and layouts these are."""

    bodies: Mapping[str, StatementBody]
    layouts: Mapping[str, Layout]
    _once: Remembered[tuple[Elements, Count]] = field(default_factory=Remembered)
    _forms: Forms = field(default_factory=Forms)

    def additions(self, tree: LoopTree, name: str, path: Path) -> Count:
        """The most roundings that an element of the statement's target goes through, those inside of totals aside."""
        terms = self.bodies[name].terms
        found = self._additions(tree, name, path)
        return found if terms is None else min(found, terms)

    def is_long(self, tree: LoopTree, name: str, path: Path) -> bool:
        """Whether too many additions follow each other."""
        body = self.bodies[name]
        most = most_additions(body)
        if body.terms is not None and body.terms <= most:
            return False  # there are thousands of unrolled copies to count, which would say no more
        return self.additions(tree, name, path) > most

    def _additions(self, tree: LoopTree, name: str, path: Path) -> Count:
        body = self.bodies[name]
        found = most_met(self._by_element(tree, name, path))
        allocation = next((a for a in _allocations(tree) if a.buffer.name == body.target), None)
        if allocation is None:
            return found
        # What is stored, to be loaded again, goes on from one run of the allocation to the next.
        filled = (own for own in self.bodies.values() if own.reduction is None and own.target == body.target)
        loaded = frozenset[str]().union(*map(tensors_read, filled))
        stores = (
            own
            for own in self.bodies.values()
            if own.reduction is None and own.target in loaded and body.target in tensors_read(own)
        )
        anew = self._anew_outside(allocation, name)
        return found * max((most_met(self._by_element(tree, own.name, path, anew)) for own in stores), default=1)

    def _anew_outside(self, allocation: Allocation, name: str) -> tuple[IndexExpression, ...]:
        """What begins the sum of a statement anew, where all of one run of the allocation are in one of its sums."""
        body = self.bodies[name]
        loops = {step.iterator for _, path in loop_paths(allocation, ()) for step in path if isinstance(step, Loop)}
        found = {
            instance.arguments[: body.begun] for instance in instances_in(allocation) if instance.statement == name
        }
        if len(found) != 1:
            return ()
        (arguments,) = found
        return tuple(own for own in arguments if not variables(own) & loops)

    def _by_element(
        self, tree: LoopTree, name: str, path: Path, anew: tuple[IndexExpression, ...] = ()
    ) -> dict[Elements, Count]:
        """The most instances of a statement for one element of its target; a loop with totals counts as one of them.

        Of a buffer, for one run of what it is allocated for.  Elements are known by their ranges: those of a tile, and
        what is left behind it.  ``anew``: each value of these begins another sum.
        """
        body = self.bodies[name]
        match tree:
            case Leaf():
                if not isinstance(tree, Scheduled) or tree.statement != name:
                    return {}
                where = (body, path, *anew, *self._chosen(tree))
                return dict(
                    [self._once.of(where, lambda: (self._elements(tree, path), self._times(tree, path, path, anew)))]
                )
            case Block(children):
                counts: dict[Elements, Count] = {}
                for child in children:
                    for elements, count in self._by_element(child, name, path, anew).items():
                        counts[elements] = counts.get(elements, 0) + count
                return counts
            case Guard(_, then, None):
                return self._by_element(then, name, path, anew)
            case Guard(_, then, otherwise):
                branches = [part for part in (then, otherwise) if part is not None]
                counted = [self._by_element(part, name, path, anew) for part in branches]
                found = [elements for own in counted for elements in own]
                return {tuple(map(_hull, zip(*found, strict=True))): max(map(most_met, counted))} if found else {}
            case Allocation(buffer, inner):
                inside = path.from_here() if buffer.name == body.target else path
                return self._by_element(inner, name, inside, anew)
            case Loop(totals=totals) if any(total.statement == name for total in totals):
                found_once: dict[Elements, Count] = {}
                for instance, inside in paths_to_instances(tree, path):
                    if instance.statement == name:
                        elements = self._elements(instance, inside)
                        times = self._times(instance, path, inside, anew)
                        found_once[elements] = max(found_once.get(elements, 0), times)
                hull = tuple(map(_hull, zip(*found_once, strict=True)))
                return {hull: max(found_once.values())} if found_once else {}
            case Loop():
                return self._by_element(tree.body, name, path.inside(tree), anew)
            case _:
                assert_never(tree)

    def _elements(self, instance: Scheduled, path: Path) -> Elements:
        """The ranges of what chooses the element."""
        return tuple(range_of(argument, path.ranges) for argument in self._chosen(instance))

    def _chosen(self, instance: Scheduled) -> list[IndexExpression]:
        """The arguments that choose the element, and its sum."""
        body = self.bodies[instance.statement]
        chosen = target_iterators(body).union(body.iterators[: body.begun])
        return [own for name, own in zip(body.iterators, instance.arguments, strict=True) if name in chosen]

    def _times(self, instance: Scheduled, path: Path, whole: Path, anew: tuple[IndexExpression, ...]) -> Count:
        """How many iterations of the loops on a path come to one sum; ``whole``: the path on to the instance."""
        body = self.bodies[instance.statement]
        anew = (*anew, *instance.arguments[: body.begun])
        moving = moving_loops(instance, body, self.layouts[body.target], whole, self._forms, anew)
        inside = {iterator: trips for iterator, trips in whole.trips.items() if iterator not in path.trips}
        return moving.repeated(path.trips, inside)


def _hull(ranges: Iterable[Range]) -> Range:
    found = list(ranges)
    return Range(min(own.least for own in found), max(own.most for own in found))


def paths_to_instances(tree: LoopTree, path: Path) -> Iterator[tuple[Scheduled, Path]]:
    """Every instance with the loops around it."""
    match tree:
        case Leaf():
            if isinstance(tree, Scheduled):
                yield tree, path
        case Block(children):
            for child in children:
                yield from paths_to_instances(child, path)
        case Guard(_, then, otherwise):
            yield from paths_to_instances(then, path)
            if otherwise is not None:
                yield from paths_to_instances(otherwise, path)
        case Allocation(_, body):
            yield from paths_to_instances(body, path)
        case Loop():
            yield from paths_to_instances(tree.body, path.inside(tree))
        case _:
            assert_never(tree)


def instances_in(root: LoopTree) -> Iterator[Scheduled]:
    """Those of statements and barriers."""
    return (leaf for leaf in leaves(root) if isinstance(leaf, Scheduled))


def _allocations(tree: LoopTree) -> Iterator[Allocation]:
    return (step for _, path in loop_paths(tree, ()) for step in path if isinstance(step, Allocation))


def tensors_read(body: StatementBody) -> set[str]:
    """The tensors that the value and the subscripts of a statement read."""
    expressions = (body.value, *body.subscripts)
    return {part.tensor for expression in expressions for part in walk(expression) if isinstance(part, Read)}
