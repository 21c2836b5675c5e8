"""A hash of what sources do: comments, docstrings and layout are left out, and all versions of Python agree on it.

Kernels that were kept serve only the sources that would make them again (``tc.base.generator``).  Edited prose must not
make a tuned cache worthless, and a cache that one version of Python filled must serve another one.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
from pathlib import Path
from typing import Final

# The rooms that look at kernels from outside, run them, or are packages of their own.
_ASIDE: Final = (
    "api", "cache", "commands", "dispatch", "grammar", "prediction", "reference", "store", "tuner", "__pycache__",
    "polyhedral/gpu/cost",
)  # fmt: skip
_SOURCES: Final = (".py", ".h", ".c", ".lark")
# Of a node: where a name is read or written follows from what is around it, and the rest from comments and spelling.
_LEFT_OUT: Final = frozenset({"ctx", "kind", "type_comment", "type_ignores"})
_C_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LARK_COMMENT: Final = re.compile(r"^\s*//.*$", re.MULTILINE)


def source_files(package: str, folder: Path) -> list[tuple[str, Path]]:
    """The sources of a package that decide what kernels are, in order: ``package/...`` and where it is."""
    found: list[tuple[str, Path]] = []
    for parent, folders, names in os.walk(folder):
        inside = Path(parent).relative_to(folder)
        folders[:] = [name for name in folders if (inside / name).as_posix() not in _ASIDE]
        found += [(f"{package}/{(inside / n).as_posix()}", Path(parent, n)) for n in names if n.endswith(_SOURCES)]
    return sorted(found)


def source_hash(files: list[tuple[str, Path]]) -> str:
    """16 hexadecimal digits for the meaning of all files together."""
    digest = hashlib.sha256()
    for name, path in files:
        meaning = canonical(path.suffix, path.read_text(encoding="utf-8"))
        digest.update(f"{name}\0{len(meaning)}\0{meaning}".encode())
    return digest.hexdigest()[:16]


def canonical(suffix: str, text: str) -> str:
    """The text of a source without what changes nothing; SyntaxError for what is not Python."""
    match suffix:
        case ".py":
            words: list[str] = []
            _add_words(words, ast.parse(text))
            return "\n".join(words)
        case ".lark":
            text = _LARK_COMMENT.sub("", text)
        case _:
            text = _C_COMMENT.sub(lambda found: found[1] or " ", text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def _add_words(words: list[str], node: object) -> None:
    """A syntax tree as words: ``ast.dump`` differs between versions of Python, in what is empty."""
    match node:
        case ast.AST():
            words.append(f"({type(node).__name__}")
            for field in sorted(node._fields):
                value = getattr(node, field, None)
                if field not in _LEFT_OUT and value is not None and value != []:
                    words.append(field)
                    _add_words(words, value)
            words.append(")")
        case list():
            words.append("[")
            for item in node:
                if not _is_prose(item):
                    _add_words(words, item)
            words.append("]")
        case _:
            words.append(ascii(node))


def _is_prose(statement: object) -> bool:
    """Whether a statement is a string alone: a docstring, of whatever stands before it."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
