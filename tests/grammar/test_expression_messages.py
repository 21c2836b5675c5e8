"""Messages about expressions, numbers and conditions that are not in the grammar."""

from __future__ import annotations

import pytest

from tests.grammar.messages import require_message

MESSAGES = {
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
1:30: expected an expression, `exists` or `distinct`, found `}`
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
}


@pytest.mark.parametrize(("text", "message"), MESSAGES.items(), ids=lambda text: ascii(text[:40]))
def test_message(text: str, message: str) -> None:
    require_message(text, message)
