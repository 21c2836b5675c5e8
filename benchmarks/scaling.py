"""``python -m benchmarks scaling``: how kernels would be divided among many threads, counted in their loops.

Nothing runs.  A kernel is mapped for a processor with so many cores.  Of each parallel loop this counts the iterations,
the bytes that each thread has for itself and those that all threads read, and the cache lines that two threads write.
Iterations are dealt out in equal shares, one after the other in memory (``tc/runtime/pool.c``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from benchmarks.problems.case import Case
from tc.language.program.program import IteratorReference, iterators_in, reads_in
from tc.language.program.specialization import Layout, Specialization
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexLiteral,
    Instance,
    Leaf,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    StatementBody,
    leaves,
    variables,
)
from tc.polyhedral.pipeline import map_program
from tc.targets.machine import CpuMachine, VectorUnit
from tc.targets.options import CpuOptions

THREADS: Final = (1, 2, 16, 64, 192)
_LINE: Final = 64


@dataclass(frozen=True, slots=True)
class Region:
    """A parallel loop of a kernel for ``threads`` threads.

    ``iterations``: None where only a call knows how many.  ``own``: bytes of tensors that each iteration accesses
    another part of; ``shared``: of those that every iteration reads.  ``written``: bytes that are written, in pieces of
    ``piece`` bytes that lie side by side and belong to one iteration.
    """

    threads: int
    iterations: int | None
    own: int
    shared: int
    written: int
    piece: int

    @property
    def longest_share(self) -> int:
        """Iterations of the thread that has most."""
        return -(-(self.iterations or 0) // self.threads)

    @property
    def balance(self) -> float:
        """The part of the threads' time in which they have iterations, if all of these take as long."""
        return (self.iterations or 0) / (self.threads * self.longest_share) if self.iterations else 1.0

    @property
    def bytes_of_a_thread(self) -> float:
        """Bytes that the thread with most iterations accesses."""
        share = self.longest_share / self.iterations if self.iterations else 1.0
        return self.own * share + self.shared

    @property
    def lines_of_two(self) -> float:
        """The part of the cache lines written that two threads write: one at each border of their shares, at most."""
        if not self.iterations or not self.written:
            return 0.0
        rows = max(1, self.written // max(1, self.piece * self.iterations))
        borders = rows * (min(self.threads, self.iterations) - 1)
        aligned = self.piece * self.longest_share % _LINE == 0
        return 0.0 if aligned else min(1.0, borders * _LINE / self.written)


def regions_of(specialization: Specialization, threads: int, vectors: VectorUnit) -> list[Region]:
    """The parallel loops of the kernel that the default options make for so many threads."""
    machine = CpuMachine(vectors, threads, streams=True)
    mapped = map_program(specialization, CpuOptions(threads=threads), machine)
    return [_region(loop, mapped.loops, threads) for loop in _parallel_loops(mapped.loops.root)]


def _parallel_loops(tree: LoopTree) -> Iterator[Loop]:
    match tree:
        case Leaf():
            return
        case Block(children):
            for child in children:
                yield from _parallel_loops(child)
        case Guard(_, then, otherwise):
            for part in (then, otherwise):
                if part is not None:
                    yield from _parallel_loops(part)
        case Allocation(_, body):
            yield from _parallel_loops(body)
        case Loop(kind=LoopKind.PARALLEL):
            yield tree
        case Loop(body=body):
            yield from _parallel_loops(body)
        case _:
            assert_never(tree)


def _region(loop: Loop, program: LoopProgram, threads: int) -> Region:
    bodies = {body.name: body for body in program.bodies}
    layouts = {buffer.name: buffer.layout for buffer in (*program.buffers, *program.temporaries)}
    moving = _depending(loop, {loop.iterator})
    own, shared = dict[str, int](), dict[str, int]()
    written, pieces = dict[str, int](), list[int]()
    for instance in leaves(loop):
        if not isinstance(instance, Instance):
            continue
        body = bodies[instance.statement]
        chosen = {
            name
            for name, argument in zip(body.iterators, instance.arguments, strict=True)
            if variables(argument) & moving
        }
        for tensor, moves in _accesses(body, chosen):
            if tensor in layouts:
                size = layouts[tensor].size * layouts[tensor].type.itemsize
                (own if moves else shared)[tensor] = size
        if body.target in layouts:
            layout = layouts[body.target]
            written[body.target] = layout.size * layout.type.itemsize
            pieces.append(_piece(body, layout, chosen))
    shared = {name: size for name, size in shared.items() if name not in own}
    iterations = _iterations(loop)
    piece = min(pieces, default=0)
    if iterations and written:
        piece = min(piece, max(1, sum(written.values()) // iterations))
    return Region(threads, iterations, sum(own.values()), sum(shared.values()), sum(written.values()), piece)


def _depending(tree: LoopTree, moving: set[str]) -> set[str]:
    """The variables whose values depend on others: those of loops with such bounds."""
    match tree:
        case Leaf():
            return moving
        case Block(children):
            for child in children:
                moving = _depending(child, moving)
            return moving
        case Guard(_, then, otherwise):
            moving = _depending(then, moving)
            return moving if otherwise is None else _depending(otherwise, moving)
        case Allocation(_, body):
            return _depending(body, moving)
        case Loop(iterator, lower, upper):
            if (variables(lower) | variables(upper)) & moving:
                moving = moving | {iterator}
            return _depending(tree.body, moving)
        case _:
            assert_never(tree)


def _accesses(body: StatementBody, chosen: set[str]) -> Iterator[tuple[str, bool]]:
    """Each tensor that a statement touches, and whether the iterators that are chosen say which part."""
    yield body.target, bool(iterators_in(body.subscripts) & chosen)
    for read in reads_in(body.value):
        yield read.tensor, bool(iterators_in(read.subscripts) & chosen)


def _piece(body: StatementBody, layout: Layout, chosen: set[str]) -> int:
    """Bytes that lie side by side in what one value of the chosen iterators writes."""
    steps = [
        step
        for subscript, step in zip(body.subscripts, layout.strides, strict=True)
        if iterators_in((subscript,)) & chosen or not isinstance(subscript, IteratorReference)
    ]
    return max(1, max(steps, default=layout.size)) * layout.type.itemsize


def _iterations(loop: Loop) -> int | None:
    match loop.lower, loop.upper:
        case IndexLiteral(lower), IndexLiteral(upper):
            return (upper - lower) // loop.step + 1
        case _:
            return None


HEADER: Final = (
    f"{'case':34}{'threads':>8}{'loops':>6}{'least iterations':>17}{'balance':>9}{'MB of a thread':>15}"
    f"{'MB for all':>11}{'lines of two':>13}"
)


def lines_of(case: Case, threads: Sequence[int], vectors: VectorUnit) -> Iterator[str]:
    """The lines of a case in the table that ``HEADER`` begins."""
    arguments = list(case.problem.arguments(case.sizes).values())
    specialization = case.problem.comprehension.specialize(*arguments)
    for count in threads:
        found = regions_of(specialization, count, vectors)
        yield f"{case.name:34}{count:8}{_text(summary(found))}"


def summary(regions: Sequence[Region]) -> Mapping[str, float]:
    """Of all parallel loops of a kernel: sums of bytes, and the worst of the others."""
    return {
        "loops": len(regions),
        "iterations": min((region.iterations or 0 for region in regions), default=0),
        "balance": min((region.balance for region in regions), default=1.0),
        "bytes of a thread": sum(region.bytes_of_a_thread for region in regions),
        "shared": sum(region.shared for region in regions),
        "lines of two": max((region.lines_of_two for region in regions), default=0.0),
    }


def _text(found: Mapping[str, float]) -> str:
    return (
        f"{found['loops']:6.0f}{found['iterations']:17.0f}{100 * found['balance']:8.0f} %"
        f"{found['bytes of a thread'] / 1e6:14.2f} {found['shared'] / 1e6:10.2f} {100 * found['lines of two']:11.2f} %"
    )
