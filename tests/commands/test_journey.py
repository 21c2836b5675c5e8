"""From a definition to production: every step is a command or a program in a new home, under the mask 002."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.commands.caches import command
from tests.programs import ROOT
from tests.read_only import python, run_read_only

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


def step(folder: Path, *words: str, cache: str = "tuned.db") -> str:
    """What a command prints that somebody types in the project's folder."""
    variables = {"HOME": str(folder.parent), "XDG_CACHE_HOME": "", "TC_CACHE": cache, "TC_CACHE_MODE": "store"}
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=False,
        umask=0o002,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def production(folder: Path, cache: str, mode: str) -> subprocess.CompletedProcess[str]:
    """The same calls without a compiler, where nothing can be written."""
    variables = {"TC_CACHE": str(folder / cache), "TC_CACHE_MODE": mode, "PYTHONPATH": str(ROOT)}
    without = ("env", f"PATH={folder}", "TC_CC=", "HOME=/nonexistent")
    return run_read_only(*without, *python(CALLS), environment=variables, check=False)


LOOKING: Final = """
import sys
from tc.commands.cache import main
for name in ("list", "verify", "manifest"):
    assert main([name, sys.argv[1]]) == 0
"""


@pytest.mark.parametrize("tuned", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_from_a_definition_to_production(home: Path, tuned: bool) -> None:
    assert "islpy" in step(home, *python(CALLS))
    if tuned:
        tune = command("tune", "kernels.tc", "--definition", "mm", "--size", "M=7,N=5,K=13", "--budget", "2 trials")
        assert step(home, *tune, "--cache", "tuned.db", "--quiet").startswith("mm(")
    shipped = "production/tuned.db"
    assert step(home, *command("cache", "export", "tuned.db", "--ship", shipped)) == (
        f"wrote {shipped}; use it with TC_CACHE={shipped} TC_CACHE_MODE=strict\n"
    )
    # The shipped file, and the live one, too.
    for cache, mode in ((shipped, "strict"), ("tuned.db", "warn")):
        done = production(home, cache, mode)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
    looked = run_read_only(*python(LOOKING), str(home / "tuned.db")).stdout.splitlines()
    assert [line.split()[1] for line in looked[1:-1]] == ["mm", "scale"]
    assert len(looked[-1]) == 64
