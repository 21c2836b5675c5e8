"""``where x = e``: names that stand for expressions, checked before they are put in."""

from __future__ import annotations

from collections.abc import Mapping

from tc.grammar import syntax
from tc.grammar.syntax_builder import MAXIMUM_DEPTH
from tc.language.check.scope import Scope
from tc.language.check.uses import subexpressions, walk_syntax
from tc.language.program.report import Report

# Names that stand for names can double an expression, or deepen it, with every clause.
_MAXIMUM_OPERATIONS = 10_000


def collect_lets(statement: syntax.Assign, scope: Scope, report: Report) -> dict[str, syntax.Expression]:
    """What every name of a ``where x = e`` stands for; empty if one of them is in error."""
    before = report.count
    found: dict[str, syntax.LetClause] = {}
    for clause in statement.where:
        if isinstance(clause, syntax.LetClause):
            if scope.is_declared(clause.name):
                report.error(f"`{clause.name}` has a meaning already", clause.name_span, "choose another name")
            elif clause.name in found:
                report.error(f"`{clause.name}` is defined twice", clause.name_span)
            else:
                found[clause.name] = clause
    if found:
        _check_growth(statement, found, report)
    if report.count > before:
        return {}
    return {name: clause.value for name, clause in found.items()}


def _check_growth(statement: syntax.Assign, lets: Mapping[str, syntax.LetClause], report: Report) -> None:
    """Refuses names that are defined by themselves and those that make an expression too large or too deep."""
    uses = {name: _used(clause.value, lets) for name, clause in lets.items()}
    operations: dict[str, int] = {}
    depths: dict[str, int] = {}
    waiting = list(lets)
    while waiting:
        ready = [name for name in waiting if operations.keys() >= set(uses[name])]
        if not ready:
            report.error(f"`{waiting[0]}` is defined by itself", lets[waiting[0]].name_span)
            return
        for name in ready:
            value = lets[name].value
            operations[name] = sum(1 for _ in walk_syntax(value)) + sum(operations[used] for used in uses[name])
            depths[name] = _depth(value) + max((depths[used] for used in uses[name]), default=0)
            if operations[name] > _MAXIMUM_OPERATIONS or depths[name] > MAXIMUM_DEPTH:
                _refuse(f"`{name}`", value, report)
                return
        waiting = [name for name in waiting if name not in operations]
    for expression in (*(statement.subscripts or ()), statement.value):
        used = _used(expression, lets)
        size = sum(operations[name] for name in used)
        depth = _depth(expression) + max((depths[name] for name in used), default=0)
        if size > _MAXIMUM_OPERATIONS or depth > MAXIMUM_DEPTH:
            _refuse("the expression", expression, report)


def _refuse(what: str, expression: syntax.Expression, report: Report) -> None:
    report.error(
        f"{what} stands for more than {_MAXIMUM_OPERATIONS} operations or {MAXIMUM_DEPTH} levels of them",
        expression.span,
        "give parts of it a statement of their own",
    )


def _used(expression: syntax.Expression, lets: Mapping[str, syntax.LetClause]) -> list[str]:
    """The names of other clauses in an expression, as often as they occur."""
    return [part.name for part in walk_syntax(expression) if isinstance(part, syntax.Name) and part.name in lets]


def _depth(expression: syntax.Expression) -> int:
    return 1 + max(map(_depth, subexpressions(expression)), default=0)
