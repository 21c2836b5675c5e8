"""``Element``: HTML and SVG as a tree, in which text is text until it is written, and escaped then."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from tc.base.frozen import frozen

# Elements that have no end tag.
_VOID: Final = frozenset({"meta", "link", "br"})
# What no document may hold, and characters that change the direction in which the text around them reads.
_UNFIT: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@frozen
class Own:
    """Text of our own that stands as it is, inside ``style`` and ``script``."""

    text: str


@frozen
class Element:
    """An element with its attributes and what it holds; strings in it are shown as they are, whatever they say."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple[Element | Own | str, ...]


Node: TypeAlias = Element | Own | str
Content: TypeAlias = "Node | Iterable[Content] | None"


def element(name: str, /, *content: Content, **attributes: str | float | None) -> Element:
    """An element; None is left out, of the content as of the attributes.

    Attributes whose names are words of Python end with an underscore; other underscores stand for hyphens.
    """
    named = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    return Element(name, tuple((key, attribute_text(value)) for key, value in named), tuple(_flat(content)))


def attribute_text(value: str | float) -> str:
    """A string as it is, a number to a hundredth, which is less than a screen shows."""
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def render(node: Node) -> str:
    """The node as HTML."""
    return "".join(_rendered(node))


def shown(text: str) -> str:
    """The text without what a document may not hold or what would make it read otherwise than it is."""
    return _UNFIT.sub("\ufffd", text)


def _flat(content: Iterable[Content]) -> Iterator[Node]:
    for item in content:
        if isinstance(item, Element | Own | str):
            yield item
        elif item is not None:
            yield from _flat(item)


def _rendered(node: Node) -> Iterator[str]:
    match node:
        case str():
            yield html.escape(shown(node))
        case Own(text):
            yield text
        case Element(name, attributes, children):
            yield f"<{name}"
            for key, value in attributes:
                yield f' {key}="{html.escape(shown(value))}"'
            yield ">"
            for child in children:
                yield from _rendered(child)
            if name not in _VOID:
                yield f"</{name}>"
