"""Shorthands: texts to programs, their parts as text, and the messages of texts that are refused."""

from __future__ import annotations

import pytest

from tc.base.errors import TextError
from tc.base.types import ScalarType
from tc.grammar.parser import parse
from tc.language.lower.lower import lower_text
from tc.language.program.program import Program, Statement
from tc.language.program.specialization import ArraySpec, Signature
from tc.language.text.expression_text import expression_text

F32 = ScalarType.FLOAT32


def lower_all(text: str) -> dict[str, Program]:
    """All programs of a text."""
    return lower_text(parse(text), text)


def lower(text: str, name: str | None = None) -> Program:
    """One program of a text: the named one, else the last."""
    programs = lower_all(text)
    return programs[name if name is not None else list(programs)[-1]]


def body(statements: str, parameters: str = "float(M,N) A", results: str = "O") -> Program:
    """A definition with these parameters, results and statements."""
    return lower(definition(statements, parameters, results))


def definition(statements: str, parameters: str = "float(M,N) A", results: str = "O") -> str:
    """The text of a definition."""
    return f"def f({parameters}) -> ({results}) {{ {statements} }}"


def ranges(statement: Statement) -> dict[str, str]:
    """``begin:end`` per iterator."""
    return {i.name: f"{expression_text(i.begin)}:{expression_text(i.end)}" for i in statement.iterators}


def shape(program: Program, tensor: str) -> list[str]:
    """The extents of a tensor, as text."""
    return [expression_text(extent) for extent in program.tensor(tensor).shape]


def value(statement: Statement) -> str:
    """The right-hand side, as text."""
    return expression_text(statement.value)


def complaints(text: str, kind: type[TextError]) -> list[str]:
    """The messages with which a text is refused, with their hints; the error has exactly the given class."""
    with pytest.raises(kind) as caught:
        lower_all(text)
    assert type(caught.value) is kind
    return [d.message + (f" [{d.hint}]" if d.hint is not None else "") for d in caught.value.diagnostics]


def places(text: str, kind: type[TextError]) -> list[str]:
    """What the carets of the complaints underline."""
    with pytest.raises(kind) as caught:
        lower_all(text)
    return [text[d.span.start : d.span.end] if d.span is not None else "" for d in caught.value.diagnostics]


def array(*shape: int, dtype: ScalarType = F32, strides: tuple[int, ...] | None = None) -> ArraySpec:
    """The spec of an array."""
    return ArraySpec(shape, dtype, strides)


def signature(scalars: dict[str, int] | None = None, **arguments: ArraySpec) -> Signature:
    """A signature from specs by name."""
    return Signature(tuple(arguments.items()), scalars=tuple((scalars or {}).items()))
