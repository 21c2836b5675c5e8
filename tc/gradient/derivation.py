"""What each statement of a derivative is there for, as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tc.grammar.printer import print_statement
from tc.language.program.program import DerivedOrigin, Program, Statement
from tc.language.text.print_program import program_syntax


def derivation_of(program: Program) -> str:
    """The statements of a derivative in order, each below the rule that made it."""
    return "\n".join(_lines(program))


def _lines(program: Program) -> Iterator[str]:
    for statement in program.statements:
        yield f"# {_rule(statement)}"
        alone = replace(program, statements=(statement,), preconditions=())
        yield from (print_statement(found) for found in program_syntax(alone).statements)


def _rule(statement: Statement) -> str:
    match statement.origin:
        case DerivedOrigin(reason=reason):
            return reason
        case _:
            return "a value that derivatives are computed from"
