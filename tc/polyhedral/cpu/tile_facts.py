"""What the costs of register tiles depend on, read off a statement."""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl

from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.pack import can_pack, worth_packing
from tc.polyhedral.analysis.reads import ranging_iterators, value_reads
from tc.polyhedral.analysis.strides import greatest_stride
from tc.polyhedral.cpu.borders import conditions_of
from tc.polyhedral.cpu.tile_cost import TileCosts
from tc.polyhedral.cpu.windows import in_windows, skipping
from tc.polyhedral.ir.scop import ScopStatement
from tc.targets.machine import VectorUnit


def tile_costs(
    statement: ScopStatement,
    layouts: Mapping[str, Layout],
    unit: VectorUnit,
    *,
    packs: bool,
    chunks: Mapping[str, int],
    written: frozenset[str],
    shared: bool = False,
    across: Mapping[str, int] | None = None,
) -> TileCosts:
    """The costs of tiles of a statement.

    ``packs``: operands across the lanes may be packed, but for tensors that are ``written``.  ``chunks``: extents of
    the chunks that cores have of a loop.  ``shared``: statements that write other tensors run in the same loops;
    ``across``: how many accesses of others lie across memory, by iterator.
    """
    body, domain = statement.body, statement.domain
    names = body.iterators[: domain.dim(isl.dim_type.set)]
    least = {name: int(domain.dim_min_val(n).to_python()) for n, name in enumerate(names)}
    whole = {name: int(domain.dim_max_val(n).to_python()) - least[name] + 1 for n, name in enumerate(names)}
    extents = {name: chunks.get(name, extent) for name, extent in whole.items()}
    target, reads = layouts[body.target], value_reads(body)
    # A loop of one step moves nothing, and makes no window.
    moving = [name for name in names if whole[name] > 1]
    steps = {name: greatest_stride(body.subscripts, target, name) or 0 for name in names}
    reduced = tuple(name for name in names[body.begun :] if steps[name] == 0 and name in moving)
    # Rows of a tile that have different ranges would run all of them together.
    ranging = ranging_iterators(body)
    return TileCosts(
        itemsize=target.type.itemsize,
        width=unit.bytes // target.type.itemsize,
        registers=unit.registers,
        extents=extents,
        target_strides=steps,
        read_strides=tuple(
            {n: greatest_stride(r.subscripts, layouts[r.tensor], n) if n in moving else 0 for n in names} for r in reads
        ),
        copied={name: worth_packing(statement, layouts, name, unit.registers) if packs else () for name in names},
        packable=tuple(
            packs and can_pack(statement, position) and read.tensor not in written
            for position, read in enumerate(reads)
        ),
        windows=tuple(in_windows(read, frozenset(reduced)) for read in reads),
        independent=tuple(name for name in names if steps[name] != 0 and least[name] == 0 and name not in ranging),
        reduced=reduced,
        shared=shared,
        conditions=conditions_of(domain, names),
        across=across or {},
        gaps=tuple(frozenset(skipping(read.subscripts)) for read in reads),
        spread=frozenset(skipping(body.subscripts)),
    )
