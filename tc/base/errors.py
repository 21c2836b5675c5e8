"""The error family of ``tc`` and the one place that renders a caret under a piece of source text.

Every message says what is wrong, where, and what to do about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tc.base.frozen import frozen


@frozen
class Span:
    """Half-open range of character offsets in a source text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The smallest span that covers ``self`` and ``other``."""
        return Span(min(self.start, other.start), max(self.end, other.end))


@frozen
class Diagnostic:
    """One complaint about a source text; ``hint`` says what to write instead."""

    message: str
    span: Span | None = None
    hint: str | None = None


def line_and_column(source: str, offset: int) -> tuple[int, int]:
    """One-based line and column of a character offset."""
    ends = [end.end() for end in re.finditer(_LINE_END, source) if end.end() <= offset]
    return len(ends) + 1, offset - (ends[-1] if ends else 0) + 1


# Those of old Macs, and of Windows, count like others.
_LINE_END = r"\r\n|\r|\n"

# A line of generated text can be a megabyte long; only this much of it is shown around the caret.
_WINDOW = 100


def _printable(text: str) -> str:
    """The line with one visible column for every character, so that the caret stands right."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


def render(diagnostic: Diagnostic, source: str | None) -> str:
    """``line:column: message``, the line of the source, a caret under the span, and the hint."""
    lines: list[str] = []
    if source is None or diagnostic.span is None:
        lines.append(diagnostic.message)
    else:
        start = min(diagnostic.span.start, len(source))
        line, column = line_and_column(source, start)
        lines.append(f"{line}:{column}: {diagnostic.message}")
        begin = start - column + 1
        end = re.compile(_LINE_END).search(source, start)
        text = source[begin : len(source) if end is None else end.start()]
        width = max(1, min(diagnostic.span.end, begin + len(text)) - start)
        cut = max(0, column - 1 - _WINDOW // 2)
        shown = _printable(text[cut : cut + _WINDOW])
        lines.append("    " + shown)
        lines.append("    " + " " * (column - 1 - cut) + "^" * max(1, min(width, len(shown) - (column - 1 - cut))))
    if diagnostic.hint is not None:
        lines.append(f"    hint: {diagnostic.hint}")
    return "\n".join(lines)


class TCError(Exception):
    """Base of every error that this package raises on purpose."""


class TextError(TCError):
    """One or more complaints about the text of a definition, in the order of their places."""

    def __init__(self, diagnostics: Sequence[Diagnostic] | Diagnostic, source: str | None = None) -> None:
        found = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        self.diagnostics = tuple(sorted(found, key=lambda d: d.span.start if d.span is not None else 0))
        self.source = source
        super().__init__("\n".join(render(diagnostic, source) for diagnostic in self.diagnostics))


class ParseError(TextError):
    """The text is not in the grammar."""


class SemanticError(TextError):
    """The text is in the grammar but means nothing: names, types, reductions, values."""


class RangeError(SemanticError):
    """The range of an iterator is undetermined, contradictory or leaves a tensor."""


class GradientError(TextError):
    """What a derivative of a definition was asked for that there is not: which part has none, and why."""


class GraphError(TCError):
    """A graph, a model, or the file of one, that cannot be read, means nothing, or needs what there is not."""


class ArgumentError(TCError):
    """A call does not fit the definition: which argument, what was expected, what came."""


class OptionsError(TCError):
    """An option is unknown, out of its range, or cannot be honoured by this kernel or target."""


class VerificationError(TCError):
    """The proof of a mapped program failed; the message holds one witness instance or pair."""


class CompileError(TCError):
    """The compiler of the target refused the generated source."""


class DeviceError(TCError):
    """A target cannot serve on this machine, or its driver reported a fault."""


class NoRoomError(DeviceError):
    """A temporary file cannot be written; it says which folder there is, how much room in it, and what to do."""


class StickyDeviceError(DeviceError):
    """A kernel broke its device for this process: every further call fails, until another process is started."""


class TooLargeError(TCError):
    """What is asked of the oracle needs more memory than it may take; nothing was computed."""


class CacheError(TCError):
    """The compilation cache is damaged, unreadable, or misses an entry that it had to have."""


class TuningError(TCError):
    """A search for options cannot go on: nothing runs, or what it needs is not there."""


class CacheWarning(UserWarning):
    """The compilation cache is not used, or misses what it was expected to have; results are right all the same."""


class LibraryCallWarning(UserWarning):
    """A statement names a library call behind ``<=>``: what stands before it is computed, and the call is ignored."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most similar to ``name``, for hints."""
    import difflib  # only error paths need it

    names = list(known)
    same = [other for other in names if other.lower() == name.lower()]
    # Two letters that changed places are likelier than one that is missing: `tahn`.
    same = same or [other for other in names if len(name) > 2 and sorted(other.lower()) == sorted(name.lower())]
    found = same or difflib.get_close_matches(name, names, n=1)
    return found[0] if found else None
