"""``python -m benchmarks latency`` and ``python -m benchmarks demo``."""

from __future__ import annotations

import argparse
from pathlib import Path


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure the project on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("latency", help="time of import, definition, translation and warm calls")
    demo = commands.add_parser("demo", help="kernels on a photograph, each checked against the oracle")
    demo.add_argument("--output", type=Path, default=Path("demo-output"), help="folder for the picture")
    arguments = parser.parse_args()
    if arguments.command == "latency":
        from benchmarks.latency import report

        report()
    else:
        from benchmarks.demo import run

        run(arguments.output)


if __name__ == "__main__":
    main()
