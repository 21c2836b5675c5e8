"""What a wheel of this tree holds, and that it works from a folder that knows nothing of the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tc.base.source_hash import source_files, source_hash

ROOT = Path(__file__).parents[1]
FOLDERS = {"tc": "tc", "grammar": "tc/grammar", "tuner": "tc/tuner", "cache": "tc/cache"}
SUFFIXES = {".py", ".lark", ".json", ".h", ".c", ".cu"}

PROGRAM = """
import numpy as np
import tc
import tc.cache, tc.grammar, tc.tuner
mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }")
A = np.arange(6, dtype=np.float32).reshape(2, 3)
np.testing.assert_array_equal(mm(A, A.T), A @ A.T)
print(tc.__file__, tc.grammar.__file__, sep="\\n")
"""


def _run(*command: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built from a copy so that the build leaves nothing in the tree."""
    copy = tmp_path_factory.mktemp("source")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    made = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    _run(*pip, "--wheel-dir", made, copy, cwd=copy)
    (path,) = made.glob("*.whl")
    return path


def test_wheel_holds_every_module_and_its_data(wheel: Path) -> None:
    expected = {
        f"{package}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, package in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SUFFIXES or path.name == "py.typed"
    }
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        written = archive.read("tc/base/source_hash.txt").decode()
    assert held == expected | {"tc/base/source_hash.txt"}
    files = source_files("tc", ROOT / "tc") + source_files("tc.grammar", ROOT / "grammar")
    assert written == source_hash(files)


def test_wheel_works_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile")
    _run(*pip, "--target", site, wheel, cwd=elsewhere)
    printed = _run(sys.executable, "-c", PROGRAM, cwd=elsewhere, environment={"PYTHONPATH": str(site)})
    assert [Path(line) for line in printed.split()] == [
        site / "tc" / "__init__.py",
        site / "tc" / "grammar" / "__init__.py",
    ]
