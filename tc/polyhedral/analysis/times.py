"""When the instances of a statement at one place run."""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Final

import islpy as isl

from tc.polyhedral.analysis.distances import fixed_values
from tc.polyhedral.analysis.functions import Function, function_map
from tc.polyhedral.ir.lazy_attribute import LazyAttribute


class Times:
    """``{ instance -> time }``, made of as few dimensions as a question is about.

    ``values``: those of every dimension, at ``points``; ``instances``: the instance of each point, None if the points
    are the instances.  ``alone``: the statement stands at no other place, so that ``along`` may say something of
    instances that do not run, in fewer words: for pairs of instances that do, of which isl would compare what the
    domains say again and again.
    """

    def __init__(self, points: isl.Set, values: Items[Function], instances: isl.Map | None, *, alone: bool) -> None:
        self._points: Final = points
        self._values: Final = tuple(values)
        self._instances: Final = instances
        self._alone: Final = alone
        self._known: Final[dict[tuple[int | None, ...], isl.Map]] = {}

    @LazyAttribute
    def whole(self) -> isl.Map:
        """All dimensions, of the instances that run."""
        times = function_map(self._values, self._points.get_space()).intersect_domain(self._points)
        return times if self._instances is None else self._instances.reverse().apply_range(times)

    @LazyAttribute
    def fixed(self) -> tuple[int | None, ...]:
        """Of every dimension, the value that all times are to be seen to have there without a search."""
        if self._instances is not None:
            return fixed_values(self.whole)
        return tuple(
            int(value.get_constant_val().to_python()) if isinstance(value, isl.Aff) and value.is_cst() else None
            for value in self._values
        )

    def along(self, dimensions: tuple[int | None, ...]) -> isl.Map:
        """These dimensions only, which are in order; None: a further one that is zero."""
        found = self._known.get(dimensions)
        if found is None:
            found = self._known[dimensions] = (
                self._projected(dimensions) if self._instances is not None else self._composed(dimensions)
            )
        return found

    def _composed(self, dimensions: tuple[int | None, ...]) -> isl.Map:
        space = self._points.get_space()
        zero = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space))
        values = [zero if position is None else self._values[position] for position in dimensions]
        times = function_map(values, space)
        if not self._alone:
            return times.intersect_domain(self._points)
        return times if all(isinstance(value, isl.Aff) for value in values) else times.gist_domain(self._points)

    def _projected(self, dimensions: tuple[int | None, ...]) -> isl.Map:
        times, end = self.whole, len(self._values)
        for position in (*(p for p in reversed(dimensions) if p is not None), -1):
            if end - position > 1:
                times = times.project_out(isl.dim_type.out, position + 1, end - position - 1)
            end = position
        for number, kept in enumerate(dimensions):
            if kept is None:
                times = times.insert_dims(isl.dim_type.out, number, 1)
                times = times.fix_val(isl.dim_type.out, number, isl.Val.zero(times.get_ctx()))
        return times
