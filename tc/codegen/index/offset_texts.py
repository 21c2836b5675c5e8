"""Offsets of elements as text: of copies of a statement, only the constants differ.

Unrolled loops have thousands of them, so everything but the constant is printed, and its range found, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from tc.codegen.index.indices import index_fragment, index_literal, require_fit, require_range
from tc.codegen.text.dialect import Dialect
from tc.codegen.text.fragment import Fragment, infix
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.analysis.ranges import Range, Ranges, range_of
from tc.polyhedral.ir.loops import IndexExpression

# The terms of a form.
_Moving: TypeAlias = tuple[tuple[IndexExpression, int], ...]


class OffsetTexts:
    """The texts of forms below some loops; ``variables``: the texts of their iterators, ``ranges``: of these."""

    def __init__(self, variables: Mapping[str, Fragment], ranges: Ranges, dialect: Dialect) -> None:
        self.variables: Final = variables
        self.ranges: Final = ranges
        self._dialect: Final = dialect
        self._found: Final[dict[_Moving, tuple[Fragment, Range]]] = {}

    def text(self, form: LinearForm) -> Fragment:
        """The form as ``index_fragment`` prints its expression; WideIndexError where it does not fit an index."""
        if not form.factors:
            require_fit(form.expression(), self.ranges, self._dialect)
            return index_literal(form.constant)
        fragment, values = self._moving(form)
        if form.constant == 0:
            return fragment
        for found in (Range(form.constant, form.constant), _moved(values, form.constant)):
            require_range(found, form, self._dialect)
        return infix("-" if form.constant < 0 else "+", fragment, index_literal(abs(form.constant)))

    def _moving(self, form: LinearForm) -> tuple[Fragment, Range]:
        """Everything but the constant."""
        terms = tuple(form.factors.items())
        found = self._found.get(terms)
        if found is None:
            moving = LinearForm(0, form.factors).expression()
            require_fit(moving, self.ranges, self._dialect)
            text = index_fragment(moving, self.variables, self._dialect)
            found = self._found[terms] = text, range_of(moving, self.ranges)
        return found


def _moved(values: Range, constant: int) -> Range:
    return Range(values.least + constant, values.most + constant)
