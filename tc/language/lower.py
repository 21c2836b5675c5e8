"""Syntax tree to ``Program``: the front end's way through checking, values, types, ranges and proofs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tc.errors import Span
from tc.grammar import syntax
from tc.language.declarations import called_names
from tc.language.definition import lower_definition
from tc.language.program import Program
from tc.language.report import Report


def lower_text(text: syntax.Text, source: str | None = None) -> dict[str, Program]:
    """The programs of all definitions of a text, in its order.

    Raises ``SemanticError`` with every complaint about the text, or its subclass ``RangeError`` if all of them are
    about ranges.
    """
    report = Report()
    definitions: dict[str, syntax.Definition] = {}
    for definition in text.definitions:
        if definition.name in definitions:
            report.error(f"`{definition.name}` is defined twice", definition.name_span)
        else:
            definitions[definition.name] = definition
    done: dict[str, Program | None] = {}
    for name in definitions:
        for next_name, callees in _callees_first(name, definitions, done, report):
            known = {callee: done.get(callee) for callee in callees}
            done[next_name] = lower_definition(definitions[next_name], known, frozenset(definitions), source, report)
    report.raise_if_any(source)
    return {name: program for name in definitions if (program := done[name]) is not None}


def _callees_first(
    name: str, definitions: Mapping[str, syntax.Definition], done: Mapping[str, Program | None], report: Report
) -> Iterator[tuple[str, Mapping[str, Span]]]:
    """The definitions that must be lowered for one of them, itself last, each with those that it calls.

    A chain of calls may be long, so the stack is explicit.  Calls that come back to their caller are reported.
    """
    path: dict[str, tuple[dict[str, Span], list[str]]] = {}

    def enter(entered: str) -> None:
        callees = called_names(definitions[entered], definitions)
        path[entered] = callees, list(callees)

    if name not in done:
        enter(name)
    while path:
        current, (callees, waiting) = next(reversed(path.items()))
        if not waiting:
            yield current, callees
            del path[current]
            continue
        callee = waiting.pop(0)
        if callee in path:
            cycle = " -> ".join((*list(path)[list(path).index(callee) :], callee))
            report.error(f"definitions must not call themselves: {cycle}", callees[callee])
        elif callee not in done:
            enter(callee)
