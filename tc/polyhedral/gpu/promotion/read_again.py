"""Which tensors several nests of one block read again, and the rows of them: what is normalized, for example."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from typing import Final

import islpy as isl

from tc.language.isl.affine import isl_name
from tc.polyhedral.analysis.box import bounding_box
from tc.polyhedral.analysis.reads import program_names, value_reads
from tc.polyhedral.ir.loops import MOST_UNROLLED
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Member, Sequence
from tc.polyhedral.transform.promotion import Footprint, accesses_to, relation_of

# Registers of a thread that hold other things than a row: sums, addresses.
_OTHERS: Final = 16


def read_again(scop: Scop, sequence: Sequence, domain: isl.UnionSet) -> Iterator[str]:
    """The tensors that statements of at least two branches read, and none writes."""
    written = {relation.get_tuple_name(isl.dim_type.out) for own in scop.statements for relation in own.writes}
    buffers = {promotion.buffer.name for promotion in scop.promotions}
    branches: dict[str, set[int]] = {}
    for number, branch in enumerate(sequence.filters):
        for name in program_names(domain.intersect(branch.domain), scop):
            for read in value_reads(scop.statement(name).body):
                branches.setdefault(read.tensor, set()).add(number)
    for tensor, numbers in branches.items():
        if len(numbers) > 1 and tensor not in buffers and isl_name(tensor) not in written:
            yield tensor


def held(threads: int, registers: int) -> int:
    """How many elements of a row the threads of a block keep in registers, of which a multiprocessor has so many."""
    return threads * min(MOST_UNROLLED, room(threads, registers))


def room(threads: int, registers: int) -> int:
    """How many elements each of so many threads has registers for."""
    return registers // threads - _OTHERS


def row_of(scop: Scop, tensor: str, domain: isl.UnionSet, prefix: Items[Member]) -> Footprint | None:
    """What every access below reads of a tensor, for one value of the members around; None where they differ."""
    accesses = accesses_to(scop, tensor, domain)
    if not accesses:
        return None
    relations = [relation_of(scop.statement(access.statement), access) for access in accesses]
    whole = bounding_box(relations, prefix)
    if whole is None or any(bounding_box([own], prefix) != whole for own in relations):
        return None
    return Footprint(accesses, tuple(prefix), whole)
