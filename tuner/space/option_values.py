"""The values of options that a search tries: from the types of the options, and a table for numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeAlias, get_type_hints

from tc.targets.options import CpuOptions, GpuOptions
from tc.tuner.space.genes import ChoiceGene, CountGene, Gene, Path, Size, SizeGene, ascending, powers_of_two, shares
from tc.tuner.space.nest import Nest

# The genes of the option at a path, for a kernel with these loops.
MakeGenes: TypeAlias = Callable[[Path, Nest], Iterator[Gene]]


def _numbers(*values: int) -> MakeGenes:
    def make(path: Path, _nest: Nest) -> Iterator[Gene]:
        yield SizeGene(path, values)

    return make


def _open(*values: int) -> MakeGenes:
    """Numbers that may be left to the target."""

    def make(path: Path, _nest: Nest) -> Iterator[Gene]:
        yield SizeGene(path, values, open=True)

    return make


def _shuffles(path: Path, _nest: Nest) -> Iterator[Gene]:
    yield ChoiceGene(path, (None, True, False))


def _list(most: Callable[[Nest], int], sizes: Callable[[Nest], tuple[Size, ...]], *limits: int) -> MakeGenes:
    """At most ``most`` of the sizes, of which those at the places of ``limits`` are no larger than these."""

    def make(path: Path, nest: Nest) -> Iterator[Gene]:
        count = most(nest)
        yield CountGene(path, count)
        for place in range(count):
            gene = SizeGene(path, sizes(nest), place)
            if place < len(limits):
                within = [v for v, size in zip(gene.values, gene.sizes(), strict=True) if size <= limits[place]]
                gene = dataclasses.replace(gene, values=tuple(within))
            yield gene

    return make


def _extents(nest: Nest) -> tuple[Size, ...]:
    """The values of the original: powers of two, and the extents divided by them."""
    return ascending(powers_of_two(nest.extents.values()), shares(nest.extents))


# Multiples of register tiles with three or six rows, which compilers for processors are fond of.
_MULTIPLES: Final = (12, 24, 48, 96, 192, 384)
_REGISTERS: Final = (1, 2, 3, 4, 5, 6, 7, 8, 12, 14, 16, 24, 28, 32, 48, 64)


def _tiles(nest: Nest) -> tuple[Size, ...]:
    multiples = (size for size in _MULTIPLES if size < max(nest.extents.values(), default=0))
    return ascending((0, *powers_of_two(nest.extents.values()), *multiples), shares(nest.extents))


def _register_tiles(nest: Nest) -> tuple[Size, ...]:
    return ascending(_REGISTERS, shares(nest.extents, max(_REGISTERS)))


def _lanes(path: Path, nest: Nest) -> Iterator[Gene]:
    yield ChoiceGene(path, (None, *range(nest.independent)))


def _stages(path: Path, _nest: Nest) -> Iterator[Gene]:
    yield ChoiceGene(path, (None, 1, 2, 3, 4))


# Partial results of a reduction, combined in one step or in two; a warp combines 32 at a time.
_TWICE: Final = ((64, 2), (64, 8), (128, 4), (128, 16), (256, 8), (256, 16), (512, 16), (1024, 32))
_SPLITS: Final = (*((1 << power,) for power in range(1, 10)), *_TWICE)


def _across(path: Path, nest: Nest) -> Iterator[Gene]:
    longest = nest.longest_reduced()
    yield ChoiceGene(path, (None, *(blocks for blocks in (1, 4, 16, 64, 256) if blocks < longest)))


def _splits(path: Path, nest: Nest) -> Iterator[Gene]:
    longest = nest.longest_reduced()
    yield ChoiceGene(path, (None, (), *(parts for parts in _SPLITS if parts[0] < longest)))


# Numbers and lists of numbers, by the options that have them; their types do not tell which ones make sense.
_SCHEDULE: Final[Mapping[str, MakeGenes]] = MappingProxyType(
    {
        "tile": _list(lambda nest: nest.depth, _tiles),
        "unroll": _numbers(*(1 << power for power in range(13))),
        "scatter_owners": _open(1, 2, 8, 32, 128, 512),
        "scatter_parts": _open(1, 2, 4, 16, 64, 256, 1024),
    }
)
_CPU: Final[Mapping[str, MakeGenes]] = MappingProxyType(
    {
        "register_tile": _list(lambda nest: nest.independent, _register_tiles),
        "vector_axis": _lanes,
        "local_temporaries": _numbers(0, 1 << 10, 1 << 15),
        "nontemporal_stores": _numbers(0, 1 << 20, 1 << 24),
        "block_prefetch": _numbers(0, 1 << 14, 1 << 17, 1 << 20),
        "gather_prefetch": _numbers(0, 4, 8, 16, 32),
        "register_accumulators": _numbers(0, 64, 128, 256, 512, 1024),
        "packed_operands": _numbers(0, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 17, 1 << 18),
        # Nearly all candidates that compilers take too long for ask for more copies than 64, of which there are fewer
        # values.
        "unroll": _numbers(1, 2, 4, 8, 16, 32, 64, 256, 1024, 4096),
    }
)
_GPU: Final[Mapping[str, MakeGenes]] = MappingProxyType(
    {
        "block": _list(lambda nest: min(3, nest.depth), _extents, 1024, 1024, 64),
        "grid": _list(lambda nest: min(3, nest.parallel), _extents),
        "split_k_threads": _splits,
        "split_k_blocks": _across,
        "register_accumulators": _open(0, 16, 64, 256, 1024),
        "register_operands": _numbers(0, 16, 64),
        "shared_memory": _open(0, 16 << 10, 32 << 10, 48 << 10, 96 << 10, 160 << 10),
        "padding": _open(0, 1, 2, 4, 8),
        "stages": _stages,
        "shuffles": _shuffles,
        "min_blocks_per_multiprocessor": _numbers(1, 2, 3, 4, 6, 8),
    }
)
NUMBERS: Final[Mapping[type, Mapping[str, MakeGenes]]] = MappingProxyType(
    {CpuOptions: {**_SCHEDULE, **_CPU}, GpuOptions: {**_SCHEDULE, **_GPU}}
)

# These say what a call does or may take, not how.
NOT_SEARCHED: Final = frozenset({"threads", "check_indices", "numerics"})


def genes_of(options: type, nest: Nest, *, fixed: Collection[str] = ()) -> Iterator[Gene]:
    """The genes of options of a type, in the order of their fields; ``fixed``: names of some that are not searched.

    TypeError, naming it, for an option that has neither a type that tells its values nor an entry in the table.
    """
    return _genes(options, nest, NUMBERS.get(options, _SCHEDULE), fixed, ())


def _genes(
    options: type, nest: Nest, numbers: Mapping[str, MakeGenes], fixed: Collection[str], prefix: Path
) -> Iterator[Gene]:
    hints = get_type_hints(options)
    for field in dataclasses.fields(options):
        kind, path = hints[field.name], (*prefix, field.name)
        if field.name in NOT_SEARCHED or field.name in fixed:
            continue
        if field.name in numbers:
            yield from numbers[field.name](path, nest)
        elif dataclasses.is_dataclass(kind) and isinstance(kind, type):
            yield from _genes(kind, nest, numbers, fixed, path)
        elif isinstance(kind, type) and issubclass(kind, Enum):
            yield ChoiceGene(path, tuple(kind))
        elif kind is bool:
            yield ChoiceGene(path, (False, True))
        else:
            raise TypeError(f"the values of {'.'.join(path)} to try are unknown; add them to {__name__}.NUMBERS")
