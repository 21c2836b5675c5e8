"""Options that a search has found, by case, in a file of JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tc.records import Json, load_record, save_record

# What the suite takes when it is told nothing else.
DEFAULT: Final = Path(__file__).parent / "options" / "cpu.json"


@dataclass(frozen=True, slots=True)
class Winner:
    """Options that were quicker than the default ones: seconds of a call with each, and on which processor."""

    options: Json
    seconds: float
    default_seconds: float
    processor: str


@dataclass(frozen=True, slots=True)
class Winners:
    """Winners by case."""

    cases: dict[str, Winner]

    @property
    def options(self) -> dict[str, Json]:
        """The options by case."""
        return {case: winner.options for case, winner in self.cases.items()}

    def with_winner(self, case: str, winner: Winner | None) -> Winners:
        """These with another winner of the case; None leaves the case without one."""
        others = {name: kept for name, kept in self.cases.items() if name != case}
        return replace(self, cases=others if winner is None else {**others, case: winner})


def load_winners(path: Path) -> Winners:
    """The winners in a file, none if there is no file; ValueError, with the place, if it holds something else."""
    return load_record(Winners, path) if path.exists() else Winners({})


def save_winners(winners: Winners, path: Path) -> None:
    """Writes the winners, sorted by case."""
    save_record(Winners(dict(sorted(winners.cases.items()))), path)
