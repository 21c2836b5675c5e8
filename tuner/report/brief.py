"""``Brief``: what a run was told to do, as far as its settings say; those of a stranger's file may say anything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tc.cache.records import Run


@dataclass(frozen=True, slots=True)
class Brief:
    """The settings of a run, empty where they do not say.

    ``kernel``: the key of its ingredients.  ``text``: the comprehension.  ``arguments``: name and shape of each.
    ``bound``: seconds that no call falls below, as far as they are known.
    """

    run: Run
    kernel: str
    definition: str
    text: str
    arguments: tuple[tuple[str, tuple[int, ...]], ...]
    budget: str
    seed: str
    strategy: str
    numerics: str
    bound: float | None


def brief_of(run: Run) -> Brief:
    """The settings of a run, whatever they hold."""
    try:
        settings = _object(json.loads(run.settings))
    except (ValueError, RecursionError):
        settings = {}
    task = _object(settings.get("task"))
    return Brief(
        run=run,
        kernel=_text(settings, "kernel"),
        definition=_text(settings, "definition"),
        text=_text(task, "text"),
        arguments=_arguments(_object(task.get("signature")).get("arguments")),
        budget=_text(settings, "budget"),
        seed=_text(settings, "seed"),
        strategy=_text(settings, "strategy"),
        numerics=_text(settings, "numerics"),
        bound=time_or_none(settings.get("bound")),
    )


def time_or_none(value: object) -> float | None:
    """Seconds as a clock may give them, anything else is None."""
    return value if isinstance(value, float) and 1e-15 < value < 1e9 else None


def shape_or_none(value: object) -> tuple[int, ...] | None:
    """The extents in a list of JSON, anything else is None."""
    if not isinstance(value, list) or not all(type(extent) is int and abs(extent) < 1 << 63 for extent in value):
        return None
    return tuple(value)


def _arguments(value: object) -> tuple[tuple[str, tuple[int, ...]], ...]:
    found = []
    for pair in value if isinstance(value, list) else ():
        match pair:
            case [str() as name, {"shape": extents}] if (shape := shape_or_none(extents)) is not None:
                found.append((name, shape))
    return tuple(found)


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _text(settings: Mapping[str, object], name: str) -> str:
    match settings.get(name):
        case str() as text:
            return text
        case int() as number if number.bit_length() < 256:
            return str(number)
        case _:
            return ""
