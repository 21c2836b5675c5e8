"""What the offsets of a kernel's accesses have of its blocks and threads alone: computed once, at its beginning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Final

from tc.codegen.index.indices import index_fragment, require_fit
from tc.codegen.text.dialect import Dialect
from tc.codegen.text.fragment import Fragment, named
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.analysis.ranges import Ranges, range_of
from tc.polyhedral.ir.loops import IndexExpression, IndexVariable, variables


class LaunchOffsets:
    """Names for sums over the numbers of this block and this thread; ``coordinates``: their values, by their texts."""

    def __init__(self, coordinates: Ranges, dialect: Dialect) -> None:
        self._coordinates: Final = coordinates
        self._dialect: Final = dialect
        self._names: Final[dict[Fragment, str]] = {}
        self._copying: Final[set[str]] = set()

    def text(self, form: LinearForm, texts: Mapping[str, Fragment], ranges: Ranges) -> Fragment | None:
        """An offset in a loop, in terms of a name; None where it has no sum to share, or none that moves yet.

        ``texts``: of variables, and ``ranges``: their values.  WideIndexError where it does not fit an index.
        """
        fixed = {term: factor for term, factor in form.factors.items() if self._is_fixed(term, texts)}
        if len(fixed) < 2:
            return None
        own = {name: self._coordinates[texts[name].text] for term in fixed for name in variables(term)}
        sum = LinearForm(0, fixed).expression()
        require_fit(sum, own, self._dialect)
        whole = index_fragment(sum, texts, self._dialect)
        if len(fixed) == len(form.factors) and whole not in self._names:
            return None
        name = self._names.setdefault(whole, f"offset{len(self._names)}")
        rest = {term: factor for term, factor in form.factors.items() if term not in fixed}
        moving = LinearForm(form.constant, rest).expression(IndexVariable(name))
        require_fit(moving, {**ranges, name: range_of(sum, own)}, self._dialect)
        return index_fragment(moving, {**texts, name: named(name)}, self._dialect)

    def copies_with(self, mentioned: Set[str]) -> None:
        """Some names are offsets of what is copied for each tile: compilers, left alone, add these up every time."""
        self._copying.update(mentioned)

    def computed(self) -> Iterator[tuple[str, Fragment, bool]]:
        """The names so far, what each is, and whether copies for tiles mention it."""
        return ((name, sum, name in self._copying) for sum, name in self._names.items())

    def _is_fixed(self, term: IndexExpression, texts: Mapping[str, Fragment]) -> bool:
        return all(texts[name].text in self._coordinates for name in variables(term))
