"""What a plan is for, as canonical JSON: shapes, outputs, what is known of contents, settings."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Final

from tc.base.digest import sha256_hex
from tc.base.json_records import to_json
from tc.graph.ir.source import Request
from tc.graph.settings import Settings

if TYPE_CHECKING:
    import numpy as np

# Bytes of contents that decide what a graph is.  With more of them, hardly a call is like another one.
MOST_CONTENTS: Final = 1 << 12


def request_text(request: Request, settings: Settings) -> str | None:
    """Equal for equal requests; None where a plan would not be found again: for rules of the caller's own, which have
    no more than a name, and for large contents.
    """
    if sum(array.nbytes for array in request.contents.values()) > MOST_CONTENTS:
        return None
    settled = _settings(settings)
    if settled is None:
        return None
    found = {
        "shapes": request.shapes,
        "outputs": request.outputs,
        "contents": {name: _contents(array) for name, array in request.contents.items()},
        "computed": {name: (type.value, shape) for name, (type, shape) in request.computed.items()},
        "settings": settled,
    }
    return json.dumps(to_json(found), sort_keys=True, separators=(",", ":"))


def _contents(array: np.ndarray) -> tuple[str, tuple[int, ...], str]:
    return array.dtype.name, array.shape, sha256_hex(array.tobytes())


def _settings(settings: Settings) -> dict[str, object] | None:
    """All but the target, which has a column of its own."""
    found = {field.name: getattr(settings, field.name) for field in fields(Settings) if field.name != "target"}
    if settings.rules is not None:
        from tc.graph.rewrite.rules import RULES

        if not all(any(rule is own for own in RULES) for rule in settings.rules):
            return None
        found["rules"] = [rule.name for rule in settings.rules]
    return found
