"""``python -m benchmarks.lifetimes``: files of lifetimes, and the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lifetimes import main, read
from tc.graph.memory.blocks import Block


def test_blocks_are_read(tmp_path: Path) -> None:
    path = tmp_path / "set.12.csv"
    path.write_text("id,lower,upper,size\na,0,3,7\nb,3,5,6\nc,0,5,5\nd,4,4,9\n", "utf-8")
    assert read(path) == [Block("a", 7, 0, 2), Block("b", 6, 3, 4), Block("c", 5, 0, 4)]


def test_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "set.csv"
    path.write_text("id,lower,upper,size\na,0,3,7\nb,3,5,6\nc,0,5,5\n", "utf-8")
    main([str(path)])
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["of", "the", "least", "arena", "blocks", "first", "fit", "found", "seconds"]
    assert row.split()[:-1] == ["set", "3", "1.000", "1.000"]


def test_another_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("id,begin,end\n1,2,3\n", "utf-8")
    with pytest.raises(SystemExit, match=r"other\.csv:2: expected the columns id,lower,upper,size"):
        main([str(path)])
