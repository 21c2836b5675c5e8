"""A folder with all that a machine without a network needs to check this project on its GPU."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

_ROOT: Final = Path(__file__).parents[1]
# Of the sources: what the checks are made of.
_FOLDERS: Final = ("benchmarks", "tests")
# Beside the project's own requirements: what its tests on a GPU import.
_TOOLS: Final = ("pytest>=8.0", "pytest-xdist>=3.6", "ml_dtypes>=0.5", "mpmath>=1.3", "hypothesis>=6.100")
# What is measured beside ours, or gives arrays, on a GPU; pyproject.toml says which PyTorch.
_FRAMEWORKS: Final = MappingProxyType({"triton": "triton>=3", "jax": "jax[cuda13]>=0.8", "cupy": "cupy-cuda13x>=13.6"})
# A name stands for one release of the C library; wheels of NVIDIA have many of them.
_PLATFORMS: Final = (*(f"manylinux_2_{release}_x86_64" for release in range(28, 16, -1)), "manylinux2014_x86_64")
_SCRIPT: Final = """#!/bin/sh
# Installs what lies beside this file into a folder of its own, checks the kernels on the GPU, and measures them beside
# the libraries that are there; what was measured is then in results.json.  With arguments, it runs these instead: all
# combinations of kernels and options are ./run python3 -m pytest -n 8 -m gpu tests/cuda/test_gpu.py
set -e
here=$(cd "$(dirname "$0")" && pwd)
site="$here/site"
if [ ! -d "$site" ]; then
  rm -rf "$site.new"
  python3 -m pip install -q --no-index --no-deps --target "$site.new" "$here"/wheels/*.whl
  mv "$site.new" "$site"
fi
export PYTHONPATH="$site:$here${PYTHONPATH:+:$PYTHONPATH}"
# NVRTC is looked for where packages are installed, and this folder is no such place.
for libraries in "$site"/nvidia/*/lib; do
  if [ -d "$libraries" ]; then export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$libraries"; fi
done
cd "$here"
if [ $# -gt 0 ]; then exec "$@"; fi
failed=0
for tests in tests/cuda/test_gpu.py tests/cuda/test_gpu_tensor_cores.py; do
  python3 -m pytest -q -p no:cacheprovider -m "gpu and not slow" $tests || failed=1
done
python3 -m benchmarks --target cuda --json results.json || failed=1
exit $failed
"""


class OfflineError(Exception):
    """The folder cannot be made, and why."""


def gather(folder: Path, python: str, present: Sequence[str], added: Sequence[str] = ()) -> int:
    """Fills an empty folder for machines with this version of Python, ``3.12``; its size in bytes.

    ``present``: packages that are there already, which stay out.  ``added``: frameworks, with all that they need.
    OfflineError if something cannot be had.
    """
    requirements = (*_requirements(), *(_requirement(name) for name in added))
    if folder.exists() and any(folder.iterdir()):
        raise OfflineError(f"{folder} is not empty; name another folder")
    wheels = folder / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    _pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(_ROOT))
    platforms = [word for name in _PLATFORMS for word in ("--platform", name)]
    _pip(
        *("download", "--only-binary=:all:", "--dest", str(wheels), "--python-version", python),
        *("--implementation", "cp", *platforms, *requirements),
    )
    for wheel in sorted(wheels.iterdir()):
        if _normal(wheel.name.partition("-")[0]) in set(map(_normal, present)):
            wheel.unlink()
    for name in _FOLDERS:
        shutil.copytree(_ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
    shutil.copy(_ROOT / "pyproject.toml", folder)
    script = folder / "run"
    script.write_text(_SCRIPT, encoding="utf-8")
    script.chmod(0o755)
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _requirements() -> Iterable[str]:
    project = _project()
    return (*project["dependencies"], *project["optional-dependencies"]["cuda"], *_TOOLS)


def _requirement(name: str) -> str:
    """What pip is asked for; OfflineError unless there are wheels of it."""
    normal = _normal(name)
    if normal == "pycuda":
        raise OfflineError(
            "PyCUDA has no wheels: its source needs a compiler and the headers of CUDA; where these are, and the same "
            "Python, run `python3 -m pip wheel --wheel-dir wheels pycuda`, and copy what it makes into `wheels` of the "
            "folder before its `run` is started"
        )
    known: dict[str, str] = {"torch": _project()["optional-dependencies"]["torch"][0], **_FRAMEWORKS}
    if normal not in known:
        raise OfflineError(f"{name!r} cannot be added; known: {', '.join(known)}")
    return known[normal]


def _project() -> Mapping[str, Any]:
    found: Mapping[str, Any] = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def _pip(*arguments: str) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", *arguments], check=False, capture_output=True, text=True
    )
    if found.returncode != 0:
        raise OfflineError(f"pip {arguments[0]} failed:\n{found.stderr.strip()}")


def _normal(name: str) -> str:
    """The name of a package, as wheels and people write it."""
    return name.strip().lower().replace("-", "_").replace(".", "_")
