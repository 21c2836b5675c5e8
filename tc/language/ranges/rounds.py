"""The rounds of range inference for one statement: accesses bound iterators, one unresolved iterator at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from tc.base.frozen import frozen
from tc.language.algebra.extents import Writing, written_extent
from tc.language.algebra.extremes import Extremes, Interval
from tc.language.algebra.fold import put_in
from tc.language.algebra.inequalities import inequalities, is_implied, linearize
from tc.language.algebra.polynomial import Atoms, Polynomial, constant
from tc.language.draft.draft import Draft
from tc.language.draft.requirements import Requirements
from tc.language.draft.rules import is_piecewise_affine
from tc.language.program.guards import GuardedRead
from tc.language.program.program import Expression, Read, walk
from tc.language.program.written_elements import chosen_by, scatters
from tc.language.ranges.progress import Access, Progress
from tc.language.ranges.range_errors import RangeErrors


def begin(draft: Draft, values: Mapping[Expression, Expression], atoms: Atoms, errors: RangeErrors) -> Progress:
    """The state of a statement before its first round; ``values`` replace the placeholders of extents."""
    if values:
        draft = draft.rebuilt(lambda expression: put_in(expression, values))
    facts = tuple(fact for condition in draft.conditions for fact in inequalities(condition, True, atoms))
    progress = Progress(draft, {}, set(draft.order) - draft.bounds.keys(), facts)
    for name, bounds in draft.bounds.items():
        progress.intervals[name] = Interval(atoms.polynomial(bounds.begin), atoms.polynomial(bounds.end))
    progress.failed = not errors.check_bounds(progress)
    if progress.failed:
        progress.unresolved.update(draft.bounds)
        progress.intervals.clear()
    return progress


def bound_accesses(progress: Progress, extents: Mapping[str, tuple[Polynomial, ...]], atoms: Atoms) -> Sequence[Access]:
    """What the reads of other tensors ask for, apart from what a guard or the ``where`` grants."""
    accesses: list[Access] = []
    for guarded in progress.draft.reads():
        if guarded.read.tensor in extents:
            accesses.extend(_access(progress, guarded, extents[guarded.read.tensor], atoms, both=True))
    return accesses


def accesses_of_target(
    progress: Progress, own: Collection[str], extents: Sequence[Polynomial | None], atoms: Atoms
) -> Sequence[Access]:
    """What the accesses of the array being written ask for, given the extents from its other writers.

    ``own``: the tensors that are read from it.
    """
    draft = progress.draft
    reads = [g for g in draft.reads() if g.read.tensor in own]
    reads.append(GuardedRead(Read(draft.target, draft.subscripts, draft.value.type), ()))
    return [access for guarded in reads for access in _access(progress, guarded, extents, atoms, both=False)]


def _access(
    progress: Progress, guarded: GuardedRead, extents: Sequence[Polynomial | None], atoms: Atoms, *, both: bool
) -> Iterable[Access]:
    """The inequalities of one read; a subscript that reads a tensor (a gather) asks for nothing."""
    facts = [
        *progress.facts,
        *(f for condition, value in guarded.guards for f in inequalities(condition, value, atoms)),
    ]
    for subscript, extent in zip(guarded.read.subscripts, extents, strict=True):
        if extent is None or any(isinstance(e, Read) for e in walk(subscript)):
            continue
        position = atoms.polynomial(subscript)
        for asked in (position, extent - 1 - position) if both else (extent - 1 - position,):
            if not is_implied(asked, facts, atoms) and not is_implied(linearize(asked, atoms), facts, atoms):
                yield Access(asked, guarded.read)


@frozen
class _Bound:
    """``factor * iterator <= limit``."""

    limit: Polynomial
    factor: Polynomial


def run_rounds(
    progress: Progress,
    accesses: Sequence[Access],
    atoms: Atoms,
    requirements: Requirements,
) -> None:
    """Resolves iterators until no access bounds another one."""
    while progress.unresolved:
        bounds: dict[str, list[_Bound]] = {}
        assumptions: list[Polynomial] = []
        for access in accesses:
            extremes = Extremes(atoms, progress.intervals)
            found = _bound(access, extremes)
            if found is not None:
                bounds.setdefault(found[0], []).append(found[1])
                assumptions.extend(extremes.assumptions)
        if not bounds:
            return
        origin = progress.draft.origin
        for polynomial in assumptions:
            requirements.at_least(
                polynomial, 0, "the factor of an iterator in a subscript must not be negative", origin
            )
        for name in (n for n in progress.draft.order if n in bounds):
            for bound in bounds[name]:
                if bound.factor.constant is None:
                    requirements.at_least(
                        bound.factor, 1, f"the factor of `{name}` in a subscript must be positive", origin
                    )
            progress.intervals[name] = Interval(constant(0), _end(bounds[name], atoms))
            progress.unresolved.remove(name)


def _bound(access: Access, extremes: Extremes) -> tuple[str, _Bound] | None:
    """How an access bounds its only unresolved iterator from above; None if it does not."""
    atoms = extremes.atoms
    asked = extremes.least(access.condition)
    if asked is None:
        return None
    asked = linearize(asked, atoms)
    names = atoms.variables(asked)
    if len(names) != 1:
        return None
    (name,) = names
    atom = atoms.iterator(name)
    if any(atoms.iterators(other) for other in asked.atoms if other != atom):
        return None
    factor = asked.coefficient(atom)
    positive = None if factor is None else extremes.is_positive(factor)
    if factor is None or positive is None:
        return None
    if positive:
        return None  # ranges start at 0: whether that is inside is decided when the sizes are known
    return name, _Bound(asked.rest(atom), -factor)


def _end(bounds: Sequence[_Bound], atoms: Atoms) -> Polynomial:
    """The end of the range that all bounds allow: ``limit / factor + 1`` at most, rounded down."""
    limits: list[tuple[Polynomial, list[Polynomial]]] = []
    for bound in bounds:
        for factor, same in limits:
            if factor == bound.factor:
                same.append(bound.limit)
                break
        else:
            limits.append((bound.factor, [bound.limit]))
    ends: list[Polynomial] = []
    for factor, same in limits:
        if factor.constant == 1:
            ends.extend(limit + 1 for limit in same)
        else:
            # Written as (limit + factor) / factor, truncation gives an empty range where limit is negative.
            ends.extend(atoms.quotient(limit + factor, factor) for limit in _smallest(same, atoms))
    return atoms.clamped(atoms.least(ends))


def _smallest(limits: Sequence[Polynomial], atoms: Atoms) -> list[Polynomial]:
    """The limits that may be the least one; they are compared before they are divided."""
    kept: list[Polynomial] = []
    for limit in limits:
        if not any(atoms.is_nonnegative(limit - other) for other in kept):
            kept = [other for other in kept if not atoms.is_nonnegative(other - limit)]
            kept.append(limit)
    return kept


def gives_elements(draft: Draft) -> bool:
    """Whether a statement gives elements, rather than updating those that there are."""
    reads = (e for e in walk(draft.value.expression) if isinstance(e, Read) and e.tensor == draft.target)
    own = any(not draft.blocks or read.subscripts == draft.subscripts for read in reads)
    own = own or any(map(scatters, draft.subscripts))
    return draft.initialize or not (draft.reduction is not None or own)


def extent_of_target(progress: Progress, dimension: int, atoms: Atoms) -> Polynomial | None:
    """One past the greatest subscript that a statement writes; None while its iterators are unresolved.

    Also where it has no such subscript; that not all have as many is a complaint of its own.
    """
    draft = progress.draft
    if dimension >= len(draft.subscripts):
        return None
    subscript = draft.subscripts[dimension]
    if dimension in draft.extents:
        return atoms.polynomial(draft.extents[dimension])
    if not is_piecewise_affine(subscript):
        return None
    written = chosen_by(draft.subscripts)
    if written & progress.unresolved or not written <= progress.intervals.keys():
        return None
    ranges = {name: progress.intervals[name] for name in draft.order if name in progress.intervals}
    writing = Writing(draft.target, dimension, subscript, written, ranges, draft.conditions, gives_elements(draft))
    return written_extent(writing, atoms)
