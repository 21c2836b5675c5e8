"""Checks the whole text of a message."""

from __future__ import annotations

import pytest

from tc.base.errors import ParseError
from tc.grammar.parser import parse


def require_message(text: str, message: str) -> None:
    """The text is refused with this message; empty lines around it do not count."""
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert str(caught.value) == message.strip("\n")
