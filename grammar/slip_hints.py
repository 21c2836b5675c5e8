"""Hints for common slips: what a person who wrote this, here, probably wants to write instead."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence, Set
from itertools import pairwise
from typing import Final

from lark import Token

from tc.base.errors import line_and_column, nearest
from tc.base.frozen import frozen
from tc.grammar.slips import HEADS, STATEMENTS, find_slip
from tc.grammar.syntax_builder import ARG_REDUCTION, span_of


@frozen
class Place:
    """Where the parser stopped: ``found`` stands at ``position``, empty at the end of the text."""

    text: str
    tokens: Sequence[Token]
    position: int
    found: str
    accepted: Set[str]

    def follows(self, *words: str) -> bool:
        """Whether the last token is one of these."""
        return bool(self.tokens) and self.tokens[-1] in words

    def innermost(self, openers: Set[str], closer: str) -> Token | None:
        """The last token of the types ``openers`` that no token of the type ``closer`` has closed."""
        closed = 0
        for token in reversed(self.tokens):
            if token.type == closer:
                closed += 1
            elif token.type in openers:
                if closed == 0:
                    return token
                closed -= 1
        return None


def remedy(place: Place) -> str | None:
    """The first hint that fits."""
    return next((hint for advise in _ADVICE if (hint := advise(place)) is not None), None)


def unclosed_body(place: Place) -> str:
    """The hint for a definition that goes on where it should have ended."""
    opening = max(index for index, token in enumerate(place.tokens) if token.type == "DEF")
    return f"the body of `{place.tokens[opening + 1]}` is not closed with `}}`"


_RANGE: Final = "a range is written `i in begin:end`, and its end is excluded"
_NO_BITS: Final = "there are no operations on bits"
_SUBSCRIPTS: Final = "subscripts are written in parentheses: `A(i, j)`"
_QUOTES: Final = "write no quotes: names stand alone"
_CHARACTERS: Final = {
    "[": _SUBSCRIPTS, "]": _SUBSCRIPTS, "&": f"write `&&`; {_NO_BITS}", "|": f"write `||`; {_NO_BITS}",
    "^": f"write `pow(x, y)`; {_NO_BITS}", "~": _NO_BITS, "`": _QUOTES,
    "\u2192": "write `->`", "\u21d2": "write `->`", "\u2264": "write `<=`", "\u2265": "write `>=`",
    "\u2260": "write `!=`", "\u2212": "write `-`", "\u2013": "write `-`", "\u2014": "write `-`", "\u00d7": "write `*`",
    "\u00b7": "write `*`", "\u22c5": "write `*`", "\u2217": "write `*`", "\u2022": "write `*`", "\u00f7": "write `/`",
    "\u2215": "write `/`", "\u2227": "write `&&`", "\u2228": "write `||`", "\u00ac": "write `!`", "\u2190": "write `=`",
    "\u2208": "write `in`", "\u221a": "write `sqrt(x)`", "\u03c0": "write `3.141592653589793`",
    "\u221e": "write `1.0 / 0`", "\u2295": "write `+`", "\u2297": "write `*`", "\u2299": "write `*`",
    "\u220f": "a product is a statement: write `*=!` in the place of `=`", "\u2254": "write `=`",
    "\u00b2": "write `x * x`", "\u00b3": "write `x * x * x`", "\u2026": _RANGE,
    "\u201c": _QUOTES, "\u201d": _QUOTES, '"': _QUOTES, "'": _QUOTES, "\u2018": _QUOTES, "\u2019": _QUOTES,
    "@": "a product of matrices is a statement: `C(i,j) +=! A(i,k) * B(k,j)`",
    "\\": "lines need no sign to go on",
}  # fmt: skip
_USED: Final = re.compile(r"[A-Za-z0-9_().,:;?{}<>=!+\-*/%&|]*")


def _slip(place: Place) -> str | None:
    """What is written around the place, whatever the parser makes of it."""
    opened = [token.type for token in place.tokens if token.type in ("DEF", "LBRACE", "RBRACE")]
    is_body = bool(opened) and opened[-1] == "LBRACE"
    return find_slip(place.text, place.position, STATEMENTS if is_body else HEADS)


def _character(place: Place) -> str | None:
    hint = _CHARACTERS.get(place.found)
    if hint is not None or _USED.fullmatch(place.found):
        return hint
    if place.found.isspace():
        return "write an ordinary space"
    if unicodedata.category(place.found) == "Cf":
        return "remove this invisible character"
    # What looks like a character that the language uses: full width, superscripts, letters of formulas.
    plain = unicodedata.normalize("NFKC", place.found)
    if plain.isascii() and plain != place.found:
        return f"write `{plain}`"
    if place.found.isalpha():
        *_, name = unicodedata.name(place.found, "").lower().split() or [""]
        letters = "names have the letters a to z, digits and `_`"
        return f"{letters}: write `{name}`" if "GREEK" in unicodedata.name(place.found, "") else letters
    return "the language does not use this character"


# What was found where a terminal of the grammar could stand.
_CONFUSED: Final = {
    ("UPDATE", "=="): "`==` compares; `=` assigns",
    ("UPDATE", ":"): "write `=`",
    ("UPDATE", "<"): "write `=`",
    ("UPDATE", "-=!"): "`-=!` is not a reduction; add the negated value: `+=! -(...)`",
    ("UPDATE", "/=!"): "`/=!` is not a reduction; multiply by the reciprocal: `*=! 1.0 / (...)`",
    ("UPDATE", "-="): "`-=` is not a reduction; add the negated value: `+= -(...)`",
    ("UPDATE", "/="): "`/=` is not a reduction; multiply by the reciprocal: `*= 1.0 / (...)`",
    ("UPDATE", "%="): "`%=` is not a reduction; the reductions are `+=`, `*=`, `min=` and `max=`",
    ("UPDATE", "min"): "write `min=` without a space",
    ("UPDATE", "max"): "write `max=` without a space",
    ("UPDATE", "+"): "write `+=` without a space",
    ("UPDATE", "*"): "write `*=` without a space",
    ("EQUALITY", "!"): "write `!=` without a space",
    ("FLOAT", "+"): "there is no unary `+`",
    ("QMARK", ":"): "`:` stands in the ranges of `where` and in conditionals only",
    ("COMMA", "where"): "a statement has one `where`; separate its clauses with commas",
}


def _confusion(place: Place) -> str | None:
    for (terminal, found), hint in _CONFUSED.items():
        if found == place.found and terminal in place.accepted:
            return hint
    return None


_OPERATOR: Final = re.compile(r"=[+*]\s*!?|=\s*[+*]\s*!|[+*]\s*!\s*=?|!\s*[+*]\s*=?")
_REDUCERS: Final = {
    "sum": "+=!", "add": "+=!", "mean": "+=!", "prod": "*=!", "mul": "*=!", "product": "*=!",
    "max": "max=!", "maximum": "max=!", "min": "min=!", "minimum": "min=!", "avg": "+=!", "average": "+=!",
    "times": "*=!", "plus": "+=!", "amax": "max=!", "amin": "min=!",
}  # fmt: skip
_MEANS: Final = ("mean", "avg", "average")


def _assignment(place: Place) -> str | None:
    """Misspelt operators of statements: `=+!`, `+!=`, `!+=`, `sum=!`, `max!`."""
    if "UPDATE" in place.accepted:
        start = place.position
    elif place.follows("=") and place.found in ("+", "*"):
        start = span_of(place.tokens[-1]).start
    else:
        return None
    word = re.compile(r"([A-Za-z]+)\s*(?:=|!)").match(place.text, start)
    if word is not None and word[1] in ("min", "max") and word[0].endswith("="):
        return None
    reducer = None if word is None else word[1].lower()
    if reducer in _REDUCERS:
        return f"write `{_REDUCERS[reducer]}`" + (", then divide by the size" if reducer in _MEANS else "")
    found = _OPERATOR.match(place.text, start)
    if found is None:
        return None
    operator = "*" if "*" in found[0] else "+"
    return f"write `{operator}=!` (or `{operator}=` to go on with what is there)"


_UNDECLARED: Final = "write `x = ...`: names need no declaration; inside a statement, `where x = ...`"
_NO_COMMANDS: Final = "there are no commands: a statement assigns, `B(i) = A(i)`"
_WORDS: Final = {
    "for": "loops go without saying: `where i in 0:N` gives a range; steps in order: `for t in 0:T { ... }`",
    "if": "a conditional is written `condition ? value : value`",
    "else": "a conditional is written `condition ? value : value`",
    "and": "logical operators are written `&&`, `||` and `!`",
    "or": "logical operators are written `&&`, `||` and `!`",
    "not": "logical operators are written `&&`, `||` and `!`",
    "return": "results are named behind `->`, and written like `B(i) = A(i)`",
    "yield": "results are named behind `->`, and written like `B(i) = A(i)`",
    "lambda": "there are no functions of functions: write another `def` and call it in a statement of its own",
    "while": "there are no such loops: every index runs over all its values",
    **dict.fromkeys(("let", "var", "const", "auto", "val", "mut", "Var", "Func", "RDom"), _UNDECLARED),
    **dict.fromkeys(("float", "int", "double", "half", "bool", "float32", "int32"), _UNDECLARED.partition(";")[0]),
    **dict.fromkeys(("break", "continue", "pass", "import", "from", "print", "assert", "raise", "goto"), _NO_COMMANDS),
}


def _word(place: Place) -> str | None:
    """Words of other languages, where the parser took them for a name."""
    if not place.tokens or ("UPDATE" not in place.accepted and not place.follows("for", "if", "lambda", "not")):
        return None
    line = [token for token in place.tokens[-8:] if token in _WORDS and token.type == "NAME"]
    return _WORDS[line[-1]] if line else None


def _number(place: Place) -> str | None:
    if "FLOAT" not in place.accepted or not re.match(r"\.?[0-9]", place.found):
        return None
    if ".." in place.found:
        return _RANGE
    if re.fullmatch(r"0[0-9]+", place.found):
        return "write the number without zeros in front"
    return "this is neither a number nor a name"


def _colon(place: Place) -> str | None:
    if "COLON" not in place.accepted:
        return None
    opener = place.innermost({"QMARK", "IN"}, "COLON")
    if opener is None or opener.type == "IN":
        return _RANGE
    return "a conditional is written `condition ? value : value`"


def _parenthesis(place: Place) -> str | None:
    opener = place.innermost({"LPAR"}, "RPAR")
    if opener is None:
        return "no parenthesis is open here" if place.found == ")" else None
    if "RPAR" not in place.accepted or place.found not in ("", "{", "}", ";", "=", "->", "where", "def"):
        return None
    line, column = line_and_column(place.text, span_of(opener).start)
    hint = f"the parenthesis opened at {line}:{column} is not closed"
    return f"{hint}; to compare, write `==`" if place.found == "=" else hint


def _equality(place: Place) -> str | None:
    if place.found != "=" or "EQUALITY" not in place.accepted:
        return None
    if place.follows(")"):
        return "if the parenthesis starts a new statement, write `;` before it; to compare, write `==`"
    return "to compare, write `==`"


_DEFINITION: Final = "def f(float(N) A) -> (B) { B(i) = A(i) }"


def _header(place: Place) -> str | None:
    if "DEF" in place.accepted:
        return "no body is open here" if place.found == "}" else f"a text consists of definitions: `{_DEFINITION}`"
    if "ARROW" in place.accepted:
        return f"the results are named behind the parameters: `{_DEFINITION}`"
    if place.follows("->"):
        return "the results stand in parentheses: `-> (B)`"
    if "LBRACE" in place.accepted:
        return f"the statements stand in braces: `{_DEFINITION}`"
    return _parameter(place)


def _parameter(place: Place) -> str | None:
    """Slips in the lists of parameters and results."""
    first = max((index for index, token in enumerate(place.tokens) if token.type == "DEF"), default=len(place.tokens))
    own = [token.type for token in place.tokens[first:]]
    if "LBRACE" in own or "LPAR" not in own or place.found in _CHARACTERS:
        return None
    if "ARROW" in own:
        return "a definition has one result at least" if place.follows("(") and place.found == ")" else None
    if "INTEGER" in place.accepted or place.found in ("+", "-", "*", "/"):
        return _size(place)
    return "a parameter is a type, its sizes and a name: `float(M,N) A`, `int n`; commas stand between two of them"


_NAME: Final = re.compile(r"\b[0-9]*[A-Za-z_]\w*")
# Characters of a size that a hint repeats.
_LONGEST_SIZE: Final = 40


def _size(place: Place) -> str:
    """An expression in the place of a size."""
    begin = max((token.end_pos or 0 for token in place.tokens if token in ("(", ",")), default=0)
    rest = place.text[begin:]
    end = _end_of_size(rest)
    written = " ".join(rest[:end].split())
    names = frozenset(_NAME.findall(place.text))
    if end == len(rest) or not _NAME.search(written) or len(written) > _LONGEST_SIZE:
        return "a size is a name or a whole number, as in `float(M,3) A`"
    free = next(name for number in range(len(names) + 1) if (name := f"L{number or ''}") not in names)
    return f"a size is a name or a whole number: give `{written}` a name of its own, as in `float({free}) A`"


def _end_of_size(text: str) -> int:
    """Where what is written for a size ends: at a comma, or where its parenthesis is closed."""
    depth = 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0 or (depth == 0 and character in ",{\n"):
            return position
    return len(text)


def _statement(place: Place) -> str | None:
    if place.accepted == {"LPAR"} and place.tokens and place.tokens[-1].type == "UPDATE":
        return f"the results of a call are assigned with `=`; a reduction with an index is {ARG_REDUCTION}"
    if place.accepted == {"LPAR"} and len(place.tokens) > 1 and place.tokens[-2].type == "SET":
        return "a list of results takes those of a call: `(A, B) = f(C)`"
    if "UPDATE" in place.accepted and place.follows("where"):
        return "`where` belongs to the statement before it: remove the `;`"
    return None


def _body(place: Place) -> str | None:
    """A body without its end."""
    return unclosed_body(place) if not place.found and "RBRACE" in place.accepted else None


def _unfinished(place: Place) -> str | None:
    """The next definition, read as statements of the one before it."""
    for first, second in pairwise(place.tokens):
        if first == "def" and first.type == second.type == "NAME":
            line, column = line_and_column(place.text, span_of(first).start)
            return f"{unclosed_body(place)} before the `def` at {line}:{column}"
    return None


_KEYWORDS: Final = ("where", "in", "exists")


def _missing(place: Place) -> str | None:
    """What a statement lacks that the parser took for the target of an assignment."""
    start = _target(place)
    if start is None:
        return None
    name, before = place.tokens[start], place.tokens[start - 1]
    keyword = nearest(name, _KEYWORDS)
    if keyword is not None and len(name) > 1 and before.type in _OPERAND_ENDS:
        return f"did you mean `{keyword}`?"
    if before.type == "NAME" and place.follows(")"):
        return f"a call has parentheses, `{before}(...)`, and a product a `*`"
    if before.type in _OPERAND_ENDS:
        return f"an operator is missing before `{name}`, or an assignment behind it"
    return f"a statement assigns: `{name}(i) = ...`" if place.follows(name) else "a statement assigns: `B(i) = A(i)`"


_OPERAND_ENDS: Final = ("NAME", "RPAR", "INTEGER", "FLOAT")


def _target(place: Place) -> int | None:
    """Where the target begins behind which an assignment is expected; None if the parser expects something else."""
    if "UPDATE" not in place.accepted:
        return None
    depth, position = 0, len(place.tokens) - 1
    while depth or place.tokens[position].type == "RPAR":
        depth += {"RPAR": 1, "LPAR": -1}.get(place.tokens[position].type, 0)
        position -= 1
    return position


def _list(place: Place) -> str | None:
    """Two expressions side by side where only a list may go on."""
    if {"COMMA", "RPAR"} <= place.accepted and re.match(r"[A-Za-z0-9_.]", place.found):
        return "an operator or a comma is missing here"
    return None


_ADVICE: Final[tuple[Callable[[Place], str | None], ...]] = (
    _unfinished,
    _slip,
    _assignment,
    _word,
    _character,
    _confusion,
    _number,
    _parenthesis,
    _equality,
    _colon,
    _header,
    _statement,
    _missing,
    _list,
    _body,
)
