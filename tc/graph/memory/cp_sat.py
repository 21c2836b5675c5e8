"""Offsets by the CP-SAT solver of OR-Tools: rectangles of fixed times that do not overlap, in the least height."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from tc.base.errors import OptionsError
from tc.graph.memory.blocks import Block, arena_size, live_peak

# How much of the solver's deterministic time, which counts operations, is a second for some hundred blocks.
_DETERMINISTIC: Final = 0.1


def require_ortools() -> None:
    """OptionsError where OR-Tools is not installed."""
    if find_spec("ortools") is None:
        raise OptionsError(
            "offsets by `ortools` take the package OR-Tools: pip install 'tensor-comprehensions[ortools]'"
        )


def solved(blocks: Sequence[Block], offsets: Sequence[int], seconds: float, *, unit: int) -> tuple[int, ...]:
    """Offsets in the smallest arena that the solver finds in about so many seconds, or those given.

    Sizes and offsets are multiples of ``unit``.
    """
    require_ortools()
    from ortools.sat.python import cp_model

    least, most = live_peak(blocks) // unit, arena_size(blocks, offsets) // unit
    if least == most:
        return tuple(offsets)
    model = cp_model.CpModel()
    top = model.new_int_var(least, most - 1, "top")
    variables, times, places = [], [], []
    for number, (block, offset) in enumerate(zip(blocks, offsets, strict=True)):
        size, lasting = block.bytes // unit, block.last - block.first + 1
        variable = model.new_int_var(0, most - 1 - size, f"offset{number}")
        model.add(variable + size <= top)
        model.add_hint(variable, min(offset // unit, most - 1 - size))
        times.append(model.new_fixed_size_interval_var(block.first, lasting, f"steps{number}"))
        places.append(model.new_fixed_size_interval_var(variable, size, f"place{number}"))
        variables.append(variable)
    model.add_no_overlap_2d(times, places)
    model.minimize(top)
    solver = cp_model.CpSolver()
    # One worker, and a limit that is no time: equal blocks have equal offsets.
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = seconds * _DETERMINISTIC
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return tuple(offsets)
    return tuple(solver.value(variable) * unit for variable in variables)
