"""``tc-cache add``: chosen options and injected sources, checked and put into a cache."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tc.base.counted import duration
from tc.base.environment import environment
from tc.base.errors import OptionsError
from tc.cache.content.store import Store
from tc.commands.jobs import Job, Request, parse_sizes, read_text
from tc.runtime.named_target import named_target
from tc.targets.default_options import default_options
from tc.targets.options import Options
from tc.targets.target import Target
from tc.tuner.session.inject import Injected, Wish, inject
from tc.tuner.space.starts import read_starts

_SQLITE: Final = b"SQLite format 3\0"


def add(given: argparse.Namespace, open_cache: Callable[[str | None], Store]) -> list[str]:
    """Adds what is asked for to a cache; what came of it, a line for each kernel.

    OptionsError for what cannot be asked for; errors of ``inject`` for what is not right, of which nothing is kept.
    """
    cache, text = _files(given.files)
    if given.options is None and given.source is None:
        raise OptionsError("name what to add: --options JSON, --source FILE, or both")
    target = named_target(given.target)
    options = _options(given.options, target)
    source = None if given.source is None else read_text(given.source)
    names = () if given.definition is None else (given.definition,)
    request = Request(str(text), read_text(text), names, tuple(map(parse_sizes, given.size)), tuple(given.dtype))
    jobs = list(request.jobs())
    if len({job.subject.definition.interface.name for job in jobs}) > 1:
        raise OptionsError(f"{text} has several definitions; name one with --definition")
    store = open_cache(cache)
    return [_line(job, inject(_wish(job, target, options, source), store, environment())) for job in jobs]


def _wish(job: Job, target: Target, options: Options, source: str | None) -> Wish:
    return Wish(job.subject, target, options, source)


def _files(files: Sequence[str]) -> tuple[str | None, Path]:
    """The cache, None for the usual one, and the file of definitions, in any order."""
    caches = [file for file in files if _is_cache(file)]
    texts = [file for file in files if file not in caches]
    if len(caches) > 1 or len(texts) != 1:
        raise OptionsError(
            f"name a cache and one file of definitions, as in `tc-cache add tuned.db kernels.tc`, got {files}"
        )
    return (caches[0] if caches else None), Path(texts[0])


def _is_cache(file: str) -> bool:
    """Whether it is a cache, or the name of one that is to be made."""
    if "://" in file:
        return True
    try:
        with Path(file).open("rb") as content:
            return content.read(len(_SQLITE)) == _SQLITE
    except FileNotFoundError:
        return Path(file).suffix != ".tc"
    except OSError:
        return False


def _options(text: str | None, target: Target) -> Options:
    if text is None:
        return default_options(target)
    found = read_starts([text], target, "options")
    if len(found) != 1:
        raise OptionsError(f"--options takes those of one kernel, got {len(found)}")
    return found[0]


def _line(job: Job, injected: Injected) -> str:
    low, high = injected.interval
    gain = injected.default / injected.seconds
    times = f"{duration(injected.seconds)} ({duration(low)} to {duration(high)}), {gain:.2f}x the default"
    return f"{job}: {times}; {injected.executable.proof}"
