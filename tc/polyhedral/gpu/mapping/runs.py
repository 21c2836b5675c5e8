"""Runs of neighbouring points that one thread has, so that it reads and writes up to 16 bytes at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import islpy as isl

from tc.language.isl.pieces import functions_of, pieces_of
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.box import prefix_map
from tc.polyhedral.analysis.reads import accesses, value_reads
from tc.polyhedral.ir.scop import Scop, ScopStatement, layouts_of
from tc.polyhedral.ir.tree import Member, statement_names

# What one access of a thread moves at most.
_BYTES: Final = 16


def run_of(member: Member, members: tuple[Member, ...], scop: Scop, domain: isl.UnionSet) -> int:
    """The neighbouring iterations of a loop that a thread has, a power of two; 1 where it would gain nothing.

    The statements reduce nothing, write neighbours, and read neighbours or the same in all of a run.  Runs are whole,
    and begin at multiples of their length in each tensor, as far as subscripts say; where a tensor begins is for the
    kernel to ask.  ``members``: all loops of the band.
    """
    layouts = layouts_of(scop)
    statements = [scop.statement(name) for name in statement_names(domain)]
    types = [layouts[tensor].type for statement in statements for tensor, _ in accesses(statement.body)]
    run = _BYTES // max(type.itemsize for type in types)
    while run > 1 and not all(_comes_in_runs(member, members, own, layouts, run) for own in statements):
        run //= 2
    return max(run, 1)


def _comes_in_runs(
    member: Member, members: tuple[Member, ...], statement: ScopStatement, layouts: Mapping[str, Layout], run: int
) -> bool:
    body = statement.body
    if body.reduction is not None or body.counts or len(statement.reads) != len(value_reads(body)):
        return False
    own = functions_of(member.function.intersect_domain(isl.UnionSet.from_set(statement.domain)))
    number = _single(own[0]) if len(own) == 1 else None
    position = next(n for n, other in enumerate(members) if other is member)
    if number is None or not _is_whole(position, members, statement, run):
        return False
    written, *read = (_moves(number, offset, statement, run) for offset in _offsets(statement, layouts))
    return written is True and None not in read


def _is_whole(position: int, members: tuple[Member, ...], statement: ScopStatement, run: int) -> bool:
    """Whether the loops say which instance it is, and all or none of the iterations of each run are there."""
    values = prefix_map(statement.domain, members)
    if not values.is_injective():
        return False
    points = values.range()
    names = [f"v{n}" for n in range(points.dim(isl.dim_type.set))]
    others = [*names[:position], "other", *names[position + 1 :]]
    same = f"floor(other / {run}) = floor({names[position]} / {run})"
    text = f"{{ [{', '.join(names)}] -> [{', '.join(others)}] : {same} }}"
    return bool(points.apply(isl.Map.read_from_str(points.get_ctx(), text)).is_subset(points))


def _offsets(statement: ScopStatement, layouts: Mapping[str, Layout]) -> Iterator[isl.Aff | None]:
    """Where each access of an instance is, that of what it writes first; None where it is no affine function."""
    tensors = (statement.body.target, *(read.tensor for read in value_reads(statement.body)))
    for tensor, relation in zip(tensors, (*statement.writes, *statement.reads), strict=True):
        yield _offset(relation, layouts[tensor])


def _offset(relation: isl.Map, layout: Layout) -> isl.Aff | None:
    if not relation.is_single_valued():
        return None  # an index chooses
    subscripts = relation.as_pw_multi_aff()
    total = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(relation.domain().get_space()))
    for dimension, step in enumerate(layout.steps):
        subscript = _single(subscripts.get_at(dimension))
        if not isinstance(step, int) or subscript is None:
            return None
        total = total.add(subscript.scale_val(isl.Val.int_from_si(relation.get_ctx(), step)))
    return total


def _single(function: isl.PwAff) -> isl.Aff | None:
    """The one expression that a function has."""
    parts = [part for _, part in pieces_of(function)]
    return parts[0] if len(parts) == 1 else None


def _moves(number: isl.Aff, offset: isl.Aff | None, statement: ScopStatement, run: int) -> bool | None:
    """Whether an access moves by an element from point to point, in runs that begin at multiples of their length.

    False where it is the same in all of them; None where it is neither.
    """
    if offset is None:
        return None
    along = [n for n in range(statement.domain.dim(isl.dim_type.set)) if number.involves_dims(isl.dim_type.in_, n, 1)]
    if not any(offset.involves_dims(isl.dim_type.in_, n, 1) for n in along):
        return False
    rest = offset.sub(number)
    if any(rest.involves_dims(isl.dim_type.in_, n, 1) for n in along):
        return None
    begins = rest.mod_val(isl.Val.int_from_si(rest.get_ctx(), run))
    zero = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(rest.get_domain_space()))
    return True if statement.domain.is_subset(begins.eq_set(zero)) else None
