"""The folder for machines with a GPU and without a network."""

from __future__ import annotations

import os
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import offline
from benchmarks.__main__ import main


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What pip was asked for; it makes a few wheels."""
    asked: list[tuple[str, ...]] = []

    def pip(*arguments: str) -> None:
        asked.append(arguments)
        option = "--wheel-dir" if arguments[0] == "wheel" else "--dest"
        folder = Path(arguments[arguments.index(option) + 1])
        names = ("tensor_comprehensions",) if arguments[0] == "wheel" else ("numpy", "ml_dtypes", "islpy")
        for name in names:
            (folder / f"{name}-1.0-cp312-cp312-manylinux_2_28_x86_64.whl").write_bytes(bytes(1000))

    monkeypatch.setattr(offline, "_pip", pip)
    return asked


def test_a_folder_has_wheels_sources_and_a_script(
    downloads: list[tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "gpu"
    main(["offline", str(folder), "--python", "3.12", "--present", "numpy,ml-dtypes"])
    assert sorted(wheel.name.partition("-")[0] for wheel in (folder / "wheels").iterdir()) == [
        "islpy",
        "tensor_comprehensions",
    ]
    for name in ("tests/cuda/test_gpu.py", "benchmarks/__main__.py", "pyproject.toml"):
        assert (folder / name).is_file()
    wheel, download = downloads
    assert wheel[:2] == ("wheel", "--no-deps")
    assert download[download.index("--python-version") + 1] == "3.12"
    assert any(requirement.startswith("cuda-bindings") for requirement in download)
    assert any(requirement.startswith("sqlalchemy") for requirement in download)
    said = capsys.readouterr().out
    assert said.startswith(f"{folder}: ")
    assert "MiB; copy it to the machine, and start gpu/run there" in said
    assert os.access(folder / "run", os.X_OK)
    libraries = folder / "site" / "nvidia" / "cu13" / "lib"
    libraries.mkdir(parents=True)  # as if everything was installed
    found = subprocess.run(
        [folder / "run", "sh", "-c", "echo $PYTHONPATH; pwd; echo $LD_LIBRARY_PATH"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LD_LIBRARY_PATH": "/elsewhere"},
    )
    assert found.stdout.split() == [f"{folder}/site:{folder}" + _inherited(), str(folder), f"/elsewhere:{libraries}"]


def test_frameworks_are_added(
    downloads: list[tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["offline", str(tmp_path / "usual")])
    main(["offline", str(tmp_path / "more"), "--with", "Torch, triton,jax,cupy"])
    _, usual, _, more = downloads
    pinned = next(requirement for requirement in more if requirement.startswith("torch=="))
    assert [word for word in more if word not in usual and "more" not in word] == [
        *(pinned, "triton>=3", "jax[cuda13]>=0.8", "cupy-cuda13x>=13.6")
    ]
    assert all(word in more for word in usual if "usual" not in word)
    # Wheels of NVIDIA are for many releases of the C library.
    platforms = [word for before, word in pairwise(more) if before == "--platform"]
    assert {"manylinux_2_28_x86_64", "manylinux_2_18_x86_64", "manylinux2014_x86_64"} <= set(platforms)
    assert capsys.readouterr().out.count(" MiB; copy it to the machine") == 2


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("torch,PyCUDA", r"PyCUDA has no wheels: its source needs a compiler and the headers of CUDA; .*"),
        ("torhc", r"'torhc' cannot be added; known: torch, triton, jax, cupy"),
    ],
)
def test_what_cannot_be_added_is_said_first(
    names: str, message: str, downloads: list[tuple[str, ...]], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit, match=f"^error: {message}$"):
        main(["offline", str(tmp_path / "gpu"), "--with", names])
    assert not downloads
    assert not (tmp_path / "gpu").exists()


def _inherited() -> str:
    path = os.environ.get("PYTHONPATH", "")
    return f":{path}" if path else ""


def test_folders_that_hold_something_are_refused(
    downloads: list[tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=f"error: {tmp_path} is not empty; name another folder"):
        main(["offline", str(tmp_path)])
    assert not downloads


def test_what_pip_says_is_told(tmp_path: Path) -> None:
    with pytest.raises(offline.OfflineError, match=r"^pip download failed:\n"):
        offline._pip("download", "--no-index", "--dest", str(tmp_path), "no-such-package-anywhere")
