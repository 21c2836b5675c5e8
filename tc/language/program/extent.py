"""``Extent``: how many elements a dimension has, as a function of the sizes that stay open."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from tc.base.frozen import frozen


class Choice(Enum):
    """Which of several numbers counts."""

    LEAST = "min"
    GREATEST = "max"

    def of(self, numbers: Iterable[int]) -> int:
        """The one that does; there is one at least."""
        return min(numbers) if self is Choice.LEAST else max(numbers)


@frozen
class Term:
    """``factor`` times the least or the greatest of some functions of the sizes."""

    factor: int
    choice: Choice
    operands: tuple[Extent, ...]


@frozen
class Extent:
    """A constant, a factor for each symbolic size, and terms; their sum is divided by ``divisor``, rounding down."""

    constant: int
    factors: tuple[int, ...]
    divisor: int = 1
    terms: tuple[Term, ...] = ()

    @property
    def is_constant(self) -> bool:
        """Whether it is one number, whatever the sizes are."""
        return not any(self.factors) and not self.terms

    def at(self, sizes: tuple[int, ...]) -> int:
        """The number for these sizes."""
        total = self.constant + sum(factor * size for factor, size in zip(self.factors, sizes, strict=True))
        for term in self.terms:
            total += term.factor * term.choice.of(operand.at(sizes) for operand in term.operands)
        return total // self.divisor

    def said(self, names: tuple[str, ...]) -> str:
        """The function in words, of sizes with these names: ``A.0 + 2``."""
        parts = [*zip(self.factors, names, strict=True)]
        parts += [(term.factor, _term_said(term, names)) for term in self.terms]
        said = [name if factor == 1 else f"{factor} * {name}" for factor, name in parts if factor]
        said += [str(self.constant)] if self.constant or not said else []
        total = " + ".join(said).replace("+ -1 * ", "- ").replace("+ -", "- ")
        if self.divisor == 1:
            return total
        return f"({total}) / {self.divisor}" if len(said) > 1 else f"{total} / {self.divisor}"


def _term_said(term: Term, names: tuple[str, ...]) -> str:
    said = [operand.said(names) for operand in term.operands]
    return f"({said[0]})" if len(said) == 1 else f"{term.choice.value}({', '.join(said)})"
