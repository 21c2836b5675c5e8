"""A budget that is spent is what every failure behind it says, whatever islpy makes of it."""

from __future__ import annotations

import islpy as isl
import pytest

from tc.base.errors import CompileError
from tc.language.isl.session import is_out_of_operations, isl_context
from tc.polyhedral.pipeline import map_program
from tc.targets.machine import GENERIC_GPU
from tc.targets.options import GpuOptions, ScheduleOptions
from tests.polyhedral.support import SHAPES, specialized


def numbers(context: isl.Context) -> None:
    """No text of a number is a TypeError."""
    while isl.Val.int_from_si(context, 3).to_python() == 3:
        pass


def texts(context: isl.Context) -> None:
    """A text that is cut off is a syntax error."""
    kept = isl.Set.read_from_str(context, "{ [0] }")
    while isl.Set.read_from_str(context, "{ [i] : 0 <= i < 10 or 20 <= i < 30 }").is_subset(kept) is False:
        kept = kept.union(isl.Set.read_from_str(context, str(kept)))


@pytest.mark.parametrize("spend", [numbers, texts])
@pytest.mark.parametrize("budget", [50, 51, 52, 53, 500, 1000, 1001, 1002])
def test_a_spent_budget_is_told(spend: object, budget: int) -> None:
    assert callable(spend)
    with pytest.raises(isl.Error) as raised, isl_context(budget) as context:
        spend(context)
    assert is_out_of_operations(raised.value)


def test_other_errors_are_what_they_are() -> None:
    with pytest.raises(TypeError, match="other"), isl_context():
        raise TypeError("other")
    with pytest.raises(isl.Error) as raised, isl_context() as context:
        isl.Set.read_from_str(context, "{ [")
    assert not is_out_of_operations(raised.value)


def test_a_compilation_says_that_its_budget_is_spent() -> None:
    """Wherever it is: among these are numbers and texts."""
    program = specialized(*SHAPES["matmul"])
    options = GpuOptions(ScheduleOptions(tile=(4, 4, 2)), block=(2, 2))
    for budget in range(118_000, 118_500, 230):
        with pytest.raises(CompileError, match=f"exceeds isl's budget of {budget} operations"):
            map_program(program, options, GENERIC_GPU, max_operations=budget)
