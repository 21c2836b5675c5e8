"""Printed lines, and what the rest of a source needs to know of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Final

from tc.base.frozen import frozen
from tc.base.grid import GridKernel, Steps
from tc.codegen.text.fragment import NO_NAMES, Fragment, Template, filled, names_in
from tc.codegen.text.lines import braced


@frozen
class Facts:
    """What printed lines need beside themselves.

    ``functions``: those that they call, inner ones first; of their facts, only the names are theirs.
    ``scratch_bytes``: the scratch memory of every thread; ``private_bytes``: what buffers take of a thread's stack.
    ``sums``: registers of a thread that many partial sums take, with those of their totals that are not in memory.
    ``exchanges``: places where lanes exchange values.  ``grids``: the kernels among the functions, in the order in
    which they run; ``steps``: of those that are launched several times.  ``aligned``: pointers to tensors, and the
    bytes to which these are aligned in one version of the lines.  ``names``: those that the lines mention (see
    ``Fragment``); who prints a line with ``line`` need not list them.  ``declared``: those that they declare for all
    that follows in the same braces.
    """

    functions: tuple[Printed, ...] = ()
    scratch_bytes: int = 0
    private_bytes: int = 0
    sums: int = 0
    exchanges: int = 0
    grids: tuple[GridKernel, ...] = ()
    steps: tuple[Steps, ...] = ()
    aligned: frozenset[tuple[str, int]] = frozenset()
    names: frozenset[str] = NO_NAMES
    declared: frozenset[str] = NO_NAMES

    def __or__(self, other: Facts) -> Facts:
        """Those of lines that stand behind these."""
        if other is NO_FACTS:
            return self
        if self is NO_FACTS:
            return other
        names = self.names if other.names <= self.names else self.names | other.names
        return Facts(
            (*self.functions, *other.functions),
            max(self.scratch_bytes, other.scratch_bytes),
            max(self.private_bytes, other.private_bytes),
            max(self.sums, other.sums),
            self.exchanges + other.exchanges,
            (*self.grids, *other.grids),
            (*self.steps, *(own.moved(len(self.grids)) for own in other.steps)),
            self.aligned | other.aligned,
            names,
            self.declared | other.declared,
        )


NO_FACTS: Final = Facts()
ELSE: Final = Fragment("else")
# Whether this is the version of a function for tensors that are aligned.
ALIGNED: Final = "aligned"


def naming(names: frozenset[str]) -> Facts:
    """Facts of lines that mention these names, and need nothing."""
    return Facts(names=names) if names else NO_FACTS


@frozen
class Printed:
    """Lines with their facts."""

    lines: Sequence[str]
    facts: Facts = field(default=NO_FACTS)

    def between(self, before: Iterable[str], behind: Iterable[str] = ()) -> Printed:
        """With lines around them that need nothing."""
        return Printed([*before, *self.lines, *behind], self.facts)

    def braced(self, header: Fragment | None = None) -> Printed:
        """As a block, after a header if there is one."""
        facts = replace(self.facts, declared=NO_NAMES) if self.facts.declared else self.facts
        if header is None:
            return Printed(braced("", self.lines), facts)
        return Printed(braced(header.text, self.lines), facts | naming(header.names))

    def declaring(self, *variables: Fragment) -> Printed:
        """The lines, which declare variables."""
        return self.with_facts(Facts(declared=names_in(*variables)))

    def with_facts(self, facts: Facts) -> Printed:
        """The lines, which need more."""
        return Printed(self.lines, self.facts | facts)

    def __add__(self, other: Printed) -> Printed:
        return Printed([*self.lines, *other.lines], self.facts | other.facts)


def line(template: str | Template, *parts: object, **more: object) -> Printed:
    """One line: the template with the parts in its fields."""
    text = filled(template, *parts, **more) if isinstance(template, str) else template.filled(*parts, **more)
    return Printed([text.text], naming(text.names))


def together(parts: Iterable[Printed]) -> Printed:
    """All parts, one behind the other."""
    lines: list[str] = []
    facts = NO_FACTS
    for part in parts:
        lines += part.lines
        facts |= part.facts
    return Printed(lines, facts)


def side_by_side(parts: Sequence[Printed]) -> Printed:
    """All parts, one behind the other; what declares a name that another one mentions has braces of its own."""
    if any(part.facts.declared for part in parts):
        parts = [_apart(part, [other for other in parts if other is not part]) for part in parts]
    return together(parts)


def _apart(part: Printed, others: Iterable[Printed]) -> Printed:
    declared = part.facts.declared
    return part if all(declared.isdisjoint(other.facts.names) for other in others) else part.braced()
