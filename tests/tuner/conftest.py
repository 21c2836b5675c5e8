"""Searches of these tests measure no roofs, and candidates briefly; only ``tests/commands/test_journey.py`` does."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def brief(brief_searches: None) -> None:
    """For all tests of the tuner."""
