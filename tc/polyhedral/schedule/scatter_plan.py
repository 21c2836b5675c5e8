"""How scatters are shared, by default or as options say.

Whether there are parts of sums in order, and how many, only sizes decide: partial results change the order of
additions, and bits must not depend on a machine.  How many owners there are matters to time alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tc.base.errors import OptionsError
from tc.base.frozen import frozen
from tc.base.types import ScalarType, computation_type
from tc.language.program.program import IterationVariable, Reduction, Statement, reads_in
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.splits import Share
from tc.polyhedral.schedule.scatter import Extents, dealt, extents_of, length_of, scattering
from tc.targets.options import ScheduleOptions

# Terms for each element of the partial results, so that these cost little to begin and to combine; and for a few parts,
# which owners who look at all indices would not be faster than.
_TERMS: Final = 8
_FEW: Final = 4
_TERMS_OF_FEW: Final = 2
# Iterations that are worth a thread of their own.
_WORTH_SHARING: Final = 1 << 14
# Rows of which looking at all indices is worth while; and those of which it is to have a further owner for each core,
# so that the last one to finish leaves less idle time.  There are no more than four: an index costs a nanosecond.
_LOOK: Final = 8
_FURTHER: Final = 32
_MOST_CHUNKS: Final = 4
# Elements whose atomic updates seldom wait for each other, and terms that are enough to make so many.
_ELEMENTS_APART: Final = 1 << 14
_TERMS_APART: Final = 1 << 16


@frozen
class Owners:
    """As many as keep a machine busy: ``of_rows``, which are long, beside which indices cost little, or not."""

    of_rows: int
    of_elements: int


@frozen
class Sharers:
    """What a machine has for scatters.

    ``parts``: the most, unless options ask for more.  ``atomic_bytes``: sizes of elements of which it has atomic
    updates, which come before all others.  ``deterministic``: their order must not matter.  ``wide``: statements that
    accumulate in float64.
    """

    owners: Owners
    parts: int
    atomic_bytes: frozenset[int] = frozenset()
    deterministic: bool = True
    wide: frozenset[str] = frozenset()


def plan_scatters(specialization: Specialization, options: ScheduleOptions, sharers: Sharers) -> tuple[Share, ...]:
    """The scatters that are shared."""
    scatters = list(scattering(specialization))
    _refuse_in_vain(scatters, specialization, options)
    found = (_share(statement, specialization, options, sharers) for statement in scatters)
    return tuple(share for share in found if share.shares)


def _refuse_in_vain(scatters: Sequence[Statement], specialization: Specialization, options: ScheduleOptions) -> None:
    """OptionsError for what options ask for and no scatter can have."""
    name = specialization.program.name
    for option, asked in (("scatter_owners", options.scatter_owners), ("scatter_parts", options.scatter_parts)):
        if asked is not None and asked > 1 and not scatters:
            raise OptionsError(f"{option}={asked}: {name} has no left-hand side that reads a tensor; leave it out")
    parts = options.scatter_parts or 1
    if parts > 1 and not any(_may_be_dealt(statement, specialization) for statement in scatters):
        raise OptionsError(
            f"scatter_parts={parts}: the terms of {scatters[0].name} in {name} cannot be dealt to parts: no loop over "
            "them has a range of its own that is known; use scatter_owners"
        )


def _may_be_dealt(statement: Statement, specialization: Specialization) -> bool:
    known = extents_of(statement, specialization) is not None
    return known and statement.reduction is not None and dealt(statement) is not None


def _share(statement: Statement, specialization: Specialization, options: ScheduleOptions, sharers: Sharers) -> Share:
    name, loop, owners = statement.name, dealt(statement), sharers.owners
    open_ = options.scatter_owners is None and options.scatter_parts is None
    extents = extents_of(statement, specialization)
    if open_ and _may_be_atomic(statement, specialization, sharers):
        return Share(name, parts=_atomic_parts(extents, loop), atomic=True)
    if _may_be_dealt(statement, specialization) and loop is not None and extents is not None:
        dealt_to = options.scatter_parts
        if dealt_to is None and options.scatter_owners is None:
            dealt_to = next((n for n in _powers(sharers.parts) if _pays(n, extents, length_of(loop) or 0)), 1)
        if dealt_to is not None and dealt_to > 1:
            return Share(name, parts=dealt_to)
    if options.scatter_owners is not None:
        return Share(name, owners=options.scatter_owners)
    if extents is None or extents.terms * extents.width < _WORTH_SHARING:
        return Share(name)
    if extents.batches >= max(owners.of_rows, owners.of_elements):
        return Share(name)  # its loop is coincident
    if extents.width < _LOOK:
        return Share(name, owners=max(1, min(owners.of_elements, extents.elements)))
    chunks = max(1, min(_MOST_CHUNKS, extents.width // _FURTHER))
    return Share(name, owners=max(1, min(owners.of_rows * chunks, extents.elements)))


def _may_be_atomic(statement: Statement, specialization: Specialization, sharers: Sharers) -> bool:
    """Whether terms may come to their elements in any order, each by one update."""
    storage = dict(specialization.signature.aliases)
    type = computation_type(specialization.layouts[statement.target].type)
    if statement.name in sharers.wide:
        type = ScalarType.FLOAT64
    return (
        type.itemsize in sharers.atomic_bytes
        and statement.reduction is not None
        and (_same_in_any_order(statement.reduction, type) or (type.is_floating and not sharers.deterministic))
        and not any(
            storage.get(read.tensor, read.tensor) == storage.get(statement.target, statement.target)
            for expression in (statement.value, *statement.subscripts)
            for read in reads_in(expression)
        )
    )


def _same_in_any_order(reduction: Reduction, type: ScalarType) -> bool:
    """Whether the result has the same bits: integers wrap around, and of extremes even zeros are ordered."""
    return type.is_integer or (type.is_floating and reduction in (Reduction.MINIMUM, Reduction.MAXIMUM))


def _atomic_parts(extents: Extents | None, loop: IterationVariable | None) -> int:
    """Parts that have enough elements for atomic updates not to wait for each other; 1 where terms are too few."""
    parts, length = 1, 0 if loop is None else length_of(loop) or 0
    if extents is None or extents.terms * extents.width < _TERMS_APART:
        return parts
    while parts * extents.elements * extents.width < _ELEMENTS_APART:
        parts *= 2
        if not _pays(parts, extents, length):
            return parts // 2
    return parts


def _powers(most: int) -> Iterator[int]:
    while most > 1:
        yield most
        most //= 2


def _pays(parts: int, extents: Extents, length: int) -> bool:
    terms = _TERMS if parts > _FEW else _TERMS_OF_FEW
    return terms * parts * extents.elements <= extents.terms and parts <= length
