"""Fuses nests over rows with sums of columns in blocks of rows (``tc.polyhedral.cpu.row_blocks``), block by block."""

from __future__ import annotations

import islpy as isl

from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.strides import iterator_of
from tc.polyhedral.cpu.join_regions import exchanged, stay
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Filter, Member, Node, Sequence, statement_names


def join_blocks(sequence: Sequence, domain: isl.UnionSet, scop: Scop) -> Sequence:
    """The sequence with rows and the blocks of them that are summed up below one loop over blocks.

    What a nest over rows hands to sums must stay in a block.
    """
    done: list[Filter] = []
    for branch in sequence.filters:
        joined = _joined(done[-1], branch, domain, scop) if done else None
        if joined is None:
            done.append(branch)
        else:
            done[-1] = joined
    return Sequence(tuple(done))


def _joined(first: Filter, second: Filter, domain: isl.UnionSet, scop: Scop) -> Filter | None:
    """Two branches below one loop, where one sums up blocks of what is a row each in the other one."""
    for sums, rows in ((second, first), (first, second)):
        part = _part(sums, scop)
        if part is None or _part(rows, scop) is not None:
            continue
        row = _row(rows, part, domain.intersect(rows.domain), domain.intersect(sums.domain))
        if row is not None and stay(exchanged([first], second, scop), [part.function, row]):
            function = part.function.union_add(row)
            branches = (_without(own, part) if own is sums else own for own in (first, second))
            together = first.domain.union(second.domain)
            loop = Member(function, coincident=True)
            return Filter(together, Band((loop,), permutable=True, child=Sequence(tuple(branches))))
    return None


def _part(branch: Filter, scop: Scop) -> Member | None:
    """The loop over blocks of rows, around sums of each of them."""
    child, names = branch.child, statement_names(branch.domain)
    if not isinstance(child, Band) or not child.permutable:
        return None
    for member in child.members:
        counted = [name for name in names if name in scop.shared_parts]
        if counted and all(
            iterator_of(member.function, scop.statement(name).body) == scop.shared_parts[name] for name in counted
        ):
            return member if member.coincident else None
    return None


def _row(branch: Filter, part: Member, rows: isl.UnionSet, sums: isl.UnionSet) -> isl.UnionPwAff | None:
    """The block that a row is in; None where no loop of the branch counts the rows."""
    child = branch.child
    if not isinstance(child, Band) or not child.permutable:
        return None
    member = child.members[0]
    blocks, count = extent_of(part.function, sums), extent_of(member.function, rows)
    if not member.coincident or count < blocks:
        return None
    size = isl.Val.int_from_si(rows.get_ctx(), -(-count // blocks))
    return member.function.scale_down_val(size).floor()


def _without(branch: Filter, part: Member) -> Filter:
    """The branch without one loop."""
    band = branch.child
    assert isinstance(band, Band)
    members = tuple(member for member in band.members if member is not part)
    child: Node = Band(members, band.permutable, band.child) if members else band.child
    return Filter(branch.domain, child)
