"""``Options``: what ``torch.compile(model, backend="tc", options={...})`` takes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from tc.base.errors import OptionsError, nearest
from tc.base.frozen import frozen
from tc.graph.settings import Settings


class Fallback(Enum):
    """When PyTorch's own kernels run: where there is no rule, or never."""

    UNSUPPORTED = "unsupported"
    NEVER = "never"


@frozen
class Options:
    """``fallback``: when PyTorch's own kernels run.  ``settings``: of the graphs."""

    fallback: Fallback = Fallback.UNSUPPORTED
    settings: Settings = Settings()


_NAMES = ("fallback",)


def options_of(given: Mapping[str, Any] | None) -> Options:
    """The options of a mapping; OptionsError for names and values that there are not."""
    found = dict(given or {})
    for name in found:
        if name not in _NAMES:
            guess = nearest(name, _NAMES)
            hint = f"did you mean {guess!r}?" if guess else f"there are {', '.join(_NAMES)}"
            raise OptionsError(f"backend 'tc' has no option {name!r}; {hint}")
    text = found.get("fallback", Fallback.UNSUPPORTED.value)
    values = [value.value for value in Fallback]
    if text not in values:
        raise OptionsError(f"fallback must be one of {', '.join(values)}, got {text!r}")
    return Options(Fallback(text))
