"""Range inference: every iterator gets the largest range for which all accesses stay inside their tensors.

It proceeds in rounds.  Iterators with a ``where`` are resolved from the start.  In every round, each access with
one unresolved iterator bounds it, for all values of the resolved ones; the bounds of a round intersect.  What no
other tensor bounds takes the extent that the other writers give the tensor being written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tc.base.frozen import frozen
from tc.language.algebra.extents import extent_name, named_extent
from tc.language.algebra.fold import substitute
from tc.language.algebra.polynomial import Atoms, Polynomial
from tc.language.draft.draft import CallDraft, Draft, Item
from tc.language.draft.requirements import Requirements
from tc.language.program.program import Expression, Role, SizeReference, walk
from tc.language.program.report import Report
from tc.language.ranges.calls import BoundCall, bind_call
from tc.language.ranges.progress import Access, Progress
from tc.language.ranges.range_errors import RangeErrors
from tc.language.ranges.rounds import (
    accesses_of_target,
    begin,
    bound_accesses,
    extent_of_target,
    gives_elements,
    run_rounds,
)


@frozen
class Ranges:
    """The outcome.  ``resolved``: per statement its draft (extents filled in) and the intervals of its iterators;
    ``calls``: per call its binding; ``shapes``: per tensor its extents.  What is in error is missing.
    """

    resolved: Mapping[int, Progress]
    calls: Mapping[int, BoundCall]
    shapes: Mapping[str, tuple[Polynomial, ...]]


@frozen
class Known:
    """What range inference starts from.

    ``shapes``: extents of the arguments; ``sizes``: names of the sizes in them.  ``ranks``: of every tensor that
    statements write.  ``writers``: the numbers of the statements that write a tensor.  ``broken``: tensors with a
    writer that is in error already.  ``blocked``: statements that read values of which nothing is known.
    """

    shapes: Mapping[str, tuple[Expression, ...]]
    ranks: Mapping[str, int]
    writers: Mapping[str, Sequence[int]]
    broken: frozenset[str]
    blocked: frozenset[int]
    sizes: tuple[str, ...]


def infer_ranges(
    items: Sequence[Item], known: Known, atoms: Atoms, requirements: Requirements, report: Report
) -> Ranges:
    """The ranges of all iterators and the shapes of all tensors of one definition; complaints go to the report."""
    return _Solver(items, known, atoms, requirements, report).solve()


class _Solver:
    def __init__(
        self, items: Sequence[Item], known: Known, atoms: Atoms, requirements: Requirements, report: Report
    ) -> None:
        self.items = items
        self.known = known
        self.inputs = {t: tuple(atoms.polynomial(e) for e in shape) for t, shape in known.shapes.items()}
        self.broken = set(known.broken)
        self.atoms = atoms
        self.requirements = requirements
        self.errors = RangeErrors(atoms, known.sizes, self.inputs, report)
        self.progress: dict[int, Progress] = {}
        self.calls: dict[int, BoundCall] = {}
        self.extents: dict[tuple[int, str, int], Polynomial] = {}
        # Set when nothing else helps: statements that wait for each other then use what is known.
        self.relaxed = False

    def solve(self) -> Ranges:
        waiting = list(self.items)
        while waiting:
            before = self._measure()
            waiting = [item for item in waiting if not self._advance(item)]
            if self._measure() != before:
                self.relaxed = False
            elif not self._follow(waiting):
                if self.relaxed:
                    break
                self.relaxed = True
        self._complain(waiting)
        for item in self.items:
            self._check_extents_are_whole(item)
        resolved = {number: p for number, p in self.progress.items() if not p.unresolved and p.accesses is not None}
        return Ranges(resolved, self.calls, self._shapes())

    def _measure(self) -> tuple[int, int, int]:
        """Grows with every step forward."""
        unresolved = sum(len(p.unresolved) for p in self.progress.values())
        known = sum(p.accesses is not None for p in self.progress.values())
        return len(self.progress) + known, len(self.calls), -unresolved

    # --- one statement ---------------------------------------------------------------------------------------

    def _advance(self, item: Item) -> bool:
        """Resolves what can be resolved now; True when nothing is left to do."""
        if isinstance(item, CallDraft):
            return self._advance_call(item)
        progress = self.progress.get(item.number)
        if progress is None:
            values = self._pending_extents(item.expressions(), item.number)
            if values is None:
                return False
            progress = self.progress[item.number] = begin(item, values, self.atoms, self.errors)
        if progress.accesses is None:
            extents = self._read_extents(progress.draft)
            if extents is None:
                return False
            progress.accesses = bound_accesses(progress, extents, self.atoms)
        run_rounds(progress, progress.accesses, self.atoms, self.requirements)
        return not progress.unresolved

    def _pending_extents(self, expressions: Iterable[Expression], number: int) -> dict[Expression, Expression] | None:
        """The values of the placeholders (``T.0``) in a statement; None while one is unknown."""
        values: dict[Expression, Expression] = {}
        for expression in expressions:
            for leaf in walk(expression):
                if isinstance(leaf, SizeReference) and "." in leaf.name and leaf not in values:
                    tensor, _, dimension = leaf.name.rpartition(".")
                    extent = self._extent(tensor, int(dimension), number)
                    if extent is None:
                        return None
                    values[leaf] = self.atoms.expression(extent)
        return values

    def _read_extents(self, draft: Draft) -> dict[str, tuple[Polynomial, ...]] | None:
        """The extents of every tensor that a draft reads but does not write; None while one is unknown."""
        extents: dict[str, tuple[Polynomial, ...]] = {}
        for guarded in draft.reads():
            read = guarded.read
            if read.tensor not in extents and not self._writes(draft, read.tensor):
                found = self._tensor_extents(read.tensor, len(read.subscripts), draft.number)
                if found is None:
                    return None
                extents[read.tensor] = found
        return extents

    def _writes(self, draft: Draft, tensor: str) -> bool:
        """Whether a draft writes a tensor, or the array in which its value came in."""
        return draft.number in self.known.writers.get(tensor, ())

    def _advance_call(self, call: CallDraft) -> bool:
        values = self._pending_extents(call.scalars.values(), call.number)
        if values is None:
            return False
        scalars = {name: substitute(expression, values) for name, expression in call.scalars.items()}
        call = replace(call, scalars=scalars)
        shapes: dict[str, tuple[Polynomial, ...]] = {}
        for tensor in call.callee.tensors:
            if tensor.name in call.callee.arguments:
                found = self._tensor_extents(call.tensors[tensor.name], len(tensor.shape), call.number)
                if found is None:
                    return False
                shapes[tensor.name] = found
        bound = bind_call(call, shapes, self.atoms, self.requirements, self.errors)
        if bound is None:
            self.broken.update(call.tensors[t.name] for t in call.callee.tensors if t.role is not Role.INPUT)
        else:
            self.calls[call.number] = bound
        return True

    # --- extents of written tensors --------------------------------------------------------------------------

    def _tensor_extents(self, tensor: str, rank: int, reader: int) -> tuple[Polynomial, ...] | None:
        extents = [self._extent(tensor, dimension, reader) for dimension in range(rank)]
        known = tuple(extent for extent in extents if extent is not None)
        return known if len(known) == rank else None

    def _extent(self, tensor: str, dimension: int, reader: int) -> Polynomial | None:
        """The extent that a reader sees: what the writers before it give; all writers, if those give nothing."""
        shape = self.inputs.get(tensor)
        if shape is not None:
            return shape[dimension]
        writers = self.known.writers.get(tensor, ())
        earlier = [writer for writer in writers if writer < reader]
        hull, complete = self._hull(earlier, tensor, dimension)
        if hull is None and complete:
            hull, complete = self._hull([w for w in writers if w != reader], tensor, dimension)
        return hull if complete else None

    def _hull(self, writers: Sequence[int], tensor: str, dimension: int) -> tuple[Polynomial | None, bool]:
        """The greatest extent that the writers give, and whether all that give one are known.

        A stalled writer gives none: it will follow the others.
        """
        found: list[Polynomial] = []
        for writer in writers:
            extent = self._written(writer, tensor, dimension)
            if extent is not None:
                found.append(extent)
            elif not self.relaxed and not self._is_stalled(writer):
                return None, False
        return (self._named(found, writers, tensor, dimension) if found else None), True

    def _named(self, extents: Sequence[Polynomial], writers: Sequence[int], tensor: str, dimension: int) -> Polynomial:
        """The greatest extent; the name of all of it where that is not linear: then the text says ``T.0``, too."""
        hull = self.atoms.greatest(extents)
        leaves = {e for e in walk(self.atoms.expression(hull)) if isinstance(e, SizeReference)}
        targets = (self.progress[w].draft.target for w in writers if w in self.progress)
        names = [name for t in (tensor, *targets) if (name := extent_name(t, dimension)) in leaves]
        return self.atoms.variable(names[0]) if names else hull

    def _is_stalled(self, number: int) -> bool:
        progress = self.progress.get(number)
        return progress is not None and progress.accesses is not None

    def _written(self, writer: int, tensor: str, dimension: int) -> Polynomial | None:
        """One past the last subscript that a statement writes in a dimension; None while it is unknown."""
        call = self.calls.get(writer)
        if call is not None:
            return call.extents[tensor][dimension]
        progress = self.progress.get(writer)
        if progress is None:
            return None
        key = (writer, tensor, dimension)
        if key not in self.extents:
            extent = extent_of_target(progress, dimension, self.atoms)
            if extent is None:
                return None
            self.extents[key] = extent
        return self.extents[key]

    def _follow(self, waiting: Sequence[Item]) -> bool:
        """Lets stalled statements take the extents of the other writers; whether that bounded an iterator.

        All of them look before any of them moves, so that they follow the others and not each other.
        """
        found: list[tuple[Progress, Sequence[Access]]] = []
        for item in waiting:
            progress = self.progress.get(item.number)
            if progress is not None and progress.accesses is not None and progress.unresolved:
                draft = progress.draft
                others = [w for w in self.known.writers[draft.target] if w != draft.number]
                hulls = [self._hull(others, draft.target, dimension) for dimension in range(len(draft.subscripts))]
                if all(complete for _, complete in hulls):
                    own = {g.read.tensor for g in draft.reads() if self._writes(draft, g.read.tensor)}
                    extents = [hull for hull, _ in hulls]
                    found.append((progress, accesses_of_target(progress, own, extents, self.atoms)))
        before = self._measure()
        for progress, accesses in found:
            run_rounds(progress, accesses, self.atoms, self.requirements)
        return self._measure() != before

    # --- the end ---------------------------------------------------------------------------------------------

    def _complain(self, waiting: Sequence[Item]) -> None:
        """Names what stayed undetermined, but not what only follows from another error."""
        blocked: list[Item] = []
        for item in waiting:
            progress = self.progress.get(item.number)
            if progress is None or progress.accesses is None:
                blocked.append(item)
                continue
            draft = progress.draft
            in_doubt = draft.target in self.broken or draft.number in self.known.blocked
            if not in_doubt and not progress.failed:
                self.errors.undetermined(progress)
            self.broken.add(draft.target)
        for item in blocked:
            reads = [r.read.tensor for r in item.reads()] if isinstance(item, Draft) else list(item.tensors.values())
            if not self.broken.intersection(reads):
                self.errors.circular(item)
            self.broken.update([item.target] if isinstance(item, Draft) else item.tensors.values())

    def _check_extents_are_whole(self, item: Item) -> None:
        """An extent that only a call knows is that of all elements: what uses it stands behind what gives them."""
        expressions = item.expressions() if isinstance(item, Draft) else item.scalars.values()
        sizes = {leaf for e in expressions for leaf in walk(e) if isinstance(leaf, SizeReference)}
        for size in sizes:
            named = named_extent(size)
            if named is None or named[0] in self.inputs:
                continue
            writers = self.known.writers.get(named[0], ())
            hull, _ = self._hull([w for w in writers if w < item.number], *named)
            if hull is None or hull != self.atoms.variable(size):
                continue
            drafts = {w: self.progress[w].draft for w in writers if w in self.progress}
            giving = [w for w in writers if w not in drafts or gives_elements(drafts[w])]
            # Where nothing gives elements, those that there are come in, and all that do not follow the name count.
            growing = giving or [w for w in writers if not self._follows(w, size, named[1])]
            if any(w >= item.number for w in growing):
                self.errors.unfinished(item, *named)
                return

    def _follows(self, writer: int, extent: SizeReference, dimension: int) -> bool:
        """Whether what a statement writes depends on an extent."""
        progress = self.progress[writer]
        ends = (self.atoms.expression(e) for i in progress.intervals.values() for e in (i.begin, i.end))
        return any(extent in walk(e) for e in (progress.draft.subscripts[dimension], *ends))

    def _shapes(self) -> dict[str, tuple[Polynomial, ...]]:
        shapes: dict[str, tuple[Polynomial, ...]] = {}
        for tensor, rank in self.known.ranks.items():
            if tensor in self.broken:
                continue
            hulls = [self._hull(self.known.writers[tensor], tensor, dimension)[0] for dimension in range(rank)]
            known = tuple(hull for hull in hulls if hull is not None)
            if len(known) == rank:
                shapes[tensor] = known
            else:
                self.errors.no_extent(
                    tensor, [self.progress[w] for w in self.known.writers[tensor] if w in self.progress]
                )
        return shapes
