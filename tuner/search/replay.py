"""Runs a search on outcomes that were recorded, without compiling or measuring anything."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from tc.base.frozen import frozen
from tc.targets.options import Options
from tc.targets.options_json import to_json
from tc.tuner.search.search import Origin, Search, Trial
from tc.tuner.trial.trial_outcome import Outcome


def key(options: Options) -> str:
    """The options as canonical JSON, by which outcomes are recorded."""
    return json.dumps(to_json(options), sort_keys=True)


@frozen
class Decision:
    """What was tried and why, and what came of it."""

    number: int
    generation: int
    options: str
    origin: Origin
    parents: tuple[int, ...]
    outcome: Outcome

    @staticmethod
    def of(trial: Trial) -> Decision:
        """The decision behind a trial."""
        asked = trial.candidate
        return Decision(asked.number, asked.generation, key(asked.options), asked.origin, asked.parents, trial.outcome)


def replay(
    search: Search, recorded: Mapping[str, Outcome], otherwise: Callable[[Options], Outcome], trials: int
) -> tuple[Decision, ...]:
    """The decisions of the search's first so many trials, or of all if it ends before.

    ``recorded``: outcomes by ``key``; ``otherwise`` tells those of other options.
    """
    while len(search.trials) < trials:
        asked = search.ask()
        if not asked:
            break
        for candidate in asked[: trials - len(search.trials)]:
            known = recorded.get(key(candidate.options))
            search.tell((otherwise(candidate.options) if known is None else known,))
    return tuple(map(Decision.of, search.trials))
