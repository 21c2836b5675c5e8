"""Genomes stand for options, and what is made of them is legal."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tc.targets.options import CpuOptions, Fusion, GpuOptions, Options, ScheduleOptions
from tc.tuner.space.genes import Genome, Share, SizeGene
from tc.tuner.space.nest import Nest
from tc.tuner.space.space import Space
from tc.tuner.trial.trial_outcome import Failed, FailureKind
from tests.tuner.landscapes import GPU_SPACE, NEST, SPACE

SPACES = pytest.mark.parametrize("space", [SPACE, GPU_SPACE], ids=["cpu", "gpu"])
UNUSUAL = [
    CpuOptions(
        ScheduleOptions(Fusion.MINIMAL, (37, 0, 125), 5), (7, 33), 0, 100, 77, 3, vectorize=False, gather_prefetch=9
    ),
    CpuOptions(ScheduleOptions(tile=()), register_tile=()),
    GpuOptions(
        ScheduleOptions(Fusion.MAXIMAL, (33, 65, 9), 7),
        (65, 3),
        (1000, 3),
        split_k_threads=(64, 8),
        shared_memory=12345,
    ),
    GpuOptions(split_k_threads=()),
]


def space_of(options: Options, nest: Nest = NEST) -> Space:
    return Space.of(type(options), nest)


def options_of(space: Space, genome: Genome) -> Options:
    options = space.decode(genome)
    assert not isinstance(options, Failed), options
    return options


@pytest.mark.parametrize("options", [CpuOptions(), GpuOptions(), *UNUSUAL], ids=str)
@pytest.mark.parametrize("relative", [False, True])
def test_options_come_back_from_their_genomes(options: Options, *, relative: bool) -> None:
    space = space_of(options)
    genome = space.encode(options, relative=relative)
    assert options_of(space, genome) == options
    assert len(genome) == len(space.genes)


@pytest.mark.parametrize("nest", [NEST, Nest({"n": 64}, 1), Nest({"k": 5}, 1, 0, ("k",))], ids=["mm", "rows", "sum"])
@pytest.mark.parametrize("options", [CpuOptions, GpuOptions])
def test_the_default_is_in_every_space(options: type[CpuOptions] | type[GpuOptions], nest: Nest) -> None:
    space = Space.of(options, nest)
    assert options_of(space, space.encode(options())) == options()


def test_sizes_without_a_place_are_left_out() -> None:
    long = CpuOptions(ScheduleOptions(tile=(8, 8, 8, 8)), register_tile=(2, 4, 8))
    assert options_of(SPACE, SPACE.encode(long)) == CpuOptions(ScheduleOptions(tile=(8, 8, 8)), register_tile=(2, 4))


def test_fixed_options_keep_their_defaults() -> None:
    space = Space.of(CpuOptions, NEST, fixed=("gather_prefetch", "tile"))
    assert options_of(
        space, space.encode(CpuOptions(ScheduleOptions(tile=(4,)), gather_prefetch=4, packed_operands=0))
    ) == CpuOptions(packed_operands=0)
    random = Random(0)
    assert all(isinstance(space.decode(space.random(random)), CpuOptions) for _ in range(50))


def test_the_number_of_encodings() -> None:
    small = Space.of(
        CpuOptions,
        Nest({"n": 2}, 1),
        fixed=(
            "unroll",
            "local_temporaries",
            "nontemporal_stores",
            "block_prefetch",
            "gather_prefetch",
            "packed_operands",
            "scans",
            "scatter_owners",
            "scatter_parts",
        ),
    )
    fusion, tile, register_tile, lane, accumulators, vectorize = 3, 3 * 3, 2, 1, 6, 2
    assert small.size == fusion * tile * register_tile * lane * accumulators * vectorize


def test_illegal_genomes_are_values() -> None:
    lane = [gene.path for gene in SPACE.genes].index(("vector_axis",))
    genome = SPACE.encode(CpuOptions(register_tile=(4,)))
    found = SPACE.decode((*genome[:lane], 1, *genome[lane + 1 :]))
    assert isinstance(found, Failed)
    assert (found.kind, "vector_axis must be" in found.reason) == (FailureKind.ILLEGAL, True)
    idle = GPU_SPACE.decode(GPU_SPACE.encode(GpuOptions(block=(2,))))
    assert isinstance(idle, Failed)


@SPACES
def test_whatever_is_bred_is_legal(space: Space) -> None:
    random = Random(3)
    genomes = [space.random(random) for _ in range(60)]
    genomes += [space.mutate(random.choice(genomes), random, 0.2) for _ in range(60)]
    genomes += [space.cross(random.sample(genomes, 3), random) for _ in range(60)]
    genomes += [genome for number in (0, 70, 130) for genome in space.neighbours(genomes[number], random)]
    genomes += [space.step(genome, random) for genome in genomes[:30]]
    for genome in genomes:
        options = options_of(space, genome)
        assert space.repair(genome) == genome
        assert options_of(space, space.encode(options)) == options


@SPACES
def test_random_genomes_reach_all_values(space: Space) -> None:
    random, seen = Random(0), [set[object]() for _ in space.genes]
    for _ in range(3000):
        for values, value in zip(seen, space.random(random), strict=True):
            values.add(value)
    for gene, values in zip(space.genes, seen, strict=True):
        if gene.path in {("vector_axis",), ("block",)}:
            continue  # the last lane is None, and blocks shrink to their tiles
        assert set(gene.values) <= values, f"{gene.path} is never {set(gene.values) - values}"


@SPACES
def test_mutation_changes_as_many_genes_as_its_rate_says(space: Space) -> None:
    random, genome = Random(0), space.encode(space.defaults)
    assert all(space.mutate(genome, random, 0.0) == genome for _ in range(20))
    changed = [mutant != genome for mutant in (space.mutate(genome, random, 0.07) for _ in range(400))]
    active = sum(not (isinstance(gene, SizeGene) and gene.place is not None) for gene in space.genes)
    assert 0.3 * 0.07 * active < sum(changed) / len(changed) < 0.07 * active


def test_children_take_every_gene_from_each_of_three_parents() -> None:
    parents = [
        SPACE.encode(CpuOptions(ScheduleOptions(fusion, (size,) * 3), packed_operands=packed, gather_prefetch=prefetch))
        for fusion, size, packed, prefetch in zip(Fusion, (32, 64, 128), (0, 1 << 12, 1 << 14), (0, 4, 8), strict=True)
    ]
    random, shares = Random(0), Counter[tuple[int, int]]()
    free = [n for n in range(len(SPACE.genes)) if len({parent[n] for parent in parents}) == 3]
    assert len(free) == 6
    for _ in range(900):
        child = SPACE.cross(parents, random)
        assert all(value in values for value, *values in zip(child, *parents, strict=True))
        shares.update((number, [parent[number] for parent in parents].index(child[number])) for number in free)
    assert all(220 < shares[number, parent] < 380 for number in free for parent in range(3)), shares


def test_children_fill_places_that_the_parent_of_a_place_does_not_have() -> None:
    short = SPACE.encode(CpuOptions(ScheduleOptions(tile=(32,))))
    long = SPACE.encode(CpuOptions(ScheduleOptions(tile=(32, 64, 128))))
    random = Random(0)
    lengths = set()
    for _ in range(50):
        options = options_of(SPACE, SPACE.cross((short, long, short), random))
        assert options.schedule.tile is not None
        lengths.add(len(options.schedule.tile))
    assert lengths == {1, 3}


@SPACES
def test_neighbours_differ_by_one_step(space: Space) -> None:
    random = Random(5)
    for genome in (space.encode(space.defaults), space.random(random), space.random(random)):
        found = space.neighbours(genome, random)
        assert genome not in found
        assert len(set(found)) == len(found)
        assert set(space.neighbours(genome, Random(9))) & set(found)
        paths = {path for neighbour in found for path in _differing(space, genome, neighbour)}
        assert paths >= {
            gene.path for gene in space.genes if gene.path[-1] in ("fusion", "unroll", "padding", "packed_operands")
        }
        ordinary = [n for n in found if len(_differing(space, genome, n)) == 1]
        assert len(ordinary) > len(found) / 2
        steps = {space.step(genome, random) for _ in range(100)} - {genome}
        assert len(steps) > len(found) / 2


def _differing(space: Space, one: Genome, other: Genome) -> set[tuple[str, ...]]:
    return {gene.path for gene, a, b in zip(space.genes, one, other, strict=True) if a != b}


def test_shares_move_to_other_sizes() -> None:
    options = CpuOptions(ScheduleOptions(tile=(32, 256, 250)), register_tile=(6, 16))
    large = Space.of(CpuOptions, Nest({"m": 256, "n": 512, "k": 4000}, 3, 2, ("k",)))
    genome = SPACE.encode(options, relative=True)
    assert [value for value in genome if isinstance(value, Share)] == [
        Share("m", 4, 32),
        Share("n", 4, 256),
        Share("k", 4, 250),
        Share("m", 8, 16),  # no part of ``n``, whose place it has
    ]
    moved = options_of(large, large.adopt(genome))
    assert moved.schedule.tile == (64, 128, 1000)
    kept = options_of(large, large.adopt(SPACE.encode(options)))
    assert kept.schedule.tile == (32, 256, 1000), "only what is no power of two is a share by itself"


def test_small_parts_are_no_shares() -> None:
    genome = SPACE.encode(CpuOptions(register_tile=(2, 4)), relative=True)
    assert not any(isinstance(value, Share) for value in genome)


def test_genomes_of_other_kernels_are_not_adopted() -> None:
    with pytest.raises(ValueError, match="a genome of"):
        Space.of(CpuOptions, Nest({"n": 4}, 1)).adopt(SPACE.encode(CpuOptions()))
