"""How much memory there is, cut to what cgroups grant."""

from __future__ import annotations

from pathlib import Path

from tc.runtime.host.total_memory import memory_limits, oracle_memory, total_memory


def test_there_is_some() -> None:
    assert 1 << 20 < total_memory() < 1 << 60
    assert oracle_memory() == total_memory() // 4


def test_limits_of_groups_bind_their_descendants(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "memory.max").write_text("1000000\n")
    (tmp_path / "a" / "b" / "memory.max").write_text("max\n")
    assert list(memory_limits("0::/a/b\n", tmp_path)) == [1000000]
    (tmp_path / "memory" / "c").mkdir(parents=True)
    (tmp_path / "memory" / "c" / "memory.limit_in_bytes").write_text("2000\n")
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert set(memory_limits("4:memory:/c\n3:cpu:/c\nnonsense\n", tmp_path)) == {2000}
