"""Long float32 sums in blocks: partial sums of few terms, whose totals are kept in float64.

A chain of n additions of equal terms is off by up to n/3 units of the last place.  So no chain is longer than 32, or 64
for products: a loop that would add more into an element is cut into runs, behind each of which the partial sum is added
to a total, and begun with 0 again (Higham, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14, 1993:
blocked summation).  Where the total is a float64, which is converted to and added once in 16 terms, its own error is
below that of the last rounding to float32, whatever the length, and infinities and NaN need no care, as they would with
a compensated float32.  A register tile of a product has many sums and little time: their totals are float32, too, up to
64 partial sums of each, and beyond that these go into float64.

This works on loops, whose chains ``tc.polyhedral.generate.serial_chains`` counts.  They run the same instances in the
same order as before, which ``tc.polyhedral.proof.verify_blocks`` shows: only where a sum is kept meanwhile changes.
What cannot be cut, since its elements are too many to be kept beside, is named; it is accumulated in float64 in memory
(``tc.polyhedral.ir.scop``).  Where totals of threads lie, so that registers are left to the partial sums,
``tc.codegen.printer.totals`` decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, assert_never

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.isl.affine import parameter_name
from tc.language.program.program import Binary, Cast, Reduction
from tc.language.program.terms import is_product_of_two
from tc.polyhedral.analysis.accumulate import accumulation
from tc.polyhedral.analysis.element_counts import Count, Path, most_trips, moving_loops
from tc.polyhedral.analysis.ranges import Range, Ranges, always_runs
from tc.polyhedral.analysis.reads import accesses
from tc.polyhedral.generate.additions import NOTHING, Added, Additions, merged
from tc.polyhedral.generate.serial_chains import (
    MOST,
    MOST_PLAIN,
    Chains,
    instances_in,
    most_additions,
    most_rounded,
    paths_to_instances,
    tensors_read,
)
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Leaf,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    Scheduled,
    Sharing,
    StatementBody,
)
from tc.polyhedral.ir.totals import Fold, Total

# And in the runs of a longer sum of others.
_RUN: Final = 28
# Terms that are products are rounded themselves, and those of squares all alike: a chain of them may be off by more.
_RUN_OF_PRODUCTS: Final = 16
_MOST_IN_LANES: Final = 12
# So many partial sums may be added up in float32.
_FEW_RUNS: Final = 4
# Elements of a buffer beside which there is room for totals.
_MOST_ELEMENTS: Final = 1024
_IN_ORDER: Final = (LoopKind.SEQUENTIAL, LoopKind.REDUCTION, LoopKind.UNROLLED, LoopKind.REGISTER)


@frozen
class Blocked:
    """The loops with sums in blocks.

    ``left``: the statements whose sums could not be cut.
    """

    root: LoopTree
    left: frozenset[str]


def block_sums(program: LoopProgram) -> Blocked:
    """The loops of a program in which no float32 sum has too many additions in a row."""
    buffers = (*program.buffers, *program.temporaries, *program.promoted)
    layouts = {buffer.name: buffer.layout for buffer in buffers}
    whole = Path({parameter_name(name): Range(1, most) for name, most in program.sizes})
    root = program.root
    bodies = {body.name: body for body in program.bodies}
    chains, sums = Chains(bodies, layouts), _Sums(bodies)
    long = [
        body.name
        for body in program.bodies
        if body.reduction is Reduction.ADD
        and layouts[body.target].type is ScalarType.FLOAT32
        and chains.is_long(root, body.name, whole)
    ]
    for name in long:
        root = sums.blocked(root, name, frozenset(long), whole, _Held({}))
    left = (name for name in long if chains.additions(root, name, whole) > most_rounded(bodies[name]))
    return Blocked(root, frozenset(left))


def _run_length(body: StatementBody) -> int:
    """The additions in a run of a longer sum that is no sum of products of two."""
    value = body.value
    while isinstance(value, Cast):
        value = value.operand
    multiplied = isinstance(value, Binary) and value.operator is BinaryOperator.MULTIPLY
    return _RUN_OF_PRODUCTS if multiplied else _RUN


@frozen
class _Nest:
    """What a loop is cut for: sums, which of the loops inside add up, and the most additions without and with runs."""

    names: frozenset[str]
    reduces: Callable[[Loop], bool]
    most: int
    run: int

    def in_one_run(self, added: Added, times: Count = 1) -> bool:
        """Whether so many times what is added makes no partial sum too long."""
        return all(own.longest(times) <= self.most for own in added.values())

    def apart(self, first: Added, second: Added) -> bool:
        """Whether a fold must stand between two trees."""
        return any(own.behind + second.get(name, NOTHING).before > self.most for name, own in first.items())


@frozen
class _Held:
    """The buffers around, by statement that reduces into them, between which no loop stands.

    ``inside``: one does behind them.
    """

    buffers: Mapping[str, Allocation]
    inside: bool = False

    def with_buffer(self, names: Iterable[str], allocation: Allocation) -> _Held:
        """One more of them."""
        return self if self.inside else _Held({**self.buffers, **dict.fromkeys(names, allocation)})

    def in_loop(self, name: str) -> _Held:
        """Those of a statement and of others, in a loop; none where it has none."""
        return _Held(self.buffers, inside=True) if name in self.buffers else _Held({})


@frozen
class _Sums:
    bodies: Mapping[str, StatementBody]

    def blocked(self, tree: LoopTree, name: str, long: frozenset[str], path: Path, held: _Held) -> LoopTree:
        """The loops with totals for one statement, and for those that reduce into buffers in the same loops."""

        def inner(part: LoopTree, inside: Path = path, around: _Held = held) -> LoopTree:
            return self.blocked(part, name, long, inside, around)

        match tree:
            case Leaf():
                return tree
            case Block(children):
                return Block(tuple(map(inner, children)))
            case Guard(condition, then, otherwise):
                return Guard(condition, inner(then), None if otherwise is None else inner(otherwise))
            case Allocation(own, body):
                around = held.with_buffer((n for n in long if self.bodies[n].target == own.name), tree)
                is_own = own.name == self.bodies[name].target
                return Allocation(own, inner(body, path.from_here() if is_own else path, around))
            case Loop() if all(instance.statement != name for instance in instances_in(tree)):
                return tree
            case Loop(totals=totals) if any(total.statement == name for total in totals):
                return tree
            case Loop(kind=kind) if kind in _IN_ORDER:
                found = self.held_in_variables(tree, name, long, path)
                if found is None and name in held.buffers:
                    found = self.held_in_buffers(tree, name, path, held.buffers)
                return found or replace(tree, body=inner(tree.body, path.inside(tree), held.in_loop(name)))
            case Loop():
                return replace(tree, body=inner(tree.body, path.inside(tree), held.in_loop(name)))
            case _:
                assert_never(tree)

    def held_in_variables(self, loop: Loop, name: str, long: frozenset[str], path: Path) -> Loop | None:
        """The loop with totals of all long sums that reduce into one element each, if it does nothing else."""
        found = accumulation(loop, self.bodies, path.ranges, several=True, always=True)
        names = frozenset() if found is None else frozenset(p.body.name for p in found.partials) & long
        if found is None or name not in names:
            return None
        lanes = found.lanes is not None
        run = min(_run_length(self.bodies[own]) for own in names)
        nest = _Nest(names, lambda own: not (lanes and own.kind is LoopKind.REDUCTION), MOST_PLAIN, run)
        cut, added = self.cut(loop, nest, path.ranges)
        if found.lanes is None and len(found.partials) > 1:
            cut = _without_pragmas(cut)
        assert isinstance(cut, Loop)
        # Lanes are added up in float64 where each of them has added much up already.
        wide = _folds(cut, path.ranges) > 0 or (lanes and max(own.behind for own in added.values()) > _MOST_IN_LANES)
        totals = (Total(own, wide) for own in sorted(names))
        return replace(cut, totals=tuple(totals))

    def held_in_buffers(self, loop: Loop, name: str, path: Path, buffers: Mapping[str, Allocation]) -> Loop | None:
        """The loop with totals of all elements of the statement's buffer, if nothing else inside looks at them.

        Others that reduce into buffers of their own in the same loops have their totals there, too.
        """
        fixed = self.choosing(loop, name, path, buffers[name])
        if fixed is None or loop.iterator in fixed:
            return None
        loops = list(_loops_in(loop))
        if any(own.folds for own in loops):
            return None  # runs for other sums are not cut once more
        inside = {instance.statement for instance in instances_in(loop)}
        done = {total.statement for own in loops for total in own.totals}
        others = sorted(buffers.keys() & inside - done - {name})
        names = [name, *(own for own in others if self.choosing(loop, own, path, buffers[own]) == fixed)]
        bodies = [self.bodies[own] for own in names]
        products = {body.name: is_product_of_two(body.value) for body in bodies}
        nest = _Nest(
            frozenset(names),
            lambda inner: inner.iterator not in fixed,
            min(map(most_additions, bodies)),
            min(most_additions(body) if products[body.name] else _run_length(body) for body in bodies),
        )
        cut, _ = self.cut(loop, nest, path.ranges)
        assert isinstance(cut, Loop)
        folds = _folds(cut, path.ranges)
        totals = []
        for own in names:
            wide = folds > (MOST if products[own] else _FEW_RUNS)
            totals.append(Total(own, wide, buffers[own].buffer.name, cascaded=products[own] and wide))
        return replace(cut, totals=(*cut.totals, *totals))

    def choosing(self, loop: Loop, name: str, path: Path, allocation: Allocation) -> frozenset[str] | None:
        """The iterators that choose the element of a statement's buffer; None where its totals cannot be beside it."""
        body, buffer = self.bodies[name], allocation.buffer
        if buffer.sharing is not Sharing.THREAD or buffer.layout.span > _MOST_ELEMENTS:
            return None
        own = [instance for instance in instances_in(loop) if instance.statement == name]
        others = {instance.statement for instance in instances_in(loop)} - {name}
        touching = [other for other in others if other in self.bodies and buffer.name in _touched(self.bodies[other])]
        if touching or buffer.name in tensors_read(body):
            return None
        moving: frozenset[str] | None = None
        for instance, inside in paths_to_instances(loop, path):
            if instance in own:
                chosen = moving_loops(instance, body, buffer.layout, inside).choosing
                single = frozenset(iterator for iterator, shared in chosen.items() if shared == 1)
                moving = single if moving is None else moving & single
        return moving

    def cut(self, tree: LoopTree, nest: _Nest, ranges: Ranges) -> tuple[LoopTree, Added]:
        """The loops with folds, and how many additions to one element may follow the last of these."""
        match tree:
            case Leaf():
                one = {tree.statement: Additions(1, 1, 1)} if isinstance(tree, Scheduled) else {}
                return tree, {name: own for name, own in one.items() if name in nest.names}
            case Block(children):
                return self._cut_block(children, nest, ranges)
            case Guard(condition, then, otherwise):
                first, added = self.cut(then, nest, ranges)
                second, other = (None, {}) if otherwise is None else self.cut(otherwise, nest, ranges)
                return Guard(condition, first, second), merged(Additions.either, added, other)
            case Allocation(buffer, body):
                inner, added = self.cut(body, nest, ranges)
                return Allocation(buffer, inner), added
            case Loop():
                inside = Path(ranges).inside(tree).ranges
                body, added = self.cut(tree.body, nest, inside)
                loop, trips = replace(tree, body=body), most_trips(tree, ranges)
                if not added:
                    return loop, added
                if not nest.reduces(tree):
                    return loop, _perhaps(added, tree, ranges)
                if nest.in_one_run(added, trips):
                    return loop, _perhaps({name: own.repeated(trips) for name, own in added.items()}, tree, ranges)
                length = max(own.through for own in added.values())
                every = int(max(1, nest.run // length)) if length > 0 and nest.in_one_run(added) else 1
                if any(own.through != own.before for own in added.values()):
                    every = 1  # there are folds inside
                return self._cut_loop(loop, every, nest), _folded(added, tree, every, ranges)
            case _:
                assert_never(tree)

    def _cut_block(self, children: tuple[LoopTree, ...], nest: _Nest, ranges: Ranges) -> tuple[LoopTree, Added]:
        """Children side by side; where they add too much together, those before are folded."""
        done: list[LoopTree] = []
        behind: list[LoopTree] = []
        added: Added = {}
        for child in children:
            part, own = self.cut(child, nest, ranges)
            if nest.apart(added, own):
                done.append(_once(Block(tuple(behind)), nest))
                behind, added = [], {name: replace(old, behind=0, through=-math.inf) for name, old in added.items()}
            behind.append(part)
            added = merged(Additions.then, added, own)
        return Block((*done, *behind)), added

    def _cut_loop(self, loop: Loop, most: int, nest: _Nest) -> Loop:
        """The loop with folds behind every so many iterations; one in which threads wait for each other stays whole."""
        names = sorted(nest.names)
        if most == 1 or _waits(loop):
            return replace(loop, folds=(*loop.folds, *(Fold(name, most) for name in names)))
        run = _run(loop, most)
        begin, length = IndexVariable(f"{loop.iterator}_run"), IndexLiteral((run - 1) * loop.step)
        last: IndexExpression = IndexOperation(IndexOperator.ADD, (begin, length))
        if not _is_whole(loop, run):
            last = IndexOperation(IndexOperator.MINIMUM, (last, loop.upper))
        inner = replace(loop, lower=begin, upper=last, totals=())
        folds = tuple(map(Fold, names))
        step = loop.step * run
        return Loop(begin.name, loop.lower, loop.upper, step, LoopKind.SEQUENTIAL, inner, loop.totals, folds)


def _loops_in(tree: LoopTree) -> Iterator[Loop]:
    match tree:
        case Leaf():
            return
        case Block(children):
            for child in children:
                yield from _loops_in(child)
        case Guard(_, then, otherwise):
            yield from _loops_in(then)
            if otherwise is not None:
                yield from _loops_in(otherwise)
        case Allocation(_, body):
            yield from _loops_in(body)
        case Loop(body=body):
            yield tree
            yield from _loops_in(body)
        case _:
            assert_never(tree)


def _perhaps(added: Added, loop: Loop, ranges: Ranges) -> Added:
    """What a loop adds that may have no iterations."""
    if always_runs(loop, ranges):
        return added
    return {name: replace(own, through=max(0, own.through)) for name, own in added.items()}


def _folded(added: Added, loop: Loop, every: int, ranges: Ranges) -> Added:
    """What a loop adds, of which an iteration adds so much, with folds behind every so many.

    Where they are counted on from one run of the loop to the next, all but one iteration may be left of the last.
    """
    waits = every > 1 and _waits(loop)
    runs = {name: own.repeated(every) for name, own in added.items()}
    rest = {name: own.repeated(every - 1).behind if waits else 0 for name, own in added.items()}
    through = 0 if waits else -math.inf
    return _perhaps({name: Additions(own.before, rest[name], through) for name, own in runs.items()}, loop, ranges)


def _waits(loop: Loop) -> bool:
    """Whether threads wait for each other in it."""
    return any(isinstance(instance, Barrier) for instance in instances_in(loop))


def _run(loop: Loop, most: int) -> int:
    """The iterations of one run: where they can be the same number in every run, then the compiler knows it."""
    whole = (run for run in range(most, most // 2, -1) if _is_whole(loop, run))
    return next(whole, most)


def _is_whole(loop: Loop, run: int) -> bool:
    """Whether the loop has a multiple of so many iterations."""
    match loop.lower, loop.upper:
        case IndexLiteral(lower), IndexLiteral(upper):
            return ((upper - lower) // loop.step + 1) % run == 0
        case _:
            return False


def _once(tree: LoopTree, nest: _Nest) -> Loop:
    """A loop of one iteration, with folds behind it."""
    only = IndexLiteral(0)
    return Loop("once", only, only, 1, LoopKind.SEQUENTIAL, tree, folds=tuple(map(Fold, sorted(nest.names))))


def _folds(tree: LoopTree, ranges: Ranges) -> Count:
    """How often partial sums go into a total, at most."""
    match tree:
        case Leaf():
            return 0
        case Block(children):
            return sum(_folds(child, ranges) for child in children)
        case Guard(_, then, otherwise):
            return max(_folds(part, ranges) for part in (then, otherwise) if part is not None)
        case Allocation(_, body):
            return _folds(body, ranges)
        case Loop():
            trips = most_trips(tree, ranges)
            inside = _folds(tree.body, Path(ranges).inside(tree).ranges) * trips
            every = min((fold.every for fold in tree.folds), default=0)
            return inside + -(-trips // every) if every else inside
        case _:
            assert_never(tree)


def _without_pragmas(tree: LoopTree) -> LoopTree:
    """The loops without the promise that lanes may keep partial results, which is made of one statement only."""
    match tree:
        case Leaf():
            return tree
        case Block(children):
            return Block(tuple(map(_without_pragmas, children)))
        case Guard(condition, then, otherwise):
            other = None if otherwise is None else _without_pragmas(otherwise)
            return Guard(condition, _without_pragmas(then), other)
        case Allocation(buffer, body):
            return Allocation(buffer, _without_pragmas(body))
        case Loop():
            kind = LoopKind.SEQUENTIAL if tree.kind is LoopKind.REDUCTION else tree.kind
            return replace(tree, kind=kind, body=_without_pragmas(tree.body))
        case _:
            assert_never(tree)


def _touched(body: StatementBody) -> set[str]:
    return {tensor for tensor, _ in accesses(body)}
