"""Random values: terms put together by operators, functions, casts and conditions until one is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.types import ScalarType, float_of
from tc.language.draft.typed import Strength
from tc.language.program.functions import FUNCTIONS
from tests.fuzz.access import Accesses
from tests.fuzz.model import Iterator, Tensor, Term, meet, spellings
from tests.fuzz.source import Source

# Where a function is well behaved; elsewhere it gives NaN, infinities, or loses all accuracy.
_ANYWHERE: Final = "{0}"
_SMALL: Final = "fmin(fmax({0}, -3), 3)"
_POSITIVE: Final = "(fabs({0}) + 0.5)"
# Never so near to an end that rounding reaches it.
_UNIT: Final = "({0} / (1.5 + 1.1 * fabs({0})))"
_DOMAINS: Final = {
    **dict.fromkeys(("acos", "asin", "atanh", "erfinv"), _UNIT),
    **dict.fromkeys(("acosh",), "(fabs({0}) + 1.5)"),
    **dict.fromkeys(("log", "log10", "log2", "sqrt", "rsqrt", "rcbrt", "y0", "y1"), _POSITIVE),
    **dict.fromkeys(("lgamma", "tgamma"), "(fmin(fabs({0}), 4) + 0.5)"),
    **dict.fromkeys(("erfcinv",), f"({_UNIT} + 1)"),
    **dict.fromkeys(("normcdfinv",), f"(0.5 * ({_UNIT} + 1))"),
    **dict.fromkeys(("log1p",), "fabs({0})"),
    **dict.fromkeys(
        ("exp", "exp2", "exp10", "expm1", "sinh", "cosh", "cyl_bessel_i0", "cyl_bessel_i1", "erfcx"), _SMALL
    ),
    **dict.fromkeys(("sin", "cos", "tan", "cospi", "sinpi", "j0", "j1", "erfc", "normcdf"), _SMALL),
}
_COMMON: Final = ("exp", "tanh", "sqrt", "fabs", "log", "sin", "floor", "round", "abs", "erf", "rsqrt", "ceil", "trunc")
# A rounding error in an operand of these can change the result by any amount.
_JUMPING: Final = ("ceil", "floor", "round", "trunc", "logb", "nextafter", "fmod", "remainder", "fdim", "copysign")
# Of exact operands these are exact, and the oracle knows it.
_EXACT: Final = (*(name for name in _JUMPING if name != "fdim"), "fabs", "abs", "fmin", "fmax")
_COMPARISONS: Final = ("<", "<=", ">", ">=", "==", "!=")
_MAXIMUM_TEXT: Final = 400


class Expressions:
    """Draws values of one statement.  ``read`` collects the names of the tensors that they read."""

    def __init__(
        self,
        source: Source,
        accesses: Accesses,
        iterators: Sequence[Iterator],
        tensors: Sequence[Tensor],
        scalars: Sequence[tuple[str, ScalarType]],
        sizes: Sequence[str],
        types: Sequence[ScalarType],
    ) -> None:
        self._source = source
        self._accesses = accesses
        self._iterators = iterators
        self._tensors = tensors
        self._scalars = scalars
        self._sizes = sizes
        self._types = types
        self.read: set[str] = set()

    def value(self, given: Sequence[Term], more: int) -> Term:
        """One term made of the given ones and of about ``more`` others."""
        terms = [*given, *(self.leaf() for _ in range(more))] or [self.leaf()]
        self._source.shuffle(terms)
        while len(terms) > 1:
            first, second = terms.pop(), terms.pop()
            joined = self.pair(self.maybe_changed(first), self.maybe_changed(second))
            terms.insert(self._source.randint(0, len(terms)), joined)
        return self.maybe_changed(terms[0])

    def may_jump(self, *operands: Term) -> bool:
        """Whether to do what depends on the last bit: always on exact operands, else now and then."""
        return all(operand.exact for operand in operands) or self._source.chance(0.004)

    # --- leaves ----------------------------------------------------------------------------------------------

    def leaf(self) -> Term:
        """An access, a scalar argument, a size, an iterator or a literal."""
        kind = self._source.weighted([(8, "access"), (1, "scalar"), (0.5, "size"), (1, "iterator"), (2, "literal")])
        if kind == "access" and self._tensors:
            found = self.access(self._source.choice(self._tensors))
            if found is not None:
                return found
        if kind == "scalar" and self._scalars:
            name, type = self._source.choice(self._scalars)
            return Term(name, type)
        if kind == "size" and self._sizes:
            return Term(self._source.choice(self._sizes), ScalarType.INT64, Strength.WEAK)
        if kind == "iterator" and self._iterators:
            return Term(self._source.choice(self._iterators).name, ScalarType.INT64, Strength.WEAK)
        return self.literal(self._source.choice(self._types))

    def access(self, tensor: Tensor) -> Term | None:
        """A read of a tensor, guarded if need be."""
        access = self._accesses.of(tensor)
        if access is None:
            return None
        self.read |= access.tensors
        term = Term(access.text, tensor.type, exact=tensor.exact)
        if not access.guard:
            return term
        other = self.literal(tensor.type)
        type, strength = meet(term, other)
        if tensor.type is ScalarType.BOOL and self._source.chance(0.3):
            return Term(f"({access.guard} && {term.text})", ScalarType.BOOL, exact=term.exact)
        if self._source.chance(0.15):
            return Term(f"(!({access.guard}) ? {other.text} : {term.text})", type, strength, term.exact)
        return Term(f"({access.guard} ? {term.text} : {other.text})", type, strength, term.exact)

    def literal(self, type: ScalarType) -> Term:
        """A number that fits into a type."""
        if type is ScalarType.BOOL:
            return Term(self._source.choice(["bool(0)", "bool(1)", "(1 < 2)"]), ScalarType.BOOL)
        if type.is_floating and self._source.chance(0.6):
            text = self._source.choice(["0.5", "1.0", "2.", ".25f", "1e-2", "3.5", "1.5e0f", "4.0"])
            return Term(text, ScalarType.FLOAT64, Strength.WEAK, exact=text != "1e-2")
        numbers = ["0", "1", "2", "3", "7", "100", "0x1f"]
        if type.minimum < 0 or type.is_floating:
            numbers += ["(-1)", "(-5)"]
        return Term(self._source.choice(numbers), ScalarType.INT64, Strength.WEAK)

    # --- one term --------------------------------------------------------------------------------------------

    def maybe_changed(self, term: Term) -> Term:
        """The term, or a function of it."""
        if len(term.text) > _MAXIMUM_TEXT or not self._source.chance(0.25):
            return term
        kind = self._source.weighted([(5, "function"), (3, "cast"), (2, "negate"), (0.5, "not")])
        if kind == "cast":
            type = self._source.choice(self._types)
            return self.cast(term, type) if type.is_floating or self.may_jump(term) else term
        if term.is_bool or (kind == "not" and self.may_jump(term)):
            return Term(f"(!{term.text})", ScalarType.BOOL, exact=term.exact)
        if kind == "function":
            return self.function(term)
        return Term(f"(-{term.text})", term.type, term.strength, term.exact)

    def cast(self, term: Term, type: ScalarType) -> Term:
        """The term in a type."""
        name = self._source.choice(spellings(type))
        if type is ScalarType.FLOAT16 and not term.type.is_half and self._source.chance(0.9):
            # Larger ones overflow in sums and products, in some orders of the operations.
            return Term(f"{name}({_SMALL.format(term.text)})", type)
        return Term(f"{name}({term.text})", type, exact=term.exact and not type.is_floating)

    def function(self, term: Term) -> Term:
        """A builtin of one argument, most often where it is well behaved."""
        able = [f for f in FUNCTIONS.values() if f.arity == 1 and (f.name not in _JUMPING or self.may_jump(term))]
        common = [f for f in able if f.name in _COMMON]
        chosen = self._source.choice(common if self._source.chance(0.5) else able)
        domain = _DOMAINS.get(chosen.name, _ANYWHERE) if self._source.chance(0.99) else _ANYWHERE
        type = term.type if chosen.keeps_integers else float_of(term.type)
        text = f"{self._spelling(chosen.name)}({domain.format(term.text)})"
        exact = _converts_exactly(term) and chosen.name in _EXACT and domain == _ANYWHERE
        return Term(text, type, term.strength, exact)

    def _spelling(self, name: str) -> str:
        """The name, or CUDA's name of it for single precision."""
        return f"{name}f" if self._source.chance(0.1) and f"{name}f" not in FUNCTIONS else name

    # --- several terms ---------------------------------------------------------------------------------------

    def pair(self, left: Term, right: Term) -> Term:
        """Two terms in one."""
        numbers = 0 if left.is_bool and right.is_bool else 1
        jumps = 1 if self.may_jump(left, right) else 0
        kind = self._source.weighted(
            [
                (12 * numbers, "arithmetic"),
                (1 * numbers, "division"),
                (1 * numbers * jumps, "remainder"),
                ((2 - numbers) * jumps, "comparison"),
                ((3 - 2 * numbers) * jumps, "logic"),
                (2 * numbers, "function"),
                (1, "extremum"),
                (2, "conditional"),
                (0.4 * numbers, "many"),
            ]
        )
        type, strength = meet(left, right)
        exact = left.exact and right.exact
        if type.is_floating:
            exact = _converts_exactly(left) and _converts_exactly(right)
        match kind:
            case "arithmetic" | "division" | "remainder":
                operator = self._source.choice({"arithmetic": "++-**", "division": "/", "remainder": "%"}[kind])
                exact = exact and (not type.is_floating or kind == "remainder")
                positive = kind == "division" and right.type.is_floating and self._source.chance(0.8)
                divisor = _POSITIVE.format(right.text) if positive else right.text
                return Term(f"({left.text} {operator} {divisor})", type, strength, exact)
            case "comparison":
                comparison = self._source.choice(_COMPARISONS)
                return Term(f"({left.text} {comparison} {right.text})", ScalarType.BOOL, exact=exact)
            case "logic":
                operator = self._source.choice(["&&", "||"])
                return Term(f"({left.text} {operator} {right.text})", ScalarType.BOOL, exact=exact)
            case "extremum":
                extremum = self._source.choice(["min", "max"])
                return Term(f"{extremum}({left.text}, {right.text})", type, strength, exact)
            case "conditional":
                return self.conditional(left, right)
            case "many":
                return self._of_several(left, right)
            case _:
                return self._of_two(left, right)

    def product(self, left: Term, right: Term) -> Term:
        """The product of two numbers."""
        type, strength = meet(left, right)
        exact = left.exact and right.exact and not type.is_floating
        return Term(f"({left.text} * {right.text})", type, strength, exact)

    def conditional(self, left: Term, right: Term) -> Term:
        """A choice between two terms."""
        condition = self.leaf()
        if not self.may_jump(condition):
            condition = Term("0.5 < 1", ScalarType.BOOL)
        if not condition.is_bool:
            other = self.literal(condition.type)
            comparison = self._source.choice(_COMPARISONS)
            condition = Term(f"{condition.text} {comparison} {other.text}", ScalarType.BOOL, exact=condition.exact)
        type, strength = meet(left, right)
        exact = left.exact and right.exact and condition.exact
        return Term(f"({condition.text} ? {left.text} : {right.text})", type, strength, exact)

    def _of_two(self, left: Term, right: Term) -> Term:
        jumps = self.may_jump(left, right)
        binary = [
            f.name
            for f in FUNCTIONS.values()
            if f.arity == 2 and not f.keeps_integers and (jumps or f.name not in _JUMPING)
        ]
        name = self._source.choice(binary)
        type, strength = meet(left, right)
        first = _POSITIVE.format(left.text) if name == "pow" and self._source.chance(0.99) else left.text
        second = _SMALL.format(right.text) if name == "pow" and self._source.chance(0.99) else right.text
        exact = _converts_exactly(left) and _converts_exactly(right) and name in _EXACT
        return Term(f"{self._spelling(name)}({first}, {second})", float_of(type), strength, exact)

    def _of_several(self, left: Term, right: Term) -> Term:
        function = self._source.choice([f for f in FUNCTIONS.values() if f.arity > 2])
        terms = [left, right, *(self.leaf() for _ in range(function.arity - 2))]
        type, strength = meet(*terms)
        return Term(f"{function.name}({', '.join(t.text for t in terms)})", float_of(type), strength, exact=False)


def _converts_exactly(term: Term) -> bool:
    """Whether a term stays exact in a floating type; the oracle takes 64-bit integers for rounded there."""
    return term.exact and (term.strength is Strength.WEAK or term.type not in (ScalarType.INT64, ScalarType.UINT64))
