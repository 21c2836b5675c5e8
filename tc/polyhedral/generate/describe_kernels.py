"""What the kernels of a program are, and why there are several, as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items

from tc.language.program.program import Read, walk
from tc.polyhedral.generate.join_kernels import Limits, what_parts
from tc.polyhedral.generate.outermost_nests import OutermostNest
from tc.polyhedral.ir.loops import Sharing
from tc.polyhedral.ir.scop import Scop
from tc.targets.options import Fusion, GpuOptions

_MEMORY = {
    Sharing.BLOCK: "shared by its threads",
    Sharing.LANES: "in the lanes of its warps",
    Sharing.THREAD: "of each thread",
}


def describe_kernels(nests: Items[OutermostNest], scop: Scop, options: GpuOptions, limits: Limits) -> Iterator[str]:
    """Lines: the statements of each kernel, its grid, what its threads hold and what they do not, what it waits for.

    ``limits``: of kernels that were joined.
    """
    for number, nest in enumerate(nests):
        yield f"kernel {number}: {', '.join(nest.statements)}"
        grid, block = (_sizes(own) for own in (nest.sizes.grid, nest.sizes.block))
        yield f"  blocks {grid}, threads {block}"
        if nest.launches > 1:
            yield f"  launched {nest.launches} times, for each step: one block would take longer for it than a launch"
        for sharing, whose in _MEMORY.items():
            found = [f"{b.name}: {b.layout.type}{list(b.layout.shape)}" for b in nest.buffers if b.sharing is sharing]
            if found:
                yield f"  {whose}: {', '.join(found)}"
        direct = _read_directly(nest, scop)
        if direct:
            yield f"  read where they lie: {', '.join(direct)}"
        if number:
            yield f"  {_reason(nests, number, options, limits)}"


def _read_directly(nest: OutermostNest, scop: Scop) -> tuple[str, ...]:
    """Tensors that statements of the program, and not only copies, read themselves."""
    copies = {name for promotion in scop.promotions for name in (promotion.loads, promotion.stores)}
    tensors = {tensor.name for tensor in (*scop.buffers, *scop.temporaries)}
    reads = (
        part.tensor
        for statement in scop.statements
        if statement.name in nest.statements and statement.name not in copies
        for part in walk(statement.body.value)
        if isinstance(part, Read)
    )
    return tuple(dict.fromkeys(name for name in reads if name in tensors))


def _sizes(extents: tuple[int, ...]) -> str:
    """Along x first."""
    return " x ".join(map(str, reversed(extents))) or "1"


def _reason(nests: Items[OutermostNest], number: int, options: GpuOptions, limits: Limits) -> str:
    """Why this is not the kernel before it."""
    before, own = nests[number - 1], nests[number]
    tensors = own.conflicts(before)
    if tensors:
        return f"waits for all blocks of kernel {number - 1}, for {', '.join(tensors)}"
    if options.schedule.fusion is Fusion.MINIMAL:
        return f"apart from kernel {number - 1}: fusion is minimal"
    if options.grid is not None:
        return f"apart from kernel {number - 1}: each has the grid that the options give"
    return f"apart from kernel {number - 1}: {what_parts((before, own), limits)}"
