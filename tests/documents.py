"""The documents: README, the pages of ``docs``, and the blocks of code that stand in them.

A block is a fence; its language says what it is, and a comment in the line before it says more: ``<!-- slow -->``
(a program that takes long), ``<!-- jax -->`` (one that needs that), ``<!-- output -->`` (what the program before it
prints), ``<!-- diagram -->``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
README: Final = ROOT / "README.md"
ERROR: Final = re.compile(r"\d+:\d+: ")
_FENCE: Final = re.compile(
    r"^(?: *<!-- (?P<mark>[a-z]+) -->\n)?(?P<indent> *)```(?P<language>[a-z]*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """``text`` in ``language``, which begins at ``line`` of ``page``; ``mark``: of the comment before it, or empty."""

    page: Path
    line: int
    language: str
    mark: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> tuple[Path, ...]:
    """All documents with blocks that are checked."""
    return (README, ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))


def blocks(page: Path) -> tuple[CodeBlock, ...]:
    """The blocks of a page in their order; those without a language get the one that they look like."""
    content = page.read_text(encoding="utf-8")
    found = []
    for fence in _FENCE.finditer(content):
        text = re.sub(rf"^{fence['indent']}", "", fence["text"], flags=re.MULTILINE)
        line = content.count("\n", 0, fence.start("language")) + 1
        found.append(CodeBlock(page, line, fence["language"] or _looks_like(text), fence["mark"] or "", text))
    return tuple(found)


def _looks_like(text: str) -> str:
    if text.startswith("def "):
        return "tc"
    return "text" if ERROR.match(text) else "console"
