"""The folder for machines with a GPU and without a network."""

from __future__ import annotations

import os
import subprocess
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
