"""The error for a statement that has no derivative."""

from __future__ import annotations

from tc.base.errors import Diagnostic, GradientError
from tc.language.program.program import DerivedOrigin, Statement, TextOrigin


def refused(statement: Statement, message: str) -> GradientError:
    """The error, at the place of the statement."""
    origin = statement.origin
    while isinstance(origin, DerivedOrigin):
        origin = origin.source
    return GradientError(Diagnostic(message, origin.span if isinstance(origin, TextOrigin) else None))
