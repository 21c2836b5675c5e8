"""What a cache says in JSON, in words for people."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Final

from tc.base.counted import duration
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import Measurement
from tc.store.wanted import extents_of
from tc.targets.default_options import default_options_of
from tc.targets.options_json import to_json

_ABSENT: Final = object()
# Of brackets.  Nothing of ours has so many, and what is nested too deep cannot be walked.
_MOST: Final = 500


def shapes_said(ingredients: Ingredients) -> str:
    """``1..7x13 13x5``; ingredients that are none stay as they are."""
    found = extents_of(ingredients)
    return ingredients.shapes if found is None else " ".join("x".join(extents) or "()" for extents in found)


def dtypes_said(dtypes: str) -> str:
    """The types of the arguments, once if they are the same; a text that is none stays as it is."""
    match _parsed(dtypes):
        case list(found) if all(isinstance(dtype, str) for dtype in found):
            return " ".join(found if len(set(found)) > 1 else found[:1])
        case _:
            return dtypes


def target_said(ingredients: Ingredients) -> str:
    """``cpu:x86-64-v3``"""
    return f"{ingredients.target}:{ingredients.architecture}"


def options_said(options: str, target: str) -> str:
    """What differs from the default options of a target; a text that is none stays as it is."""
    found = _parsed(options)
    if not isinstance(found, dict):
        return options
    known = dict(_leaves(to_json(default_options_of(target)), ""))
    changed = [(name, value) for name, value in _leaves(found, "") if known.get(name, _ABSENT) != value]
    return ", ".join(f"{name} = {json.dumps(value)}" for name, value in changed) or "the defaults"


def facts_said(record: str) -> str:
    """The entries of a JSON object, nested ones by their paths; a text that is none stays as it is."""
    found = _parsed(record)
    if not isinstance(found, dict):
        return record
    return ", ".join(
        f"{name} {value if isinstance(value, str) else json.dumps(value)}" for name, value in found.items()
    )


def speedup_said(measurement: Measurement) -> str:
    """How much quicker than the default options, ``2.50x``; empty where that is unknown."""
    if measurement.seconds <= 0 or measurement.default_seconds <= 0:
        return ""
    ratio = measurement.default_seconds / measurement.seconds
    return f"{ratio:.2f}x" if math.isfinite(ratio) else ""


def time_said(measurement: Measurement) -> str:
    """The time with its interval, and what it is beside the default's."""
    low, high = duration(measurement.low), duration(measurement.high)
    times = f"{duration(measurement.seconds)} ({low} to {high})"
    gain = speedup_said(measurement)
    return f"{times}, {gain} the default" if gain else times


def _leaves(value: Mapping[str, object], path: str) -> Iterator[tuple[str, object]]:
    for name, item in value.items():
        if isinstance(item, dict):
            yield from _leaves(item, f"{path}{name}.")
        else:
            yield f"{path}{name}", item


def _parsed(text: str) -> object:
    """What a text of JSON says; None if it is none."""
    if text.count("[") + text.count("{") > _MOST:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
