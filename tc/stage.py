"""``Stage``: one step on the way to a kernel, timed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stage:
    """One step that was run: its name, its duration in seconds, and what it made, as text."""

    name: str
    seconds: float
    text: str
