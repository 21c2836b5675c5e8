"""What isl must show about a program: accesses inside, values written exactly once."""

from __future__ import annotations

from tc.language.program import Program
from tc.language.report import Report
from tc.language.specialization import Specialization
from tc.language.values import Values


def prove_values(program: Program, values: Values, report: Report) -> None:
    """Reports values that are written twice, or not at all, whatever the sizes are."""


def prove_specialized(specialization: Specialization) -> None:
    """Raises RangeError where an access leaves its tensor or a value is not written exactly once."""
