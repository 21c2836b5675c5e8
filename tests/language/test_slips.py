"""What a newcomer writes, and what the message tells them to write instead."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tc.base.errors import ArgumentError, TextError
from tests.language.support import lower, lower_all

PARAMETER = "a parameter is a type, its sizes and a name: `float(M,N) A`, `int n`; commas stand between two of them"
SIZE = "a size is a name or a whole number: give `{}` a name of its own, as in `float(L) A`"
BRACES = "the statements stand in braces: `def f(float(N) A) -> (B) { B(i) = A(i) }`"
AFRESH = "write `+=!` (or `+=` to go on with what is there)"
LOGIC = "logical operators are written `&&`, `||` and `!`"
CHOICE = "a conditional is written `condition ? value : value`"
QUOTES = "write no quotes: names stand alone"
INDEX = "give the index another name, or read an element: `v(...)`"

STATEMENTS = {
    # operators
    "B(i) =+! A(i,j)": AFRESH,
    "B(i) =+ A(i,j)": AFRESH,
    "B(i) +!= A(i,j)": AFRESH,
    "B(i) !+= A(i,j)": AFRESH,
    "B(i) =*! A(i,j)": AFRESH.replace("+", "*"),
    "B(i) sum=! A(i,j)": "write `+=!`",
    "B(i) mean=! A(i,j)": "write `+=!`, then divide by the size",
    "B(i) maximum=! A(i,j)": "write `max=!`",
    "B(i) max! A(i,j)": "write `max=!`",
    "B(i) := v(i)": "write `=`",
    "B(i) <- v(i)": "write `=`",
    "B(i) -=! A(i,j)": "`-=!` is not a reduction; add the negated value: `+=! -(...)`",
    "t += v(i)  B = t": "write `+=!` (`*=!`, `min=!`, `max=!`): the `!` lets a reduction start afresh",
    # functions and tensors
    "B(i) = relu(v(i))": "write `max(x, 0)`",
    "B(i) = sigmoid(v(i))": "write `1 / (1 + exp(-x))`",
    "B(i) = clamp(v(i), 0, 1)": "write `min(max(x, low), high)`",
    "B(i) = maximum(v(i), 0)": "write `max(x, y)`; the greatest of many is a reduction: `m(i) max=! A(i,j)`",
    "B(i) = mean(A(i,j))": "write two statements: `s(i) +=! A(i,j)  m(i) = s(i) / N`",
    "B(i) = sum(A(i,j))": "write a statement that reduces: `s(i) +=! A(i,j)`",
    "B(i) = square(v(i))": "write `x * x`",
    "B(i) = abss(v(i))": "did you mean `abs`?",
    "B(i) = X(i)": "there are the tensors `A`, `B`, `s`, `v`",
    "B(i) = V(i)": "did you mean `v`?",
    # indices
    "B(v) = A(v,0)": INDEX,
    "B(i) = A(v,i)": INDEX,
    "B(i) = v(i,0)": "it is declared with the sizes (N)",
    "B(i) = A(i)": "it is declared with the sizes (M, N)",
    "B(i) = s(i)": "it is a single number: write `s`",
    # other languages
    "B(i) = v(i) and 1": LOGIC,
    "B(i) = not v(i)": LOGIC,
    "B(i) = v(i) if v(i) > 0 else 0": CHOICE,
    "B(i) = if v(i) > 0 then 1 else 0": CHOICE,
    "return v": "results are named behind `->`, and written like `B(i) = A(i)`",
    "let x = 1 B(i) = v(i)": "write `x = ...`: names need no declaration; inside a statement, `where x = ...`",
    "for i in 0:N B(i) = v(i)": (
        "loops go without saying: `where i in 0:N` gives a range; steps in order: `for t in 0:T { ... }`"
    ),
    "B(i) = A @ v": "a product of matrices is a statement: `C(i,j) +=! A(i,k) * B(k,j)`",
    "B(i) = \u201cv(i)\u201d": QUOTES,
    "B(i) = v(i) \u2014 1": "write `-`",
}
HEADS = {
    "def f(float(N) x) -> (y) y(i) = x(i) }": BRACES,
    "def f(float(N) x) -> (y): y(i) = x(i)": BRACES,
    "def f(float(N+1) x) -> (y) { y(i) = x(i) }": SIZE.format("N+1"),
    "def f(float(2*N) x) -> (y) { y(i) = x(i) }": SIZE.format("2*N"),
    "def f(float x(N)) -> (y) { y(i) = x(i) }": PARAMETER,
    "def f(x: float(N)) -> (y) { y(i) = x(i) }": PARAMETER,
    "def f(float(N) x float(N) z) -> (y) { y(i) = x(i) }": PARAMETER,
    "def f(float(N) x) -> () { y(i) = x(i) }": "a definition has one result at least",
    "def f(int4(5) x) -> (y) { y(i) = x(i) }": "did you mean `int8`?",
    "def f(fp16(N) x) -> (y) { y(i) = x(i) }": "did you mean `float16`?",
    "def f(long(N) x) -> (y) { y(i) = x(i) }": "did you mean `int64`?",
}


@pytest.mark.parametrize("text", [*STATEMENTS, *HEADS])
def test_the_hint_says_what_to_write(text: str) -> None:
    whole = text if text in HEADS else f"def f(float(M,N) A, float(N) v, float() s) -> (B) {{ {text} }}"
    with pytest.raises(TextError) as caught:
        lower_all(whole)
    assert {**STATEMENTS, **HEADS}[text] in [diagnostic.hint for diagnostic in caught.value.diagnostics]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_comments_end_where_lines_do(end: str) -> None:
    lines = [
        "# a copy",
        "def f(float(N) x) -> (y) { # of x",
        "  y(i) = x(i) # all of it",
        "  where # still",
        "i in 0:N",
        "}",
    ]
    assert lower(end.join(lines)).name == "f"
    with pytest.raises(TextError) as caught:
        lower(end.join([*lines[:2], "  y(i) = z(i)", "}"]))
    first, shown, *_ = str(caught.value).split("\n")
    assert (first, shown) == ("3:10: unknown name `z`", "      y(i) = z(i)")


def test_a_forgotten_exclamation_mark() -> None:
    f = tc.define("def f(float(M,N) A) -> (B) { B(i) += A(i,j) }")
    with pytest.raises(ArgumentError) as caught:
        f(np.ones((2, 3), np.float32))
    assert str(caught.value) == (
        "output B of f: the definition reads B before it writes it; pass its first value through out=, or let a "
        "reduction start afresh: write `+=!` (`*=!`, `min=!`, `max=!`), not `+=`"
    )
