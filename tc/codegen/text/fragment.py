"""C expressions with their precedence, so that parentheses are printed only where they are needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum
from functools import reduce
from typing import Final

from tc.base.frozen import frozen

NO_NAMES: Final[frozenset[str]] = frozenset()


class Precedence(IntEnum):
    """How tightly the outermost operator of a fragment binds; greater is tighter."""

    CONDITIONAL = 1
    OR = 2
    AND = 3
    BITWISE_OR = 4
    BITWISE_XOR = 5
    BITWISE_AND = 6
    EQUALITY = 7
    RELATIONAL = 8
    ADDITIVE = 9
    MULTIPLICATIVE = 10
    PREFIX = 11
    POSTFIX = 12


_INFIX: Final = {
    "||": Precedence.OR,
    "&&": Precedence.AND,
    "|": Precedence.BITWISE_OR,
    "^": Precedence.BITWISE_XOR,
    "&": Precedence.BITWISE_AND,
    "==": Precedence.EQUALITY,
    "!=": Precedence.EQUALITY,
    "<": Precedence.RELATIONAL,
    "<=": Precedence.RELATIONAL,
    ">": Precedence.RELATIONAL,
    ">=": Precedence.RELATIONAL,
    "+": Precedence.ADDITIVE,
    "-": Precedence.ADDITIVE,
    "*": Precedence.MULTIPLICATIVE,
    "/": Precedence.MULTIPLICATIVE,
    "%": Precedence.MULTIPLICATIVE,
}


@frozen
class Fragment:
    """An expression, or another piece of text, of the C family.

    ``names``: the variables, functions and types that it mentions, but for those that every language brings.
    """

    text: str
    precedence: Precedence = Precedence.POSTFIX
    names: frozenset[str] = NO_NAMES

    def __str__(self) -> str:
        return self.text

    def within(self, least: Precedence) -> str:
        """The text, in parentheses if it binds less tightly than ``least``."""
        return self.text if self.precedence >= least else f"({self.text})"


def names_in(*fragments: Fragment) -> frozenset[str]:
    """The names of all of the fragments."""
    found = NO_NAMES
    for fragment in fragments:
        if not fragment.names <= found:
            found |= fragment.names
    return found


def named(name: str) -> Fragment:
    """A variable, a function or a type."""
    return Fragment(name, names=frozenset({name}))


@frozen
class Template:
    """A text with fields in braces, as ``str.format`` has them; ``names``: those that the text itself mentions."""

    text: str
    names: frozenset[str] = NO_NAMES

    def filled(self, *parts: object, **more: object) -> Fragment:
        """The text with the parts in its fields: it mentions what they mention, too."""
        found = filled(self.text, *parts, **more)
        return replace(found, names=found.names | self.names) if self.names else found


def filled(text: str, *parts: object, **more: object) -> Fragment:
    """The text, which mentions nothing itself, with the parts in its fields."""
    fragments = [part for part in (*parts, *more.values()) if isinstance(part, Fragment)]
    return Fragment(text.format(*parts, **more), names=names_in(*fragments))


def listed(parts: Iterable[Fragment]) -> Fragment:
    """The parts with commas between them."""
    parts = tuple(parts)
    return Fragment(", ".join([part.text for part in parts]), names=names_in(*parts))


def infix(operator: str, left: Fragment, right: Fragment) -> Fragment:
    """``left operator right``; all infix operators of C associate to the left."""
    precedence, names = _INFIX[operator], names_in(left, right)
    if Precedence.BITWISE_OR <= precedence <= Precedence.RELATIONAL:
        # Chains of comparisons and mixtures of && and || are legal, but compilers warn and readers stumble.
        return Fragment(
            f"{left.within(Precedence.ADDITIVE)} {operator} {right.within(Precedence.ADDITIVE)}", precedence, names
        )
    if precedence is Precedence.OR:
        sides = [s.within(precedence if s.precedence is precedence else Precedence.EQUALITY) for s in (left, right)]
        return Fragment(f" {operator} ".join(sides), precedence, names)
    text = f"{left.within(precedence)} {operator} {right.within(Precedence(precedence + 1))}"
    return Fragment(text, precedence, names)


def all_of(conditions: Iterable[Fragment]) -> Fragment:
    """The conditions, at least one, in this order, each of them once."""
    return reduce(lambda left, right: infix("&&", left, right), dict.fromkeys(conditions))


def prefix(operator: str, operand: Fragment) -> Fragment:
    """``operator operand`` for ``-``, ``!``, ``&``."""
    text = operand.within(Precedence.PREFIX)
    gap = " " if text.startswith(operator) else ""
    return Fragment(f"{operator}{gap}{text}", Precedence.PREFIX, operand.names)


def cast(type: str, operand: Fragment) -> Fragment:
    """``(type)operand``."""
    return Fragment(f"({type}){operand.within(Precedence.PREFIX)}", Precedence.PREFIX, operand.names)


def conditional(condition: Fragment, then: Fragment, otherwise: Fragment) -> Fragment:
    """``condition ? then : otherwise``."""
    tighter = Precedence.OR
    return Fragment(
        f"{condition.within(tighter)} ? {then.within(tighter)} : {otherwise.within(Precedence.CONDITIONAL)}",
        Precedence.CONDITIONAL,
        names_in(condition, then, otherwise),
    )


def call(function: str, *arguments: Fragment) -> Fragment:
    """``function(arguments)``."""
    found = listed(arguments)
    return Fragment(f"{function}({found.text})", names=found.names | {function})


def element(pointer: str, index: Fragment) -> Fragment:
    """``pointer[index]``."""
    return Fragment(f"{pointer}[{index.text}]", names=index.names | {pointer})
