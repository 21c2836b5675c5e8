"""Chooses the winner among the measured variants of a kernel."""

from __future__ import annotations

from collections.abc import Iterable

from tc.cache.format.records import Measurement


def latest(measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """The last measurement of each variant on each machine, which is the only one that counts."""
    found: dict[tuple[str, str], Measurement] = {}
    for one in measurements:
        place = (one.variant, one.machine)
        if place not in found or _age(found[place]) < _age(one):
            found[place] = one
    return tuple(found.values())


def winner_of(measurements: Iterable[Measurement], machine: str, threads: int) -> str | None:
    """The identity of the variant of one kernel to run; None if none was measured.

    What was measured goes before what was predicted; of either, what is for the same machine goes before all else, then
    what runs on as many threads, then what was chosen by hand, the last of it, then the least time.  The identity
    decides between equals.
    """
    counting = latest(measurements)

    def distance(one: Measurement) -> tuple[bool, bool, bool]:
        return one.predicted, one.machine != machine, one.threads != threads

    nearest = min(map(distance, counting), default=None)
    running = [one for one in counting if distance(one) == nearest]
    chosen = max((one for one in running if one.chosen), key=_age, default=None)
    if chosen is not None:
        return chosen.variant
    return min(((one.seconds, one.variant) for one in running), default=(0.0, None))[1]


def chosen_variants(measurements: Iterable[Measurement]) -> dict[tuple[str, int], str]:
    """The winner of each machine and number of threads that was measured, for one kernel.

    Whatever machine and number of threads ``winner_of`` is asked for, it names one of these.
    """
    counting = latest(measurements)
    places = {(one.machine, one.threads) for one in counting}
    return {place: winner for place in sorted(places) if (winner := winner_of(counting, *place)) is not None}


def winning(measurements: Iterable[Measurement]) -> dict[tuple[str, int], Measurement]:
    """By machine and number of threads, what was measured last of the winner there, for one kernel."""
    counting = latest(measurements)
    known = {(one.variant, one.machine): one for one in counting}
    return {place: known[winner, place[0]] for place, winner in chosen_variants(counting).items()}


def _age(measurement: Measurement) -> tuple[str, str]:
    return measurement.at, measurement.digest
