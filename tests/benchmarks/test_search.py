"""The search finds what is quickest, and knows every option there is."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random

import pytest

from benchmarks import search
from benchmarks.cases import case_called
from benchmarks.messages import Prepare, Ready, Sample
from benchmarks.results import Settings
from benchmarks.search import climb
from benchmarks.space import NOT_SEARCHED, genes, neighbour, value_at, with_value
from tc.options import CpuOptions, Fusion, ScheduleOptions, from_json, to_json
from tests.benchmarks.reports import sample


def test_every_option_is_searched_or_said_not_to_be() -> None:
    names = {path[0] for path, _ in genes()}
    assert names | NOT_SEARCHED == {field.name for field in dataclasses.fields(CpuOptions)}


def test_an_option_without_values_is_a_mistake() -> None:
    @dataclass
    class Odd:
        colour: str = "red"

    with pytest.raises(TypeError, match=r"the values of colour to try are unknown"):
        list(genes(Odd))


def test_options_are_changed_by_path() -> None:
    changed = with_value(CpuOptions(), ("schedule", "fusion"), Fusion.MINIMAL)
    assert value_at(changed, ("schedule", "fusion")) is Fusion.MINIMAL
    assert changed == CpuOptions(schedule=dataclasses.replace(CpuOptions().schedule, fusion=Fusion.MINIMAL))


def test_neighbours_differ_in_one_or_two_options_and_reach_all_of_them() -> None:
    random, seen = Random(0), set()
    options = CpuOptions()
    for _ in range(300):
        changed = neighbour(options, random)
        different = {path for path, _ in genes() if value_at(changed, path) != value_at(options, path)}
        assert 1 <= len(different) <= 2
        assert from_json(to_json(changed), CpuOptions) == changed
        seen |= different
        options = changed
    assert seen == {path for path, _ in genes()}


def test_lists_grow_and_shrink() -> None:
    choices = dict(genes())[("schedule", "tile")]
    random = Random(0)
    tile: object = None
    lengths = set()
    for _ in range(200):
        other = choices.other(tile, random)
        assert other != tile
        tile = other
        lengths.add(len(tile) if isinstance(tile, tuple) else None)
    assert lengths == {None, 1, 2, 3, 4}


def cost(options: CpuOptions) -> float | None:
    """Quickest without packing and vectors, with as many accumulators as possible; wrong with MINIMAL fusion."""
    if options.schedule.fusion is Fusion.MINIMAL:
        return None
    return 1.0 + (options.packed > 0) + options.vectorize + 1 / (1 + options.accumulators)


def test_climbing_finds_the_quickest() -> None:
    ticks = count()
    found = climb([CpuOptions()], cost, lambda: next(ticks) < 2000, Random(1))
    assert found is not None
    assert (found.options.packed, found.options.vectorize) == (0, False)
    assert found.seconds < 1.02
    assert found.refused > 0


def test_climbing_ends_with_the_budget_and_keeps_what_is_not_clearly_better() -> None:
    ticks = count()
    seconds = iter([1.0, *(0.99 for _ in range(100))])
    found = climb([CpuOptions()], lambda _: next(seconds), lambda: next(ticks) < 10, Random(0))
    assert found is not None
    assert found.options == CpuOptions()
    assert 1 < found.tried <= 11


def test_nothing_is_found_where_the_default_options_fail() -> None:
    assert climb([CpuOptions()], lambda _: None, lambda: True, Random(0)) is None


def test_climbing_begins_at_the_quickest_start() -> None:
    starts = [CpuOptions(), CpuOptions(packed=0), CpuOptions(schedule=ScheduleOptions(fusion=Fusion.MINIMAL))]
    found = climb(starts, cost, lambda: False, Random(0))
    assert found is not None
    assert (found.options, found.tried, found.refused) == (starts[1], 3, 1)


class OneKernel:
    """A worker for which all options make one kernel, which seems quicker each time that it is measured."""

    alive = True

    def __init__(self, _threads: int, _target: str) -> None:
        self.seconds = iter([9.0, 8.0, 7.0, 6.0])

    def ask(self, question: object, _limit: float) -> Ready | Sample:
        return Ready(1.0, 0.0, source="abc") if isinstance(question, Prepare) else sample(next(self.seconds))


def test_a_kernel_is_measured_once_whatever_options_make_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(search, "Worker", OneKernel)
    trials = search.Trials(case_called("tbmm"), tmp_path, Settings())
    assert trials.evaluate(CpuOptions()) == 8.0
    assert trials.evaluate(CpuOptions(prefetch=3)) == 8.0
