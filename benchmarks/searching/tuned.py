"""Options that a search has found, by case, in a file of JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tc.base.json_records import Json, load_record, save_record

# What the suite takes when it is told nothing else.
DEFAULT: Final = Path(__file__).parents[1] / "options" / "cpu.json"


@dataclass(frozen=True, slots=True)
class Winner:
    """The outcome of a search: seconds of a call with the options, their 95 % interval, and with the default ones.

    ``bound``: what no call falls below, as far as it is known.  ``trials``: so many options were tried, ``failures``
    of them by kind came to nothing.  ``stopped``: why it ended.
    """

    options: Json
    seconds: float
    interval: tuple[float, float]
    default_seconds: float
    bound: float | None
    processor: str
    trials: int
    failures: dict[str, int]
    budget: str
    seed: int
    stopped: str

    @property
    def gain(self) -> float:
        """How many times as quick as the default."""
        return self.default_seconds / self.seconds

    @property
    def won(self) -> bool:
        """Whether other options than the default ones won."""
        return self.seconds < self.default_seconds


@dataclass(frozen=True, slots=True)
class Winners:
    """Outcomes by case."""

    cases: dict[str, Winner]

    @property
    def options(self) -> dict[str, Json]:
        """Options that won against the default ones, by case."""
        return {case: winner.options for case, winner in self.cases.items() if winner.won}

    def with_winner(self, case: str, winner: Winner) -> Winners:
        """These with another outcome of the case."""
        return replace(self, cases={**self.cases, case: winner})


def load_winners(path: Path) -> Winners:
    """The outcomes in a file, none if there is no file; ValueError, with the place, if it holds something else."""
    return load_record(Winners, path) if path.exists() else Winners({})


def save_winners(winners: Winners, path: Path) -> None:
    """Writes the outcomes, sorted by case."""
    save_record(Winners(dict(sorted(winners.cases.items()))), path)
