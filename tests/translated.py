"""Kernels that tests only look at: mapped, proven and printed as always, and not compiled."""

from __future__ import annotations

import tc
from tc.compiler import Compilation, translate
from tc.targets.target import CpuTarget, parse_target


def translated(
    definition: tc.Comprehension, *arguments: object, target: str, options: tc.CpuOptions | tc.GpuOptions | None = None
) -> Compilation:
    """What ``definition.compile`` gives to a compiler; arguments are those of ``compile``."""
    place = parse_target(target)
    usual = tc.CpuOptions() if isinstance(place, CpuTarget) else tc.GpuOptions()
    return translate(definition.specialize(*arguments), usual if options is None else options, place)
