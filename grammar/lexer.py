"""Lark's contextual lexer with one pattern for all states of the parser, where that tells the same tokens apart."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from lark.common import LexerConf
from lark.lexer import BasicLexer, ContextualLexer
from lark.utils import TextSlice


class OnePatternLexer(ContextualLexer):
    """Takes a token by the pattern of all terminals if the parser can use it there, else by that of its state.

    Both are the same token: the terminals of a state are some of all, in the same order, and the first that matches
    wins.  Python compiles a pattern in half a millisecond, and texts of a few lines need those of 25 states.
    """

    def __init__(
        self, conf: LexerConf, states: dict[int, Collection[str]], always_accept: Collection[str] = ()
    ) -> None:
        # Lark declares no types of these.
        first: Callable[[TextSlice[str], int], tuple[str, str] | None] = BasicLexer(conf).match
        by_state: Callable[[BasicLexer, TextSlice[str], int], tuple[str, str] | None] = BasicLexer.match

        class OfStates(BasicLexer):
            """The lexer of the terminals that the parser can use in a state."""

            def __init__(self, own: LexerConf, comparator: Any = None) -> None:
                super().__init__(own, comparator)
                # Callbacks replace tokens: of keywords that a name matches too, or the user's.  There are none here.
                self.callback = dict(own.callbacks)
                self._own = frozenset(terminal.name for terminal in own.terminals)

            def match(self, text: TextSlice[str], pos: int) -> tuple[str, str] | None:
                found = first(text, pos)
                return found if found is not None and found[1] in self._own else by_state(self, text, pos)

        self.BasicLexer = OfStates
        super().__init__(conf, states, always_accept)
