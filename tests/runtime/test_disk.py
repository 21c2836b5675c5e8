"""Rebuildable files: remembered across processes, never trusted blindly."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tc.runtime.disk import remembered


class Maker:
    """Makes ``content`` and counts how often."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.calls = 0

    def __call__(self) -> bytes:
        self.calls += 1
        return self.content


def test_made_once_and_then_read(tmp_path: Path) -> None:
    maker, folder = Maker(b"binary"), tmp_path / "a" / "b"
    assert [remembered(folder, ("x", "y"), maker) for _ in range(3)] == [b"binary"] * 3
    assert maker.calls == 1
    assert len(list(folder.iterdir())) == 1


def test_every_ingredient_counts(tmp_path: Path) -> None:
    for ingredients in (("x", "y"), ("x", "z"), ("xy",), ("x", "y", "")):
        content = repr(ingredients).encode()
        assert remembered(tmp_path / "c", ingredients, Maker(content)) == content


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * 100])
def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    folder = tmp_path / "c"
    remembered(folder, ("x",), Maker(b"binary"))
    (file,) = folder.iterdir()
    file.write_bytes(damage)
    maker = Maker(b"binary")
    assert remembered(folder, ("x",), maker) == b"binary"
    assert remembered(folder, ("x",), maker) == b"binary"
    assert maker.calls == 1


def test_a_folder_open_to_others_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    remembered(folder, ("x",), Maker(b"planted"))
    folder.chmod(0o777)
    assert remembered(folder, ("x",), Maker(b"own")) == b"own"


def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "c"
    remembered(folder, ("x",), Maker(b"planted"))
    owner = folder.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    assert remembered(folder, ("x",), Maker(b"own")) == b"own"


def test_without_a_usable_folder_everything_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for folder in (None, tmp_path / "file" / "c", tmp_path / "file"):
        assert remembered(folder, ("x",), Maker(b"own")) == b"own"


def test_many_at_once_agree_and_leave_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: remembered(folder, ("x",), Maker(b"binary" * 1000)), range(32)))
    assert set(found) == {b"binary" * 1000}
    assert len(list(folder.iterdir())) == 1
