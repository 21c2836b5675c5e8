"""Temporaries in parts: of some, only what a step of a reading statement needs is computed, when it needs it.

They take no memory of their own, so that a chain of large ones needs no more than its results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final, TypeAlias

from tc.language.program.program import Program, Role, Statement, iterators_in
from tc.reference.access import Box, Window, volume
from tc.reference.domain import bounding_box, positions
from tc.reference.expressions import Frame
from tc.reference.intervals import read_window
from tc.reference.order import reads_of
from tc.reference.windows import restricted

# Elements of all parts that are held at a time.
PART_ELEMENTS: Final = 1 << 20

# Two windows become one that has so many times their elements, at most.
_JOINED: Final = 1.25

Needed: TypeAlias = dict[str, list[Window]]


@dataclass(frozen=True)
class Parts:
    """The temporaries of a specialized program that are computed in parts: ``names``.

    ``shapes``: of all tensors.  ``writers``: who gives each its values, in the order in which they are complete.
    """

    program: Program
    shapes: Mapping[str, tuple[int, ...]]
    names: frozenset[str] = field(default_factory=frozenset)
    writers: dict[str, list[Statement]] = field(init=False, repr=False, compare=False)
    # Of the writers, over all instances.
    _frames: dict[str, Frame] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[str, list[Statement]] = {}
        for statement in self.program.statements:
            if statement.target in self.names:
                found[statement.target] = [*found.pop(statement.target, []), statement]
        frames = {s.name: frame_without_tensors(self.program, s) for own in found.values() for s in own}
        object.__setattr__(self, "writers", found)
        object.__setattr__(self, "_frames", frames)

    def needed(self, statement: Statement, box: Box) -> Needed:
        """What a statement needs of them over a box: of those that it reads, and of those behind these."""
        found: Needed = {}
        if not self.names or volume(box) == 0:
            return found
        self._add_reads(statement, box, found)
        for name in reversed(self.writers):
            if name in found:
                for writer, window in product(self.writers[name], found[name]):
                    self._add_reads(writer, restricted(window, self._frames[writer.name]).box, found)
        return found

    def work(self, needed: Needed) -> int:
        """Instances that compute the parts."""
        pairs = (pair for name, windows in needed.items() for pair in product(self.writers[name], windows))
        return sum(volume(restricted(window, self._frames[writer.name]).box) for writer, window in pairs)

    def fit(self, statement: Statement, box: Box) -> bool:
        """Whether what a statement needs over a box may be held."""
        needed = self.needed(statement, box).values()
        return sum(volume(window.elements) for windows in needed for window in windows) <= PART_ELEMENTS

    def iterators(self, statement: Statement) -> frozenset[int]:
        """Positions of the iterators that choose elements of them: boxes that are cut there need less of them."""
        subscripts = [s for read in reads_of(statement) if read.tensor in self.names for s in read.subscripts]
        used = iterators_in(subscripts)
        return frozenset(position for name, position in positions(statement).items() if name in used)

    def _add_reads(self, statement: Statement, box: Box, found: Needed) -> None:
        for read in reads_of(statement):
            if read.tensor in self.names and volume(box) > 0:
                window = read_window(read, positions(statement), box, self.shapes[read.tensor])
                found[read.tensor] = _with(window, found.get(read.tensor, []))


def _with(window: Window, others: Sequence[Window]) -> list[Window]:
    """The windows and another one, joined where that adds little."""
    for number, other in enumerate(others):
        joined = window.joined(other)
        if volume(joined.elements) <= _JOINED * (volume(window.elements) + volume(other.elements)):
            return _with(joined, [*others[:number], *others[number + 1 :]])
    return [*others, window]


def frame_without_tensors(program: Program, statement: Statement) -> Frame:
    """The frame of a statement over all its instances, to look at its indices."""
    frame = Frame(program, statement, positions(statement), (), {}, {}, check_indices=True)
    return replace(frame, box=bounding_box(frame))


def candidates(program: Program) -> frozenset[str]:
    """The temporaries that may be computed in parts.

    Nothing reads them before they are complete, and what they are computed from does not change afterwards.
    """
    statements = program.statements
    writers = {t.name: [n for n, s in enumerate(statements) if s.target == t.name] for t in program.tensors}
    return frozenset(
        tensor.name
        for tensor in program.tensors
        if tensor.role is Role.TEMPORARY and writers[tensor.name] and _may(tensor.name, statements, writers)
    )


def _may(name: str, statements: Sequence[Statement], writers: Mapping[str, Sequence[int]]) -> bool:
    complete = writers[name][-1]
    if any(statements[writer].blocks for writer in writers[name]):
        return False
    for number, statement in enumerate(statements):
        read = {r.tensor for r in reads_of(statement)}
        if name in read and number <= complete:
            return False
        sources = [writer for source in read for writer in writers[source]] if statement.target == name else []
        if any(writer > number for writer in sources):
            return False
    return True
