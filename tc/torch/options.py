"""``Options``: what ``torch.compile(model, backend="tc", options={...})`` takes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from tc.base.errors import OptionsError, nearest
from tc.base.frozen import frozen
from tc.graph.settings import Settings

if TYPE_CHECKING:
    from tc.tuner.trial.budget import Budget


class Fallback(Enum):
    """When PyTorch's own kernels run.

    MEASURED: where there is no rule, and for parts, or their convolutions or products, where tuning has found that to
    be quicker.  UNSUPPORTED: where there is no
    rule.  NEVER.
    """

    MEASURED = "measured"
    UNSUPPORTED = "unsupported"
    NEVER = "never"


@frozen
class Options:
    """``fallback``: when PyTorch's own kernels run.  ``tune``: for how long each captured graph is tuned when it is
    first called, if it was not tuned before; None: not at all.  ``settings``: of the graphs.
    """

    fallback: Fallback = Fallback.MEASURED
    tune: Budget | None = None
    settings: Settings = Settings()


_NAMES = ("fallback", "tune")


def options_of(given: Mapping[str, Any] | None) -> Options:
    """The options of a mapping; OptionsError for names and values that there are not."""
    found = dict(given or {})
    for name in found:
        if name not in _NAMES:
            guess = nearest(name, _NAMES)
            hint = f"did you mean {guess!r}?" if guess else f"there are {', '.join(_NAMES)}"
            raise OptionsError(f"backend 'tc' has no option {name!r}; {hint}")
    text = found.get("fallback", Fallback.MEASURED.value)
    values = [value.value for value in Fallback]
    if text not in values:
        raise OptionsError(f"fallback must be one of {', '.join(values)}, got {text!r}")
    return Options(Fallback(text), _budget(found.get("tune")))


def require_no_mode(mode: str | None) -> None:
    """OptionsError for a mode of ``torch.compile``, which would change nothing here."""
    if mode is not None:
        raise OptionsError(f"backend 'tc' has no mode {mode!r}, which is of Inductor; see options={{'tune': '10m'}}")


def _budget(given: object) -> Budget | None:
    if given is None:
        return None
    from tc.tuner.trial.budget import Budget

    if not isinstance(given, str | Budget):
        raise OptionsError(f"tune must be a budget, such as '10m' or '200 trials', got {given!r}")
    return Budget.parse(given) if isinstance(given, str) else given
