"""Searches of these tests measure no roofs; those of ``tests/commands/test_journey.py`` do."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def without_roofs(unmeasured_roofs: None) -> None:
    """For all tests of the tuner."""
