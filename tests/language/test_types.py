"""Types of expressions and tensors: promotion as in NumPy 2, weak literals, sizes and iterators, casts."""

from __future__ import annotations

import pytest

from tc.base.errors import SemanticError
from tc.base.types import ScalarType
from tc.language.program.program import Binary, Literal, walk
from tests.language.support import body, complaints, definition, lower, places, value

PARAMETERS = (
    "float(N) f, double(N) d, half(N) h, bfloat16(N) g, int(N) i, int8(N) c, uint8(N) b, int64(N) l, uint64(N) u, "
    "bool(N) t, float s, int n"
)


def _written(expression: str) -> tuple[str, str]:
    """The text and type of what ``O(k) = expression`` writes."""
    program = body(f"O(k) = {expression} where k in 0:N", PARAMETERS)
    return value(program.statements[0]), program.tensor("O").type.value


@pytest.mark.parametrize(
    ("expression", "text", "type"),
    [
        ("f(k) + d(k)", "float64(f(k)) + d(k)", "float64"),
        ("f(k) + i(k)", "float64(f(k)) + float64(i(k))", "float64"),
        ("h(k) + c(k)", "h(k) + float16(c(k))", "float16"),
        ("h(k) + g(k)", "float32(h(k)) + float32(g(k))", "float32"),
        ("i(k) + b(k)", "i(k) + int32(b(k))", "int32"),
        ("l(k) + u(k)", "float64(l(k)) + float64(u(k))", "float64"),
        ("t(k) + c(k)", "int8(t(k)) + c(k)", "int8"),
        ("f(k) + 1", "f(k) + 1.0", "float32"),
        ("h(k) + 0.1", "h(k) + 0.0999755859375", "float16"),
        ("g(k) + 0.1", "g(k) + 0.10009765625", "bfloat16"),
        ("f(k) + 0.1", "f(k) + 0.10000000149011612", "float32"),
        ("i(k) + 1.5", "float64(i(k)) + 1.5", "float64"),
        ("c(k) + 1", "c(k) + 1", "int8"),
        ("u(k) + 18446744073709551615", "u(k) + 18446744073709551615", "uint64"),
        ("t(k) + 1", "int64(t(k)) + 1", "int64"),
        ("f(k) / (N * 2)", "f(k) / float32(N * 2)", "float32"),
        ("f(k) * k", "f(k) * float32(k)", "float32"),
        ("k + 1", "k + 1", "int64"),
        ("1", "1", "int64"),
        ("1.5", "1.5", "float64"),
        ("-2", "-2", "int64"),
        ("-f(k)", "-f(k)", "float32"),
        ("s * i(k)", "float64(s) * float64(i(k))", "float64"),
        ("n * k", "n * int32(k)", "int32"),
        ("exp(f(k))", "exp(f(k))", "float32"),
        ("expf(i(k))", "exp(float64(i(k)))", "float64"),
        ("exp(c(k))", "exp(float16(c(k)))", "float16"),
        ("f(k) * sqrt(2)", "f(k) * float32(sqrt(2.0))", "float32"),
        ("f(k) / sqrt(N)", "f(k) / float32(sqrt(float64(N)))", "float32"),
        ("max(i(k), 0)", "max(i(k), 0)", "int32"),
        ("fmaxf(f(k), 0)", "fmax(f(k), 0.0)", "float32"),
        ("min(t(k), t(k))", "min(t(k), t(k))", "bool"),
        ("abs(i(k))", "abs(i(k))", "int32"),
        ("pow(f(k), 2)", "pow(f(k), 2.0)", "float32"),
        ("f(k) < 0", "f(k) < 0.0", "bool"),
        ("f(k) < 0 ? 1 : f(k)", "f(k) < 0.0 ? 1.0 : f(k)", "float32"),
        ("k < 3 ? 1 : 0", "k < 3 ? 1 : 0", "int64"),
        ("i(k) ? f(k) : 0", "bool(i(k)) ? f(k) : 0.0", "float32"),
        ("!f(k)", "!bool(f(k))", "bool"),
        ("t(k) && i(k)", "t(k) && bool(i(k))", "bool"),
        ("float(f(k) < d(k))", "float32(float64(f(k)) < d(k))", "float32"),
        ("int8(300)", "int8(44)", "int8"),
        ("float(k)", "float32(k)", "float32"),
        ("n < k", "n < k", "bool"),
        ("f(k) % 2", "f(k) % 2.0", "float32"),
        ("i(k) / 2", "i(k) / 2", "int32"),
        ("l(n * k)", "l(n * k)", "int64"),
    ],
)
def test_values(expression: str, text: str, type: str) -> None:
    assert _written(expression) == (text, type)


@pytest.mark.parametrize(
    ("statements", "type"),
    [
        ("O(k) = 0 O(k) += f(k)", "float32"),
        ("O(k) = 0.5 O(k) += i(k)", "float64"),
        ("O(k) = i(k) O(k) += d(k)", "float64"),
        ("O(k) = 0 where k in 0:N", "int64"),
        ("O(k) = c(k) O(k) += 1", "int8"),
        ("P(k) = O(k) O(k) = f(k)", "float32"),
        ("T(k) = S(k) * 2.0 O(k) = T(k) + f(k)", "float64"),
    ],
)
def test_a_tensor_has_the_common_type_of_its_writes(statements: str, type: str) -> None:
    results = "O, S" if "S(k)" in statements else "O, P" if "P(k)" in statements else "O"
    statements += " S(k) = 1 where k in 0:N" if "S(k)" in statements else ""
    assert body(statements, PARAMETERS, results).tensor("O").type.value == type


def test_types_that_later_statements_decide_reach_earlier_readers() -> None:
    program = body("S(k) = 0 P(k) = S(k) S(k) += f(k) O(k) = P(k)", PARAMETERS)
    assert [program.tensor(name).type for name in "SPO"] == [ScalarType.FLOAT32] * 3


def test_a_value_of_which_only_itself_is_known_is_an_integer() -> None:
    program = body("O(k) = O(k) where k in 0:N", PARAMETERS)
    assert program.tensor("O").type is ScalarType.INT64


def test_comparisons_of_index_arithmetic_are_exact() -> None:
    program = body("O(k) = k * n < N ? f(k) : 0", PARAMETERS)
    comparison = next(e for e in walk(program.statements[0].value) if isinstance(e, Binary))
    assert comparison.left.type is ScalarType.INT64


def test_literals_are_rounded_to_their_type() -> None:
    program = body("O(k) = f(k) + 16777217", PARAMETERS)
    assert Literal(16777216.0, ScalarType.FLOAT32) in walk(program.statements[0].value)


@pytest.mark.parametrize(
    ("expression", "message", "place"),
    [
        (
            "c(k) + 1000",
            (
                "the literal 1000 does not fit into int8 (-128 to 127) "
                "[cast the other operand to a wider type, for example `int64(...)`]"
            ),
            "1000",
        ),
        ("b(k) - -1", "the literal -1 does not fit into uint8 (0 to 255)", "-1"),
        ("h(k) * 1e6", "the literal 1000000.0 does not fit into float16 [write `float64(1000000.0)`]", "1e6"),
        ("9223372036854775808", "the literal 9223372036854775808 does not fit into int64", "9223372036854775808"),
        (
            "t(k) + t(k)",
            "`+` is not defined on bool [cast to a number first, for example `int32(...)`]",
            "t(k) + t(k)",
        ),
        ("-t(k)", "`-` is not defined on bool [cast to a number first, for example `int32(...)`]", "t(k)"),
        ("g2(k)", "unknown name `g2`", "g2"),
        ("exq(f(k))", "unknown name `exq` [did you mean `exp`?]", "exq"),
        ("f(k, k)", "`f` has 1 dimension and needs as many subscripts, 2 given", "f(k, k)"),
        ("f + 1", "`f` has 1 dimension and needs as many subscripts, none given", "f"),
        ("f.1", "`f` has 1 dimension, so there is no `f.1` [dimensions are counted from 0]", "f.1"),
        ("ff.0", "unknown tensor `ff` [did you mean `f`?]", "ff.0"),
        ("exp(f(k), 1)", "`exp` takes 1 argument, 2 given", "exp(f(k), 1)"),
        ("int32(f(k), 1)", "a cast to `int32` takes 1 argument, 2 given", "int32(f(k), 1)"),
        ("f(i(k) + 0.5)", "a subscript or a range needs an integer, this is float64 [cast it: `int64(...)`]", "0.5"),
        ("f(s)", "a subscript or a range needs an integer, this is float32 [cast it: `int64(...)`]", "s"),
        ("f(t(k))", "a subscript or a range needs an integer, this is bool [cast it: `int64(...)`]", "t(k)"),
    ],
)
def test_refused(expression: str, message: str, place: str) -> None:
    text = definition(f"O(k) = {expression} where k in 0:N", PARAMETERS)
    (found,) = complaints(text, SemanticError)
    assert found.startswith(message)
    assert places(text, SemanticError) == [place]


def test_a_literal_must_fit_the_tensor_that_it_is_written_to() -> None:
    text = definition("O(k) = c(k) O(k) += 1000", PARAMETERS)
    assert "does not fit into int8" in complaints(text, SemanticError)[0]


def test_sums_of_bools_are_refused() -> None:
    (found,) = complaints(definition("O(k) +=! t(k)", PARAMETERS), SemanticError)
    assert found.startswith("`+=` is not defined on bool")
    assert body("O() max=! t(k)", PARAMETERS).tensor("O").type is ScalarType.BOOL


def test_all_complaints_of_a_text_come_together() -> None:
    text = (
        "def f(float(N) x) -> (y) { y(i) = z(i) + w(i) }\n"
        "def g(flaot(N) x) -> (y) { y(i) = x(j) }\n"
        "def h(float(N) x) -> (y) { y(i) = x(i+1) + 1 y(i) = q(i) }"
    )
    found = complaints(text, SemanticError)
    assert [message.split(" [")[0] for message in found] == [
        "unknown name `z`",
        "unknown name `w`",
        "unknown type `flaot`",
        "a reduction without an operator: `j` stands only on the right of `=`",
        "unknown name `q`",
    ]


def test_keywords_of_c_are_names_like_any_other() -> None:
    program = lower(
        "def while(float(int, for) if, float exp) -> (double) { double(return) +=! if(return, NULL) * exp }"
    )
    assert program.results == ("double",)
