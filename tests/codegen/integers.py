"""What integers of a type do: their edges, wrapping and truncating."""

from __future__ import annotations

from tc.base.types import ScalarType

INTEGERS = [type for type in ScalarType if type.is_integer]


def wrapped(value: int, type: ScalarType) -> int:
    """The value of the type that is congruent modulo its range."""
    return (value - type.minimum) % (type.maximum - type.minimum + 1) + type.minimum


def quotient(a: int, b: int) -> int:
    """Truncated, and 0 by zero."""
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def edges(type: ScalarType) -> list[int]:
    wanted = (type.minimum, type.minimum + 1, -3, -1, 0, 1, 2, 5, type.maximum // 3, type.maximum - 1, type.maximum)
    return sorted({value for value in wanted if type.minimum <= value <= type.maximum})
