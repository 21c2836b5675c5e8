"""What the statements of a block overwrite, and which values their reads find: exact dataflow of array elements by isl.

Compare Feautrier, *Dataflow analysis of array and scalar references* (1991): here it is enough to know whether the
element that a read asks for was written before in the block, or is one that the block overwrites later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import islpy as isl

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.gradient.reads import all_reads
from tc.grammar.syntax import BinaryOperator
from tc.language.isl.affine import Frame, access_relation, frame_of, guard_domain, iteration_domain
from tc.language.isl.expressions import conditions_of
from tc.language.isl.original_order import in_one_step, runs_later
from tc.language.isl.parameters import integer_parameters, possible_parameters
from tc.language.isl.session import is_out_of_operations, isl_context
from tc.language.program.guards import GuardedRead, guarded_reads
from tc.language.program.program import (
    Binary,
    Expression,
    Literal,
    Program,
    Read,
    Reduction,
    Statement,
)


@frozen
class Overwriting:
    """What the statements of a loop do to one tensor, for each iteration of the loops around it.

    ``again``: some replace what the loop has written before, or add to what it has read before.  ``earlier``: some
    replace what was written ahead of the loop, or add to what was read there.  ``finds``: of a statement, by its
    position, and a read, whether it finds what the loop has written, or a condition; None where that is not affine.
    """

    again: bool
    earlier: bool
    finds: Mapping[tuple[int, Read], bool | Expression] | None


def adds(statement: Statement) -> bool:
    """Whether a statement adds to what there is."""
    return statement.reduction is Reduction.ADD and not statement.initialize


def overwriting(
    tensor: str, loop: Sequence[Statement], ahead: Sequence[Statement], depth: int, program: Program
) -> Overwriting | None:
    """What a loop does to a tensor; None where isl cannot tell.

    ``ahead``: the statements ahead of the loop.  ``depth``: how many loops are around it.
    """
    try:
        with isl_context() as context:
            analysis = _Analysis.of(tensor, loop, ahead, depth, program, context)
            return None if analysis is None else analysis.found()
    except isl.Error as error:
        if not is_out_of_operations(error):
            raise
        return None


def disjoint(tensor: str, statements: Sequence[Statement], depth: int, program: Program) -> bool:
    """Whether statements surely write different elements in each iteration of the loops around them, so many."""
    try:
        with isl_context() as context:
            analysis = _Analysis.of(tensor, statements, (), depth, program, context)
            if analysis is None:
                return False
            return all(
                analysis.same(one, other).is_empty()
                for number, one in enumerate(analysis.writes)
                for other in analysis.writes[:number]
            )
    except isl.Error as error:
        if not is_out_of_operations(error):
            raise
        return False


@frozen
class _Access:
    """``relation``: ``{ instance -> element }``; what is found by an index may be any element."""

    position: int
    statement: Statement
    relation: isl.Map
    read: Read | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the element is an affine function of the instance."""
        return bool(self.relation.is_single_valued())


@frozen
class _Instances:
    """The instances of a statement that run for possible values of the parameters."""

    position: int
    statement: Statement
    frame: Frame
    domain: isl.Set

    @staticmethod
    def of(position: int, statement: Statement, possible: isl.Set, names: Sequence[str]) -> _Instances | None:
        """None where a range is not affine."""
        frame = frame_of(replace(statement, name=f"S{position}"), possible.get_ctx(), names)
        domain = iteration_domain(statement, frame)
        if domain is None:
            return None
        return _Instances(position, statement, frame, domain.intersect_params(possible))

    def write(self) -> _Access:
        return self.access(self.statement.target, self.statement.subscripts, self.domain)

    def reads(self, tensor: str) -> Iterator[_Access]:
        for read, guarded in _reads(self.statement, tensor):
            inside = isl.Set.empty(self.domain.get_space())
            for one in guarded:
                inside = inside.union(self.domain.intersect(guard_domain(one, self.frame)))
            yield self.access(tensor, read.subscripts, inside, read)

    def access(
        self, tensor: str, subscripts: Sequence[Expression], inside: isl.Set, read: Read | None = None
    ) -> _Access:
        relation = access_relation(tensor, subscripts, [None] * len(subscripts), self.frame)
        return _Access(self.position, self.statement, relation.intersect_domain(inside), read)


@frozen
class _Analysis:
    program: Program
    depth: int
    writes: Sequence[_Access]
    reads: Sequence[_Access]
    ahead: Sequence[_Access]
    read_ahead: bool

    @staticmethod
    def of(
        tensor: str,
        loop: Sequence[Statement],
        ahead: Sequence[Statement],
        depth: int,
        program: Program,
        context: isl.Context,
    ) -> _Analysis | None:
        """None where a range of a statement that reads or writes the tensor is not affine."""
        names = integer_parameters(program)
        possible = possible_parameters(program, context, names, 0)
        writes: list[_Access] = []
        reads: list[_Access] = []
        for position, statement in enumerate((*ahead, *loop), -len(ahead)):
            if statement.target != tensor and all(read.tensor != tensor for read in all_reads(statement)):
                continue
            instances = _Instances.of(position, statement, possible, names)
            if instances is None:
                return None
            if statement.target == tensor:
                writes.append(instances.write())
            if position >= 0:
                reads += instances.reads(tensor)
        read_ahead = any(read.tensor == tensor for statement in ahead for read in all_reads(statement))
        own = [write for write in writes if write.position >= 0]
        return _Analysis(program, depth, own, reads, writes[: len(writes) - len(own)], read_ahead)

    def found(self) -> Overwriting:
        again = earlier = False
        for write in self.writes:
            if adds(write.statement):
                again = again or any(not self.earlier_than(write, read).is_empty() for read in self.reads)
                earlier = earlier or self.read_ahead
            else:
                again = again or any(not self.earlier_than(write, other).is_empty() for other in self.writes)
                touched = write.relation.range()
                earlier = earlier or any(not touched.is_disjoint(own.relation.range()) for own in self.ahead)
        return Overwriting(again, earlier, None if again else self.finds())

    def finds(self) -> Mapping[tuple[int, Read], bool | Expression] | None:
        """What each read finds; None where that is not affine."""
        if not all(own.is_exact for own in (*self.writes, *self.reads)):
            return None
        found: dict[tuple[int, Read], bool | Expression] = {}
        for read in self.reads:
            assert read.read is not None
            written = overwritten = isl.Set.empty(read.relation.get_space().domain())
            for write in self.writes:
                written = written.union(self.earlier_than(read, write).domain())
                overwritten = overwritten.union(self.same(read, write).domain())
            late = overwritten.subtract(written)
            found[read.position, read.read] = late.is_empty() or (
                not written.is_empty() and self.condition(read, written, late)
            )
        return found

    def condition(self, read: _Access, written: isl.Set, late: isl.Set) -> Expression:
        """Where a read finds what the loop has written, of the places where that matters."""
        iterators = tuple(iterator.name for iterator in read.statement.iterators)
        names = integer_parameters(self.program)
        found = conditions_of(written.gist(written.union(late)).coalesce(), iterators, names)
        total: Expression = found[0] if found else Literal(value=True, type=ScalarType.BOOL)
        for condition in found[1:]:
            total = Binary(BinaryOperator.AND, total, condition, ScalarType.BOOL)
        return total

    def same(self, one: _Access, other: _Access) -> isl.Map:
        """Pairs of instances that access one element, in one iteration of the loops around."""
        pairs = one.relation.apply_range(other.relation.reverse())
        return pairs.intersect(in_one_step(pairs.get_space(), self.depth))

    def earlier_than(self, access: _Access, other: _Access) -> isl.Map:
        """``{ instance of the one -> earlier instance of the other }`` that access one element."""
        pairs = self.same(access, other)
        # A statement reads before it writes.
        is_behind = access.position > other.position or (
            access.position == other.position and access.read is None and other.read is not None
        )
        later = runs_later(
            pairs.get_space().domain(),
            access.statement.blocks,
            pairs.get_space().range(),
            other.statement.blocks,
            is_behind=is_behind,
        )
        return pairs.intersect(later)


def _reads(statement: Statement, tensor: str) -> Iterator[tuple[Read, list[GuardedRead]]]:
    """The reads of a tensor, each with the guards of every place where it stands."""
    found: dict[Read, list[GuardedRead]] = {}
    for expression in (statement.value, *statement.subscripts):
        for guarded in guarded_reads(expression):
            if guarded.read.tensor == tensor:
                found.setdefault(guarded.read, []).append(guarded)
    plain = (read for read in all_reads(statement) if read.tensor == tensor)
    for read in plain:
        found.setdefault(read, [GuardedRead(read, ())])
    yield from found.items()
