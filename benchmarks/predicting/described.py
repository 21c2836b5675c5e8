"""Kernels of libraries as the model sees them: what their blocks ask for, from their sizes and a tiling.

Nothing of a library is read; the tilings are those that are publicly known of its kernels: of float32 products without
matrix instructions, CUTLASS' SIMT kernels (its ``media/docs/efficient_gemm.md``), of which a library chooses the
quickest; of PyTorch's elementwise operations and rows, ``CUDALoops.cuh``, ``Reduce.cuh``, ``SoftMax.cu`` and
``layer_norm_kernel.cu``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from tc.prediction.counts import BlockKind, KernelCount
from tc.prediction.demand import Demand
from tc.prediction.predict import Use, predict
from tc.prediction.prediction import Prediction
from tc.targets.devices import Device

_WARP: Final = 32
_FLOAT: Final = 4
_PIECE: Final = 16


@dataclass(frozen=True, slots=True)
class Product:
    """C (m x n) of each of ``batch`` pairs of matrices, in float32 without matrix instructions, of ``halves`` with."""

    m: int
    n: int
    k: int
    batch: int = 1
    halves: bool = False


@dataclass(frozen=True, slots=True)
class Elementwise:
    """``elements`` results of as many of each of ``operands``; ``special``: MUFU instructions for each."""

    elements: int
    operands: int = 1
    special: int = 0


@dataclass(frozen=True, slots=True)
class Rows:
    """``count`` rows of so many elements, each of which a block reads ``passes`` times, and writes if ``written``.

    ``threads``: of a block.  ``vector``: elements that a thread reads at a time.  ``chain``: operations on one element
    that wait for those on the one before.
    """

    count: int
    width: int
    passes: int = 1
    written: bool = True
    threads: int = 512
    vector: int = 4
    chain: int = 1
    special: int = 0


Described: TypeAlias = Product | Elementwise | Rows


@dataclass(frozen=True, slots=True)
class _Tiling:
    """Rows and columns of a block's tile, its threads, steps of the reduction at a time, and parts of the reduction."""

    rows: int
    columns: int
    threads: int
    steps: int
    parts: int = 1


_TILINGS: Final = (
    _Tiling(128, 128, 256, 8),
    _Tiling(256, 128, 256, 8),
    _Tiling(128, 64, 128, 8),
    _Tiling(64, 64, 64, 16),
    _Tiling(128, 32, 64, 8),
    _Tiling(32, 128, 64, 8),
    _Tiling(64, 32, 64, 16),
    _Tiling(32, 32, 64, 16),
)
# Of products of halves: of so many bytes, with matrix instructions of 16 x 8 x 16 points.
_HALF: Final = 2
_MATRIX: Final = 16 * 8 * 16
# Rows of an instruction of four warps, and where there are such.
_GROUP_ROWS: Final = 64
_WITH_GROUPS: Final = frozenset({"sm_90"})
_HALF_TILINGS: Final = (
    _Tiling(128, 256, 256, 64),
    _Tiling(128, 128, 128, 64),
    _Tiling(128, 64, 128, 64),
    _Tiling(64, 64, 128, 64),
)
_PARTS: Final = (1, 2, 4, 8, 16, 32, 64)


def predict_described(call: Described, device: Device, *, cold: bool) -> Prediction:
    """The time of a call on a device: of products, with the tiling that is predicted to be the quickest."""
    if isinstance(call, Product):
        found = (predict(*own, cold=cold) for own in _products(call, device))
        return min(found, key=lambda prediction: prediction.seconds)
    count = _elementwise(call) if isinstance(call, Elementwise) else _rows(call, device)
    return predict((count,), device, (Use(32),), cold=cold)


# --- products


def _products(call: Product, device: Device) -> Iterator[tuple[tuple[KernelCount, ...], Device, tuple[Use, ...]]]:
    for tiling in _HALF_TILINGS if call.halves else _TILINGS:
        blocks = -(-call.m // tiling.rows) * -(-call.n // tiling.columns) * call.batch
        for parts in _PARTS:
            own = replace(tiling, parts=parts)
            useful = parts == 1 or (blocks * parts <= 2 * device.multiprocessors and call.k >= 64 * parts)
            if useful:
                registers = tiling.rows * tiling.columns // tiling.threads * 3 // 2 + 32
                kernels: tuple[KernelCount, ...] = (_one_product(call, own, device),)
                uses: tuple[Use, ...] = (Use(min(registers, 255)),)
                if parts > 1:
                    kernels, uses = (*kernels, _sum_of_parts(call, parts)), (*uses, Use(32))
                yield kernels, device, uses


def _one_product(call: Product, tiling: _Tiling, device: Device) -> KernelCount:
    if not call.halves:
        return _product(call, tiling)
    by_groups = device.architecture in _WITH_GROUPS and tiling.rows % _GROUP_ROWS == 0
    return _product_by_groups(call, tiling) if by_groups else _product_of_halves(call, tiling)


def _product(call: Product, tiling: _Tiling) -> KernelCount:
    """Both operands are read from shared memory in pieces that neighbours share, before they are needed."""
    warps = tiling.threads // _WARP
    grid = (-(-call.m // tiling.rows), -(-call.n // tiling.columns), call.batch * tiling.parts)
    steps = -(-call.k // tiling.parts)
    points = tiling.rows * tiling.columns / tiling.threads
    side = math.sqrt(points)
    fragments = warps * steps * 2 * side * _FLOAT / _PIECE
    copied = (tiling.rows + tiling.columns) * steps * _FLOAT
    copies = copied / _PIECE / _WARP
    rounds = steps / tiling.steps
    written = tiling.rows * tiling.columns * _FLOAT
    demand = Demand(
        fma=points * warps * steps,
        multiply_adds=points * warps * steps,
        alu=warps * (20 + 6 * rounds),
        control=warps * (4 + 3 * rounds),
        shared_reads=fragments,
        shared_writes=copies,
        shared_wavefronts=2 * fragments + 4 * copies,
        global_reads=copies,
        global_lines=copied / 128 + written / 128,
        global_lanes=copied / _PIECE,
        global_bytes=copied,
        global_writes=points * warps,
        near=copied / 32,
        far=copied / 32,
        written=written / 32,
        global_waits=2,
        shared_waits=1,
        barriers=rounds,
        chain=steps,
    )
    bytes = _FLOAT * call.batch * (call.m * call.k + call.k * call.n)
    results = _FLOAT * call.batch * call.m * call.n * tiling.parts
    shared = 2 * (tiling.rows + tiling.columns) * tiling.steps * _FLOAT
    return _kernel(grid, tiling.threads, demand, bytes, results, shared=shared, ahead=True)


def _product_of_halves(call: Product, tiling: _Tiling) -> KernelCount:
    """Tiles are copied asynchronously, three at a time; warps in two rows read both operands for 64 columns or rows."""
    warps = tiling.threads // _WARP
    grid = (-(-call.m // tiling.rows), -(-call.n // tiling.columns), call.batch * tiling.parts)
    steps = -(-call.k // tiling.parts)
    products = tiling.rows * tiling.columns * steps
    copied = (tiling.rows + tiling.columns) * steps * _HALF
    rounds = steps / tiling.steps
    written = tiling.rows * tiling.columns * _HALF
    demand = Demand(
        tensor=products,
        matrix=products / _MATRIX,
        alu=warps * (20 + 12 * rounds),
        control=warps * (4 + 3 * rounds),
        shared_reads=2 * copied / 512,
        shared_wavefronts=3 * copied / 128,
        copies=copied / _PIECE / _WARP,
        global_lines=(copied + written) / 128,
        global_lanes=copied / _PIECE,
        global_bytes=copied,
        global_writes=written / _PIECE / _WARP,
        copied=copied / 32,
        written=written / 32,
        barriers=rounds,
        copy_waits=rounds / 3,
        chain=steps / 16,
    )
    bytes = _HALF * call.batch * (call.m * call.k + call.k * call.n)
    results = _HALF * call.batch * call.m * call.n * tiling.parts
    shared = 3 * (tiling.rows + tiling.columns) * tiling.steps * _HALF
    return _kernel(grid, tiling.threads, demand, bytes, results, shared=shared, ahead=True)


def _product_by_groups(call: Product, tiling: _Tiling) -> KernelCount:
    """Groups of four warps multiply what instructions read from shared memory by themselves (``wgmma``).

    One thread has tiles copied (TMA): no thread asks for lines.
    """
    count = _product_of_halves(call, tiling)
    (kind,) = count.kinds
    products = tiling.rows * tiling.columns * (-(-call.k // tiling.parts))
    operands = products / (_GROUP_ROWS * tiling.columns) * (_GROUP_ROWS + tiling.columns) * _HALF
    copied = kind.demand.copied * 32
    demand = replace(
        kind.demand,
        matrix=4 * products / (_GROUP_ROWS * tiling.columns * 16),
        shared_reads=0.0,
        shared_wavefronts=(operands + copied) / 128,
        copies=0.0,
        global_lines=kind.demand.global_lines - copied / 128,
    )
    return replace(count, kinds=(BlockKind(kind.count, demand),))


def _sum_of_parts(call: Product, parts: int) -> KernelCount:
    own = _elementwise(Elementwise(call.m * call.n * call.batch, parts))
    return replace(own, passed=own.read)


# --- elementwise and rows


def _elementwise(call: Elementwise) -> KernelCount:
    """Blocks of 128 threads, each of which has 4 neighbouring elements."""
    threads, each = 128, 4
    blocks = -(-call.elements // (threads * each))
    warps = threads // _WARP
    bytes = threads * each * _FLOAT
    requests = warps * (call.operands + 1)
    demand = Demand(
        fma=warps * each * call.operands,
        alu=warps * 20,
        special=warps * each * call.special,
        control=warps * 4,
        global_reads=warps * call.operands,
        global_writes=warps,
        global_lines=bytes * (call.operands + 1) / 128,
        global_lanes=requests * _WARP,
        global_bytes=bytes * (call.operands + 1),
        near=bytes * call.operands / 32,
        far=bytes * call.operands / 32,
        written=bytes / 32,
        global_waits=1,
        chain=10,
    )
    size = _FLOAT * call.elements
    return _kernel((blocks,), threads, demand, size * call.operands, size)


def _rows(call: Rows, device: Device) -> KernelCount:
    """A block for each row: in every pass, threads read and combine pieces of it one after the other."""
    warps = call.threads // _WARP
    pieces = -(-call.width // (call.threads * call.vector))
    reads = call.passes * pieces
    elements = warps * pieces * call.vector * call.passes
    bytes = _FLOAT * call.width
    written = bytes if call.written else _FLOAT
    demand = Demand(
        fma=2 * elements,
        alu=elements + 4 * warps * reads,
        special=elements * call.special,
        control=2 * warps * reads,
        shuffles=5 * warps * call.passes,
        shared_writes=warps * call.passes,
        shared_reads=warps * call.passes,
        shared_wavefronts=2 * warps * call.passes,
        global_reads=warps * reads,
        global_writes=warps * pieces if call.written else 1,
        global_lines=(bytes * call.passes + written) / 128,
        global_lanes=call.threads * reads,
        global_bytes=bytes * call.passes,
        near=bytes * call.passes / 32,
        far=bytes * call.passes / 32,
        written=max(1, written / 32),
        global_waits=reads,
        shared_waits=2 * call.passes,
        barriers=2 * call.passes,
        chain=reads * call.vector * call.chain + 30 * call.passes,
    )
    # Rows that are under way at a time are read again from memory where the cache cannot hold them.
    at_a_time = min(call.count, device.multiprocessors * (2048 // call.threads)) * bytes
    passes = call.passes if at_a_time > device.cache else 1
    return _kernel((call.count,), call.threads, demand, passes * bytes * call.count, written * call.count)


def _kernel(
    grid: tuple[int, ...],
    threads: int,
    demand: Demand,
    read: int,
    written: int,
    *,
    shared: int = 0,
    ahead: bool = False,
) -> KernelCount:
    kinds = (BlockKind(math.prod(grid), demand),)
    return KernelCount(
        grid=grid,
        threads=threads,
        launches=1,
        kinds=kinds,
        read=read,
        written=written,
        chosen=0,
        passed=0,
        shared=shared,
        kept=0,
        ahead=ahead,
    )
