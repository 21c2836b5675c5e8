"""``Brief``: the settings of a run, as far as they can be read; a foreign file may contain anything."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tc.base.frozen import frozen
from tc.cache.format.records import Run
from tc.language.program.specialization import extents_text


@frozen
class Brief:
    """The settings of a run, empty where they do not say.

    ``kernel``: the key of its ingredients.  ``text``: the comprehension.  ``arguments``: name and extents of each.
    ``bound``: seconds that no call falls below, as far as they are known.
    """

    run: Run
    kernel: str
    definition: str
    text: str
    arguments: tuple[tuple[str, tuple[str, ...]], ...]
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
    signature = _object(task.get("signature"))
    return Brief(
        run=run,
        kernel=_text(settings, "kernel"),
        definition=_text(settings, "definition"),
        text=_text(task, "text"),
        arguments=_arguments(signature.get("arguments"), _opened(signature.get("symbolic"))),
        budget=_text(settings, "budget"),
        seed=_text(settings, "seed"),
        strategy=_text(settings, "strategy"),
        numerics=_text(settings, "numerics"),
        bound=time_or_none(settings.get("bound")),
    )


def time_or_none(value: object) -> float | None:
    """Seconds as a clock may give them, anything else is None."""
    return value if isinstance(value, float) and 1e-15 < value < 1e9 else None


def _opened(value: object) -> Mapping[str, Mapping[int, int]]:
    """The greatest extents of the arguments where they stay open, by dimension; earlier runs say the first ones."""
    found: dict[str, dict[int, int]] = {}
    for size in value if isinstance(value, list) else ():
        match size:
            case {"most": int() as most, "places": list(places)} if _is_extent(most):
                pass
            case {"most": int() as most, "arguments": list(names)} if _is_extent(most):
                places = [[name, 0] for name in names]
            case _:
                continue
        for place in places:
            match place:
                case [str() as name, int() as dimension]:
                    found.setdefault(name, {})[dimension] = most
    return found


def _arguments(value: object, opened: Mapping[str, Mapping[int, int]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = []
    for pair in value if isinstance(value, list) else ():
        match pair:
            case [str() as name, {"shape": list(shape)}] if all(map(_is_extent, shape)):
                found.append((name, extents_text(tuple(shape), opened.get(name, {}))))
    return tuple(found)


def _is_extent(value: object) -> bool:
    return type(value) is int and abs(value) < 1 << 63


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
