"""The end of a search: the quickest few are compared with the static default and with the incumbent."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from tc.artifact.packing import options_text, unpack
from tc.tuner.search.search import Trial
from tc.tuner.session.confirm import Contender, is_cheaper, is_quicker
from tc.tuner.trial.trial_outcome import Measured
from tc.tuner.trial.trials import LONGEST_BUILD, Trials
from tc.tuner.trial.workers import Packed

DEFAULT: Final = "default"
INCUMBENT: Final = "incumbent"
FINALISTS: Final = 4
# Some of them may be the default or the incumbent, or fail to compile now.
_LOOKED_AT: Final = FINALISTS + 4


def contenders(
    trials: Sequence[Trial],
    incumbent: str | None,
    runner: Trials,
    finalists: int = FINALISTS,
    limit: float = LONGEST_BUILD,
) -> dict[str, Packed]:
    """Executables by name: the default, which is the first trial, the incumbent, and the quickest few by number.

    ``incumbent``: its options, as canonical JSON.  No two of them have the same source.  ``finalists``: how many beside
    the default and the incumbent.  ``limit``: seconds for compiling one that was not compiled here.
    """
    # Options that make one source share its outcome.
    apart = {trial.outcome: trial for trial in reversed(trials) if isinstance(trial.outcome, Measured)}
    quickest = sorted(apart.values(), key=lambda trial: trial.cost)[:_LOOKED_AT]
    wanted = {DEFAULT: options_text(trials[0].candidate.options)}
    if incumbent is not None:
        wanted[INCUMBENT] = incumbent
    wanted |= {str(trial.candidate.number): options_text(trial.candidate.options) for trial in quickest}
    chosen: dict[str, Packed] = {}
    sources: set[str] = set()
    for name, options in wanted.items():
        packed = runner.packed(options, limit) if len(chosen) < finalists + 2 else None
        if packed is not None and (source := unpack(packed).source) not in sources:
            sources.add(source)
            chosen[name] = packed
    return chosen


def winner_of(
    found: Mapping[str, Contender], *, bitwise: bool, costs: Mapping[str, tuple[float, ...]] | None = None
) -> str | None:
    """The name of the winner; the default must be among ``found``.  None where none may win.

    The current winner (the default, then the incumbent) stays unless another one is significantly quicker.
    ``bitwise``: only who computes the bits of the default may win.  ``costs``: of every round, of those who may win,
    where it is not time that counts.
    """
    counts = {name: contender.samples for name, contender in found.items()} if costs is None else costs

    def better(one: str, than: str) -> bool:
        return is_quicker(found[one], found[than]) if costs is None else is_cheaper(costs[one], costs[than])

    winner = DEFAULT if DEFAULT in counts else None
    for name in sorted(counts, key=lambda name: (name != INCUMBENT, statistics.median(counts[name]))):
        if bitwise and found[name].numerics != found[DEFAULT].numerics:
            continue
        if winner is None or better(name, winner):
            winner = name
    return winner
