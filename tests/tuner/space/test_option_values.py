"""Every option has values to try, or is said not to be tried."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

from tc.targets.options import CpuOptions, GpuOptions, ScheduleOptions
from tc.tuner.space.genes import ChoiceGene, CountGene, Gene, Path, SizeGene
from tc.tuner.space.nest import Nest
from tc.tuner.space.option_values import NOT_SEARCHED, NUMBERS, genes_of
from tests.tuner.landscapes import NEST


def found(options: type, nest: Nest = NEST) -> dict[Path, list[Gene]]:
    genes: dict[Path, list[Gene]] = {}
    for gene in genes_of(options, nest):
        genes.setdefault(gene.path, []).append(gene)
    return genes


@pytest.mark.parametrize("options", [CpuOptions, GpuOptions])
def test_every_option_is_searched_or_said_not_to_be(options: type) -> None:
    names = {name for path in found(options) for name in path}
    every = {field.name for kind in (options, ScheduleOptions) for field in dataclasses.fields(kind)}
    assert names | NOT_SEARCHED >= every
    assert not names & NOT_SEARCHED


def test_the_table_names_no_option_that_is_none() -> None:
    for kind, numbers in NUMBERS.items():
        assert numbers.keys() <= {field.name for one in (kind, ScheduleOptions) for field in dataclasses.fields(one)}
    assert {field.name for kind in NUMBERS for field in dataclasses.fields(kind)} >= NOT_SEARCHED


def test_as_many_copies_are_asked_for_as_options_allow() -> None:
    path = ("schedule", "unroll")
    (cpu,), (gpu,) = found(CpuOptions)[path], found(GpuOptions)[path]
    assert isinstance(cpu, SizeGene)
    assert isinstance(gpu, SizeGene)
    assert max(cpu.sizes()) == max(gpu.sizes()) == 4096
    # Compilers for processors bear more than 64 badly, so that these are few there.
    assert sum(size > 64 for size in cpu.sizes()) < sum(size > 64 for size in gpu.sizes())
    ScheduleOptions(unroll=4096)


def test_an_option_without_values_is_a_mistake() -> None:
    @dataclass
    class Odd:
        colour: str = "red"

    with pytest.raises(
        TypeError, match=r"the values of colour to try are unknown; add them to tc\.tuner\.space\.option_values"
    ):
        list(genes_of(Odd, NEST))


def test_options_may_be_fixed() -> None:
    names = {name for gene in genes_of(CpuOptions, NEST, fixed=("gather_prefetch", "tile")) for name in gene.path}
    assert names == {name for path in found(CpuOptions) for name in path} - {"gather_prefetch", "tile"}


def test_lists_have_as_many_places_as_there_are_loops() -> None:
    cpu, gpu = found(CpuOptions), found(GpuOptions)
    assert isinstance(cpu["schedule", "tile"][0], CountGene)
    assert len(cpu["schedule", "tile"]) == 1 + NEST.depth
    assert len(cpu["register_tile",]) == 1 + NEST.independent
    assert cpu["vector_axis",] == [ChoiceGene(("vector_axis",), (None, 0, 1))]
    assert (len(gpu["block",]), len(gpu["grid",])) == (1 + 3, 1 + 2)
    rows = Nest({"n": 64}, depth=1)
    assert found(CpuOptions, rows)["register_tile",] == [CountGene(("register_tile",), 0)]


def test_tiles_have_the_papers_values() -> None:
    tile = found(CpuOptions)["schedule", "tile"][1]
    assert isinstance(tile, SizeGene)
    assert {1 << power for power in range(11)} | {1000, 500, 250, 125, 63, 0} <= set(tile.sizes())
    assert list(tile.sizes()) == sorted(set(tile.sizes()))


def test_blocks_have_their_limits() -> None:
    gpu = found(GpuOptions)
    most = [max(gene.sizes()) for gene in gpu["block",] if isinstance(gene, SizeGene)]
    assert most == [1024, 1024, 64]


def test_reductions_are_split_in_fewer_parts_than_they_have_iterations() -> None:
    for extent in (1000, 33, 1):
        (split,) = found(GpuOptions, Nest({"k": extent}, 1, 0, ("k",)))["split_k_threads",]
        assert {None, ()} <= set(split.values)
        assert all(parts[0] < extent for parts in split.values if isinstance(parts, tuple) and parts)
    assert found(GpuOptions, Nest({"n": 64}, 1))["split_k_threads",] == [ChoiceGene(("split_k_threads",), (None, ()))]
