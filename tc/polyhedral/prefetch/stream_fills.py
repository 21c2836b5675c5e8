"""Non-temporal stores in nests that do nothing but fill a large result with a number, such as the 0 that a sum begins
with.

A store that misses the caches reads its line first, which doubles the traffic; a store past the caches does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from tc.language.program.program import iterators_in
from tc.language.program.specialization import Layout, Sizes
from tc.polyhedral.analysis.access_boxes import Access, contiguous_elements, iterator_ranges, nest_of
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.analysis.ranges import range_of
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Buffer,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
    StatementBody,
)
from tc.polyhedral.prefetch.prefetch_fills import fills
from tc.polyhedral.prefetch.rows import place_of

# Shorter rows have too many lines that are written in part.
_LEAST_ROW_BYTES: Final = 1 << 12


def stream_fills(
    root: LoopTree, buffers: Iterable[Buffer], bodies: Mapping[str, StatementBody], least: int, sizes: Sizes = ()
) -> LoopTree:
    """The loops, in which nests apart that fill results of at least so many bytes (0: none) store past the caches."""
    large = {
        buffer.name: buffer.layout
        for buffer in buffers
        if buffer.writable and 0 < least <= buffer.layout.span * buffer.layout.type.itemsize
    }
    filling = {name: body for name, body in bodies.items() if body.target in large and _is_constant(body)}
    return _streaming(root, filling, large, sizes) if filling else root


def _is_constant(body: StatementBody) -> bool:
    """Whether all instances of the statement store the same value."""
    return fills(body) and not iterators_in([body.value])


def _streaming(
    tree: LoopTree, filling: Mapping[str, StatementBody], large: Mapping[str, Layout], sizes: Sizes
) -> LoopTree:
    match tree:
        case Block(children):
            return Block(tuple(_streaming(child, filling, large, sizes) for child in children))
        case Allocation(buffer, inner):
            return Allocation(buffer, _streaming(inner, filling, large, sizes))
        case Loop():
            nest, instance = nest_of(tree)
            body = filling.get(instance.statement) if isinstance(instance, Instance) else None
            if body is None or not isinstance(instance, Instance):
                return tree
            arguments = dict(zip(body.iterators, instance.arguments, strict=True))
            layout = large[body.target]
            place = place_of(Access(body.target, body.subscripts, arguments, {}), layout, sizes)
            return _marked(tree) if _has_long_rows(nest, place, layout.type.itemsize) else tree
        case _:
            return tree


def _has_long_rows(nest: tuple[Loop, ...], place: LinearForm, bytes: int) -> bool:
    """Whether the longest part of a nest that fills elements side by side is one for threads, or has many lines."""
    for position, loop in enumerate(nest):
        elements = contiguous_elements(nest[position:], place)
        if elements is not None:
            ranges = iterator_ranges(nest[:position])
            count = range_of(loop.upper, ranges).most - range_of(loop.lower, ranges).least + 1
            return loop.kind is LoopKind.PARALLEL or count * elements * bytes >= _LEAST_ROW_BYTES
    return False


def _marked(tree: LoopTree) -> LoopTree:
    if isinstance(tree, Loop):
        return replace(tree, body=_marked(tree.body))
    assert isinstance(tree, Instance)
    return replace(tree, nontemporal=True)
