"""What tells two caches apart: kernels of one only, and other winners."""

from __future__ import annotations

from dataclasses import replace

from tc.cache.content.difference import Difference, OtherWinner, diff
from tc.cache.content.merge import merge
from tc.cache.content.store import Store
from tests.cache.conftest import Places
from tests.cache.samples import MACHINE, OTHER_MACHINE, fill, kernel, measurement, trial, variant

EMPTY = Difference((), (), ())


def test_caches_that_run_the_same_do_not_differ(places: Places) -> None:
    first, second = places(), places()
    fill(Store.open(first), 1)
    merge(second, [first])
    Store.open(second).add_trial(trial(19, 0))
    assert diff(first, second) == EMPTY
    assert diff(first, first) == EMPTY


def test_kernels_of_one_cache_only(places: Places) -> None:
    first, second = places(), places()
    for number, where in enumerate((first, second)):
        store = Store.open(where)
        store.add_kernel(kernel(7))
        store.add_variant(kernel(number), variant(number))
    assert diff(first, second) == Difference((kernel(0),), (kernel(1),), ())
    assert diff(second, first) == Difference((kernel(1),), (kernel(0),), ())


def test_other_winners_are_told_by_machine_and_threads(places: Places) -> None:
    first, second = places(), places()
    stores = [Store.open(first), Store.open(second)]
    fast, slow = variant(options='{"a": 1}'), variant(options='{"a": 2}')
    for store in stores:
        store.add_variant(kernel(), fast)
        store.add_variant(kernel(), slow)
        store.add_measurement(measurement(slow, 2.0))
    assert diff(first, second) == EMPTY
    stores[0].add_measurement(measurement(fast, 1.0))
    stores[1].add_measurement(measurement(fast, 1.0, OTHER_MACHINE))
    ours = OtherWinner(kernel(), MACHINE, 2, fast.identity, slow.identity)
    theirs = OtherWinner(kernel(), OTHER_MACHINE, 2, None, fast.identity)
    assert diff(first, second) == Difference((), (), (ours, theirs))


def test_a_winner_with_another_content_is_another_winner(places: Places) -> None:
    first, second = places(), places()
    for where, origin in ((first, '"a"'), (second, '"b"')):
        store = Store.open(where)
        store.add_variant(kernel(), replace(variant(), origin=origin))
        store.add_measurement(measurement(variant()))
    identity = variant().identity
    assert diff(first, second).other_winners == (OtherWinner(kernel(), MACHINE, 2, identity, identity),)
