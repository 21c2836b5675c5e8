"""From a definition to production: every step is a command or a program in a new home, under the mask 002."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tc.cache.format.tables import TRIALS
from tests.commands.caches import command, contents, summary
from tests.programs import ROOT
from tests.read_only import python, run_read_only
from tests.waiting import PATIENCE, wait_until

KERNELS: Final = """
def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }
def scale(float(N) x, float s) -> (y) { y(i) = x(i) * s }
"""
CALLS: Final = f"""
import sys, numpy as np, tc
defs = tc.define({KERNELS!r})
a, b = np.arange(91, dtype=np.float32).reshape(7, 13), np.ones((13, 5), np.float32)
np.testing.assert_array_equal(defs.mm(a, b), a @ b)
np.testing.assert_array_equal(defs.scale(a[0], 2.0), 2 * a[0])
print(*sorted({{"islpy", "lark", "sqlalchemy"}} & {{*sys.modules}}))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "project"
    folder.mkdir(parents=True)
    folder.chmod(0o775)
    (folder / "kernels.tc").write_text(KERNELS)
    return folder


def begin(folder: Path, *words: str) -> subprocess.Popen[str]:
    """A command that is typed in the project's folder."""
    variables = {"HOME": str(folder.parent), "XDG_CACHE_HOME": "", "TC_CACHE": "tuned.db", "TC_CACHE_MODE": "store"}
    return subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        umask=0o002,
    )


def step(folder: Path, *words: str) -> str:
    """What such a command prints."""
    with begin(folder, *words) as process:
        output, errors = process.communicate()
    assert process.returncode == 0, f"{words}\n{output}\n{errors}"
    return output


def tune_until_it_is_ended(folder: Path) -> None:
    """A long search that Slurm, systemd or Kubernetes ends: the winner so far is kept."""
    words = ("kernels.tc", "--definition", "mm", "--size", "M=7,N=5,K=13", "--budget", "8h", "--cache", "tuned.db")
    with begin(folder, *command("tune", *words, "--quiet")) as process:
        try:
            wait_until(lambda: process.poll() is not None or tried(folder / "tuned.db"))
            process.terminate()
            output, errors = process.communicate(timeout=PATIENCE)
        except BaseException:
            process.kill()
            raise
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert errors == (
        "SIGTERM: finishing what is in flight; a second signal stops at once\n"
        "interrupted; the same command goes on from here\n"
    )
    assert output.startswith("mm(M=7,N=5,K=13): ")
    assert summary(folder / "tuned.db", "mm").deciding is not None


def tried(cache: Path) -> bool:
    with contents(cache) as found:
        return any(found.records(TRIALS))


def production(folder: Path, cache: str, mode: str) -> subprocess.CompletedProcess[str]:
    """The same calls without a compiler, where nothing can be written."""
    variables = {"TC_CACHE": str(folder / cache), "TC_CACHE_MODE": mode, "PYTHONPATH": str(ROOT)}
    without = ("env", f"PATH={folder}", "TC_CC=", "HOME=/nonexistent")
    return run_read_only(*without, *python(CALLS), environment=variables, check=False)


LOOKING: Final = """
import sys
from tc.commands.cache import main
from tc.tuner.report.page import report
for name in ("list", "verify", "manifest"):
    assert main([name, sys.argv[1]]) == 0
assert "What the tuner found" in report(sys.argv[1])
"""


@pytest.mark.parametrize("tuned", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_from_a_definition_to_production(home: Path, tuned: bool) -> None:
    assert "islpy" in step(home, *python(CALLS))
    if tuned:
        tune_until_it_is_ended(home)
    shipped = "production/tuned.db"
    assert step(home, *command("cache", "export", "tuned.db", "--ship", shipped)) == (
        f"wrote {shipped}; use it with TC_CACHE={shipped} TC_CACHE_MODE=strict\n"
    )
    # The shipped file, and the live one, too.
    for cache, mode in ((shipped, "strict"), ("tuned.db", "warn")):
        done = production(home, cache, mode)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
    looked = run_read_only(*python(LOOKING), str(home / "tuned.db")).stdout.splitlines()
    refused = run_read_only(*command("tune", "report", str(home / "tuned.db")), check=False)
    assert refused.stderr.endswith("tuned.db.html: Read-only file system; name another place with --output\n")
    assert [line.split()[1] for line in looked[1:-1]] == ["mm", "scale"]
    assert len(looked[-1]) == 64
