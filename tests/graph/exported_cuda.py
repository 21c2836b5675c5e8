"""Models exported to CUDA: the program of the host on a driver of the tests' own, kernels as the C of their PTX."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np

from tc.base.environment import environment
from tc.runtime.host.c_compiler import compile_shared, find_compiler
from tc.runtime.host.flags import SHARED
from tests.cuda.nvrtc_ptx import ptx_of
from tests.cuda.ptx import translated
from tests.graph.exported import STRICT, described, results, shell

ARCHITECTURE: Final = "sm_80"
_FLAGS: Final = (*SHARED, "-O1", "-w", "-ffp-contract=off", "-frounding-math", "-fno-strict-aliasing")
_DRIVER: Final = Path(__file__).with_name("exported_driver.c")
_FUNCTIONS: Final = Path(__file__).with_name("simulated_functions.h")


def toolkit() -> Path | None:
    """The folder of CUDA with the header of the driver; None if there is none."""
    nvcc = shutil.which("nvcc")
    named = [os.environ.get("CUDA_HOME"), "/usr/local/cuda", *([str(Path(nvcc).resolve().parents[1])] if nvcc else [])]
    return next((Path(name) for name in named if name and (Path(name) / "include" / "cuda.h").exists()), None)


def nvrtc_folder() -> Path | None:
    """Where the wheel of NVRTC is."""
    spec = find_spec("nvidia")
    places = [] if spec is None else [*(spec.submodule_search_locations or ())]
    found = [header for place in places for header in Path(place).glob("*/include/nvrtc.h")]
    return found[0].parents[1] if found else None


def built(folder: Path) -> Path:
    """The folder with the program, linked to the driver of the tests."""
    cuda = toolkit()
    assert cuda is not None
    include = f"-I{cuda / 'include'}"
    shell(folder, "cc", *STRICT, include, "-fsyntax-only", "model.c", "kernels.c", "main.c")
    shutil.copy(_DRIVER, folder)
    shutil.copy(_FUNCTIONS, folder)
    (folder / "functions.c").write_text(_functions(folder))
    shell(folder, "cc", "-O1", "-Wall", "-Werror", include, "-shared", "-fPIC", _DRIVER.name, "functions.c", "-ldl",
          "-o", "libcuda.so")  # fmt: skip
    shell(folder, "make", f"CUDA={cuda}", "all", "main", f"DRIVER=-L{folder} -lcuda -Wl,-rpath,{folder}")
    return folder


def _functions(folder: Path) -> str:
    """The table of the kernels; their libraries are compiled."""
    rows = []
    for module, name in enumerate(described(folder)["kernels"]):
        ptx = ptx_of((folder / name).read_text(), ARCHITECTURE)
        found = translated(ptx)
        library = folder / f"{name}.so"
        library.write_bytes(compile_shared(found.text, _FLAGS, find_compiler(environment())))
        for number, entry in enumerate(found.kernels):
            # Addresses, and numbers of steps.
            sizes = ", ".join("8" if size.endswith("64") else "4" for size in _parameters(ptx, entry))
            rows.append(f'  {{"{entry}", {module}, "{library}", {number}, {{{sizes}}}}},\n')
    return "".join(
        (
            '#include "simulated_functions.h"\n',
            "const simulated_function simulated_functions[] = {\n",
            *rows,
            f"}};\nconst int simulated_function_count = {len(rows)};\n",
        )
    )


def _parameters(ptx: str, entry: str) -> list[str]:
    """The types of the parameters of a kernel."""
    match = re.search(rf"\.entry\s+{entry}\s*\((.*?)\)", ptx, re.DOTALL)
    assert match is not None
    return re.findall(r"\.param\s+\.(\w+)", match[1])


def results_on_device(folder: Path, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the program of ``main.c`` computes, by a graph."""
    return results(folder, arrays)
