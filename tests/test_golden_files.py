"""Every golden file belongs to a test: none is left over from a test that was renamed or removed."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.conftest import DIRECTORY

ROOMS = sorted(path.name for path in DIRECTORY.iterdir() if path.is_dir())


@pytest.mark.parametrize("room", ROOMS)
def test_golden_files_are_those_that_the_room_lists(room: str) -> None:
    listed = import_module(f"tests.{room}.test_golden").FILES
    assert {path.relative_to(DIRECTORY).as_posix() for path in (DIRECTORY / room).iterdir()} == set(listed)
