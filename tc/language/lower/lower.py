"""Syntax tree to ``Program``: the front end's way through checking, values, types, ranges and proofs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tc.base.errors import Span
from tc.grammar import syntax
from tc.language.check.arg_reductions import expand_arg_reductions
from tc.language.check.declarations import called_names
from tc.language.check.held import AS_DECLARED, Held
from tc.language.lower.definition import lower_definition
from tc.language.program.program import Program
from tc.language.program.report import Report


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
            definitions[definition.name] = expand_arg_reductions(definition, report)
    report.raise_if_any(source)
    lowering = _Lowering(definitions, source, report)
    done: dict[str, Program | None] = {}
    for name in definitions:
        for next_name, callees in _callees_first(name, definitions, done, report):
            done[next_name] = lowering.lower(next_name, {callee: done.get(callee) for callee in callees})
    report.raise_if_any(source)
    return {name: program for name in definitions if (program := done[name]) is not None}


def lower_caller(text: syntax.Text, callees: Mapping[str, Program], source: str | None = None) -> Program | None:
    """The program of the only definition of a text, which calls definitions whose programs are known already.

    None where a callee must be lowered again for it, as of halves that a caller holds in float32; or where something is
    wrong: the whole text then says what.
    """
    (definition,) = text.definitions
    report = Report()
    expanded = expand_arg_reductions(definition, report)
    used = called_names(expanded, dict.fromkeys((*callees, definition.name), expanded))

    def inlined(name: str, held: Held) -> Program | None:
        if held != AS_DECLARED:
            raise _MissingError(name, held)
        return callees[name]

    known = frozenset((*callees, definition.name))
    try:
        return lower_definition(
            expanded, {name: callees[name] for name in used}, known, source, AS_DECLARED, inlined, report
        )
    except _MissingError:
        return None


class _MissingError(Exception):
    """A definition is to be lowered for a caller that holds its halves in another way, before its caller is."""

    def __init__(self, name: str, held: Held) -> None:
        super().__init__(name)
        self.wanted = name, held


class _Lowering:
    """Lowers the definitions of a text, again for callers that hold halves in float32."""

    def __init__(self, definitions: Mapping[str, syntax.Definition], source: str | None, report: Report) -> None:
        self._definitions = definitions
        self._source = source
        self._report = report
        self._callees: dict[str, Mapping[str, Program | None]] = {}
        self._done: dict[tuple[str, Held], Program | None] = {}

    def lower(self, name: str, callees: Mapping[str, Program | None]) -> Program | None:
        """The program of a definition whose callees were lowered before."""
        self._callees[name] = callees
        # A chain of calls may be long, so the stack is explicit.
        waiting = [(name, AS_DECLARED)]
        while waiting:
            try:
                self._done[waiting[-1]] = self._lower(*waiting[-1])
                waiting.pop()
            except _MissingError as missing:
                waiting.append(missing.wanted)
        return self._done[name, AS_DECLARED]

    def _lower(self, name: str, held: Held) -> Program | None:
        definition, known = self._definitions[name], frozenset(self._definitions)
        return lower_definition(definition, self._callees[name], known, self._source, held, self._inlined, self._report)

    def _inlined(self, name: str, held: Held) -> Program | None:
        if (name, held) not in self._done:
            raise _MissingError(name, held)
        return self._done[name, held]


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
