"""Which of the measured variants wins."""

from __future__ import annotations

from collections.abc import Iterable

from tc.cache.records import Measurement


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

    What was measured on the same machine goes before all else, then what runs on as many threads, then the least
    time.  The identity decides between equals.
    """
    counting = latest(measurements)
    order = ((one.machine != machine, one.threads != threads, one.seconds, one.variant) for one in counting)
    return min(order)[-1] if counting else None


def champions(measurements: Iterable[Measurement]) -> dict[tuple[str, int], str]:
    """The winner of each machine and number of threads that was measured, for one kernel.

    Whatever machine and number of threads ``winner_of`` is asked for, it names one of these.
    """
    counting = latest(measurements)
    places = {(one.machine, one.threads) for one in counting}
    return {place: winner for place in sorted(places) if (winner := winner_of(counting, *place)) is not None}


def _age(measurement: Measurement) -> tuple[str, str]:
    return measurement.at, measurement.digest
