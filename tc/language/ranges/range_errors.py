"""What range inference complains about, and the ``where`` or guard that it suggests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tc.base.errors import nearest
from tc.language.algebra.polynomial import Atoms, Polynomial
from tc.language.draft.draft import CallDraft, Draft, Item
from tc.language.program.program import IteratorReference, iterators_in
from tc.language.program.report import Report
from tc.language.program.written_elements import scatters
from tc.language.ranges.progress import Progress
from tc.language.text.expression_text import expression_text


class RangeErrors:
    """Renders complaints about ranges into a report."""

    def __init__(
        self, atoms: Atoms, sizes: Iterable[str], inputs: Mapping[str, Sequence[Polynomial]], report: Report
    ) -> None:
        """``sizes``: their names; ``inputs``: the extents of the arguments."""
        self._atoms = atoms
        self._sizes = tuple(sizes)
        self._inputs = inputs
        self._report = report

    def _text(self, polynomial: Polynomial) -> str:
        return expression_text(self._atoms.expression(polynomial))

    def undetermined(self, progress: Progress) -> None:
        """No access bounds an iterator."""
        draft = progress.draft
        for name in (n for n in draft.order if n in progress.unresolved):
            guess = nearest(name, self._sizes)
            also = "" if guess is None else f", or did you mean the size `{guess}`?"
            if name in iterators_in(draft.conditions):
                also += "; a condition leaves out what does not fulfil it, and gives no range"
            self._report.range_error(
                f"the range of `{name}` is undetermined: no access of a tensor bounds it",
                draft.places.iterator(name),
                f"give its range, for example `where {name} in 0:{self._end(name, draft)}`{also}",
            )

    def _end(self, name: str, draft: Draft) -> str:
        """An end for a range: that of a dimension in which the iterator stands alone, else any size."""
        for guarded in draft.reads():
            read = guarded.read
            for subscript, extent in zip(read.subscripts, self._inputs.get(read.tensor, ()), strict=False):
                if subscript == IteratorReference(name):
                    return self._text(extent)
        return self._sizes[0] if self._sizes else "10"

    def circular(self, item: Item) -> None:
        """A statement reads a tensor whose extents depend on the statement."""
        names = {r.read.tensor for r in item.reads()} if isinstance(item, Draft) else set(item.tensors.values())
        written = f"`{item.target}`" if isinstance(item, Draft) else "its results"
        self._report.range_error(
            f"the extents of {_list(names)} depend on {written} and the other way round",
            item.places.statement if isinstance(item, Draft) else item.span,
            "give the ranges of one of the statements with a `where`",
        )

    def unfinished(self, item: Item, tensor: str, dimension: int) -> None:
        """An extent that only a call knows is used before all of its tensor is written."""
        self._report.range_error(
            f"`{tensor}.{dimension}` is used before all of `{tensor}` is written, and only a call knows it",
            item.places.statement if isinstance(item, Draft) else item.span,
            f"write all of `{tensor}` first, or write what follows to another tensor that begins with a copy of it",
        )

    def no_extent(self, tensor: str, writers: Iterable[Progress]) -> None:
        """All writers of a tensor take its extents from each other, or write it with unbounded subscripts."""
        for progress in writers:
            draft = progress.draft
            unknown = (d for d, s in enumerate(draft.subscripts) if scatters(s) and d not in draft.extents)
            dimension = next(unknown, None)
            if dimension is not None and not progress.failed:
                subscript = expression_text(draft.subscripts[dimension])
                end = self._sizes[0] if self._sizes else "10"
                place = f"dimension {dimension} of `{draft.name}`"
                self._report.range_error(
                    f"the extent of {place} is not known: `{subscript}` may be any index",
                    draft.places.subscript(dimension),
                    f"say it in the `where`, `{subscript} in 0:{end}`, declare the result with its sizes, or write all "
                    f"of `{draft.name}` before",
                )
                return
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


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
