"""Thread counts follow affinity, cgroup limits of both versions, and the user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tc.base.errors import OptionsError
from tc.runtime.host.threads import MOST_THREADS, ThreadCount, available_threads, cgroup_limit
from tests.waiting import PATIENCE


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n", encoding="utf-8")


def test_version_2_limits_bind_descendants(tmp_path: Path) -> None:
    write(tmp_path / "slice" / "cpu.max", "350000 100000")
    write(tmp_path / "slice" / "job" / "cpu.max", "max 100000")
    assert cgroup_limit("0::/slice/job\n", tmp_path) == 4
    write(tmp_path / "slice" / "job" / "cpu.max", "50000 100000")
    assert cgroup_limit("0::/slice/job\n", tmp_path) == 1


def test_version_2_inside_a_container(tmp_path: Path) -> None:
    # The container sees its own group at the root, whatever its path on the host.
    write(tmp_path / "cpu.max", "200000 100000")
    assert cgroup_limit("0::/docker/abc\n", tmp_path) == 2
    assert cgroup_limit("0::/\n", tmp_path) == 2


@pytest.mark.parametrize("mount", ["cpu", "cpu,cpuacct"])
def test_version_1_limits(tmp_path: Path, mount: str) -> None:
    write(tmp_path / mount / "job" / "cpu.cfs_quota_us", "250000")
    write(tmp_path / mount / "job" / "cpu.cfs_period_us", "100000")
    memberships = f"5:memory:/other\n4:{mount}:/job\n3:cpuset:/\n"
    assert cgroup_limit(memberships, tmp_path) == 3
    write(tmp_path / mount / "job" / "cpu.cfs_quota_us", "-1")
    assert cgroup_limit(memberships, tmp_path) == MOST_THREADS


def test_no_limits(tmp_path: Path) -> None:
    assert cgroup_limit("", tmp_path) == MOST_THREADS
    assert cgroup_limit("0::/\nnonsense\n", tmp_path) == MOST_THREADS


def test_affinity_is_respected() -> None:
    processor = min(os.sched_getaffinity(0))
    wanted = "from tc.runtime.host.threads import get_threads"
    program = f"import os; os.sched_setaffinity(0, {{{processor}}}); {wanted}; print(get_threads())"
    command = (sys.executable, "-c", program)
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert printed.stdout == "1\n"


def test_available_threads_are_at_most_the_processors() -> None:
    assert 1 <= available_threads() <= len(os.sched_getaffinity(0))


def test_set_and_forget() -> None:
    threads = ThreadCount()
    assert threads.get() == available_threads()
    threads.set(3)
    assert threads.get() == 3
    threads.set(None)
    assert threads.get() == available_threads()


@pytest.mark.parametrize("wrong", [0, -1, MOST_THREADS + 1, 2.0, True, "2"])
def test_wrong_counts_are_refused(wrong: int) -> None:
    with pytest.raises(OptionsError, match=r"threads must be an integer from 1 to 1024, or None, got "):
        ThreadCount().set(wrong)
