"""Messages about characters that the language does not use."""

from __future__ import annotations

import pytest

from tests.grammar.messages import require_message

MESSAGES = {
    "def f() \u2192 (c) { }": """
1:9: expected `->`, found `\u2192`
    def f() \u2192 (c) { }
            ^
    hint: write `->`
""",
    "def f() -> (c) { c = a \u2264 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u2264`
    def f() -> (c) { c = a \u2264 b }
                           ^
    hint: write `<=`
""",
    "def f() -> (c) { c = a \u2265 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u2265`
    def f() -> (c) { c = a \u2265 b }
                           ^
    hint: write `>=`
""",
    "def f() -> (c) { c = a \u2260 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u2260`
    def f() -> (c) { c = a \u2260 b }
                           ^
    hint: write `!=`
""",
    "def f() -> (c) { c = a \u2212 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u2212`
    def f() -> (c) { c = a \u2212 b }
                           ^
    hint: write `-`
""",
    "def f() -> (c) { c = a \u2013 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u2013`
    def f() -> (c) { c = a \u2013 b }
                           ^
    hint: write `-`
""",
    "def f() -> (c) { c = a \xd7 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\xd7`
    def f() -> (c) { c = a \xd7 b }
                           ^
    hint: write `*`
""",
    "def f() -> (c) { c = a \xb7 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\xb7`
    def f() -> (c) { c = a \xb7 b }
                           ^
    hint: write `*`
""",
    "def f() -> (c) { c = a \u22c5 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u22c5`
    def f() -> (c) { c = a \u22c5 b }
                           ^
    hint: write `*`
""",
    "def f() -> (c) { c = a \xf7 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\xf7`
    def f() -> (c) { c = a \xf7 b }
                           ^
    hint: write `/`
""",
    "def f() -> (c) { c =\xa0a }": """
1:21: expected an expression, found the character U+00A0
    def f() -> (c) { c = a }
                        ^
    hint: write an ordinary space
""",
    "def f() -> (c) { c = \xe9 }": """
1:22: expected an expression, found `\xe9`
    def f() -> (c) { c = \xe9 }
                         ^
    hint: names have the letters a to z, digits and `_`
""",
    'def f() -> (c) { c = "a" }': """
1:22: expected an expression, found `"`
    def f() -> (c) { c = "a" }
                         ^
    hint: write no quotes: names stand alone
""",
    "def f() -> (c) { c = a $ b }": """
1:24: expected an operator, a statement, `where` or `}`, found `$`
    def f() -> (c) { c = a $ b }
                           ^
    hint: the language does not use this character
""",
    "def f() -> (c) { c = a \0 b }": """
1:24: expected an operator, a statement, `where` or `}`, found the character U+0000
    def f() -> (c) { c = a \ufffd b }
                           ^
    hint: the language does not use this character
""",
    "def f() -> (c) { c = a \u21d2 b }": """
1:24: expected an operator, a statement, `where` or `}`, found `\u21d2`
    def f() -> (c) { c = a \u21d2 b }
                           ^
    hint: write `->`
""",
}


@pytest.mark.parametrize(("text", "message"), MESSAGES.items(), ids=lambda text: ascii(text[:40]))
def test_message(text: str, message: str) -> None:
    require_message(text, message)
