"""Syntax tree to ``Program``: the front end's way through checking, values, types, ranges and proofs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    lowering = _Lowering(definitions, source, report)
    for name in definitions:
        lowering.program(name, ())
    report.raise_if_any(source)
    return {name: program for name in definitions if (program := lowering.done[name]) is not None}


@dataclass(slots=True)
class _Lowering:
    """Lowers definitions, those that are called before their callers; None stands for one in error."""

    definitions: Mapping[str, syntax.Definition]
    source: str | None
    report: Report
    done: dict[str, Program | None] = field(default_factory=dict)

    def program(self, name: str, callers: tuple[str, ...]) -> Program | None:
        if name not in self.done:
            definition = self.definitions[name]
            callees: dict[str, Program | None] = {}
            for callee, span in called_names(definition, self.definitions).items():
                if callee in (*callers, name):
                    cycle = " -> ".join((*callers, name, callee))
                    self.report.error(f"definitions must not call themselves: {cycle}", span)
                    callees[callee] = None
                else:
                    callees[callee] = self.program(callee, (*callers, name))
            self.done[name] = lower_definition(
                definition, callees, frozenset(self.definitions), self.source, self.report
            )
        return self.done[name]
