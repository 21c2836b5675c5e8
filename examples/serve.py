"""Serving from a shipped cache: tune, export the winners, and run them where nothing can be compiled.

python examples/serve.py           # tunes and ships, then starts the server below
python examples/serve.py 30s       # searches for as long as this
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tc

TEXT = "def scores(float(B,D) query, float(N,D) items) -> (s) { s(b,n) +=! query(b,d) * items(n,d) }"
ITEMS, WIDTH = 300, 64


def serve() -> None:
    """A process of production: its cache is read-only, and a kernel that is not in it is an error."""
    scores = tc.define(TEXT).scores
    query, items = np.ones((8, WIDTH), np.float32), np.ones((ITEMS, WIDTH), np.float32)
    result = scores(query, items)
    np.testing.assert_array_equal(result, np.full((8, ITEMS), WIDTH))
    loaded = [name for name in ("islpy", "lark", "sqlalchemy") if name in sys.modules]
    print(f"served {len(query)} queries; of the compiler, {', '.join(loaded) or 'nothing'} was loaded")


def ship(folder: Path, budget: str) -> Path:
    """Tunes for the sizes that are served, and exports the winner to a file of its own."""
    tuned, shipped = folder / "tuned.db", folder / "production.db"
    found = tc.define(TEXT).scores.tune((8, WIDTH), (ITEMS, WIDTH), budget=budget, cache=tuned, progress=False)
    print(f"tuned: {found.speedup:.2f} times as fast as the default options")
    command = [sys.executable, "-m", "tc.commands.cache", "export", str(tuned), "--ship", str(shipped)]
    subprocess.run(command, check=True)
    return shipped


def main() -> None:
    """Tune, ship and serve."""
    if sys.argv[1:] == ["--serve"]:
        serve()
        return
    budget = sys.argv[1] if len(sys.argv) > 1 else "2 trials"
    with tempfile.TemporaryDirectory() as folder:
        shipped = ship(Path(folder), budget)
        strict = {**os.environ, "TC_CACHE": str(shipped), "TC_CACHE_MODE": "strict"}
        subprocess.run([sys.executable, __file__, "--serve"], env=strict, check=True)


if __name__ == "__main__":
    main()
