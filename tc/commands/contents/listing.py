"""The kernels of a cache as a table, a line for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

from tc.artifact.packing import has_injected_source
from tc.base.counted import duration
from tc.base.frozen import frozen
from tc.cache.content.contents import Contents
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import Measurement
from tc.cache.format.tables import MEASUREMENTS, TRIAL_COUNTS
from tc.commands.contents.kernel_summary import SHORT, deciding, names_of
from tc.commands.contents.terminal import shortened, table
from tc.commands.contents.wording import dtypes_said, shapes_said, speedup_said, target_said

_HEADINGS: Final = ("key", "definition", "shapes", "types", "target", "time", "speed-up", "trials")
_LONGEST: Final = 36


@frozen
class Filter:
    """Which kernels are meant: for a target, ``cpu`` or ``cpu:x86-64-v3``, and with a text in name or program."""

    target: str | None = None
    program: str | None = None

    def accepts(self, ingredients: Ingredients, name: str) -> bool:
        """Whether the kernel, whose definition is called ``name``, is meant."""
        if self.target is not None and self.target not in (ingredients.target, target_said(ingredients)):
            return False
        return self.program is None or self.program in name or self.program in ingredients.program


def listing(contents: Contents, wanted: Filter) -> str:
    """The table of the kernels that are wanted, sorted by definition; one line if there is none."""
    names, times, trials = names_of(contents), _times(contents), _trials(contents)
    rows = sorted(
        (
            _row(ingredients, name, times.get(ingredients.key, ()), trials.get(ingredients.key, 0))
            for ingredients, _ in contents.kernels()
            if wanted.accepts(ingredients, name := names.get(ingredients.definition, ""))
        ),
        key=lambda row: (*row[1:], row[0]),
    )
    return table(_HEADINGS, rows) if rows else f"no such kernels in {shortened(contents.place, 1000)}"


def kernel_line(ingredients: Ingredients) -> str:
    """A kernel in one line, without its name."""
    return "  ".join(_description(ingredients, ""))


def _description(ingredients: Ingredients, name: str) -> tuple[str, ...]:
    cells = (
        name or next(iter(ingredients.program.splitlines()), ""),
        shapes_said(ingredients),
        dtypes_said(ingredients.dtypes),
        target_said(ingredients),
    )
    return ingredients.key[:SHORT], *(shortened(cell, _LONGEST) for cell in cells)


def _row(ingredients: Ingredients, name: str, measured: tuple[Measurement, ...], trials: int) -> tuple[str, ...]:
    decision = deciding(measured, ingredients.target)
    time = ("-", "-") if decision is None else (duration(decision.seconds), _gain(decision))
    return *_description(ingredients, name), *time, str(trials)


def _gain(decision: Measurement) -> str:
    """The speed-up, and that an injected source is not proven."""
    gain = speedup_said(decision) or "-"
    return f"{gain}, injected source" if has_injected_source(decision.options) else gain


def _times(contents: Contents) -> Mapping[str, tuple[Measurement, ...]]:
    measured: Iterator[Measurement] = (record for record, _ in contents.records(MEASUREMENTS, "kernel, identity"))
    return {kernel: tuple(group) for kernel, group in groupby(measured, lambda one: one.kernel)}


def _trials(contents: Contents) -> Mapping[str, int]:
    return {str(row["kernel"]): int(str(row["trials"])) for row in contents.session.rows(TRIAL_COUNTS)}
