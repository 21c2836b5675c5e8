"""What is put in place all at once leaves nothing beside it, however its process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tc.base.file_draft import draft_of
from tc.cache.content.ship import ship
from tests.cache.samples import filled

KILLED: Final = """
import os, signal, sys
from pathlib import Path
from tc.base.file_draft import draft_of
with draft_of(Path(sys.argv[1])) as draft:
    draft.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_in(path: Path) -> Path:
    """The draft that a killed process has left behind."""
    before = set(path.parent.iterdir())
    ended = subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    assert ended.returncode == -signal.SIGKILL
    (left,) = set(path.parent.iterdir()) - before
    assert (left / path.name).read_text() == "half"
    return left


def test_drafts_are_private_and_go_with_the_block(tmp_path: Path) -> None:
    with draft_of(tmp_path / "a") as draft:
        assert draft.parent.stat().st_mode & 0o777 == 0o700
        draft.write_text("whole")
        draft.rename(tmp_path / "a")
    with pytest.raises(IsADirectoryError), draft_of(tmp_path / "b") as draft:
        draft.parent.write_text("fails")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_those_of_killed_processes_are_removed_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    other = kill_in(tmp_path / "b.db")
    like, linked = tmp_path / ".a.db.0123456789abcdef0", tmp_path / ".a.db.0123456789abcdef"
    like.mkdir()
    linked.symlink_to(like)
    with draft_of(path) as living:
        left = kill_in(path)
        with draft_of(path) as draft:
            assert draft.parent not in (living.parent, left)
            assert living.parent.is_dir()
            assert not left.exists()
    assert set(tmp_path.iterdir()) == {other, like, linked}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_those_of_others_stay(tmp_path: Path) -> None:
    left = kill_in(tmp_path / "a.db")
    os.chown(left, 4711, 4711)
    with draft_of(tmp_path / "a.db"):
        pass
    assert left.exists()


def test_shipping_clears_what_a_killed_one_has_left(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    kill_in(folder / "ship.db")
    ship(filled(tmp_path / "source.db"), folder / "ship.db")
    assert [path.name for path in folder.iterdir()] == ["ship.db"]
