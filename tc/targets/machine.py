"""What a machine is like, as far as kernels are made otherwise for it: processors, and devices that run grids.

Figures of NVIDIA's GPUs are those of the *CUDA Programming Guide* (technical specifications per compute capability), of
the whitepapers of the architectures, and of the PTX ISA (``mma``, ``cp.async``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeAlias

from tc.base.dots import Dot, MatrixShape, Products
from tc.base.frozen import frozen
from tc.base.grid import MOST_THREADS, STATIC_SHARED, WARP
from tc.targets.multiprocessor import MULTIPROCESSORS, Multiprocessor


@frozen
class VectorUnit:
    """The vector registers of a processor: bytes of one, and how many there are."""

    bytes: int
    registers: int


@frozen
class CpuMachine:
    """A processor: its vector registers, and how many cores there are to keep busy.

    ``streams``: it can write whole lines of memory past its caches.  ``dots``: it has instructions for these.
    """

    vectors: VectorUnit
    cores: int
    streams: bool = False
    dots: tuple[Dot, ...] = ()


# Tiles of many kernels are as many as a power of two: a grid need not have a block for each multiprocessor, but for so
# many parts of them.
_BUSY: Final = (3, 4)
# Blocks that a multiprocessor should have at a time, so that one computes while another one waits.
_BLOCKS_AT_A_TIME: Final = 2
# Threads of a block by default, in warps.
_WARPS: Final = 8
# What a thread of such a block keeps of its results, and all of them of a tile: these parts of the registers.
_RESULTS: Final = 4
_POINTS: Final = 8
# Operands in shared memory have two tiles each, and a sixth of it is left for padding.
_OPERANDS: Final = (5, 12)
# Where they are small, more steps of a reduction are done with them: in a sixth of it.
_FEW_OPERANDS: Final = 6
# Tiles of an operand at a time: more would not hide more of the time that it takes to copy one.
_STAGES: Final = 4
# Instances that a thread goes through while a few kernels are started.
_SHORT: Final = 16


@frozen
class GpuMachine:
    """A device that runs grids of blocks, and the defaults that follow from its figures.

    ``multiprocessors``: of the largest device of its kind, which a grid should keep busy.  ``multiprocessor``: what one
    of them has.  ``warp``: threads that run together.  ``shuffles``: they may read each other's registers.
    ``asynchronous_copies``: tiles are copied to shared memory while threads work on others.  ``branches``: threads of a
    block may wait for each other in a branch that not all blocks take.  ``matrix_shapes``: of its matrix instructions.
    ``warpgroups``: four warps together have such instructions, whose operands lie in shared memory (PTX: ``wgmma``).
    ``atomic_bytes``: sizes of elements in memory that threads can update atomically.  ``most_threads``: of a block.
    """

    multiprocessors: int
    multiprocessor: Multiprocessor
    warp: int = WARP
    shuffles: bool = True
    asynchronous_copies: bool = True
    branches: bool = True
    matrix_shapes: tuple[MatrixShape, ...] = ()
    warpgroups: bool = False
    atomic_bytes: frozenset[int] = frozenset({4, 8})
    most_threads: int = MOST_THREADS

    @property
    def enough_blocks(self) -> int:
        """Blocks of a grid that keep the device busy."""
        part, of = _BUSY
        return -(-self.multiprocessors * part // of)

    @property
    def block_threads(self) -> int:
        """Threads of a block by default."""
        return _WARPS * self.warp

    @property
    def block_shared(self) -> int:
        """Bytes of shared memory that a block takes at most by default: two blocks fit a multiprocessor."""
        return self.multiprocessor.shared // _BLOCKS_AT_A_TIME - self.multiprocessor.reserved

    @property
    def most_shared(self) -> int:
        """Bytes of shared memory that one block may be given, where that is known."""
        return self.multiprocessor.block_shared if self.multiprocessor.reserved else self.block_shared

    @property
    def thread_elements(self) -> int:
        """Elements of results that a thread keeps in registers by default."""
        return self.multiprocessor.registers // self.block_threads // _RESULTS

    @property
    def warp_elements(self) -> int:
        """Elements of the sums of matrix instructions that each lane of a warp keeps in registers by default."""
        return 2 * self.thread_elements

    @property
    def tile_points(self) -> int:
        """Points of a tile whose results the threads of a block keep in registers easily."""
        return self.multiprocessor.registers // _POINTS

    @property
    def operand_bytes(self) -> int:
        """What the operands of a tile may take of shared memory, so that there is room for two tiles of each."""
        part, of = _OPERANDS
        return self.block_shared * part // of

    @property
    def few_operand_bytes(self) -> int:
        """Up to so many bytes, operands are small, and threads should wait for each other less often."""
        return self.block_shared // _FEW_OPERANDS

    @property
    def stages(self) -> int:
        """Tiles of an operand that are held at a time by default, if there is room: they only take room where copies
        are not asynchronous.
        """
        return _STAGES if self.asynchronous_copies else 1

    def with_products(self, products: Products) -> GpuMachine:
        """The machine with those of its matrix instructions of float32 numbers that may round factors so."""
        kept = tuple(own for own in self.matrix_shapes if own.operands != Products.TF32.value)
        single = (own for own in self.matrix_shapes if own.operands == Products.TF32.value)
        if products is not Products.EXACT:
            kept += tuple(replace(own, operands=products.value) for own in single)
        return replace(self, matrix_shapes=kept)

    @property
    def short_nest(self) -> int:
        """Instances of a nest that are done in about the time in which a few kernels are started."""
        return _SHORT * self.enough_blocks * self.multiprocessor.threads


Machine: TypeAlias = CpuMachine | GpuMachine

_HALVES: Final = (MatrixShape(16, 8, 8, "f16", "f32"),)
_FROM_AMPERE: Final = (
    MatrixShape(16, 8, 16, "f16", "f32"),
    MatrixShape(16, 8, 16, "bf16", "f32"),
    MatrixShape(16, 8, 32, "s8", "s32"),
    MatrixShape(16, 8, 8, "tf32", "f32"),
    MatrixShape(8, 8, 4, "f64", "f64"),
)

# The multiprocessors of the largest GPU of each architecture.
_COUNTS: Final = {
    "sm_75": 72,
    "sm_80": 108,
    "sm_86": 84,
    "sm_87": 16,
    "sm_88": 12,
    "sm_89": 142,
    "sm_90": 132,
    "sm_90a": 132,
    "sm_100": 148,
    "sm_100a": 148,
    "sm_103": 160,
    "sm_110": 20,
    "sm_120": 188,
    "sm_121": 48,
}
_BEFORE_AMPERE: Final = frozenset({"sm_75"})

GPUS: Final[Mapping[str, GpuMachine]] = MappingProxyType(
    {
        name: GpuMachine(
            _COUNTS[name],
            own,
            asynchronous_copies=name not in _BEFORE_AMPERE,
            matrix_shapes=_HALVES if name in _BEFORE_AMPERE else _FROM_AMPERE,
            warpgroups=name == "sm_90a",
        )
        for name, own in MULTIPROCESSORS.items()
    }
)

# For devices of which nothing is known but that they run grids: a large GPU, with as much shared memory for a block
# as every GPU has without being asked for more.
GENERIC_GPU: Final = GpuMachine(
    170,
    Multiprocessor(2048, 32, _BLOCKS_AT_A_TIME * STATIC_SHARED, reserved=0),
    matrix_shapes=_FROM_AMPERE,
    warpgroups=True,
)
