"""The whole text of every message about definitions and statements that are not in the grammar, and of long lines."""

from __future__ import annotations

import pytest

from tc.base.errors import ParseError
from tc.grammar.parser import parse
from tests.grammar.messages import require_message

MESSAGES = {
    # Texts that stop too early.
    "def": """
1:4: expected a name, found the end of the text
    def
       ^
""",
    "def f(": """
1:7: expected a parameter or `)`, found the end of the text
    def f(
          ^
    hint: the parenthesis opened at 1:6 is not closed
""",
    "def f(float": """
1:12: expected a name or `(`, found the end of the text
    def f(float
               ^
    hint: a parameter is a type, its sizes and a name: `float(M,N) A`, `int n`; commas stand between two of them
""",
    "def f(float(N) a) -> (c)": """
1:25: expected `{`, found the end of the text
    def f(float(N) a) -> (c)
                            ^
    hint: the statements stand in braces: `def f(float(N) A) -> (B) { B(i) = A(i) }`
""",
    "def f() -> (c) { c = a\n\n": """
1:23: expected an operator, a statement, `where` or `}`, found the end of the text
    def f() -> (c) { c = a
                          ^
    hint: the body of `f` is not closed with `}`
""",
    "def f() -> (c) { c = a +": """
1:25: expected an expression, found the end of the text
    def f() -> (c) { c = a +
                            ^
""",
    "def f() -> (c) { c = f(a,\n    b": """
2:6: expected an operator, `,` or `)`, found the end of the text
        b
         ^
    hint: the parenthesis opened at 1:23 is not closed
""",
    # Around the header and the body of a definition.
    "mm(A) -> (C) { C = A }": """
1:1: expected `def`, found `mm`
    mm(A) -> (C) { C = A }
    ^^
    hint: a text consists of definitions: `def f(float(N) A) -> (B) { B(i) = A(i) }`
""",
    "def 1e5() -> (c) { }": """
1:5: expected a name, found `1e5`
    def 1e5() -> (c) { }
        ^^^
    hint: a name is not a number
""",
    "def f(float(N+1) a) -> (c) { }": """
1:14: expected `,` or `)`, found `+`
    def f(float(N+1) a) -> (c) { }
                 ^
    hint: a size is a name or a whole number: give `N+1` a name of its own, as in `float(L) A`
""",
    "def f(float(L) b, float(M, 2 * (L - M) ) a) -> (c) { }": """
1:30: expected `,` or `)`, found `*`
    def f(float(L) b, float(M, 2 * (L - M) ) a) -> (c) { }
                                 ^
    hint: a size is a name or a whole number: give `2 * (L - M)` a name of its own, as in `float(L1) A`
""",
    "def f(float(M/": """
1:14: expected `,` or `)`, found `/`
    def f(float(M/
                 ^
    hint: a size is a name or a whole number, as in `float(M,3) A`
""",
    "def f(float(2*3) a) -> (c) { }": """
1:14: expected `,` or `)`, found `*`
    def f(float(2*3) a) -> (c) { }
                 ^
    hint: a size is a name or a whole number, as in `float(M,3) A`
""",
    "def f(float(4.0) a) -> (c) { }": """
1:13: expected a size (a name or an integer) or `)`, found `4.0`
    def f(float(4.0) a) -> (c) { }
                ^^^
    hint: a size is a name or a whole number, as in `float(M,3) A`
""",
    "def f(a) -> (c) { }": """
1:8: expected a name or `(`, found `)`
    def f(a) -> (c) { }
           ^
    hint: a parameter is a type, its sizes and a name: `float(M,N) A`, `int n`; commas stand between two of them
""",
    "def f() { c = 1 }": """
1:9: expected `->`, found `{`
    def f() { c = 1 }
            ^
    hint: the results are named behind the parameters: `def f(float(N) A) -> (B) { B(i) = A(i) }`
""",
    "def f() -> c { c = 1 }": """
1:12: expected `(`, found `c`
    def f() -> c { c = 1 }
               ^
    hint: the results stand in parentheses: `-> (B)`
""",
    "def f() -> () { }": """
1:13: expected a name, found `)`
    def f() -> () { }
                ^
    hint: a definition has one result at least
""",
    "def f() -> (c) c = 1": """
1:16: expected `{`, found `c`
    def f() -> (c) c = 1
                   ^
    hint: the statements stand in braces: `def f(float(N) A) -> (B) { B(i) = A(i) }`
""",
    "def f() -> (c) { c = 1 } }": """
1:26: expected `def` or the end of the text, found `}`
    def f() -> (c) { c = 1 } }
                             ^
    hint: no body is open here
""",
    "def f() -> (c) { c = 1 } c = 2": """
1:26: expected `def` or the end of the text, found `c`
    def f() -> (c) { c = 1 } c = 2
                             ^
    hint: a text consists of definitions: `def f(float(N) A) -> (B) { B(i) = A(i) }`
""",
    "def f() -> (c) {\n    c = a\ndef g() -> (d) {\n    d = a\n}": """
3:1: expected a statement or `}`, found `def`
    def g() -> (d) {
    ^^^
    hint: the body of `f` is not closed with `}`
""",
    "def f() -> (c) {\n    c = a +\ndef g(float a) -> (d) { d = a }": """
3:13: expected an operator, `,` or `)`, found `a`
    def g(float a) -> (d) { d = a }
                ^
    hint: the body of `f` is not closed with `}` before the `def` at 3:1
""",
    # On the left-hand side.
    "def f() -> (c) { c }": """
1:20: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`) or `(`, found `}`
    def f() -> (c) { c }
                       ^
    hint: a statement assigns: `c(i) = ...`
""",
    "def f() -> (c) { c(i) }": """
1:23: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`), found `}`
    def f() -> (c) { c(i) }
                          ^
    hint: a statement assigns: `B(i) = A(i)`
""",
    "def f() -> (c) { c(i) == a(i) }": """
1:23: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`), found `==`
    def f() -> (c) { c(i) == a(i) }
                          ^^
    hint: `==` compares; `=` assigns
""",
    "def f() -> (c) { c(i) -= a(i) }": """
1:23: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`), found `-=`
    def f() -> (c) { c(i) -= a(i) }
                          ^^
    hint: `-=` is not a reduction; add the negated value: `+= -(...)`
""",
    "def f() -> (c) { c(i) /= a(i) }": """
1:23: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`), found `/=`
    def f() -> (c) { c(i) /= a(i) }
                          ^^
    hint: `/=` is not a reduction; multiply by the reciprocal: `*= 1.0 / (...)`
""",
    "def f() -> (c) { c(i) %= a(i) }": """
1:23: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`), found `%=`
    def f() -> (c) { c(i) %= a(i) }
                          ^^
    hint: `%=` is not a reduction; the reductions are `+=`, `*=`, `min=` and `max=`
""",
    "def f() -> (c) { c(i) min = a(i) }": """
1:23: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`), found `min`
    def f() -> (c) { c(i) min = a(i) }
                          ^^^
    hint: write `min=` without a space
""",
    "def f() -> (c) { c max = a }": """
1:20: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`) or `(`, found `max`
    def f() -> (c) { c max = a }
                       ^^^
    hint: write `max=` without a space
""",
    "def f() -> (c) { c(i) + = a(i) }": """
1:23: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`), found `+`
    def f() -> (c) { c(i) + = a(i) }
                          ^
    hint: write `+=` without a space
""",
    "def f() -> (c) { c * = a }": """
1:20: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`) or `(`, found `*`
    def f() -> (c) { c * = a }
                       ^
    hint: write `*=` without a space
""",
    "def f() -> (c) { c(i) <= a(i) }": """
1:23: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`), found `<=`
    def f() -> (c) { c(i) <= a(i) }
                          ^^
    hint: a statement assigns: `B(i) = A(i)`
""",
    "def f() -> (c) { (c) += g(a) }": """
1:25: expected `(`, found `g`
    def f() -> (c) { (c) += g(a) }
                            ^
    hint: the results of a call are assigned with `=`; a reduction with an index is `(m(i), k(i)) max=! (x(i,j), j)`
""",
    "def f() -> (c) { (c) }": """
1:22: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`), found `}`
    def f() -> (c) { (c) }
                         ^
    hint: an operator is missing before `{`, or an assignment behind it
""",
    "def f() -> (c) { (c) = a }": """
1:26: expected `(`, found `}`
    def f() -> (c) { (c) = a }
                             ^
    hint: a list of results takes those of a call: `(A, B) = f(C)`
""",
    "def f() -> (c) { (c, d(i)) = g(a) }": """
1:22: the results of a call are names, without subscripts
    def f() -> (c) { (c, d(i)) = g(a) }
                         ^^^^
    hint: write `d`
""",
    "def f() -> (c) { 1e5 = a }": """
1:18: expected a statement or `}`, found `1e5`
    def f() -> (c) { 1e5 = a }
                     ^^^
""",
    "def f() -> (c) { c = a, d = b }": """
1:23: expected an operator, a statement, `where` or `}`, found `,`
    def f() -> (c) { c = a, d = b }
                          ^
    hint: a statement writes one tensor; several results take those of a call: `(A, B) = f(C)`
""",
    "def f() -> (c) { c = a; ; d = b }": """
1:25: expected a statement or `}`, found `;`
    def f() -> (c) { c = a; ; d = b }
                            ^
    hint: one `;` is enough
""",
    "def f() -> (c) { c = a; where i < 3 }": """
1:31: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`) or `(`, found `i`
    def f() -> (c) { c = a; where i < 3 }
                                  ^
    hint: `where` belongs to the statement before it: remove the `;`
""",
    # Long lines are cut around the place.
    "def f() -> (c) { c = " + "(" * 200 + "a" + ")" * 200 + " }": """
1:22: the expression has more than 200 levels of operators and parentheses
    def f() -> (c) { c = (((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((
                         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: split it into several statements, each with a target of its own
""",
    "def f() -> " + "x" * 41 + " { }": """
1:12: expected `(`, found `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...`
    def f() -> xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx { }
               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    hint: the results stand in parentheses: `-> (B)`
""",
}


@pytest.mark.parametrize(("text", "message"), MESSAGES.items(), ids=lambda text: ascii(text[:40]))
def test_message(text: str, message: str) -> None:
    require_message(text, message)


@pytest.mark.parametrize("text", ["", " \n", "# nothing\n"])
def test_a_text_without_definitions(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    first, *_, hint = str(caught.value).splitlines()
    assert first.endswith("expected `def`, found the end of the text")
    assert hint == "    hint: a text consists of definitions: `def f(float(N) A) -> (B) { B(i) = A(i) }`"


def test_the_error_keeps_its_text_and_its_place() -> None:
    text = "def f() -> (c) {\n  c(i) -= a(i)\n}"
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert caught.value.source == text
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.span is not None
    assert text[diagnostic.span.start : diagnostic.span.end] == "-="
