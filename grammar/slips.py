"""Common slips as a table: what stands around the place where the parser stopped, and what to write instead.

Each pattern has to match text that contains the place, with comments blanked; groups of it can be shown in the hint.
Where a pattern has a group ``at``, the place is where that group begins.
"""

from __future__ import annotations

import re
from typing import Final

from tc.base.frozen import frozen

_BEFORE: Final = 160
_BEHIND: Final = 80
_COMMENT: Final = re.compile(r"#[^\r\n]*")


@frozen
class Slip:
    r"""``pattern``: what is written.  ``hint``: what to write, with ``\g<name>`` for the groups of the pattern."""

    pattern: re.Pattern[str]
    hint: str


def find_slip(text: str, position: int, table: tuple[Slip, ...]) -> str | None:
    """The hint of the first slip of a table that is written around ``position``."""
    start = max(0, position - _BEFORE)
    window = _COMMENT.sub(lambda comment: " " * len(comment[0]), text[start : position + _BEHIND])
    place = position - start
    for slip in table:
        for match in slip.pattern.finditer(window):
            if "at" in slip.pattern.groupindex:
                is_here = match.start("at") == place
            else:
                is_here = match.start() <= place <= match.end()
            if is_here:
                return match.expand(slip.hint)
    return None


def _table(entries: dict[str, str]) -> tuple[Slip, ...]:
    return tuple(Slip(re.compile(pattern), hint) for pattern, hint in entries.items())


_A: Final = r"(?P<a>[\w.*/+-]*\w)"
_B: Final = r"(?P<b>[\w.*/+-]*\w)"
_I: Final = r"(?P<i>[A-Za-z_]\w*)"
_RANGE: Final = r"write `\g<i> in \g<a>:\g<b>`; a range excludes its end"
_COMMAS: Final = r"separate the clauses of a `where` with commas: `where i in 0:N, j in 0:M`"
_CAST: Final = r"a cast is written like a call: `\g<type>(x)`"
_TYPE: Final = r"(?P<type>u?int(?:8|16|32|64)?|b?float(?:16|32|64)?|double|half|bool|byte|long|short|char)"
_SLICE: Final = "there are no slices: give each dimension an index, `A(i, j)`, and a range with `where j in 0:N`"
_REDUCTIONS: Final = (
    "the reductions are `+=`, `*=`, `min=` and `max=`; of truth values, `min=` is *and*, and `max=` is *or*"
)
_SUM: Final = "a sum is a statement: write `+=!` in the place of `=`, and the terms behind it"
_SUMS: Final = "a sum is a statement: `s(i) +=! A(i,k)`, and a product of matrices `C(i,j) +=! A(i,k) * B(k,j)`"
_MATRIX: Final = "a product is a statement: `C(i,j) +=! A(i,k) * B(k,j)`"
_NO_PREFIX: Final = r"names have no prefix: `\g<a>`"
_LOOP: Final = "loops go without saying: `where i in 0:N` gives a range; steps in order: `for t in 0:T { ... }`"
_TRANSPOSE: Final = "a transposition is the subscripts in another order: `A(j, i)`"
_CONDITION: Final = "a condition stands behind `where`, or in the value: `i < N ? x : 0`"
_UNDER: Final = r"(?:_\w+|\{[^{}]*\}|\[[^\[\]]*\])?"

# Inside the braces of a definition.
STATEMENTS: Final = _table(
    {
        r"\bfor\s+\w+\s+in\b[^;{}]*|\bfor\s*\([^()]*": _LOOP,
        # ranges
        rf"\b{_I}\s+in\s*[\[(]\s*{_A}\s*[,:]\s*{_B}\s*[\])]?": _RANGE,
        rf"\b{_I}\s+in\s+range\s*\(\s*{_A}\s*,\s*{_B}\s*\)\s*\S?": _RANGE,
        rf"\b{_I}\s+in\s+range\s*\(\s*{_B}\s*\)\s*\S?": r"write `\g<i> in 0:\g<b>`; a range excludes its end",
        rf"\b{_I}\s+(?:in|from)\s+(?P<a>\w+)\s*(?:\bto\b|\.\.\.?|-|,)\s*(?P<b>\w+)\s*[,;}}]?": _RANGE,
        rf"(?:\bwhere|,)\s*{_I}\s*=\s*(?P<a>\w+)\s*(?:\bto\b|\.\.\.?|:)\s*(?P<b>\w+)": _RANGE,
        rf"(?:\bwhere|,)\s*{_I}\s*:\s*(?P<a>\w+)\s*:\s*(?P<b>\w+)": _RANGE,
        rf"\b{_I}\s+\u2208\s*": r"write `in`",
        rf"\b{_I}\s+in\s+:\s*(?P<b>\w+)": r"write `\g<i> in 0:\g<b>`; a range has both of its ends",
        rf"\b{_I}\s+in\s+(?P<a>\w+)\s*:\s*(?=[,;}}])": r"write `\g<i> in \g<a>:N`; a range has both of its ends",
        rf"\b{_I}\s+in\s+(?P<b>(?!0\b)\w+)\s*(?P<at>[,;}}])": r"write `\g<i> in 0:\g<b>`; a range excludes its end",
        rf"\b{_I}\s+in\s+[^,;{{}}:?]+:[^,;{{}}:?]+(?P<at>:)": "ranges have no step: write `2 * i` in the subscripts",
        r"\bwhere\s*\([^()]*\bin\b": "write the clauses of a `where` without parentheses: `where i in 0:N, j in 0:M`",
        r"\bwhere\b[^;{}]*[,;]\s*where\b\s*\w*\s*(?:in\b)?": _COMMAS,
        r"\bin\b[^;{},:]*:[^;{},:]*;\s*\w+\s+in\b": _COMMAS,
        r"\bin\b[^;{},:]*:[^;{},:]*\s\w+\s+in\b": _COMMAS,
        r"\bnot\s+in\b": "write `i < 3 || i >= 5`",
        r"\bexist\s+(?P<a>\w+)\s*\([^()]*\)\s*\S?": r"write `exists \g<a>(...)`",
        r"\bexists\s+(?P<a>\w+)\s*(?P<at>[,;}])": r"write `exists \g<a>(i)`, with the subscripts",
        r"\bwhere\s*(?P<at>[;}])": "behind `where` stand ranges and conditions: `where i in 0:N, j < i`",
        r"\)\s*(?P<at>where)\b[^={}]*=": "`where` stands at the end of the statement: `B(i) = A(i) where i in 0:N`",
        r"\bwhere\s+\w+\s*(?P<at>:=)": "write `=`",
        # other languages
        r"\bs\.t\.|\b(?:such\s+that|when|with|unless|over|given)\b\s*\w*": _CONDITION,
        r"\bmod\s+\w+": "write `x % y`",
        r"\bdiv\s+\w+": "write `x / y`, which truncates for integers",
        r"\bxor\s+\w+": "write `x != y`",
        r"=\s*\\sum|\\sum": _SUM,
        r"\bin\s*\{": "a range is written `i in begin:end`; single values are conditions: `i == 0 || i == 4`",
        r"=\s*(?P<a>max|min)\s*=": r"write `\g<a>(x, y)`; as a reduction, `\g<a>=!` in the place of `=`",
        rf"=\s*\(\s*{_TYPE}\s*\)\s*\w+(?:\([^()]*\))?\s*\S?": _CAST,
        rf"[=+*/(,-]\s*{_TYPE}\s+\w+(?:\([^()]*\))?\s*\S?": _CAST,
        r"\b(?P<a>\w+)\.(?:shape|size|dims?|sizes|len|length)\b\s*[\[(]\s*(?P<b>\d+)\s*[\])]": r"write `\g<a>.\g<b>`",
        r"\b(?P<a>\w+)\.(?:shape|size|dims?|sizes|len|length)\b": r"write `\g<a>.0` for the first size of `\g<a>`",
        r"[\w)]\s*\.\s*(?:T|t|mT|transpose|permute)\b": _TRANSPOSE,
        r"\b(?P<a>\d+)'(?P<b>\d+)": r"write `\g<a>\g<b>`",
        r"[A-Za-z_]\w*['\u2019]": _TRANSPOSE,
        rf"[\w)]\s*\.\s*(?:to|type|astype|view)\s*\(\s*(?:dtype\s*=\s*)?(?:\w+\.)?{_TYPE}\s*\)": _CAST,
        r"[\w)]\s*\.\s*(?P<type>float|double|half|int|long|bool|bfloat16)\s*\(\s*\)": _CAST,
        r"[\w)]\s*\.\s*(?:sum|reduce_sum|einsum|dot|matmul|mm|bmm)\s*\(": _SUMS,
        r"[\w)]\s*\.\s*(?:mean|average)\s*\(": "a mean is two statements: `s(i) +=! A(i,k)  m(i) = s(i) / N`",
        r"[\w)]\s*\.\s*(?:load|store|compute|placeholder|program_id)\s*\(": (
            "an element is read as `A(i)` and written as `B(i) = ...`; loops and addresses go without saying"
        ),
        r"\)\s*\.\s*a?(?P<a>max|min)\s*\(": r"of many elements it is a statement: `m(i) \g<a>=! A(i,k)`",
        r"\b(?:np|numpy|math|torch|jnp|jax|tl|te|tvm|tir|hl|tf|F|std|cuda)\s*(?:\.|::)\s*(?P<a>\w+)": _NO_PREFIX,
        r"[\w)]\s*\.\s*(?P<a>[A-Za-z_]\w*)\s*\(": r"there are no methods: write `\g<a>(...)`",
        r"\b\w+\.(?P<at>\S)": "only the number of a dimension stands behind a point: `A.0` is the first size of `A`",
        r"[(,]\s*(?::|\.\.\.?|\*|\u2026)\s*(?=[,)])": _SLICE,
        r"\(\s*[^(){}?;]*?(?P<at>:)[^(){}?;]*\)": _SLICE,
        r"(?:\*\*|//|&&?|\|\|?|\^|@|<<|>>|\b(?:any|all|and|or|argmax|argmin|norm|std|var)\b)\s*=!?(?!=)": _REDUCTIONS,
        r"//|/\*|\*/": "a comment starts with `#`; a division is written `/`, and that of integers truncates",
        r"\*\*": "write `pow(x, y)`",
        r"<<|>>": "there are no operations on bits",
        r"<>|(?<!=)~=": "write `!=`",
        r"=<": "write `<=`",
        r"===": "write `==`",
        r"!==": "write `!=`",
        r"\+\+|--": "write `+= 1`, or a range with `where`: an index counts by itself",
        r"\bv?\w+\([^()]*\)\s*=>": "write `=`, or `>=` to compare",
        r"\)\s*=\s*\S.*?=>": "write `>=`",
        r"(?<![-<])->": "results are named in the head, behind `->`; an assignment is written `B(i) = A(i)`",
        r"[\"'][A-Za-z, .]*->[A-Za-z .]*[\"']|\b[A-Za-z]+(?:\s*,\s*[A-Za-z]+)+\s*->\s*\w*": _MATRIX,
        r"(?<![\w.])(?P<a>\d+)(?P<at>,)(?P<b>\d+)": r"write `\g<a>.\g<b>`, with a point",
        r"\u2211|\u03a3|\bsum\s*_": _SUM,
        # reductions
        rf"=\s*(?:sum|Sum|SUM){_UNDER}\s*[\[{{]?[\w\s]*(?:\([^()]*\))?\s*\S?": _SUM,
        rf"=\s*(?P<a>max|min){_UNDER}\s*!?\s*\w+(?:\([^()]*\))?\s*\S?": r"write `\g<a>=!` in the place of `=`",
        r"=\s*(?P<a>max|min)\s*!": r"write `\g<a>=!` in the place of `=`",
        r"(?P<a>[+*])==!?": r"write `\g<a>=!`, or `\g<a>=` to go on with what is there",
        r"<=>\s*(?:\w+\s*\([^()]*\)\s*)?(?P<at><=>)": "a statement has one library call",
        r"\bwhere\b[^{};]*?(?P<at><=>)": "the library call stands before `where`: `... <=> gemm(A, B) where k in 0:K`",
        r"<=>\s*\w+\s*(?P<at>[;}\w])": "the library call has arguments: `<=> gemm(A, B)`",
        r"[{;]\s*\w+(?:\([^()]*\))?\s*(?P<at><=>)": (
            "what the library call computes stands before it: `C(i,j) +=! A(i,k) * B(k,j) <=> gemm(A, B)`"
        ),
        r"[(,]\s*(?:axis|dim|keepdims?)\s*=": "there are no named arguments; a sum over `k` is `s(i) +=! A(i,k)`",
        r"[=>]\s*\w+\s*\((?:[^(){};=]*,)?\s*\w+\s*(?P<at>=)(?!=)": (
            "arguments of a call in a text have no names: they stand in the order of the parameters"
        ),
        # subscripts and lists
        r"\w\([^()\n]*\)\([^()\n]*\)?\s*\S?": "all subscripts stand in one pair of parentheses: `A(i, j)`",
        r"\w\(\(\s*[^()]*,": "write one pair of parentheses: `A(i, j)`",
        r"\w\{[^{}]*\}?": "subscripts are written in parentheses: `A(i, j)`",
        r"\w<\w+(?P<at>,)": "subscripts are written in parentheses: `A(i, j)`",
        r"\w\([^()]*(?P<at>;)": "separate subscripts and arguments with commas",
        r",\s*(?P<at>[)}])": "remove the comma",
        r"\(\s*(?P<at>,)": "remove the comma",
        r"(?P<at>,)\s*[;}]": "remove the comma",
        r"\)\s*(?P<at>,)\s*\w+\s+in\b": "ranges stand behind `where`: `B(i) = A(i) where i in 0:N`",
        r"(?:\w|\))\s*(?P<at>,)\s*\w+(?:\([^()]*\))?\s*(?:,\s*\w+(?:\([^()]*\))?\s*)*=(?!=)": (
            "a statement writes one tensor; several results take those of a call: `(A, B) = f(C)`"
        ),
        r";\s*(?P<at>;)": "one `;` is enough",
        r"\{\s*(?P<at>;)": "`;` stands between statements: remove it",
        r"\{\s*(?P<at>\{)": "a body has one pair of braces",
        r"=\s*[{\[(]?\s*(?P<at>[{\[])": "a value is an expression: there are no lists",
        r"\|\s*\w+(?:\([^()]*\))?\s*\|": "write `abs(x)`",
        r"\d\s*%\s*\S?": "a percentage is a factor: `0.5`",
        r"[=(,]\s*(?P<at>[*&])\s*\w": "there are no pointers: an element is written `A(i)`",
        r"[;{]\s*(?P<at>[=%?!:.]|[-+*/](?![-+/*]))": "a statement assigns: `B(i) = A(i)`",
        r"[;{]\s*\(\s*\w+\s*\([^()]*\)\s*(?P<at>=)": "a statement stands alone: `B(i) = A(i)`",
        r"\[\s*\w+\([^()]*\)": "a statement stands alone: `B(i) = A(i)`",
    }
)

_EXAMPLE: Final = "`def f(float(N) A) -> (B) { B(i) = A(i) }`"
_RESULTS: Final = f"the results are named behind the parameters: {_EXAMPLE}"
_PARAMETER: Final = "sizes stand behind the type, in parentheses: `float(M,N) A`"

# Outside them.
HEADS: Final = _table(
    {
        r"\b(?P<at>[Dd]eff|fn|fun|func|function|define|kernel|DEF|Def|void|lang|proc|sub|lambda)\b": (
            f"a definition begins with `def`: {_EXAMPLE}"
        ),
        r"(?P<at>@)[\w.]+": f"a text holds definitions only, without decorators: {_EXAMPLE}",
        r"\A\s*[\w./~\\-]*\.\w{1,4}\s*\Z": "`tc.define` takes the text itself, which is not the name of a file",
        r"\bimport\b": f"a text holds definitions only: {_EXAMPLE}",
        r"\A\s*(?P<at>\w+)\s*(?:\([^()]*\))?\s*(?:[+*]|min|max)?=(?!=)": (
            f"a statement stands in a definition: {_EXAMPLE}"
        ),
        r",\s*(?P<at>\))": "remove the comma",
        r"\)\s*(?P<at>=>|- +>|--+>|>|=)\s*\(": "write `->`",
        r"->\s*(?P<at>\{)": "the list of results is missing: `-> (B)`",
        r"->\s*(?P<at>\[|<|[A-Za-z_])": "the results stand in parentheses: `-> (B)`",
        r"->\s*\(\s*\w+\s*\([^()]*\)\s*(?P<at>[,)])": "results are bare names: their sizes follow from the statements",
        r"->\s*\([^()]*(?P<at>;)": "separate results with commas: `-> (A, B)`",
        r"->\s*\([^()]*\)\s*(?P<at>[=:;\[(]|do\b|begin\b)": f"the statements stand in braces: {_EXAMPLE}",
        r"->\s*\([^()]*\)\s*(?P<at>where)\b": "`where` belongs to a statement: `B(i) = A(i) where i in 0:N`",
        r"\}\s*(?P<at>;)": "remove the `;` behind the definition",
        r"\bdef\s+(?P<at>\()": f"a definition has a name: {_EXAMPLE}",
        r"\bdef\s+\w+\s*(?P<at>[\[<])": f"parameters stand in parentheses, and sizes need no declaration: {_EXAMPLE}",
        r"\bdef\s+\w+\s+(?P<at>\w)": f"parameters stand in parentheses: {_EXAMPLE}",
        r"\bdef\s+\w+\s*(?P<at>[-.])": "a name has only letters, digits and `_`",
        r"\bdef\s+(?P<at>\d\w*)": "a name is not a number",
        r"\b\w+\s+\w+\s*(?P<at>\[)": _PARAMETER,
        rf"[(,]\s*{_TYPE}\s*(?P<at>[\[<*&])": _PARAMETER,
        r"[(,]\s*(?:const|in|out|inout|ref|var|let)\s+\w+\s*(?P<at>\w|\()": (
            "arguments are only read, and need no word that says so: `float(N) A`"
        ),
        r"[(,]\s*\w+\s*\([^()]*(?P<at>;)": "separate sizes with commas: `float(M,N) A`",
        r"[(,]\s*\w+\s*\(\s*\w+\s+(?P<at>\w)": "separate sizes with commas: `float(M,N) A`; then comes `)`",
        r"\(\s*\w+\s*(?:\([^()]*\))?\s*\w+\s*(?P<at>;)": "separate parameters with commas",
        r"\w\s*(?P<at>=)\s*[\w.]+": "parameters have no default values: they are passed in the call",
        r"\)\s*(?P<at>\()\s*\w+(?:\s*,\s*\w+)*\s*\)\s*\{": "write `->` before the results",
    }
)
