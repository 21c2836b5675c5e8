"""Gathers the complaints about a text, so that all of them are raised together."""

from __future__ import annotations

from dataclasses import dataclass, field

from tc.base.errors import Diagnostic, RangeError, SemanticError, Span


@dataclass(slots=True)
class Report:
    """The complaints found so far; those about ranges are kept apart to choose the error class."""

    meaning: list[Diagnostic] = field(default_factory=list)
    ranges: list[Diagnostic] = field(default_factory=list)

    def error(self, message: str, span: Span | None, hint: str | None = None) -> None:
        """A complaint about names, types, reductions or values."""
        self.meaning.append(Diagnostic(message, span, hint))

    def range_error(self, message: str, span: Span | None, hint: str | None = None) -> None:
        """A complaint about the range of an iterator or an access that leaves its tensor."""
        self.ranges.append(Diagnostic(message, span, hint))

    def extend(self, other: Report) -> None:
        """Adds the complaints of another report."""
        self.meaning.extend(other.meaning)
        self.ranges.extend(other.ranges)

    @property
    def count(self) -> int:
        """The number of complaints."""
        return len(self.meaning) + len(self.ranges)

    def raise_if_any(self, source: str | None) -> None:
        """Raises RangeError if all complaints are about ranges, SemanticError if any is not."""
        # All statements of a block say what is wrong with its range.
        meaning, ranges = tuple(dict.fromkeys(self.meaning)), tuple(dict.fromkeys(self.ranges))
        if meaning:
            raise SemanticError((*meaning, *ranges), source)
        if ranges:
            raise RangeError(ranges, source)
