"""Chains of two products, ``S = Q K^T`` and ``O = P V``, between which everything is done row by row, as in attention.

A block has some rows, and goes through the keys, tile by tile: it multiplies for a tile of scores, and goes on with
them where they are.  What waits for a reduction over all keys, such as for the maximum of a softmax, waits for a phase
to end; in the next one, scores are computed once more, since to multiply again takes less time than to write all of
them to memory and to read them (recomputation as in Dao et al., *FlashAttention*, NeurIPS 2022, there of the backward
pass).  Nothing is rescaled: results are those of the program's own formulas.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tc.base.dots import MatrixShape
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.language.algebra.rewriting import fresh_name
from tc.language.program.program import (
    INDEX_TYPE,
    IteratorReference,
    Literal,
    Read,
    Reduction,
    Role,
    Statement,
    iterators_in,
    reads_in,
)
from tc.language.program.specialization import Specialization
from tc.language.program.terms import half_factors
from tc.language.program.written_elements import is_scatter, written_iterators
from tc.polyhedral.ir.chained import KEYS, ROWS, Chain, Link, Part, Recomputed

# The most columns of the second product, whose sums a warp keeps in registers.
_COLUMNS: Final = 128
_HALVES: Final = {"f16": ScalarType.FLOAT16, "bf16": ScalarType.BFLOAT16}
# How often all scores are computed, at most.
_PASSES: Final = 3
# What GPUs have along the second and third dimension of a grid.
_BLOCKS: Final = 65535


def find_chain(
    specialization: Specialization, shapes: tuple[MatrixShape, ...]
) -> tuple[Chain, tuple[Recomputed, ...]] | None:
    """The chain in a program, and what is computed once more for it; None where there is none."""
    types = {_HALVES[own.operands] for own in shapes if own.operands in _HALVES and own.k == 16}
    for place, statement in enumerate(specialization.program.statements):
        found = _Finder(specialization).chain(place, statement, types)
        if found is not None:
            return found
    return None


@frozen
class _Own:
    """How a statement of a chain goes: what ``Link`` says, but for its phase."""

    statement: Statement
    part: Part
    column: str = ""
    steps: str = ""


# What there is for each key, and for each column.
_OF_KEYS: Final = frozenset({Part.SCORES, Part.KEYS})
_OF_COLUMNS: Final = frozenset({Part.SUMS, Part.COLUMNS})


class _Finder:
    def __init__(self, specialization: Specialization) -> None:
        self.program: Final = specialization.program
        self.layouts: Final = specialization.layouts
        aliases = specialization.signature.aliases
        self.open: Final = bool(specialization.signature.symbolic)
        self.aliased: Final = {name for pair in aliases for name in pair}

    def chain(
        self, last: int, statement: Statement, types: set[ScalarType]
    ) -> tuple[Chain, tuple[Recomputed, ...]] | None:
        """That which ends with the sums of this statement, and with what is done with them."""
        factors = half_factors(statement.value) if _is_plain(statement) else None
        if factors is None or factors[0].type not in types or self.open:
            return None
        for left, right in (factors, factors[::-1]):
            sums = self.sums(statement, left, right)
            if sums is None:
                continue
            first = self.first(left.tensor, last, len(statement.subscripts) - 1)
            if first is None:
                continue
            found = self.members(first, last, sums)
            if found is not None:
                return self.with_phases(found, len(statement.subscripts) - 1, types)
        return None

    def sums(self, statement: Statement, left: Read, right: Read) -> _Own | None:
        """The second product: of what there is for each key, and of what has neither rows nor anything else."""
        around, column = _names(statement.subscripts[:-1]), _names(statement.subscripts[-1:])
        own, other = _names(left.subscripts), iterators_in(right.subscripts)
        if not around or not column or own is None or statement.reduction is not Reduction.ADD:
            return None
        keys = own[-1]
        reduced = {i.name for i in statement.iterators} - {i.name for i in written_iterators(statement)}
        right_one = (
            own == (*around, keys) and reduced == {keys} and {keys, *column} <= other and around[-1] not in other
        )
        if not right_one or self.program.tensor(left.tensor).role is not Role.TEMPORARY:
            return None
        return _Own(statement, Part.SUMS, column[0], keys)

    def first(self, tensor: str, last: int, around: int) -> int | None:
        """The place of the first product, which what there is for each key comes from."""
        statements = self.program.statements
        waiting, found = [tensor], list[int]()
        while waiting:
            name = waiting.pop()
            writers = [n for n in range(last) if statements[n].target == name]
            if len(writers) != 1:
                return None
            (place,) = writers
            own = statements[place]
            if half_factors(own.value) is not None:
                found.append(place)
                continue
            reads = {read.tensor for read in reads_in(own.value)}
            waiting += [
                read
                for read in reads
                if self.program.tensor(read).role is Role.TEMPORARY and len(self.layouts[read].shape) == around + 1
            ]
        return found[0] if len(set(found)) == 1 else None

    def members(self, first: int, last: int, sums: _Own) -> list[_Own] | None:
        """The statements from the first product on, as far as they are of the chain."""
        found, tensors = list[_Own](), dict[str, Part]()
        for place, statement in enumerate(self.program.statements[first:], first):
            own = sums if place == last else self.member(statement, tensors, len(sums.statement.subscripts) - 1)
            if own is None and place <= last:
                return None
            if own is None:
                break
            if statement.target in tensors or statement.target in self.aliased:
                return None
            found.append(own)
            tensors[statement.target] = own.part
        inside = {own.statement.name for own in found}
        along = {name for name, part in tensors.items() if part in _OF_KEYS}
        if any(self.program.tensor(name).role is not Role.TEMPORARY for name in along):
            return None
        others = (own for own in self.program.statements if own.name not in inside)
        if any(read.tensor in along for own in others for read in reads_in(own.value)):
            return None
        return found

    def member(self, statement: Statement, tensors: dict[str, Part], around: int) -> _Own | None:
        """What a statement is, given what those before it write; None where it is none of the chain."""
        names = _names(statement.subscripts)
        if not _is_plain(statement) or names is None or len(names) not in (around, around + 1):
            return None
        written = {i.name for i in written_iterators(statement)}
        reduced = [i.name for i in statement.iterators if i.name not in written]
        reads = [read for read in reads_in(statement.value) if read.tensor in tensors]
        if not tensors:
            scores = half_factors(statement.value) is not None and statement.reduction is Reduction.ADD
            one = scores and len(reduced) == 1 and len(names) == around + 1
            return _Own(statement, Part.SCORES, names[-1], reduced[0]) if one and self.is_score(statement) else None
        own = [_names(read.subscripts) for read in reads]
        if not reads or any(name is None or name[:around] != names[:around] for name in own):
            return None
        columns = {name[-1] for name in own if name is not None and len(name) > around}
        parts = {tensors[read.tensor] for read, name in zip(reads, own, strict=True) if len(name or ()) > around}
        if len(columns) > 1 or (parts & _OF_KEYS and parts & _OF_COLUMNS):
            return None
        along_keys = bool(parts & _OF_KEYS)
        if statement.reduction is not None:
            one = len(names) == around and columns == set(reduced) and len(reduced) == 1 and along_keys
            return _Own(statement, Part.REDUCTION, reduced[0]) if one else None
        if reduced or columns - set(names):
            return None
        if not columns:
            return _Own(statement, Part.ROW) if len(names) == around else None
        return _Own(statement, Part.KEYS if along_keys else Part.COLUMNS, names[-1])

    def is_score(self, statement: Statement) -> bool:
        """Whether rows and keys are those of one factor each."""
        factors = half_factors(statement.value)
        assert factors is not None, "it is a product"
        row, key = (own.name for own in statement.subscripts[-2:] if isinstance(own, IteratorReference))
        uses = [iterators_in(own.subscripts) for own in factors]
        return any(
            row in one and key not in one and key in other and row not in other for one, other in (uses, uses[::-1])
        )

    def with_phases(
        self, members: list[_Own], around: int, types: set[ScalarType]
    ) -> tuple[Chain, tuple[Recomputed, ...]] | None:
        """The chain in which each statement waits for the reductions that it reads; None where it is not worth it."""
        scores, sums = members[0], next(own for own in members if own.part is Part.SUMS)
        factors = half_factors(scores.statement.value)
        if factors is None or factors[0].type not in types:
            return None
        rows, keys = (self.layouts[scores.statement.target].shape[n] for n in (around - 1, around))
        columns = self.layouts[sums.statement.target].shape[-1]
        steps = next(i for i in scores.statement.iterators if i.name == scores.steps)
        count = int(steps.end.value) if isinstance(steps.end, Literal) else 0
        batches = self.layouts[scores.statement.target].shape[: around - 1]
        if any(count > _BLOCKS for count in batches):
            return None
        if rows < ROWS or keys < KEYS or not 16 <= columns <= _COLUMNS or columns % 8 or count < 16:
            return None
        links, made = _Phases(members, {own.name for own in self.program.statements}, set(self.layouts)).found()
        chain = Chain(tuple(links), around, rows, keys, columns, count)
        return (chain, tuple(made)) if sum(own.part is Part.SCORES for own in links) <= _PASSES else None


class _Phases:
    """Says when statements run, and which of them run again for later phases."""

    def __init__(self, members: list[_Own], statements: set[str], tensors: set[str]) -> None:
        self.members: Final = members
        self.taken: Final = (statements, tensors)
        self.made: Final[list[Recomputed]] = []

    def found(self) -> tuple[list[Link], list[Recomputed]]:
        """The links, in the order of the program that computes statements again, and these, last ones first."""
        by_tensor = {own.statement.target: own for own in self.members}
        phases: dict[str, int] = {}
        for own in self.members:
            before = [by_tensor[r.tensor] for r in reads_in(own.statement.value) if r.tensor in by_tensor]
            waits = [phases[one.statement.name] + (one.part is Part.REDUCTION) for one in before]
            phases[own.statement.name] = max(waits, default=0)
        links: dict[str, list[Link]] = {
            own.statement.name: [self.link(own, own.statement.name, phases)] for own in self.members
        }
        # Whoever reads something for each key of an earlier phase has it computed again, as its own.
        waiting = [(own, own.statement.name, phases[own.statement.name]) for own in reversed(self.members)]
        while waiting:
            own, reader, phase = waiting.pop(0)
            for tensor in dict.fromkeys(r.tensor for r in reads_in(own.statement.value)):
                one = by_tensor.get(tensor)
                if one is None or one.part not in _OF_KEYS or phases[one.statement.name] == phase:
                    continue
                name = self.name(f"{one.statement.name}_again", 0)
                copy = self.name(f"{tensor}_again", 1)
                self.made.append(Recomputed(one.statement.name, name, copy, reader))
                links[one.statement.name].insert(1, replace(self.link(one, name, phases), phase=phase))
                waiting.insert(0, (one, name, phase))
        return [link for own in self.members for link in links[own.statement.name]], self.made

    def name(self, wanted: str, kind: int) -> str:
        found = fresh_name(wanted, self.taken[kind])
        self.taken[kind].add(found)
        return found

    def link(self, own: _Own, name: str, phases: dict[str, int]) -> Link:
        return Link(name, own.part, phases[own.statement.name], own.column, own.steps)


def _names(subscripts: tuple[object, ...]) -> tuple[str, ...] | None:
    """Iterators, all different; None where there is anything else."""
    names = tuple(own.name for own in subscripts if isinstance(own, IteratorReference))
    return names if len(set(names)) == len(subscripts) else None


def _is_plain(statement: Statement) -> bool:
    """Whether it runs once for all values of its iterators, from 0 to numbers, and begins its reduction."""
    whole = all(
        own.begin == Literal(0, INDEX_TYPE) and isinstance(own.end, Literal) and int(own.end.value) > 0
        for own in statement.iterators
    )
    simple = not (statement.blocks or statement.conditions or statement.counts or statement.atomic)
    begins = statement.reduction is None or statement.initialize
    return whole and simple and begins and statement.owned is None and not is_scatter(statement)
