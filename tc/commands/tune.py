"""``tc-tune``: finds quick options for kernels, and keeps them in a cache."""

from __future__ import annotations

import argparse
import functools
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tc.api.available import target_of_call
from tc.api.tuning import TuningRequest, device_numbers, first_device, workers_for, written_to
from tc.base.counted import counted, duration
from tc.base.environment import environment
from tc.base.errors import OptionsError, TCError
from tc.base.file_draft import draft_of
from tc.base.generator import RELEASE
from tc.cache.content.configured import read_key
from tc.cache.content.store import Store
from tc.commands.interruption import Interruption, StoppedError, interruptible
from tc.commands.jobs import Job, JobFile, Request, parse_names, parse_sizes, read_job_file, read_text
from tc.commands.models import ModelRequest, is_model, parse_shapes
from tc.commands.warned import warned
from tc.graph.ir.graph import Graph
from tc.graph.settings import Settings
from tc.graph.tuning.model_search import Keep, ModelSearch, search
from tc.graph.tuning.pool import Begin, KernelPool
from tc.runtime.host.threads import MOST_THREADS, available_threads
from tc.runtime.named_target import named_target
from tc.store.cached import KernelCache
from tc.tuner.session.console import console
from tc.tuner.session.control import Control
from tc.tuner.session.effort import EFFORTS
from tc.tuner.session.kernel_search import Tuning
from tc.tuner.session.progress_events import Listener, silence
from tc.tuner.session.say import say, tell
from tc.tuner.session.search_setup import Machines, tuning
from tc.tuner.session.searches import Searched, Searches
from tc.tuner.session.settings import Strategy, TuningResult
from tc.tuner.session.status_line import StatusLine
from tc.tuner.session.subject import Subject
from tc.tuner.space.starts import read_starts
from tc.tuner.trial.budget import Budget

if TYPE_CHECKING:
    from tc.targets.target import Target
    from tc.torch.tuning import TunedPart

# What ``TuningRequest`` takes as it is written on the command line and in files.
_AS_TEXT: Final = ("budget", "cache", "strategy", "numerics", "workers", "effort")
_HELP: Final = """\
Finds quick options for kernels by trying them, and keeps every trial and the winners in a cache file.

  tc-tune kernels.tc --size M=128,N=256,K=32 --budget 10m --cache tuned.db
  tc-tune kernels.tc --size M=..1024,N=256,K=32         # one kernel for every M from 1 to 1024
  tc-tune kernels.tc --size ... --gradient A,B          # its forward and its gradient by A and B
  tc-tune model.onnx --size N=1 --budget 8h             # all kernels of a model, and where they are divided
  tc-tune --torch models:resnet --budget 8h             # all kernels of a model of PyTorch, forward and backward
  tc-tune jobs.toml                                     # many kernels, sizes and types, and models
  tc-tune report tuned.db --output tuned.html           # what came of it, as one page

Every candidate is proven, and compared with what the definition means, before it can win.  Trials run in processes
of their own, so that one that crashes or hangs does no harm.  Interrupt it whenever you like, with Ctrl-C, SIGTERM or
SIGHUP: what is in flight is finished, the best so far is stored, then compared once more for 20 s at most, and the same
command goes on where it stopped.  A second signal ends it at once.  The budget counts from the end of the start, which
ends with one trial of the default options: for a model, of all kernels that it may have, equal ones once.  Then time
goes where most gain is expected.
"""
_EPILOG: Final = """\
many kernels in a file:
  budget = "8h"
  cache = "tuned.db"
  start = ["options.json"]               # options to try first: files, JSON or tables
  [[kernel]]
  file = "kernels.tc"
  definition = "mm"                      # all of the file's if it is left out
  sizes = [{M = 128, N = 256, K = 32}, {M = "..1024", N = 1024, K = 1024}]
  dtypes = ["float32", "float64"]        # what takes the place of float32 in the definition
  gradient = ["A", "B"]                  # the forward and the gradient in its place; "all": by all arguments
  [[model]]
  file = "model.onnx"                    # or a GraphDef of TensorFlow
  sizes = [{N = 1}, {N = 8}]             # its open dimensions; shapes = [{x = [1, 3, 224, 224]}] where it names none

exit status:
  0  everything was tuned          2  the command or a file says what cannot be done
  1  some kernels failed          128 + the signal's number (130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP):
                                     it was interrupted; what was found is kept
"""
# Of a number.
_DIGITS: Final = 18


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given[:1] == ["report"]:
            return _report(given[1:])
        with warned(lambda line: say(f"tc-tune: {line}")):
            return _tune(_parser().parse_args(list(_joined(given))))
    except TCError as error:
        say(f"tc-tune: {error}")
        return 2
    except StoppedError as stopped:
        say("stopped at once; what was tried before is kept")
        return stopped.status


def _joined(arguments: Sequence[str]) -> Iterator[str]:
    """Options with what follows them where that begins like a negative number, which argparse takes for an option."""
    waiting: str | None = None
    for argument in arguments:
        if waiting is not None and re.match(r"-\.?[0-9]", argument):
            yield f"{waiting}={argument}"
            waiting = None
            continue
        if waiting is not None:
            yield waiting
        waiting = argument if argument.startswith("--") and "=" not in argument and argument != "--" else None
        if waiting is None:
            yield argument
    if waiting is not None:
        yield waiting


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "tc-tune", description=_HELP, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"tc-tune {RELEASE}")
    file = "definitions (kernels.tc), a model, or a file of jobs (jobs.toml)"
    parser.add_argument("file", type=Path, nargs="?", help=file)
    torch = "a function of Python that returns a model of PyTorch and a tuple of its inputs, in the place of a file"
    parser.add_argument("--torch", metavar="module:function", help=torch)
    parser.add_argument("--definition", action="append", default=[], help="one of the file's; may be repeated")
    sizes = "sizes, ..128 for one that stays open from 1 to 128; may be repeated"
    parser.add_argument("--size", action="append", default=[], metavar="M=..128,N=256", help=sizes)
    shape = "of an input of a model that does not declare it; once for each input"
    parser.add_argument("--shape", action="append", default=[], metavar="x=1x3x224x224", help=shape)
    parser.add_argument("--dtype", action="append", default=[], help="in the place of float32; may be repeated")
    gradient = "tune the forward and the gradient by these arguments instead (all: by all of them)"
    parser.add_argument("--gradient", metavar="A,B", help=gradient)
    parser.add_argument("--target", help="cpu (default), cpu:x86-64-v3, cuda, opencl, ...")
    parser.add_argument("--cache", help="file or URL for trials and winners (default: TC_CACHE, else the user's own)")
    parser.add_argument(
        "--budget", help="for all kernels together: 8h, 10m; for each: '200 trials' (default: the effort's)"
    )
    efforts = "; ".join(f"{effort.name}: {effort.budget}" for effort in EFFORTS.values())
    parser.add_argument("--effort", help=f"how much is tried and measured, and for how long ({efforts})")
    parser.add_argument("--jobs", help="compilations at a time (default: the processors there are)")
    parser.add_argument("--seed", help="the same one repeats a search, or goes on with it (default: 0)")
    parser.add_argument("--strategy", help=f"{', '.join(s.value for s in Strategy)} (default: combined)")
    parser.add_argument("--numerics", help="any (default), or bitwise: as the default options compute it")
    parser.add_argument("--reproducers", help="folder for scripts that reproduce crashes (default: beside the cache)")
    parser.add_argument("--workers", help="dask://host:port: compile and measure there")
    start = "options in JSON, or a file with them, to try first; may be repeated"
    parser.add_argument("--start", action="append", default=[], metavar="JSON", help=start)
    devices = "numbers of GPUs of one kind, which measure beside each other (default: 0)"
    parser.add_argument("--devices", metavar="0,1", help=devices)
    parser.add_argument("--quiet", action="store_true", help="print the results alone")
    return parser


def _tune(given: argparse.Namespace) -> int:
    file = _job_file(given)
    value = {**file.settings, **{name: v for name, v in vars(given).items() if isinstance(v, str)}}
    request = _request(value)
    devices = request.devices
    target = named_target(value.get("target", "cpu"), devices[0] if devices else None)
    settings = replace(request.settings, starts=read_starts(given.start or file.starts, target))
    jobs = [job for asked in file.requests for job in asked.jobs()]
    here = environment()
    machines = Machines(workers_for(devices, request.workers, target), first_device(devices))
    graphs = [one for asked in file.models for one in asked.graphs(str(target))]
    parts = _torch_parts(given.torch, target)
    graphs += [(f"{given.torch} {part.name}", part.graph, part.keep) for part in parts]
    with interruptible() as stop, ExitStack() as stack:
        cache = written_to(request.cache, here, Path.cwd())
        store, status = Store.open(cache.where, key=cache.key), StatusLine()

        def listen(name: str) -> Listener:
            said, shown = (lambda line: status.say(f"{name}: {line}")), (lambda text: status.show(f"{name}: {text}"))
            return silence if given.quiet else console(said, shown)

        def begin(name: str, subject: Subject) -> AbstractContextManager[Tuning]:
            return tuning(subject, target, store, settings, here, machines, Control(listen(name), stop))

        searches = Searches(stack, stop)
        pool = KernelPool(searches, begin, target, KernelCache(cache, here), stop)
        try:
            kernels, models = _search(jobs, graphs, pool, begin, settings.budget, stop)
        finally:
            status.clear()
        failed = [_tell_kernel(searched, quiet=given.quiet) for searched in kernels]
        failed += [_tell_model(model) for model in models]
        for part in () if stop() else parts:
            tell(f"{given.torch} {part.compare(pool.cache)}")
        if stop():
            say("interrupted; the same command goes on from here")
            return stop.status
    return 1 if any(failed) else 0


def _torch_parts(place: str | None, target: Target) -> list[TunedPart]:
    """The parts of a model of PyTorch, if there is one."""
    if place is None:
        return []
    if target != target_of_call(None):
        raise OptionsError(f"models of PyTorch are tuned for this processor, not for {target}; leave --target out")
    from tc.commands.torch_models import torch_parts  # which takes a second to import

    return torch_parts(place)


def _job_file(given: argparse.Namespace) -> JobFile:
    if (given.file is None) == (given.torch is None):
        raise OptionsError("name either a file or --torch module:function")
    if given.torch is not None:
        if given.definition or given.size or given.shape or given.dtype or given.gradient is not None:
            raise OptionsError(
                "a model of PyTorch brings its inputs; leave out definitions, sizes, types and gradients"
            )
        return JobFile((), {})
    if given.file.suffix == ".toml":
        if given.definition or given.size or given.shape or given.dtype or given.gradient is not None:
            raise OptionsError(
                "definitions, sizes, shapes, types and gradients of a job file stand in the file, not on the command "
                "line"
            )
        return read_job_file(given.file)
    sizes = tuple(map(parse_sizes, given.size))
    if is_model(given.file):
        if given.definition or given.dtype or given.gradient is not None:
            raise OptionsError("models have no definitions, types or gradients to choose; leave these out")
        shapes = parse_shapes(given.shape)
        return JobFile((), {}, models=(ModelRequest(str(given.file), given.file, sizes, (shapes,) if shapes else ()),))
    if given.shape:
        raise OptionsError(f"{given.file} is no model; sizes of definitions are given with --size")
    text, gradient = read_text(given.file), () if given.gradient is None else parse_names(given.gradient)
    request = Request(str(given.file), text, tuple(given.definition), sizes, tuple(given.dtype), gradient)
    return JobFile((request,), {})


def _request(value: dict[str, str]) -> TuningRequest:
    """What settings ask for, each of them as text; the same seed by default, so that the same command goes on."""
    cache = value.get("cache")
    beside = Path(f"{cache}.reproducers") if cache is not None and "://" not in cache else None
    named: dict[str, Any] = {name: value[name] for name in _AS_TEXT if name in value}
    return TuningRequest(
        **named,
        seed=_number(value, "seed", 0),
        jobs=_jobs(value),
        devices=_devices(value.get("devices")),
        reproducers=Path(value["reproducers"]) if "reproducers" in value else beside,
    )


def _devices(text: str | None) -> tuple[int, ...]:
    """The numbers of GPUs, in their order; none where they are not given."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= _DIGITS for part in parts):
        raise OptionsError(f"devices are written as numbers of GPUs, such as 0,1, got {text!r}")
    return device_numbers([int(part) for part in parts])


def _jobs(value: dict[str, str]) -> int:
    """By default as many as there are processors: nothing is measured while they compile."""
    jobs = _number(value, "jobs", available_threads())
    if not 1 <= jobs <= MOST_THREADS:
        raise OptionsError(f"jobs must be from 1 to {MOST_THREADS}, got {jobs}")
    return jobs


def _number(value: dict[str, str], name: str, otherwise: int) -> int:
    text = value.get(name, str(otherwise))
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise OptionsError(f"{name} must be a number, got {text!r}")
    return int(text)


def _search(
    jobs: Sequence[Job],
    graphs: Sequence[tuple[str, Graph, Keep | None]],
    pool: KernelPool,
    begin: Begin,
    budget: Budget,
    stop: Interruption,
) -> tuple[list[Searched], list[ModelSearch]]:
    """All searches, as long as the budget lasts; what belongs to their start is not charged to it."""
    searches = pool.searches
    kernels = [searches.add(str(job), functools.partial(begin, str(job), job.subject)) for job in jobs]
    # Until now, an end at once lost nothing.
    stop.patient = True
    searches.measure()
    settings = Settings(target=str(pool.target))
    models = [ModelSearch(name, graph, settings, pool, keep) for name, graph, keep in graphs]
    search(models, pool, budget, lambda: stop.deadline)
    return kernels, models


def _tell_kernel(searched: Searched, *, quiet: bool) -> bool:
    """Says what came of a kernel, and whether it failed."""
    result = searched.result
    if not isinstance(result, TuningResult):
        tell(f"{searched.name}: failed: {result}")
        return True
    low, high = result.interval
    taken = "predicted" if result.predicted else f"{duration(low)} to {duration(high)}"
    gain = "the default" if result.is_default else f"{result.speedup:.2f}x the default"
    tell(
        f"{searched.name}: {duration(result.seconds)} ({taken}), {gain}, "
        f"{counted(len(result.trials), 'trial')}; {result.stopped}"
    )
    for decision in () if quiet else result.executable.decisions:
        say(f"{searched.name}: {decision}")
    return False


def _tell_model(model: ModelSearch) -> bool:
    """Says what came of a model, and whether some of its kernels failed."""
    tuned, _ = model.report()
    tell(str(tuned))
    return bool(tuned.failed)


def _write(output: Path, page: str) -> None:
    """All of a page or nothing; what is no regular file, such as a pipe, is written to."""
    if output.exists() and not output.is_file():
        output.write_text(page, encoding="utf-8")
        return
    with draft_of(output.absolute()) as draft:
        draft.write_text(page, encoding="utf-8")
        draft.replace(output)


def _report(arguments: Sequence[str]) -> int:
    from tc.tuner.report.page import report

    parser = argparse.ArgumentParser("tc-tune report", description="Writes one HTML page about what is in a cache.")
    parser.add_argument("cache", help="file or URL")
    parser.add_argument("--output", type=Path, help="the page (default: the cache's name with .html)")
    given = parser.parse_args(arguments)
    if given.output is None and "://" in given.cache:
        raise OptionsError("a server gives the page no name; name it with --output")
    output = given.output or Path(f"{given.cache}.html")
    page = report(given.cache, key=read_key(environment().cache_key))
    try:
        _write(output, page)
    except OSError as error:
        raise OptionsError(f"cannot write {output}: {error.strerror}; name another place with --output") from error
    tell(str(output))
    return 0


if __name__ == "__main__":
    sys.exit(main())
