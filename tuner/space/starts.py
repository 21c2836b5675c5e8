"""Options that a search begins with, as the user gives them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from tc.base.errors import OptionsError
from tc.targets.numerics import Numerics
from tc.targets.options import CpuOptions, GpuOptions, Options
from tc.targets.options_json import from_json, parse
from tc.targets.target import CpuTarget, Target

Starts: TypeAlias = tuple[Options, ...]


def given_starts(given: Options | Sequence[Options] | None) -> Starts:
    """What ``f.tune`` takes as ``start``: options, or several, each once.  OptionsError for anything else."""
    if given is None:
        return ()
    found = tuple(given) if isinstance(given, list | tuple) else (given,)
    for one in found:
        if not isinstance(one, CpuOptions | GpuOptions):
            raise OptionsError(f"start must be tc.CpuOptions(...), tc.GpuOptions(...) or a list of them, got {one!r}")
    return tuple(dict.fromkeys(found))


def require_startable(starts: Starts, target: Target) -> None:
    """OptionsError for options of another kind of target, and for those that no search may choose."""
    kind = _kind(target)
    for one in starts:
        if not isinstance(one, kind):
            raise OptionsError(f"start must be tc.{kind.__name__} for target {str(target)!r}, got {one!r}")
        if not one.check_indices:
            raise OptionsError(
                "options leave out the checks of indices, and a winner serves calls that rely on them; leave "
                "check_indices out"
            )


def numerics_of(starts: Starts, own: Numerics) -> Numerics:
    """Those of a search: what options to start from have, else its own.  OptionsError where these differ."""
    found = tuple(dict.fromkeys(one.numerics for one in starts))
    if len(found) > 1:
        raise OptionsError(
            f"start has options with {found[0]} and with {found[1]}; no search mixes them: give those with one"
        )
    return found[0] if found else own


def read_starts(texts: Sequence[str], target: Target, what: str = "start") -> Starts:
    """The options that texts name: each is JSON, options or a list of them, or the name of a file with such JSON.

    ``what``: what they are for.  OptionsError, naming that or the file, for anything else.
    """
    kind = _kind(target)
    return tuple(dict.fromkeys(one for text in texts for one in _read(text, kind, what)))


def _read(text: str, kind: type[CpuOptions] | type[GpuOptions], what: str) -> Iterator[Options]:
    place, content = what, text
    if not text.lstrip().startswith(("{", "[")):
        place = f"{what} {text}"
        try:
            content = Path(text).read_text(encoding="utf-8")
        except OSError as error:
            raise OptionsError(
                f"{what} must be JSON, or the name of a file with JSON; {text!r}: {error.strerror}"
            ) from error
        except ValueError as error:
            raise OptionsError(f"{place} is no text: {error}") from error
    try:
        data = parse(content)
        for one in data if isinstance(data, list) else (data,):
            yield from_json(one, kind)
    except OptionsError as error:
        raise OptionsError(f"{place}: {error}") from error


def _kind(target: Target) -> type[CpuOptions] | type[GpuOptions]:
    return CpuOptions if isinstance(target, CpuTarget) else GpuOptions
