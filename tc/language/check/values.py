"""Versions: which value of a name every statement reads and writes, and which tensor holds it.

Statements run in order.  ``=`` or ``op=!`` on a name that was read since its last write starts a new version with
a tensor of its own; any other write goes to the current version.  An output that is read before it is written
comes in through ``out=``.  Only names are needed to decide this, so it precedes types and ranges.

In a block a name keeps the value that it has: steps read what earlier ones wrote, so all of them write one tensor.  It
may be read further up in the text than it is written; that it was written before is shown later
(``tc.language.prove.written_before``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from tc.base.counted import counted
from tc.base.errors import Span
from tc.base.frozen import frozen
from tc.language.program.report import Report


class Write(Enum):
    """How a statement writes a name.  FRESH is a value from elsewhere (a call): never an update in place."""

    SET = "="
    INITIALIZE = "op=!"
    UPDATE = "op="
    FRESH = "call"

    @property
    def starts_value(self) -> bool:
        """Whether the tensor has a new value from here on."""
        return self is not Write.UPDATE


@frozen
class Use:
    """What one statement does with names: reads (name and first place) and writes (name, rank, how, place).

    ``mentions``: names whose extents it uses without reading them (``T.0``, ``exists T(i)``).  ``rereads``: names
    that a callee reads after it has written them.  ``block``: the outermost one around it.
    """

    reads: Mapping[str, Span]
    mentions: Mapping[str, Span]
    writes: tuple[tuple[str, int | None, Write, Span], ...]
    rereads: frozenset[str] = frozenset()
    block: int | None = None


@dataclass(slots=True, eq=False)
class Version:
    """One value of a name.  ``tensor`` is the name of its storage in the program.

    ``writers``: numbers of the statements that write it, in order.  ``incoming``: the value that came in through
    ``out=``.  ``rank`` is None while only calls have written it.
    """

    name: str
    rank: int | None
    incoming: bool
    tensor: str = ""
    writers: list[int] = field(default_factory=list)
    broken: bool = False


@frozen
class Values:
    """The versions of a definition.

    ``read``: per statement, the version that a name has for its reads.  ``written``: per statement, the version
    that it writes under a name.  ``saved``: incoming versions that must be copied before their storage is reused.
    ``assumed``: results that a block reads further up in the text than it writes them, as if that were written before.
    """

    versions: tuple[Version, ...]
    read: tuple[Mapping[str, Version], ...]
    written: tuple[Mapping[str, Version], ...]
    saved: tuple[Version, ...]
    assumed: frozenset[str]


@dataclass(slots=True)
class _State:
    """The current version of a name, and whether a statement has read it since its last write."""

    version: Version
    was_read: bool = False


class _Tracker:
    def __init__(self, inputs: Collection[str], results: Collection[str], report: Report) -> None:
        self.inputs = inputs
        self.results = results
        self.report = report
        self.states: dict[str, _State] = {}
        self.versions: list[Version] = []
        self.saved: list[Version] = []
        self.places: dict[str, Span] = {}
        # What the block in which the statements are gives a value, whether in an earlier statement or in a later one.
        self.given: Collection[str] = ()
        self.in_block = False
        self.assumed: set[str] = set()

    def start(self, name: str, rank: int | None, incoming: bool = False) -> Version:
        version = Version(name, rank, incoming)
        self.versions.append(version)
        self.states[name] = _State(version)
        return version

    def read(self, name: str, rank: int | None, span: Span) -> Version:
        """The version that a read of ``name`` means; an unwritten output comes in from outside."""
        state = self.states.get(name)
        if state is not None:
            return state.version
        if name in self.given:
            self.assumed |= {name} & set(self.results)
            return self.start(name, rank)
        incoming = name in self.results
        if not incoming:
            self.report.error(
                f"temporary `{name}` is read before it is written",
                span,
                f"write it first, or list `{name}` among the results to pass its value in through `out=`",
            )
        version = self.start(name, rank, incoming)
        version.broken = not incoming
        return version

    def mention(self, name: str, span: Span) -> Version:
        """The version whose extents a statement uses."""
        state = self.states.get(name)
        if state is None and name in self.given:
            return self.start(name, None)
        if state is None:
            self.report.error(f"the extents of `{name}` are not known before it is written", span)
            state = _State(Version(name, None, incoming=False, broken=True))
        return state.version

    def write(self, number: int, name: str, rank: int | None, how: Write, span: Span, reads_itself: bool) -> Version:
        """The version that statement ``number`` writes."""
        state = self.states.get(name)
        if state is None and not how.starts_value:
            if name not in self.results:
                self.report.error(
                    f"`{name}` is updated before it has a value",
                    span,
                    "write `+=!` (`*=!`, `min=!`, `max=!`): the `!` lets a reduction start afresh",
                )
                self.start(name, rank).broken = True
            else:
                self.read(name, rank, span)
            state = self.states[name]
        if state is None:
            version = self.start(name, rank)
        elif how.starts_value and not self.in_block and (state.was_read or (reads_itself and how is Write.FRESH)):
            if state.version.incoming and reads_itself:
                self.saved.append(state.version)
            version = self.start(name, rank)
        else:
            version = state.version
            if version.rank is None:
                version.rank = rank
            elif rank is not None and rank != version.rank:
                self.report.error(
                    f"`{name}` is written with {counted(rank, 'subscript')} here and with {version.rank} before", span
                )
                version.broken = True
                version = self.start(name, rank)
                version.broken = True
        if not version.writers:
            self.places[name] = span
        version.writers.append(number)
        self.states[name].was_read = False
        return version

    def check_incoming(self) -> None:
        """What comes in through ``out=`` and what goes out are one array."""
        last = {version.name: version for version in self.versions}
        for version in (v for v in self.versions if v.incoming and not v.broken):
            outgoing = last[version.name]
            if None not in (version.rank, outgoing.rank) and version.rank != outgoing.rank:
                self.report.error(
                    f"`{version.name}` comes in through `out=` with {counted(version.rank or 0, 'dimension')} and goes "
                    f"out with {outgoing.rank}, but it is one array",
                    self.places[version.name],
                    "write the result to another name",
                )
                # Apart, so that the writers of one tensor agree about its rank in everything that follows.
                version.incoming, version.broken = False, True


def track_values(
    uses: Sequence[Use],
    inputs: Collection[str],
    results: Collection[str],
    taken: Iterable[str],
    report: Report,
    coming: Collection[str] = (),
) -> Values:
    """Versions of all names.

    ``taken``: the names that fresh tensors must not get.  ``coming``: results that blocks read before they write them.
    """
    tracker = _Tracker(inputs, results, report)
    first_rank: dict[str, int | None] = {}
    for use in uses:
        for name, rank, _, _ in use.writes:
            first_rank.setdefault(name, rank)
    reads: list[Mapping[str, Version]] = []
    writes: list[Mapping[str, Version]] = []
    blocks = {use.block for use in uses if use.block is not None}
    given: dict[int | None, set[str]] = {block: _given_in(block, uses) - set(coming) for block in blocks}
    for number, use in enumerate(uses):
        tracker.in_block, tracker.given = use.block is not None, given.get(use.block, ())
        read = {
            name: tracker.read(name, first_rank.get(name), span)
            for name, span in use.reads.items()
            if name not in inputs
        }
        written = {
            name: tracker.write(number, name, rank, how, span, name in use.reads)
            for name, rank, how, span in use.writes
        }
        for name in (*(name for name in read if name not in written), *use.rereads):
            tracker.states[name].was_read = True
        for name, span in use.mentions.items():
            if name not in read and name not in inputs:
                read[name] = tracker.mention(name, span)
        if use.block is not None:
            # Another step may read what this one writes.
            for name in (n for other in uses if other.block == use.block for n in other.reads if n in tracker.states):
                tracker.states[name].was_read = True
        reads.append(read)
        writes.append(written)
    tracker.check_incoming()
    # The incoming value needs a copy only if its storage is reused by the very next value, the last one.
    saved = tuple(v for v in tracker.saved if _successors(v, tracker.versions) == 1)
    _name_tensors(tracker.versions, saved, set(taken))
    return Values(tuple(tracker.versions), tuple(reads), tuple(writes), saved, frozenset(tracker.assumed))


def _given_in(block: int, uses: Sequence[Use]) -> set[str]:
    """The names to which the statements of a block give a value."""
    return {name for use in uses if use.block == block for name, _, how, _ in use.writes if how.starts_value}


def _successors(version: Version, versions: Sequence[Version]) -> int:
    same = [v for v in versions if v.name == version.name]
    return len(same) - 1 - same.index(version)


def _name_tensors(versions: Sequence[Version], saved: Sequence[Version], taken: set[str]) -> None:
    """The last version keeps the name; an incoming one shares it (one array) unless it must be saved."""
    last = {version.name: version for version in versions}
    for version in versions:
        if version is last[version.name] or (version.incoming and version not in saved):
            version.tensor = version.name
        else:
            version.tensor = _fresh(version.name + ("_in" if version.incoming else ""), version in saved, taken)


def _fresh(name: str, as_is: bool, taken: set[str]) -> str:
    """``name`` if it is free and wanted as it is, else the first free ``name_1``, ``name_2``, ..."""
    candidate, number = name, 0
    while candidate in taken or not (as_is or number):
        number += 1
        candidate = f"{name}_{number}"
    taken.add(candidate)
    return candidate
