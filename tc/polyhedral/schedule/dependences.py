"""Constraints of the scheduler: dependences, statements that must stay together, and proximity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from functools import reduce
from itertools import takewhile
from typing import Final, TypeAlias

import islpy as isl

from tc.language.isl.original_order import in_one_step, original_order
from tc.language.isl.pieces import maps_of
from tc.language.isl.unnamed import Unnamed
from tc.polyhedral.ir.scop import Scop, ScopStatement

# The statements of the two ends of pairs, the source first.
Ends: TypeAlias = tuple[str, str]
Pairs: TypeAlias = Mapping[Ends, isl.Map]


@dataclass(frozen=True)
class Dependences:
    """Pairs ``source -> sink`` of instances, by their statements; there are some of each.

    ``order``: conflicts between different statements, source first in program order; they must stay in order.
    ``steps``: those among instances of one statement in different steps of its blocks; they must stay in order, too.
    ``accumulation``: conflicts among instances of one reducing statement; any order, but never at once.  Atomic
    updates of a statement have none.
    """

    order: Pairs
    steps: Pairs
    accumulation: Pairs

    def conflicts(self, ends: Ends) -> isl.Map | None:
        """Pairs of instances that must not run at the same time; None if there are none."""
        every = [pairs[ends] for pairs in (self.order, self.steps, self.accumulation) if ends in pairs]
        return reduce(isl.Map.union, every) if every else None

    def below(self, functions: Items[isl.UnionPwAff], names: Iterable[str]) -> Dependences:
        """The pairs of some statements that agree on all functions."""
        kept = frozenset(names)
        order, steps, accumulation = (
            _below(pairs, functions, kept) for pairs in (self.order, self.steps, self.accumulation)
        )
        return Dependences(order, steps, accumulation)


def analyze_dependences(scop: Scop) -> Dependences:
    """All conflicting pairs.

    All of them: with the last write of an element only, dropping a reduction's self-dependences would leave only its
    last instance ordered before its readers.
    """
    order: dict[Ends, isl.Map] = {}
    steps: dict[Ends, isl.Map] = {}
    accumulation: dict[Ends, isl.Map] = {}
    accesses = [_accesses(statement) for statement in scop.statements]
    for position, first in enumerate(scop.statements):
        own = _pairs(accesses[position], accesses[position])
        if own is not None and not (first.body.atomic and only_accumulates(first)):
            own = own.intersect(isl.Map.lex_lt(own.get_space().domain()))
            depth = 0 if only_accumulates(first) else len(first.blocks)
            ends = first.name, first.name
            if depth:
                _add(steps, ends, own.intersect(isl.Map.lex_lt_first(own.get_space(), depth)))
            _add(accumulation, ends, own.intersect(in_one_step(own.get_space(), depth)) if depth else own)
        for number, second in enumerate(scop.statements[position + 1 :], position + 1):
            between = _pairs(accesses[position], accesses[number])
            if between is None:
                continue
            depth = common_blocks(first, second)
            space = between.get_space()
            inorder = between.intersect(isl.Map.lex_le_first(space, depth)) if depth else between
            _add(order, (first.name, second.name), inorder)
            if depth:
                behind = between.intersect(isl.Map.lex_gt_first(space, depth)).reverse()
                _add(order, (second.name, first.name), behind)
    return Dependences(order, steps, accumulation)


def _add(pairs: dict[Ends, isl.Map], ends: Ends, found: isl.Map) -> None:
    if not found.is_empty():
        pairs[ends] = found


def common_blocks(first: ScopStatement, second: ScopStatement) -> int:
    """How many blocks both statements stand in."""
    both = zip(first.blocks, second.blocks, strict=False)
    return sum(1 for _ in takewhile(lambda blocks: blocks[0] == blocks[1], both))


# What a statement touches, by tensor: each relation once, and whether it writes.
_Accesses: TypeAlias = Mapping[str, Items[tuple[isl.Map, bool]]]


def _accesses(statement: ScopStatement) -> _Accesses:
    found: dict[str, list[tuple[isl.Map, bool]]] = defaultdict(list)
    for relations, writes in ((statement.writes, True), (statement.reads, False)):
        for relation in relations:
            known = found[str(relation.get_tuple_name(isl.dim_type.out))]
            if not any(relation.plain_is_equal(own) for own, _ in known):
                known.append((relation, writes))
    return found


def _pairs(first: _Accesses, second: _Accesses) -> isl.Map | None:
    """Pairs that touch one element, at least one of them writing; None where nothing can."""
    every = [
        relation.apply_range(other.reverse())
        for tensor, own in first.items()
        for relation, writes in own
        for other, other_writes in second.get(tensor, ())
        if writes or other_writes
    ]
    return reduce(isl.Map.union, every).coalesce() if every else None


def _below(pairs: Pairs, functions: Items[isl.UnionPwAff], names: frozenset[str]) -> Pairs:
    kept = [isl.UnionMap.from_map(own) for (first, second), own in pairs.items() if {first, second} <= names]
    if not kept:
        return {}
    agreeing = agreeing_on(reduce(isl.UnionMap.union, kept), functions)
    found: dict[Ends, isl.Map] = {}
    for own in maps_of(agreeing):
        first, second = (str(own.get_tuple_name(side)) for side in (isl.dim_type.in_, isl.dim_type.out))
        _add(found, (first, second), own)
    return found


def agreeing_on(pairs: isl.UnionMap, functions: Items[isl.UnionPwAff]) -> isl.UnionMap:
    """The pairs whose two ends agree on every function."""
    if not functions:
        return pairs
    items = isl.UnionPwAffList.from_union_pw_aff(functions[0])
    for function in functions[1:]:
        items = items.add(function)
    space = isl.Space.set_alloc(functions[0].get_ctx(), 0, len(functions))
    return pairs.eq_at_multi_union_pw_aff(isl.MultiUnionPwAff.from_union_pw_aff_list(space, items))


class Flow:
    """From the last write of a value to its reads: worth keeping close."""

    def __init__(self, scop: Scop) -> None:
        self._statements: Final = scop.statements
        self._context: Final = scop.context
        self._found: Final[dict[tuple[str, str], frozenset[str]]] = {}
        self._alike: Final[dict[object, tuple[int, ...]]] = {}

    def passes(self, source: ScopStatement, sink: ScopStatement) -> bool:
        """Whether the second statement reads a value that the first one has written last."""
        written = {relation.get_tuple_name(isl.dim_type.out) for relation in source.writes}
        return any(
            source.name in self._writers(str(relation.get_tuple_name(isl.dim_type.out)), sink)
            for relation in sink.reads
            if relation.get_tuple_name(isl.dim_type.out) in written
        )

    def _writers(self, tensor: str, sink: ScopStatement) -> frozenset[str]:
        """The other statements whose values of the tensor a statement reads."""
        found = self._found.get((tensor, sink.name))
        if found is None:
            found = self._found[tensor, sink.name] = frozenset(self._last_writers(tensor, sink))
        return found

    def _last_writers(self, tensor: str, sink: ScopStatement) -> Iterator[str]:
        def to_tensor(relations: Items[isl.Map]) -> list[isl.Map]:
            return [own for own in relations if own.get_tuple_name(isl.dim_type.out) == tensor]

        # Only those that touch the tensor: isl looks at all that are in the schedule.
        among = [statement for statement in self._statements if statement is sink or to_tensor(statement.writes)]
        own = [(s.blocks, Unnamed(s.domain), *map(Unnamed, to_tensor(s.writes)), s is sink) for s in among]
        alike = (*own, *map(Unnamed, to_tensor(sink.reads)))
        if alike not in self._alike:
            writers = self._found_writers(tensor, sink, among)
            self._alike[alike] = tuple(n for n, statement in enumerate(among) if statement.name in writers)
        yield from (among[n].name for n in self._alike[alike])

    def _found_writers(self, tensor: str, sink: ScopStatement, among: Items[ScopStatement]) -> frozenset[str]:
        position = among.index(sink)
        if position and _writes_anew(among[position - 1], sink, tensor):
            return frozenset({among[position - 1].name})
        schedule = original_order([(s.blocks, s.domain) for s in among], self._context)
        sources = union_of_accesses(among, self._context, writes=True, tensor=tensor)
        reads = union_of_accesses((sink,), self._context, writes=False, tensor=tensor)
        access = isl.UnionAccessInfo.from_sink(reads).set_must_source(sources).set_schedule_map(schedule)
        found = maps_of(access.compute_flow().get_may_dependence())
        return frozenset(str(pairs.get_tuple_name(isl.dim_type.in_)) for pairs in found if not pairs.is_empty())


def _writes_anew(writer: ScopStatement, sink: ScopStatement, tensor: str) -> bool:
    """Whether the writer, the last one before the sink in the text, writes in each step all that it reads in this step.

    Then no other one has written it last; isl takes ten times as long to say so.
    """

    def in_steps(relations: Items[isl.Map]) -> list[isl.Map]:
        own = [relation for relation in relations if relation.get_tuple_name(isl.dim_type.out) == tensor]
        depth = len(sink.blocks)
        return [m.project_out(isl.dim_type.in_, depth, m.dim(isl.dim_type.in_) - depth) for m in own]

    if writer.blocks != sink.blocks or in_steps(sink.writes):
        return False
    (written, *more), reads = in_steps(writer.writes), in_steps(sink.reads)
    return not more and all(read.is_subset(written) for read in reads) and not all(read.is_empty() for read in reads)


def union_of_accesses(
    statements: Iterable[ScopStatement], context: isl.Context, *, writes: bool, tensor: str | None = None
) -> isl.UnionMap:
    """All that the statements write, or all that they read; of one ``tensor``, if it is named."""
    union = isl.UnionMap.empty(isl.Space.params_alloc(context, 0))
    for statement in statements:
        for relation in statement.writes if writes else statement.reads:
            if tensor is None or relation.get_tuple_name(isl.dim_type.out) == tensor:
                union = union.union(isl.UnionMap.from_map(relation))
    return union


def only_accumulates(statement: ScopStatement) -> bool:
    """Whether the statement reduces, and reads of its target no more than what it combines terms into."""
    name = statement.writes[0].get_tuple_name(isl.dim_type.out)
    own = [relation for relation in statement.reads if relation.get_tuple_name(isl.dim_type.out) == name]
    return statement.accumulates and len(own) == 1
