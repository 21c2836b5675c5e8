"""The tables of our parser, which are kept beside the grammar: read in 2 ms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tc.base.digest import sha256_hex
from tc.grammar.steps import Reduction, StepTables

GRAMMAR: Final = Path(__file__).with_name("tc.lark")
STEPS: Final = Path(__file__).with_name("steps.json")


def made_for(grammar: bytes) -> str:
    """What tables belong to."""
    return f"grammar {sha256_hex(grammar)}"


def kept_steps() -> StepTables | None:
    """The tables that are kept; None where they belong to another grammar."""
    kept = json.loads(STEPS.read_bytes())
    if kept["made_for"] != made_for(GRAMMAR.read_bytes()):
        return None
    reductions = [
        Reduction(count, origin, None if places is None else tuple(map(tuple, places)), method, single)
        for count, origin, places, method, single in kept["reductions"]
    ]
    return StepTables(
        kept["rows"], reductions, kept["start"], kept["end"], kept["patterns"], kept["lexers"], kept["ignored"]
    )


def as_json(steps: StepTables) -> str:
    """What ``STEPS`` should hold."""
    reductions = [[one.count, one.origin, one.kept, one.method, one.single] for one in steps.reductions]
    lines = [
        f'"made_for": {json.dumps(made_for(GRAMMAR.read_bytes()))}',
        *(
            f'"{name}": {json.dumps(value, separators=(",", ":"))}'
            for name, value in (
                ("start", steps.start),
                ("end", steps.end),
                ("ignored", list(steps.ignored)),
                ("patterns", list(steps.patterns)),
                ("lexers", list(steps.lexers)),
                ("reductions", reductions),
                ("rows", [dict(row) for row in steps.rows]),
            )
        ),
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"
