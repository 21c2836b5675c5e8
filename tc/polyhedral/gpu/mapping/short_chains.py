"""Chains of short layers: one block takes a row through all of them, where kernels of their own would take longer.

The layers of a small network multiply each row of a batch by one matrix after the other.  Each of them alone is so
short that starting its kernel takes longer than its arithmetic.  In one kernel, rows wait for no other rows; each block
reads all matrices, most of them from the second-level cache.
"""

from __future__ import annotations

import math
from typing import Final

import islpy as isl

from tc.language.program.program import iterators_in
from tc.polyhedral.analysis.extents import extent_of, volume
from tc.polyhedral.analysis.reads import value_reads
from tc.polyhedral.analysis.strides import is_turned, iterator_of
from tc.polyhedral.ir.scop import Scop, ScopStatement, layouts_of
from tc.polyhedral.ir.tree import Band, Member, Sequence, statement_names
from tc.polyhedral.transform.share_loops import Row, inner_loops
from tc.targets.machine import GpuMachine

# Clocks, as ``tc.prediction.predict`` has them: until a further kernel is under way, until memory answers, and of a
# step of a sum in one thread; bytes of a clock between a multiprocessor and the second-level cache.
_START: Final = 3400
_WAIT: Final = 700
_STEP: Final = 8
_PORT: Final = 64
# Blocks of a multiprocessor that still have something to do for each other's waiting.
_AT_A_TIME: Final = 8


def is_chain(band: Band, domain: isl.UnionSet, scop: Scop) -> bool:
    """Whether several branches of a nest multiply its rows by what is the same for all of them."""
    if not isinstance(band.child, Sequence):
        return False
    rows = inner_loops(band.child, domain)
    layers = (statement_names(domain.intersect(branch.domain)) for branch in band.child.filters)
    return sum(any(_multiplies(name, rows, band.members, scop) for name in own) for own in layers) > 1


def is_short_chain(band: Band, domain: isl.UnionSet, kernels: int, scop: Scop, machine: GpuMachine) -> bool:
    """Whether a block for each row goes through all layers of a nest sooner than so many kernels, each with one."""
    if not is_chain(band, domain, scop):
        return False
    rows = inner_loops(band.child, domain)
    blocks = math.prod(extent_of(member.function, domain) for member in band.members)
    statements = [scop.statement(name) for name in statement_names(domain)]
    read, shared = _bytes(statements, rows, band.members, scop)
    if shared > machine.block_shared:
        return False
    resident = min(_AT_A_TIME, machine.multiprocessor.shared // max(1, shared))
    if blocks > machine.multiprocessors * resident:
        return False
    steps = sum(-(-_iterations(own) // blocks // _threads(own, rows, machine)) for own in statements)
    clocks = 2 * _WAIT + steps * _STEP + -(-blocks // machine.multiprocessors) * read // _PORT
    return clocks < (kernels - 1) * (_START + 2 * _WAIT)


def _multiplies(name: str, rows: dict[str, Row], members: tuple[Member, ...], scop: Scop) -> bool:
    """Whether a statement reduces to elements that threads share, and reads something that is the same for all rows."""
    statement = scop.statement(name)
    along = iterator_of(rows[name].member.function, statement.body) if name in rows else None
    around = {iterator_of(member.function, statement.body) for member in members}
    same = any(not iterators_in(read.subscripts) & around for read in value_reads(statement.body))
    return statement.accumulates and same and along is not None and along in iterators_in(statement.body.subscripts)


def _iterations(statement: ScopStatement) -> int:
    return volume(isl.UnionSet.from_set(statement.domain))


def _threads(statement: ScopStatement, rows: dict[str, Row], machine: GpuMachine) -> int:
    return min(machine.block_threads, rows[statement.name].extent) if statement.name in rows else 1


def _bytes(
    statements: list[ScopStatement], rows: dict[str, Row], members: tuple[Member, ...], scop: Scop
) -> tuple[int, int]:
    """Of the tensors that are the same for every row: all of them, and those that are copied to shared memory."""
    layouts, every, copied = layouts_of(scop), dict[str, int](), dict[str, int]()
    for statement in statements:
        around = {iterator_of(member.function, statement.body) for member in members}
        row = rows[statement.name].member.function if statement.name in rows else None
        along = None if row is None else iterator_of(row, statement.body)
        for read in value_reads(statement.body):
            if iterators_in(read.subscripts) & around:
                continue
            layout = layouts[read.tensor]
            every[read.tensor] = layout.span * layout.type.itemsize
            if statement.accumulates and is_turned(read, layout, along):
                copied[read.tensor] = every[read.tensor]
    return sum(every.values()), sum(copied.values())
