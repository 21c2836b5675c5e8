"""Options that the calls of a whole text use where they name none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tc.base.errors import OptionsError
from tc.targets.options import CpuOptions, GpuOptions, Options
from tc.targets.target import CpuTarget, Target

# At most one of each class.
Usual: TypeAlias = tuple[Options, ...]


def usual_options(given: Options | Sequence[Options] | None) -> Usual:
    """What ``tc.define`` takes as options, checked: options, or some of different classes.

    OptionsError for anything else.
    """
    if given is None:
        return ()
    found = tuple(given) if isinstance(given, list | tuple) else (given,)
    for one in found:
        if not isinstance(one, CpuOptions | GpuOptions):
            raise OptionsError(
                "tc.define takes options as tc.CpuOptions(...), tc.GpuOptions(...) or a list with one of each, "
                f"got {one!r}"
            )
    for kind in (CpuOptions, GpuOptions):
        if sum(isinstance(one, kind) for one in found) > 1:
            raise OptionsError(f"tc.define takes one tc.{kind.__name__}, got several; leave all but one out")
    return found


def usual_for(usual: Usual, target: Target) -> Options | None:
    """Those of the target; None where the text has none at all.

    OptionsError where it has some for other targets only, and so none that apply here.
    """
    kind = CpuOptions if isinstance(target, CpuTarget) else GpuOptions
    found = next((one for one in usual if isinstance(one, kind)), None)
    if found is None and usual:
        raise OptionsError(
            f"target {str(target)!r} takes tc.{kind.__name__}, and the text was defined with "
            f"tc.{type(usual[0]).__name__} alone; give tc.define a list with both, or pass "
            f"options=tc.{kind.__name__}() to the call"
        )
    return found
