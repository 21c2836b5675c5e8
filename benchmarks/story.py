"""The whole story: two kernels are defined, called, tuned, reported and shipped; production runs them uncompiled.

Every step is a command that a person would type; it is printed before it runs.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

KERNELS: Final = """\
def tbmm(float(B,N,M) X, float(B,K,M) Y) -> (Z) { Z(b,n,k) +=! X(b,n,r_m) * Y(b,k,r_m) }
def softmax(float(N,D) X) -> (Y) {
    top(n) max=! X(n,d)
    e(n,d) = exp(X(n,d) - top(n))
    total(n) +=! e(n,d)
    Y(n,d) = e(n,d) / total(n)
}
"""

SIZES: Final = {"tbmm": "B=500,N=26,M=72,K=26", "softmax": "N=512,D=1000"}

# What production runs, too: the definitions are looked up by their text, not parsed.
CALLS: Final = """\
import json
import shutil
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import tc

defs = tc.define((Path(__file__).parent / "kernels.tc").read_text())
random = np.random.default_rng(0)
calls = {
    "tbmm": [random.standard_normal(shape, np.float32) for shape in ((500, 26, 72), (500, 26, 72))],
    "softmax": [random.standard_normal((512, 1000), np.float32)],
}


def seconds(call):
    call()
    times = []
    for _ in range(300):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


before = Path(__file__).parent / "default-times.json"
untuned = json.loads(before.read_text()) if before.exists() else {}
taken = {}
print("C compiler:", shutil.which("cc") or shutil.which("gcc") or shutil.which("clang") or "none")
for name, arguments in calls.items():
    kernel = defs[name].compile(*arguments)
    taken[name] = seconds(lambda: kernel(*arguments))
    gain = f", {untuned[name] / taken[name]:.2f}x the default" if name in untuned else ""
    print(f"{name}: {taken[name] * 1e6:.1f} us{gain}; {kernel.proof}")
loaded = [package for package in ("islpy", "lark", "sqlalchemy") if package in sys.modules]
print("compiler's packages loaded:", ", ".join(loaded) or "none")
if not untuned:
    before.write_text(json.dumps(taken))
"""


def tell(folder: Path, budget: str) -> None:
    """Runs the story in a folder, which is made anew; ``budget``: of each of the two kernels.

    CalledProcessError where a step fails.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "kernels.tc").write_text(KERNELS, encoding="utf-8")
    (folder / "calls.py").write_text(CALLS, encoding="utf-8")
    cache, shipped = folder / "tuned.db", folder / "production" / "tuned.db"
    here = {**os.environ, "TC_CACHE": str(cache), "TC_CACHE_MODE": "store"}
    _step("call them: compiled with default options", [sys.executable, str(folder / "calls.py")], here)
    for name, sizes in SIZES.items():
        tune = ["tc.commands.tune", str(folder / "kernels.tc"), "--definition", name, "--size", sizes]
        _step(f"tune {name}", [sys.executable, "-m", *tune, "--budget", budget, "--cache", str(cache)], here)
    _step("report", [sys.executable, "-m", "tc.commands.tune", "report", str(cache)], here)
    shipped.parent.mkdir()
    _step("ship", [sys.executable, "-m", "tc.commands.cache", "export", str(cache), "--ship", str(shipped)], here)
    for file in ("kernels.tc", "calls.py", "default-times.json"):
        shutil.copy(folder / file, shipped.parent)
    shipped.chmod(0o444)
    there = {**os.environ, "TC_CACHE": str(shipped), "TC_CACHE_MODE": "strict", "PATH": str(shipped.parent)}
    _step("production: read-only, strict, no compiler", [sys.executable, str(shipped.parent / "calls.py")], there)


def _step(title: str, command: list[str], environment: dict[str, str]) -> None:
    settings = " ".join(f"{name}={shlex.quote(environment[name])}" for name in ("TC_CACHE", "TC_CACHE_MODE"))
    print(f"\n== {title} ==\n$ {settings} {shlex.join(command)}", flush=True)
    subprocess.run(command, env=environment, check=True)
