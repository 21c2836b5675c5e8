"""Everything that a cache says of one kernel, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tc.artifact.packing import decisions_said
from tc.base.counted import counted
from tc.cache.content.contents import Contents
from tc.cache.format.ingredients import FIELDS
from tc.cache.format.records import Measurement, Variant
from tc.cache.format.tables import OUTCOMES
from tc.commands.contents.kernel_summary import KernelSummary
from tc.commands.contents.terminal import printable, shortened
from tc.commands.contents.wording import facts_said, options_said, shapes_said, time_said

_INDENT: Final = "    "
_WIDTH: Final = 13
# Nothing of ours is longer; the rest of what is would bury everything else.
_LONGEST: Final = 4000


def showing(contents: Contents, summary: KernelSummary) -> str:
    """The ingredients of a kernel, its variants with what was measured of them, and how many trials it has had."""
    chosen = summary.chosen
    return "\n".join(
        (
            *_head(summary),
            *(
                line
                for number, variant in enumerate(_by_time(summary), 1)
                for line in ("", *_variant(summary, variant, number, wins=variant is chosen))
            ),
            "",
            _line("trials", _trials(contents, summary)),
        )
    )


def source_text(variant: Variant) -> str:
    """The source, as a terminal may show it."""
    return printable(variant.source, kept="\n\t").removesuffix("\n")


def _head(summary: KernelSummary) -> Iterator[str]:
    ingredients = summary.ingredients
    yield _line("kernel", ingredients.key)
    yield _line("definition", summary.name or "(no text in the cache has it)")
    yield _line("extents", shapes_said(ingredients))
    yield _line("stored", summary.stored)
    for name in FIELDS:
        value = getattr(ingredients, name)
        if name == "program":
            yield "program"
            yield from (_INDENT + shortened(line, _LONGEST) for line in value[:_LONGEST].splitlines())
        else:
            yield _line(name, value)


def _by_time(summary: KernelSummary) -> list[Variant]:
    """The quickest first, then those that were never measured."""
    quickest: dict[str, float] = {}
    for one in summary.measurements:
        quickest[one.variant] = min(one.seconds, quickest.get(one.variant, one.seconds))
    unmeasured = max(quickest.values(), default=0.0)
    return sorted(
        summary.variants, key=lambda v: (v.identity not in quickest, quickest.get(v.identity, unmeasured), v.identity)
    )


def _variant(summary: KernelSummary, variant: Variant, number: int, *, wins: bool) -> Iterator[str]:
    yield f"variant {number} of {len(summary.variants)}" + (", which a call here runs" if wins else "")
    measured = [one for one in summary.measurements if one.variant == variant.identity]
    for name, value in _facts(variant, summary.ingredients.target, measured):
        yield _INDENT + _line(name, value)


def _facts(variant: Variant, target: str, measured: list[Measurement]) -> Iterator[tuple[str, str]]:
    yield "options", options_said(variant.options, target)
    yield from (("decided", line) for line in decisions_said(variant.executable))
    yield "threads", str(variant.threads)
    yield from (("measured", _measurement(one)) for one in measured)
    if not measured:
        yield "measured", "never"
    yield "resources", facts_said(variant.resources)
    yield "proof", variant.proof
    yield "numerics", variant.numerics or "not classified"
    yield "features", variant.features or "none beyond the plainest"
    yield "libc", variant.libc or "none"
    yield "origin", facts_said(variant.origin)


def _measurement(one: Measurement) -> str:
    samples, threads = counted(one.samples, "sample"), counted(one.threads, "thread")
    run = f" of run {one.run[:8]}" if one.run else ""
    return f"{time_said(one)}; {samples}{run}, {one.policy}, {threads} on {one.machine}, {one.at}"


def _trials(contents: Contents, summary: KernelSummary) -> str:
    rows = contents.session.rows(OUTCOMES, kernel=summary.ingredients.key)
    counts = [(str(row["outcome"]), int(str(row["trials"]))) for row in rows]
    parts = ", ".join(f"{count} {outcome}" for outcome, count in counts)
    return f"{sum(count for _, count in counts)} ({parts})" if counts else "none"


def _line(name: str, value: str) -> str:
    return f"{name:{_WIDTH}}{shortened(value, _LONGEST)}".rstrip()
