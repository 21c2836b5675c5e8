"""Times of the day as people write them."""

from __future__ import annotations

from datetime import UTC, datetime


def moment_text(text: str) -> str:
    """A time in ISO 8601 as people write it, in UTC; anything else as it is."""
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return text
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def stretch_text(first: str, last: str) -> str:
    """From one time to another, the day once where it is the same."""
    begin, end = moment_text(first), moment_text(last)
    day, _, hour = end.rpartition(", ")
    if begin == end:
        return begin
    return f"{begin.removesuffix(' UTC')} to {hour}" if begin.startswith(f"{day}, ") else f"{begin} to {end}"
