"""Explanations, in parts."""

from __future__ import annotations

import re


def sections(text: str) -> dict[str, str]:
    """The parts of an explanation by title."""
    parts = re.split(r"^== (.*) ==\n", text, flags=re.MULTILINE)
    assert parts[0] == ""
    return dict(zip(parts[1::2], (part.rstrip("\n") for part in parts[2::2]), strict=True))
