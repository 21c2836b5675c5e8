"""Loops that GCC must not put into vectors: it loads with wrong masks.

What several reads of one iteration find side by side, on a condition, GCC 12 loads in consecutive vectors, all with the
mask of the first one (seen with AVX-512VL and float64: elements whose condition holds are 0); and sums of whole numbers
over them, of which it makes the lanes of one vector, come out in other lanes than their own (seen with AVX2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, assert_never

from tc.language.program.guards import guarded_reads
from tc.language.program.program import Read, reads_in
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.access_boxes import trips
from tc.polyhedral.analysis.offsets import subscript_form
from tc.polyhedral.analysis.reads import accesses, data_ranges
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    Instance,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    Scheduled,
    StatementBody,
    leaves,
)

_ALONG = (0, 1, -1)
# What the compiler is to make lanes of.
LANES: Final = (LoopKind.VECTOR, LoopKind.REDUCTION)
# The most iterations of an inner loop that compilers write out, by far.
_UNROLLED = 64


def interleaves_masked_loads(loop: Loop, bodies: Mapping[str, StatementBody], layouts: Mapping[str, Layout]) -> bool:
    """Whether iterations of a loop read between each other on a condition, and the compiler may see it.

    It writes out short loops inside of others by itself, but no loops over lanes; where an index may be outside, these
    are loops like others.
    """
    found: set[str] = set()
    for instance, read in _on_condition(loop.body, bodies, guarded=False):
        if _step(loop.iterator, instance, read, bodies[instance.statement], layouts) in _ALONG:
            continue
        if loop.kind is not LoopKind.VECTOR or read.tensor in found:
            return True
        found.add(read.tensor)
    return False


def _on_condition(
    tree: LoopTree, bodies: Mapping[str, StatementBody], *, guarded: bool
) -> Iterator[tuple[Instance, Read]]:
    match tree:
        case Instance():
            body = bodies[tree.statement]
            yield from ((tree, own.read) for own in guarded_reads(body.value) if guarded or own.guards)
        case Leaf():
            return
        case Block(children):
            for child in children:
                yield from _on_condition(child, bodies, guarded=guarded)
        case Guard(_, then, otherwise):
            yield from _on_condition(then, bodies, guarded=True)
            if otherwise is not None:
                yield from _on_condition(otherwise, bodies, guarded=True)
        case Loop() if _stays_a_loop(tree, bodies):
            return
        case Loop() | Allocation():
            yield from _on_condition(tree.body, bodies, guarded=guarded)
        case _:
            assert_never(tree)


def _stays_a_loop(loop: Loop, bodies: Mapping[str, StatementBody]) -> bool:
    """Whether the compiler does not write the loop out."""
    if (trips(loop) or 0) > _UNROLLED:
        return True
    own = (bodies[leaf.statement] for leaf in leaves(loop.body) if isinstance(leaf, Scheduled))
    return loop.kind in LANES and not any(_may_fault(body) for body in own)


def _may_fault(body: StatementBody) -> bool:
    """Whether the statement has an index or a range that data choose."""
    subscripts = (subscript for _, own in accesses(body) for subscript in own)
    return bool(data_ranges(body)) or any(True for subscript in subscripts for _ in reads_in(subscript))


def _step(iterator: str, instance: Instance, read: Read, body: StatementBody, layouts: Mapping[str, Layout]) -> int:
    """How far a read moves from iteration to iteration; 0 where it is no affine function, or sizes decide."""
    values = dict(zip(body.iterators, instance.arguments, strict=True))
    total = 0
    for subscript, step in zip(read.subscripts, layouts[read.tensor].steps, strict=True):
        form = subscript_form(subscript, values)
        slope = None if form is None else form.slope(iterator)
        if slope is None or (slope and not isinstance(step, int)):
            return 0
        total += slope * step if isinstance(step, int) else 0
    return total
