"""What range inference complains about, and the ``where`` or guard that it suggests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tc.errors import nearest
from tc.language.draft import CallDraft, Draft, Item
from tc.language.expression_text import expression_text
from tc.language.extremes import Extremes
from tc.language.fold import divide
from tc.language.polynomial import Atoms, Polynomial, constant
from tc.language.program import Read
from tc.language.report import Report

if TYPE_CHECKING:
    from tc.language.rounds import Progress


class RangeErrors:
    """Renders complaints about ranges into a report."""

    def __init__(self, atoms: Atoms, sizes: Iterable[str], report: Report) -> None:
        self._atoms = atoms
        self._sizes = tuple(sizes)
        self._report = report

    def _text(self, polynomial: Polynomial) -> str:
        return expression_text(self._atoms.expression(polynomial))

    def undetermined(self, progress: Progress) -> None:
        """No access bounds an iterator."""
        draft = progress.draft
        for name in (n for n in draft.order if n in progress.unresolved):
            guess = nearest(name, self._sizes)
            also = "" if guess is None else f", or did you mean the size `{guess}`?"
            self._report.range_error(
                f"the range of `{name}` is undetermined: no access of a tensor bounds it",
                draft.places.iterator(name),
                f"give its range, for example `where {name} in 0:{self._sizes[0] if self._sizes else 10}`{also}",
            )

    def starts_above_zero(
        self, progress: Progress, name: str, read: Read, rest: Polynomial, factor: Polynomial
    ) -> None:
        """A read is below its tensor while an iterator is small."""
        if progress.failed:
            return
        draft = progress.draft
        begin = -rest
        if factor.constant is not None and begin.constant is not None:
            begin = constant(divide(begin.constant + factor.constant - 1, factor.constant))
        elif factor.constant != 1:
            begin = self._atoms.quotient(begin + factor - 1, factor)
        text, access = self._text(begin), expression_text(read)
        self._report.range_error(
            f"`{name}` would have to start above 0: `{access}` leaves `{read.tensor}` at `{name} = 0`",
            draft.places.read(read),
            f"give its range, `where {name} in {text}:...`, or guard the read: `{name} >= {text} ? {access} : 0`",
        )

    def circular(self, item: Item) -> None:
        """A statement reads a tensor whose extents depend on the statement."""
        names = {r.read.tensor for r in item.reads()} if isinstance(item, Draft) else set(item.tensors.values())
        written = f"`{item.target}`" if isinstance(item, Draft) else "its results"
        self._report.range_error(
            f"the extents of {_list(names)} depend on {written} and the other way round",
            item.places.statement if isinstance(item, Draft) else item.span,
            "give the ranges of one of the statements with a `where`",
        )

    def no_extent(self, tensor: str, writers: Iterable[Progress]) -> None:
        """All writers of a tensor take its extents from each other, or write it with unbounded subscripts."""
        for progress in writers:
            if not progress.failed:
                self._report.range_error(
                    f"the extents of `{tensor}` cannot be inferred from its subscripts", progress.draft.places.statement
                )
                return

    def impossible_call(self, call: CallDraft, message: str) -> None:
        """A call whose arguments cannot fit, whatever the sizes are."""
        self._report.error(message, call.span)

    def check_bounds(self, progress: Progress) -> bool:
        """Whether the ranges of a ``where`` make sense."""
        before = self._report.count
        draft = progress.draft
        for name, bounds in draft.bounds.items():
            interval = progress.intervals[name]
            if self._depends_on_itself(name, progress):
                self._report.range_error(f"the range of `{name}` depends on itself", bounds.span)
            elif self._atoms.is_negative(interval.begin):
                self._report.range_error(
                    f"the range of `{name}` begins at {self._text(interval.begin)}; iterators are never negative",
                    bounds.span,
                    f"start at 0 and shift the subscripts: `{name} - {self._text(-interval.begin)}`",
                )
            else:
                length = (interval.end - interval.begin).constant
                if length is not None and length < 0:
                    range = f"{self._text(interval.begin)}:{self._text(interval.end)}"
                    self._report.range_error(
                        f"the range {range} of `{name}` is contradictory: it ends before it begins", bounds.span
                    )
        return self._report.count == before

    def _depends_on_itself(self, name: str, progress: Progress) -> bool:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            interval = progress.intervals.get(waiting.pop())
            if interval is not None:
                new = (self._atoms.variables(interval.begin) | self._atoms.variables(interval.end)) - seen
                seen |= new
                waiting.extend(new)
        return name in seen

    def check_accesses(self, progress: Progress) -> None:
        """Accesses that leave their tensor whatever the sizes are; the others are proven for every call."""
        if progress.failed:
            return
        intervals = progress.intervals
        if not all(self._atoms.is_negative(i.begin - i.end) for i in intervals.values()):
            return
        draft = progress.draft
        for subscript in draft.subscripts:
            least = Extremes(self._atoms, intervals).least(self._atoms.polynomial(subscript))
            if least is not None and not draft.conditions and self._atoms.is_negative(least):
                self._report.range_error(
                    f"`{draft.name}` would be written at subscript {self._text(least)}, below 0",
                    draft.places.statement,
                    f"shift the subscript `{expression_text(subscript)}` to start at 0",
                )
                return
        for access in progress.accesses or ():
            least = Extremes(self._atoms, intervals).least(access.condition)
            if access.free and least is not None and self._atoms.is_negative(least):
                self._report.range_error(
                    f"`{expression_text(access.read)}` leaves `{access.read.tensor}` for these ranges",
                    draft.places.read(access.read),
                    "narrow the ranges with a `where`, or guard the read with a condition",
                )
                return


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
