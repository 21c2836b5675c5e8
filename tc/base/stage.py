"""``Stage``: one step on the way to a kernel, timed."""

from __future__ import annotations

from tc.base.frozen import frozen


@frozen
class Stage:
    """One step that was run: its name, its duration in seconds, and what it made, as text."""

    name: str
    seconds: float
    text: str
