"""Children come from the quick ones, by the parameters."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random

import pytest

from tc.targets.options import CpuOptions
from tc.tuner.search.generations import Past
from tc.tuner.search.genetic import DEFAULT, ORIGINAL, GeneticParameters, Selection, genetic_breeder, genetic_search
from tc.tuner.search.search import Candidate, Origin, Trial
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Outcome
from tests.tuner.landscapes import SPACE, convex, measured
from tests.tuner.searches import run


def past_of(*outcomes: Outcome, generation: int = 0) -> Past:
    """Random candidates and what came of them."""
    random, trials = Random(7), []
    for number, outcome in enumerate(outcomes):
        genome = SPACE.random(random)
        options = SPACE.decode(genome)
        assert isinstance(options, CpuOptions)
        trials.append(Trial(Candidate(number, generation, genome, options, Origin.RANDOM), outcome))
    return Past(SPACE, tuple(trials))


def proposals(parameters: GeneticParameters, past: Past, count: int = 3000) -> list[tuple[Origin, tuple[int, ...]]]:
    found = islice(genetic_breeder(parameters).propose(past, Random(0)), count)
    return [(proposal.origin, proposal.parents) for proposal in found]


def test_the_original_is_available() -> None:
    assert (ORIGINAL.population, ORIGINAL.elites, ORIGINAL.crossover, ORIGINAL.mutation) == (100, 10, 0.8, 0.07)
    assert (ORIGINAL.selection, ORIGINAL.immigrants) == (Selection.ROULETTE, 0.0)
    search = genetic_search(SPACE, Random(0), parameters=ORIGINAL)
    first = search.ask()
    assert len(first) == 100
    search.tell([convex(candidate.options) for candidate in first])
    elites = {trial.candidate.number for trial in Past(SPACE, tuple(search.trials)).ranked()[:10]}
    second = search.ask()
    assert len(second) == 90, "elites are not tried again"
    mutants = [candidate.parents for candidate in second if candidate.origin is Origin.MUTATED]
    assert elites.isdisjoint(parent for parents in mutants[:40] for parent in parents)


def test_most_children_have_three_parents() -> None:
    counts = Counter(origin for origin, _ in proposals(DEFAULT, past_of(*(measured(n + 1) for n in range(8)))))
    assert 0.17 < counts[Origin.RANDOM] / 3000 < 0.23
    assert 0.77 < counts[Origin.CROSSED] / (counts[Origin.CROSSED] + counts[Origin.MUTATED]) < 0.83


def drawn(parameters: GeneticParameters, past: Past) -> list[float]:
    """How often each candidate is a parent, against all."""
    counts = Counter(parent for _, parents in proposals(parameters, past) for parent in parents)
    return [counts[trial.candidate.number] / counts.total() for trial in past.trials]


def test_chances_fall_with_the_rank() -> None:
    shares = drawn(DEFAULT, past_of(measured(1.02), measured(1.0), measured(1.01), Failed(FailureKind.CRASH, "")))
    assert shares == pytest.approx([1 / 6, 3 / 6, 2 / 6, 0], abs=0.03)


def test_chances_of_the_roulette_fall_with_time() -> None:
    roulette = GeneticParameters(selection=Selection.ROULETTE)
    assert drawn(roulette, past_of(measured(4), measured(1), measured(2))) == pytest.approx(
        [1 / 7, 4 / 7, 2 / 7], abs=0.03
    )
    assert drawn(roulette, past_of(*(measured(1 + n / 100) for n in range(3)))) == pytest.approx([1 / 3] * 3, abs=0.03)


def test_only_the_quickest_are_parents() -> None:
    few = GeneticParameters(parents=3)
    shares = drawn(few, past_of(*(measured(9 - n) for n in range(8))))
    assert shares[:5] == [0] * 5
    assert min(shares[5:]) > 0.1


def test_where_few_were_measured_new_ones_lie_around_the_best() -> None:
    crash = Failed(FailureKind.CRASH, "")
    found = proposals(DEFAULT, past_of(crash, measured(2), measured(1), crash), 50)
    assert set(found) == {(Origin.RANDOM, (2,))}
    assert set(proposals(DEFAULT, past_of(crash, crash), 50)) == {(Origin.RANDOM, ())}


def test_without_crossover_and_mutation_children_are_their_parents() -> None:
    past = past_of(*(measured(n + 1) for n in range(4)))
    alone = GeneticParameters(crossover=0.0, mutation=0.0, immigrants=0.0)
    genomes = {trial.candidate.genome for trial in past.trials}
    assert {p.genome for p in islice(genetic_breeder(alone).propose(past, Random(0)), 100)} == genomes


def test_children_mix_what_their_parents_have() -> None:
    """Three parents that are each best in a part of the genes have a child that is better than all of them."""
    search = genetic_search(SPACE, Random(0), parameters=GeneticParameters(mutation=0.0, immigrants=0.0))
    first = search.ask()
    outcomes = [convex(candidate.options) for candidate in first]
    search.tell(outcomes)
    best = search.best
    assert best is not None
    for _ in range(4):
        search.tell([convex(candidate.options) for candidate in search.ask()])
    assert search.best is not None
    assert search.best.seconds < 0.95 * best.seconds
    assert len(set(search.best.candidate.parents)) > 1


def test_generations_are_of_the_populations_size() -> None:
    sizes = Counter(decision.generation for decision in run("genetic", convex, 160))
    assert set(sizes.values()) == {DEFAULT.population}
