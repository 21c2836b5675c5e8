"""Tables that Lark makes of the grammar, and that are kept beside it: its own, and the steps of our parser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import lark
from lark import Lark
from lark.grammar import Rule, Symbol, Terminal
from lark.lexer import TerminalDef
from lark.parsers.lalr_analysis import Shift

from tc.grammar.lexer import OnePatternLexer
from tc.grammar.step_tables import GRAMMAR, made_for
from tc.grammar.steps import Reduction, StepTables
from tc.grammar.syntax_builder import Builder

TABLES: Final = Path(__file__).with_name("tc.json")
_PLUGINS: Final = {"ContextualLexer": OnePatternLexer}


class Spread:
    """A builder as Lark calls it: with a list of values."""

    def __init__(self, builder: Builder) -> None:
        self._builder: Final = builder

    def __getattr__(self, name: str) -> Callable[[list[Any]], Any]:
        method = getattr(self._builder, name)
        return lambda values: method(*values)


def parser(builder: Builder | None) -> Lark:
    """The parser of the language, from its tables where they belong to this grammar and this version of Lark."""
    kept = json.loads(TABLES.read_bytes(), object_pairs_hook=_numbered)
    if kept["made_for"] != made_by():
        return built(builder)
    kept["data"]["options"] |= {"transformer": builder and Spread(builder), "_plugins": _PLUGINS}
    return Lark.load(kept)


def built(builder: Builder | None) -> Lark:
    """The parser of the language, made of the grammar."""
    transformer: Any = builder and Spread(builder)  # Lark asks for attributes alone
    return Lark(
        GRAMMAR.read_text(encoding="utf-8"),
        parser="lalr",
        lexer="contextual",
        transformer=transformer,
        maybe_placeholders=False,
        _plugins=_PLUGINS,
    )


def tables() -> str:
    """What ``TABLES`` should hold.  The order in which Lark numbers states differs from process to process."""
    data, memo = built(None).memo_serialize([TerminalDef, Rule])
    data["options"]["_plugins"] = {}
    made = {"made_for": made_by(), "data": data, "memo": memo}
    return json.dumps(made, separators=(",", ":")) + "\n"


def made_by() -> str:
    """What Lark's tables belong to."""
    return f"lark {lark.__version__}, {made_for(GRAMMAR.read_bytes())}"


def steps_of(found: Lark) -> StepTables:
    """The steps of a parser of Lark, whose states are numbered as they are reached from the first one."""
    own: Any = found  # which declares no types of what it consists of
    table, lexer = own.parser.parser.parser.parse_table, own.parser.lexer
    (start,), (end,) = table.start_states.values(), table.end_states.values()
    numbers, rules = _reached(start, table.states), sorted(_rules(table.states), key=str)
    reductions = {rule: ~number for number, rule in enumerate(rules)}
    rows, lexers, patterns = [], [], {_pattern(lexer.root_lexer): 0}
    for state in numbers:
        row = sorted(table.states[state].items())
        rows.append({name: numbers[at] if action is Shift else reductions[at] for name, (action, at) in row})
        lexers.append(patterns.setdefault(_pattern(lexer.lexers[state]), len(patterns)))
    return StepTables(
        rows,
        [_reduction(rule) for rule in rules],
        numbers[start],
        numbers[end],
        list(patterns),
        lexers,
        sorted(lexer.root_lexer.ignore_types),
    )


def _reached(start: Any, states: Any) -> dict[Any, int]:
    numbers = {start: 0}
    for state in (waiting := [start]):
        for _, (action, after) in sorted(states[state].items()):
            if action is Shift and after not in numbers:
                numbers[after] = len(numbers)
                waiting.append(after)
    return numbers


def _rules(states: Any) -> set[Rule]:
    return {rule for row in states.values() for action, rule in row.values() if action is not Shift}


def _pattern(lexer: Any) -> str:
    """Of all terminals of a lexer."""
    (pattern,) = lexer.scanner._mres
    assert pattern.flags == re.UNICODE, "flags belong into the patterns of terminals, as the tables have no others"
    return str(pattern.pattern)


def _reduction(rule: Rule) -> Reduction:
    """As Lark's ``ParseTreeBuilder`` makes values: it leaves out tokens without names, and puts in lists of helpers."""
    name: str = rule.alias or rule.origin.name
    kept = tuple((place, _is_list(part)) for place, part in enumerate(rule.expansion) if not _is_left_out(part))
    whole = kept == tuple((place, False) for place in range(len(rule.expansion)))
    return Reduction(
        len(rule.expansion),
        rule.origin.name,
        None if whole else kept,
        None if name.startswith("_") else name,
        rule.options.expand1 and not rule.alias,
    )


def _is_list(part: Symbol) -> bool:
    return not part.is_term and part.name.startswith("_")


def _is_left_out(part: Symbol) -> bool:
    return isinstance(part, Terminal) and part.filter_out


def _numbered(pairs: list[tuple[str, object]]) -> dict[str | int, object]:
    """An object of JSON whose keys are numbers again where they were."""
    return {int(key) if key.isdecimal() else key: value for key, value in pairs}
