"""``python -m benchmarks.lifetimes a.csv ...``: arenas for sets of lifetimes, beside the least that each can need.

Files are those of MiniMalloc (github.com/google/minimalloc, ``benchmarks``): a line ``id,lower,upper,size`` for each
block, which is needed in the steps from ``lower`` on, before ``upper``.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tc.graph.memory.blocks import Block, arena_size, live_peak
from tc.graph.memory.first_fit import first_fit
from tc.graph.memory.offsets import placed
from tc.graph.memory.placing import Placing

HEADER: Final = f"{'of the least arena':40}{'blocks':>8}{'first fit':>11}{'found':>8}{'seconds':>9}"
COLUMNS: Final = ("id", "lower", "upper", "size")


def read(path: Path) -> list[Block]:
    """The blocks of a file; ValueError, which names it, for another one."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        try:
            found = [
                Block(row["id"], int(row["size"]), int(row["lower"]), int(row["upper"]) - 1)
                for row in rows
                if int(row["lower"]) < int(row["upper"])
            ]
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{path}:{rows.line_num}: expected the columns {','.join(COLUMNS)}") from None
    return found


def line(path: Path, placing: Placing) -> str:
    """A row of the table that ``HEADER`` begins."""
    blocks = read(path)
    started = time.perf_counter()
    offsets = placed(blocks, placing, alignment=1)
    seconds = time.perf_counter() - started
    least = max(live_peak(blocks), 1)
    sizes = (arena_size(blocks, first_fit(blocks)), arena_size(blocks, offsets))
    ratios = "".join(f"{size / least:{width}.3f}" for size, width in zip(sizes, (11, 8), strict=True))
    return f"{path.stem:40}{len(blocks):8}{ratios}{seconds:9.2f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a row for each file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lifetimes")
    parser.add_argument("files", type=Path, nargs="+", help="as in MiniMalloc's benchmarks")
    parser.add_argument("--seconds", type=float, default=Placing().seconds, help="about how long each search takes")
    parser.add_argument("--solver", choices=("search", "ortools"), default="search")
    given = parser.parse_args(arguments)
    print(HEADER)
    try:
        for path in given.files:
            print(line(path, Placing(given.solver, given.seconds)), flush=True)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
