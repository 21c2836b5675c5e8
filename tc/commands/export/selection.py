"""Which kernels of a cache are exported, in which variant, and under which names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from tc.artifact.executable import Executable
from tc.artifact.packing import assemble
from tc.base.counted import counted
from tc.base.errors import CacheError, OptionsError
from tc.base.frozen import frozen
from tc.cache.content.contents import Contents
from tc.cache.format.database_errors import damaged
from tc.cache.format.records import Variant
from tc.commands.contents.kernel_summary import SHORT, KernelSummary, summaries
from tc.commands.contents.listing import Filter
from tc.commands.contents.wording import options_said, time_said
from tc.export.exported import Exported
from tc.targets.target import CpuTarget, EmulatorTarget

# Of a name, and of each of its parts.
_LONGEST: Final = 64
_DIGITS: Final = 8


_DESCRIBED: Final = (
    "it copies boxes of tensors that only the CUDA driver can describe; "
    "tune or compile it with tensor_cores=tc.TensorCores.WARPGROUPS"
)


@frozen
class Selection:
    """``omitted``: why a kernel is not exported, one line for each."""

    exported: tuple[Exported, ...]
    omitted: tuple[str, ...]


def select(contents: Contents, wanted: Filter) -> Selection:
    """The winners, and default variants where nothing was measured, of all kernels that are wanted.

    CacheError if there is none, or for damage; OptionsError for kernels that do not fit into one program.
    """
    found: list[tuple[KernelSummary, Variant, Executable]] = []
    omitted = []
    for summary in summaries(contents):
        if not wanted.accepts(summary.ingredients, summary.name):
            continue
        variant = summary.chosen
        if variant is None:
            omitted.append(f"{summary.ingredients.key[:SHORT]}: {_reason(summary)}")
            continue
        executable = _executable(contents, variant)
        if any(grid.maps for grid in executable.convention.grids):
            omitted.append(f"{summary.ingredients.key[:SHORT]}: {_DESCRIBED}")
        else:
            found.append((summary, variant, executable))
    if not found:
        raise CacheError(f"{contents.place} has no kernel to export; tune one, or ask for another target or program")
    machines = sorted({e.target.machine for _, _, e in found if isinstance(e.target, CpuTarget | EmulatorTarget)})
    if len(machines) > 1:
        raise OptionsError(f"kernels for {' and '.join(machines)} make no program together; choose one with --target")
    names = _names([(_readable(executable), summary.ingredients.key) for summary, _, executable in found])
    exported = (_exported(name, *rest) for name, rest in zip(names, found, strict=True))
    return Selection(tuple(sorted(exported, key=lambda kernel: kernel.name)), tuple(omitted))


def _exported(name: str, summary: KernelSummary, variant: Variant, executable: Executable) -> Exported:
    decision = summary.deciding
    if decision is None:
        time = "was never measured"
    else:
        time = f"takes {time_said(decision)}, on {counted(decision.threads, 'thread')} of {decision.machine}"
    return Exported(
        name=name,
        executable=executable,
        origin=f"kernel {variant.kernel} of a cache",
        program=summary.ingredients.program,
        options=options_said(variant.options, summary.ingredients.target),
        time=time,
        seconds=0.0 if decision is None else decision.seconds,
        default_seconds=0.0 if decision is None else decision.default_seconds,
    )


def _reason(summary: KernelSummary) -> str:
    if not summary.variants:
        return "it was only tried, and nothing of it was kept"
    return f"of its {counted(len(summary.variants), 'variant')} none was measured, and none has the default options"


def _executable(contents: Contents, variant: Variant) -> Executable:
    try:
        return assemble(variant.executable, variant.options, variant.source, variant.binary)
    except (ValueError, RecursionError) as error:
        what = f"it holds what tc did not make ({error})"
        raise damaged(contents.place, f"kernel {variant.kernel[:SHORT]}", what) from error


def _readable(executable: Executable) -> str:
    """What tells people which kernel it is: ``kernel_mm_1to7x13_13x5``, for the processor and float32."""
    convention, target = executable.convention, executable.target
    signature = convention.signature
    kinds = {spec.dtype.value: None for _, spec in signature.arguments}
    types = () if list(kinds) == ["float32"] else tuple(kinds)
    where = () if isinstance(target, CpuTarget) else (str(target),)
    shapes = ["x".join(signature.extents(name)).replace("..", "to") for name, _ in signature.arguments]
    values = [f"{name}{value}" for name, value in signature.scalars]
    words = ("kernel", convention.interface.name, *shapes, *values, *types, *where)
    return "_".join(plain for word in words if (plain := re.sub(r"[^A-Za-z0-9]+", "_", word[:_LONGEST]).strip("_")))


def _names(kernels: Iterable[tuple[str, str]]) -> list[str]:
    """A name of its own for each pair of a readable one and a key, also where large and small letters are the same."""
    cut = [(name[:_LONGEST].rstrip("_"), name, key) for name, key in kernels]
    times = Counter(short.casefold() for short, _, _ in cut)
    names = [
        short if times[short.casefold()] == 1 and short == name else f"{short}_{key[:_DIGITS]}"
        for short, name, key in cut
    ]
    times = Counter(name.casefold() for name in names)
    # No name of at most so many letters ends in a whole key.
    return [
        name if times[name.casefold()] == 1 else f"{short}_{key}"
        for name, (short, _, key) in zip(names, cut, strict=True)
    ]
