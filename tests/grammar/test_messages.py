"""The whole text of every message about a text that is not in the grammar."""

from __future__ import annotations

import pytest

from tc.base.errors import ParseError
from tc.grammar.parser import parse

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
    hint: a size is a name or a whole number: declare `float(N) A`, and use `N + 1` in the statements
""",
    "def f(float(4.0) a) -> (c) { }": """
1:13: expected a size (a name or an integer) or `)`, found `4.0`
    def f(float(4.0) a) -> (c) { }
                ^^^
    hint: a size is a name or a whole number: declare `float(N) A`, and use `N + 1` in the statements
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
    # On the right-hand side.
    "def f() -> (c) { c =  }": """
1:23: expected an expression, found `}`
    def f() -> (c) { c =  }
                          ^
""",
    "def f() -> (c) { c = g(a,) }": """
1:26: expected an expression, found `)`
    def f() -> (c) { c = g(a,) }
                             ^
    hint: remove the comma
""",
    "def f() -> (c) { c = +a }": """
1:22: expected an expression, found `+`
    def f() -> (c) { c = +a }
                         ^
    hint: there is no unary `+`
""",
    "def f() -> (c) { c = a[i] }": """
1:23: expected an operator, a statement, `where` or `}`, found `[`
    def f() -> (c) { c = a[i] }
                          ^
    hint: subscripts are written in parentheses: `A(i, j)`
""",
    "def f() -> (c) { c = a(i) ^ 2 }": """
1:27: expected an operator, a statement, `where` or `}`, found `^`
    def f() -> (c) { c = a(i) ^ 2 }
                              ^
    hint: write `pow(x, y)`; there are no operations on bits
""",
    "def f() -> (c) { c = a & b }": """
1:24: expected an operator, a statement, `where` or `}`, found `&`
    def f() -> (c) { c = a & b }
                           ^
    hint: write `&&`; there are no operations on bits
""",
    "def f() -> (c) { c = a | b }": """
1:24: expected an operator, a statement, `where` or `}`, found `|`
    def f() -> (c) { c = a | b }
                           ^
    hint: write `||`; there are no operations on bits
""",
    "def f() -> (c) { c = ~a }": """
1:22: expected an expression, found `~`
    def f() -> (c) { c = ~a }
                         ^
    hint: there are no operations on bits
""",
    "def f() -> (c) { c = a ** 2 }": """
1:25: expected an expression, found `*`
    def f() -> (c) { c = a ** 2 }
                            ^
    hint: write `pow(x, y)`
""",
    "def f() -> (c) { c = a // b }": """
1:25: expected an expression, found `/`
    def f() -> (c) { c = a // b }
                            ^
    hint: a comment starts with `#`; a division is written `/`, and that of integers truncates
""",
    "def f() -> (c) { /* all */ c = a }": """
1:18: expected a statement or `}`, found `/`
    def f() -> (c) { /* all */ c = a }
                     ^
    hint: a comment starts with `#`; a division is written `/`, and that of integers truncates
""",
    "def f() -> (c) { c = a and b }": """
1:28: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`) or `(`, found `b`
    def f() -> (c) { c = a and b }
                               ^
    hint: logical operators are written `&&`, `||` and `!`
""",
    "def f() -> (c) { c = a ! = b }": """
1:24: expected an operator, a statement, `where` or `}`, found `!`
    def f() -> (c) { c = a ! = b }
                           ^
    hint: write `!=` without a space
""",
    "def f() -> (c) { c = a = 3 }": """
1:24: expected an operator, a statement, `where` or `}`, found `=`
    def f() -> (c) { c = a = 3 }
                           ^
    hint: to compare, write `==`
""",
    "def f() -> (c) { c = x (a, b) = g(y) }": """
1:31: expected an operator, a statement, `where` or `}`, found `=`
    def f() -> (c) { c = x (a, b) = g(y) }
                                  ^
    hint: if the parenthesis starts a new statement, write `;` before it; to compare, write `==`
""",
    "def f() -> (c) { c = max(a, 0 }": """
1:31: expected an operator, `,` or `)`, found `}`
    def f() -> (c) { c = max(a, 0 }
                                  ^
    hint: the parenthesis opened at 1:25 is not closed
""",
    "def f() -> (c) { c(i = a(i) }": """
1:22: expected an operator, `,` or `)`, found `=`
    def f() -> (c) { c(i = a(i) }
                         ^
    hint: the parenthesis opened at 1:19 is not closed; to compare, write `==`
""",
    "def f() -> (c) { c = (a where i < 3 }": """
1:25: expected an operator or `)`, found `where`
    def f() -> (c) { c = (a where i < 3 }
                            ^^^^^
    hint: the parenthesis opened at 1:22 is not closed
""",
    "def f() -> (c) { c = a) }": """
1:23: expected an operator, a statement, `where` or `}`, found `)`
    def f() -> (c) { c = a) }
                          ^
    hint: no parenthesis is open here
""",
    "def f() -> (c) { c = a ? b }": """
1:28: expected an operator or `:`, found `}`
    def f() -> (c) { c = a ? b }
                               ^
    hint: a conditional is written `condition ? value : value`
""",
    "def f() -> (c) { c = g(a b) }": """
1:26: expected an operator, `,` or `)`, found `b`
    def f() -> (c) { c = g(a b) }
                             ^
    hint: an operator or a comma is missing here
""",
    "def f() -> (c) { c = a.x }": """
1:24: expected the number of a dimension, found `x`
    def f() -> (c) { c = a.x }
                           ^
    hint: only the number of a dimension stands behind a point: `A.0` is the first size of `A`
""",
    "def f() -> (c) { c = a.1.5 }": """
1:24: expected the number of a dimension, found `1.5`
    def f() -> (c) { c = a.1.5 }
                           ^^^
    hint: only the number of a dimension stands behind a point: `A.0` is the first size of `A`
""",
    "def f() -> (c) { c = a -> b }": """
1:25: expected an expression, found `>`
    def f() -> (c) { c = a -> b }
                            ^
    hint: results are named in the head, behind `->`; an assignment is written `B(i) = A(i)`
""",
    # Numbers.
    "def f() -> (c) { c = 1.5.2 }": """
1:22: expected an expression, found `1.5.2`
    def f() -> (c) { c = 1.5.2 }
                         ^^^^^
    hint: this is neither a number nor a name
""",
    "def f() -> (c) { c = 010 }": """
1:22: expected an expression, found `010`
    def f() -> (c) { c = 010 }
                         ^^^
    hint: write the number without zeros in front
""",
    "def f() -> (c) { c = 1.x }": """
1:22: expected an expression, found `1.x`
    def f() -> (c) { c = 1.x }
                         ^^^
    hint: this is neither a number nor a name
""",
    "def f() -> (c) { c = 18446744073709551616 }": """
1:22: this integer does not fit 64 bits
    def f() -> (c) { c = 18446744073709551616 }
                         ^^^^^^^^^^^^^^^^^^^^
    hint: the largest is 18446744073709551615
""",
    "def f() -> (c) { c = 0x10000000000000000 }": """
1:22: this integer does not fit 64 bits
    def f() -> (c) { c = 0x10000000000000000 }
                         ^^^^^^^^^^^^^^^^^^^
    hint: the largest is 18446744073709551615
""",
    "def f() -> (c) { c = 1e400 }": """
1:22: this number is beyond the range of 64-bit floating point
    def f() -> (c) { c = 1e400 }
                         ^^^^^
    hint: the largest is 1.7976931348623157e308
""",
    # Behind `where`.
    "def f() -> (c) { c = a where }": """
1:30: expected an expression or `exists`, found `}`
    def f() -> (c) { c = a where }
                                 ^
    hint: behind `where` stand ranges and conditions: `where i in 0:N, j < i`
""",
    "def f() -> (c) { c = a where exists T }": """
1:39: expected an assignment (`=`, `+=`, `*=`, `min=`, `max=`) or `(`, found `}`
    def f() -> (c) { c = a where exists T }
                                          ^
    hint: write `exists T(i)`, with the subscripts
""",
    "def f() -> (c) { c = a where in 0:3 }": """
1:33: expected an operator, a statement, `=`, `,`, `in` or `}`, found `0`
    def f() -> (c) { c = a where in 0:3 }
                                    ^
""",
    "def f() -> (c) { c = a where i in 0 }": """
1:37: expected an operator or `:`, found `}`
    def f() -> (c) { c = a where i in 0 }
                                        ^
    hint: a range is written `i in begin:end`, and its end is excluded
""",
    "def f() -> (c) { c = a where i in 0..3 }": """
1:35: expected an expression, found `0..3`
    def f() -> (c) { c = a where i in 0..3 }
                                      ^^^^
    hint: write `i in 0:3`; a range excludes its end
""",
    "def f() -> (c) { c = a where i in range(3), j in 0:2 }": """
1:43: expected an operator or `:`, found `,`
    def f() -> (c) { c = a where i in range(3), j in 0:2 }
                                              ^
    hint: write `i in 0:3`; a range excludes its end
""",
    "def f() -> (c) { c = a where i < 3 where j < 3 }": """
1:36: expected an operator, a statement, `,`, `in` or `}`, found `where`
    def f() -> (c) { c = a where i < 3 where j < 3 }
                                       ^^^^^
    hint: a statement has one `where`; separate its clauses with commas
""",
    "def f() -> (c) { c = a where i in 0:3:2 }": """
1:38: expected an operator, a statement, `,` or `}`, found `:`
    def f() -> (c) { c = a where i in 0:3:2 }
                                         ^
    hint: ranges have no step: write `2 * i` in the subscripts
""",
    "def f() -> (c) { c = a(0:3) }": """
1:25: expected an operator, `,` or `)`, found `:`
    def f() -> (c) { c = a(0:3) }
                            ^
    hint: there are no slices: give each dimension an index, `A(i, j)`, and a range with `where j in 0:N`
""",
    # Characters of other alphabets.
    "def f() \u2192 (c) { }": """
1:9: expected `->`, found `\u2192`
    def f() \u2192 (c) { }
            ^
    hint: write `->`
""",
    "def f() -> (c) { c = a \u2264 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u2264`
    def f() -> (c) { c = a \u2264 b }
                           ^
    hint: write `<=`
""",
    "def f() -> (c) { c = a \u2265 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u2265`
    def f() -> (c) { c = a \u2265 b }
                           ^
    hint: write `>=`
""",
    "def f() -> (c) { c = a \u2260 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u2260`
    def f() -> (c) { c = a \u2260 b }
                           ^
    hint: write `!=`
""",
    "def f() -> (c) { c = a \u2212 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u2212`
    def f() -> (c) { c = a \u2212 b }
                           ^
    hint: write `-`
""",
    "def f() -> (c) { c = a \u2013 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u2013`
    def f() -> (c) { c = a \u2013 b }
                           ^
    hint: write `-`
""",
    "def f() -> (c) { c = a \xd7 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\xd7`
    def f() -> (c) { c = a \xd7 b }
                           ^
    hint: write `*`
""",
    "def f() -> (c) { c = a \xb7 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\xb7`
    def f() -> (c) { c = a \xb7 b }
                           ^
    hint: write `*`
""",
    "def f() -> (c) { c = a \u22c5 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u22c5`
    def f() -> (c) { c = a \u22c5 b }
                           ^
    hint: write `*`
""",
    "def f() -> (c) { c = a \xf7 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\xf7`
    def f() -> (c) { c = a \xf7 b }
                           ^
    hint: write `/`
""",
    "def f() -> (c) { c =\xa0a }": """
1:21: expected an expression, found the character U+00A0
    def f() -> (c) { c = a }
                        ^
    hint: write an ordinary space
""",
    "def f() -> (c) { c = \xe9 }": """
1:22: expected an expression, found `\xe9`
    def f() -> (c) { c = \xe9 }
                         ^
    hint: names have the letters a to z, digits and `_`
""",
    'def f() -> (c) { c = "a" }': """
1:22: expected an expression, found `"`
    def f() -> (c) { c = "a" }
                         ^
    hint: write no quotes: names stand alone
""",
    "def f() -> (c) { c = a $ b }": """
1:24: expected an operator, a statement, `where` or `}`, found `$`
    def f() -> (c) { c = a $ b }
                           ^
    hint: the language does not use this character
""",
    "def f() -> (c) { c = a \0 b }": """
1:24: expected an operator, a statement, `where` or `}`, found the character U+0000
    def f() -> (c) { c = a \ufffd b }
                           ^
    hint: the language does not use this character
""",
    "def f() -> (c) { c = a \u21d2 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u21d2`
    def f() -> (c) { c = a \u21d2 b }
                           ^
    hint: write `->`
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
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert str(caught.value) == message.strip("\n")


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
