"""Stands for the worker of a workload: says what its name asks for."""

from __future__ import annotations

import json
import sys

if __name__ == "__main__":
    name, contender, threads = sys.argv[1:]
    ours = contender == "ours"
    if name == "ends" and ours:
        sys.exit("MissingDataError: no digits")
    losses = [2.0, 1.0 + 0.5 * (ours and name == "far")]
    wrong = ["conv1.weight"] if name == "wrong" and ours else []
    said = {"losses": losses, "exact": losses, "score": 0.97, "first": 1.0, "left": {}, "wrong": wrong}
    print(json.dumps(said), flush=True)
    for turn, _ in enumerate(sys.stdin):
        seconds = (2 if ours else 3) / int(threads) / (1 + turn)
        print(json.dumps({"least": seconds, "median": seconds}), flush=True)
