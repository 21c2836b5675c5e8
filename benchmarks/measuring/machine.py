"""``Machine``: what a measurement was made on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tc.base.environment import environment
from tc.base.errors import DeviceError
from tc.runtime.host.c_compiler import find_compiler
from tc.targets.target import processor

_PACKAGES: Final = ("numpy", "torch", "triton", "jax", "jaxlib", "islpy")
# Beginnings of the flags that tell what vectors a processor has.
_VECTORS: Final = ("sse4", "avx", "fma", "f16c", "amx", "asimd", "sve")
_CACHES: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_HUGE_PAGES: Final = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A GPU.  ``clock``: the highest of its multiprocessors, in Hz.  ``memory`` and ``cache`` in bytes.

    ``driver``: the package that speaks to the driver, and the version of CUDA that this supports.  ``compiler``: of our
    kernels.
    """

    model: str
    architecture: str
    multiprocessors: int
    clock: float
    memory: int
    cache: int
    driver: str
    compiler: str


@dataclass(frozen=True, slots=True)
class Machine:
    """``cores``: that this process may use.  ``memory`` in bytes.  ``libraries``: versions of those installed.

    ``accelerator``: the GPU that was measured, if any.
    """

    model: str
    cores: int
    caches: dict[str, str]
    features: tuple[str, ...]
    memory: int
    system: str
    huge_pages: str
    compiler: str
    libraries: dict[str, str]
    accelerator: Accelerator | None = None


def describe_machine(*, gpu: bool = False) -> Machine:
    """This machine, with its first GPU if asked for; what Linux does not tell is empty.

    DeviceError if there is no GPU.
    """
    release = platform.release().partition("-")[0]  # what follows names a build
    return Machine(
        model=_model(),
        cores=len(os.sched_getaffinity(0)),
        caches=dict(_cache(folder) for folder in sorted(_CACHES.glob("index*"))),
        features=tuple(sorted(f for f in processor().features if f.startswith(_VECTORS))),
        memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        system=f"{platform.system()} {release}, Python {platform.python_version()}",
        huge_pages=_text(_HUGE_PAGES),
        compiler=_compiler(),
        libraries={name: importlib.metadata.version(name) for name in _PACKAGES if _is_installed(name)},
        accelerator=describe_gpu() if gpu else None,
    )


def _compiler() -> str:
    """The C compiler; a machine that only runs kernels for GPUs may have none."""
    try:
        command = find_compiler(environment()).command
    except DeviceError:
        return ""
    return _first_line([*command, "--version"])


def describe_gpu() -> Accelerator:
    """The first GPU; DeviceError without one."""
    from tc.runtime.cuda.chosen_driver import cuda_driver
    from tc.runtime.cuda.cuda import cuda_architecture
    from tc.runtime.cuda.nvrtc import nvrtc_version

    driver = cuda_driver()
    device = driver.devices()[0]
    return Accelerator(
        model=device.name,
        architecture=cuda_architecture(0),
        multiprocessors=device.multiprocessors,
        clock=device.clock,
        memory=device.memory,
        cache=device.cache,
        driver=f"{driver.name}, CUDA {driver.version()}",
        compiler=nvrtc_version(),
    )


def _model() -> str:
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cache(folder: Path) -> tuple[str, str]:
    name = f"L{_text(folder / 'level')} {_text(folder / 'type').lower()}"
    sharers = _text(folder / "shared_cpu_list")
    return name, f"{_text(folder / 'size')}, processors {sharers}"


def _is_installed(name: str) -> bool:
    return bool(list(importlib.metadata.distributions(name=name)))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace").strip() if path.exists() else ""


def _first_line(command: list[str]) -> str:
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    return next(iter(found.stdout.splitlines()), "")


def commit() -> str | None:
    """The commit of the sources, with ``+`` when files differ from it; None outside of git."""
    git = shutil.which("git")
    if git is None:
        return None
    here = [git, "-C", str(Path(__file__).parent)]
    name = _first_line([*here, "rev-parse", "HEAD"])
    changed = _first_line([*here, "status", "--porcelain"])
    return (name + "+" if changed else name) or None
