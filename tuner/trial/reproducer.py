"""Crash reproducers: a small script for every failed candidate, which runs it again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

from tc.base.dots import Products
from tc.base.json_records import from_json, to_json
from tc.base.private import make_folder, write_file
from tc.language.lower.interface import interface_of
from tc.runtime.host.scratch import scratch_folder, told_of_room
from tc.tuner.trial.checked_calls import keep_calls, room_for, specialized_calls
from tc.tuner.trial.task import Task, parse_task
from tc.tuner.trial.trial_arrays import random_arrays
from tc.tuner.trial.trial_outcome import Failed, FailureKind
from tc.tuner.trial.workers import Limits, LocalWorkers

# Failures that should not happen, or that leave nothing else behind.
KEPT: Final = frozenset(
    {
        FailureKind.CRASH,
        FailureKind.TIMEOUT,
        FailureKind.MEMORY,
        FailureKind.OUT_OF_BOUNDS,
        FailureKind.WRONG,
    }
)

_SCRIPT: Final = '''"""{kind}: {reason}

Run this file to see it again; the candidate is tried in a process of its own.
"""

from tc.tuner.trial.reproducer import reproduce

print(
    reproduce(
        task={task!r},
        options={options!r},
        seed={seed!r},
    )
)
'''


def write_reproducer(folder: Path, task: Task, options: str, seed: int, failure: Failed) -> Path:
    """A script in the folder, which is made if need be, that tries the options once more."""
    make_folder(folder)
    described = json.dumps(to_json(task))
    name = hashlib.sha256(f"{described}\0{options}".encode()).hexdigest()[:12]
    path = folder / f"{task.definition}-{name}.py"
    reason = failure.reason.replace("\\", "/").replace('"', "'")
    script = _SCRIPT.format(kind=failure.kind.value, reason=reason, task=described, options=options, seed=seed)
    write_file(path, script)
    return path


def _products(options: str) -> Products:
    """How factors may be rounded, by options in JSON."""
    return Products(json.loads(options).get("numerics", {}).get("products", Products.EXACT.value))


def reproduce(task: str, options: str, seed: int) -> str:
    """What comes of a candidate on random arguments, in words."""
    given = from_json(Task, json.loads(task))
    program = parse_task(given)
    calls = specialized_calls(given, program)
    arrays = random_arrays(program, calls[0], seed)
    types = {scalar.name: scalar.type for scalar in interface_of(program).scalars}
    scalars = {name: given.value(name, types[name]) for name, _ in given.scalars}
    with scratch_folder("tc-reproducer-") as folder:
        with told_of_room(room_for(calls, arrays)):
            keep_calls(calls, arrays, scalars, folder, products=_products(options))
        with LocalWorkers(given, folder, 1, Limits()) as workers:
            (built,) = workers.build([options], Limits().prepare)
            if isinstance(built, Failed):
                return f"{built.kind.value}: {built.reason}"
            checked = workers.check(built, "candidate")
            if isinstance(checked, Failed):
                return f"{checked.kind.value}: {checked.reason}"
            return f"it runs, and is right: {checked}"
