"""``python -m benchmarks``: the suite; with a command, one of the other measurements.

Processes that measure import this module too, and must not import NumPy by it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from benchmarks.command_line import PEERS, WORKLOADS, command_line
from tc.base.counted import counted

if TYPE_CHECKING:
    from benchmarks.measuring.contender import Contender
    from benchmarks.problems.case import Case
    from benchmarks.reporting.results import Report, Row, Settings
    from benchmarks.searching.tuned import Winners

Number = TypeVar("Number", int, float)


class UsageError(Exception):
    """The command line asks for something that there is not."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    # What compiling takes is measured, too.
    os.environ["TC_CACHE_MODE"] = "off"
    from tc.base.errors import TCError

    parser = command_line()
    given = parser.parse_args(arguments)
    try:
        _run(given)
    except UsageError as error:
        parser.error(str(error))
    except TCError as error:
        sys.exit(f"error: {error}")


def _run(given: argparse.Namespace) -> None:
    match given.command:
        case "latency":
            from benchmarks.latency import report

            report()
        case "demo":
            from benchmarks.demo import run

            run(given.output)
        case "story":
            from benchmarks.story import tell

            tell(given.output, given.budget)
        case "table":
            _table(given)
        case "offline":
            _offline(given)
        case "search":
            _search(given)
        case "compile" | "predict":
            _without_device(given)
        case "proofs":
            _proofs(given)
        case "overlapping" | "scaling" | "cliffs":
            _sizes(given)
        case "apart" | "backward":
            _apart(given.command, given.rounds, given.kernels, given.target)
        case "models" | "matrices":
            _beside_libraries(given)
        case "kernelbench" | "training":
            _through_torch(given)
        case "replay":
            _replay(given.recording)
        case _:
            _suite(given)


def _through_torch(given: argparse.Namespace) -> None:
    """What ``torch.compile`` captures."""
    if given.command == "kernelbench":
        from benchmarks.kernelbench.command import run as run_problems

        run_problems(given)
        return
    from benchmarks.training.command import run

    unknown = [name for name in given.names if name not in WORKLOADS]
    if unknown:
        raise UsageError(f"unknown workload {unknown[0]!r}; there are {', '.join(WORKLOADS)}")
    run(given)


def _beside_libraries(given: argparse.Namespace) -> None:
    if given.command == "models":
        _models(given.paths, given.threads, given.rounds, given.cache)
    else:
        _matrices(given)


def _matrices(given: argparse.Namespace) -> None:
    from benchmarks.matrices import measure
    from tc.base.json_records import save_record

    print(f"{'microseconds':34} {'ours':>10} {'PyTorch':>10} {'ratio':>6}", flush=True)
    try:
        run = measure(given.kernels, given.target, given.seconds, lambda line: print(line, flush=True))
    except ValueError as error:
        raise UsageError(str(error)) from error
    if given.json is not None:
        save_record(run, given.json)


def _sizes(given: argparse.Namespace) -> None:
    """What depends on sizes, forms and numbers of threads."""
    match given.command:
        case "overlapping":
            _overlapping(given.rounds)
        case "scaling":
            _scaling(given)
        case _:
            _cliffs(given.kernels, given.shapes, given.seed)


def _suite(given: argparse.Namespace) -> None:
    from benchmarks.measuring.lineup import MeasurementError
    from benchmarks.measuring.suite import run_suite
    from benchmarks.reporting.compilation import compilation
    from benchmarks.reporting.report import HEADER, failures, line, summary
    from tc.base.json_records import save_record

    cases, settings, winners = _cases(given), _settings(given), _winners(given)

    def show(row: Row, so_far: Report) -> None:
        print(line(row, so_far), flush=True)
        if given.json is not None:
            save_record(so_far, given.json)

    print(HEADER, flush=True)
    try:
        report = run_suite(cases, settings, winners.options, show)
    except MeasurementError as error:
        sys.exit(f"error: {error}")
    print(summary(report))
    print(compilation(report))
    if given.json is not None:
        save_record(report, given.json)
    if given.plot is not None:
        _plot(report, given.plot)
    if failed := failures(report):
        sys.exit("\n".join(["failed:", *failed]))


def _overlapping(rounds: int) -> None:
    from benchmarks.overlapping import FORMS, HEADER, MOST_RATIO, line, measure_forms

    if rounds < 1:
        raise UsageError("--rounds must be at least 1")
    print(HEADER, flush=True)
    late: list[str] = []
    for found in measure_forms(FORMS, rounds):
        print(line(found), flush=True)
        late += [found.name] if found.ratio > MOST_RATIO else []
    if late:
        sys.exit(f"more than {MOST_RATIO} times as long in one statement: {', '.join(late)}")


def _models(paths: Sequence[str], threads: int, rounds: int, cache: Path | None) -> None:
    from benchmarks.apart import mean_line
    from benchmarks.models import HEADER, DifferentError, Model, measure_models

    if cache is not None and not cache.is_file():
        raise UsageError(f"there is no cache {cache}")
    print(HEADER, flush=True)
    ratios = []
    try:
        for found in measure_models([Model.parse(path) for path in paths], threads, rounds, cache):
            print(found.line, flush=True)
            ratios.append(found.ratio)
    except DifferentError as error:
        sys.exit(f"error: {error}")
    print(mean_line(ratios))


def _cliffs(names: tuple[str, ...], shapes: int, seed: int) -> None:
    from benchmarks.cliffs import HEADER, MOST_RATIO, OPERATORS, line, measure_operators

    unknown = [name for name in names if name not in OPERATORS]
    if unknown:
        raise UsageError(f"unknown operator {unknown[0]!r}; there are {', '.join(OPERATORS)}")
    if shapes < 2:
        raise UsageError("--shapes must be at least 2")
    print(HEADER, flush=True)
    steep: list[str] = []
    for found in measure_operators(names or OPERATORS, shapes, seed):
        print(line(found), flush=True)
        if found.ratio > MOST_RATIO:
            sizes = ",".join(f"{name}={size}" for name, size in found.worst.sizes.items())
            steep.append(f"{found.operator} at {sizes}")
    if steep:
        sys.exit(f"more than {MOST_RATIO:g} times what is beside: {'; '.join(steep)}")


def _scaling(given: argparse.Namespace) -> None:
    from benchmarks.scaling import HEADER, lines_of
    from tc.targets.machine import VectorUnit
    from tc.targets.target import parse_cpu_target

    target = parse_cpu_target("cpu")
    vectors = VectorUnit(target.vector_bytes, target.vector_registers)
    print(HEADER, flush=True)
    for case in _cases(given):
        for line in lines_of(case, given.threads, vectors):
            print(line, flush=True)


def _apart(command: str, rounds: int, names: tuple[str, ...], target: str) -> None:
    from benchmarks.apart import CASES, HEADER, mean_line, measure_cases
    from benchmarks.problems.backward import BACKWARD
    from benchmarks.problems.indirect import Place

    if rounds < 1:
        raise UsageError("--rounds must be at least 1")
    known = [case.name for case in (CASES if command == "apart" else BACKWARD)]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"unknown case {unknown[0]!r}; there are {', '.join(known)}")
    print(HEADER, flush=True)
    slow: list[str] = []
    ratios: list[float] = []
    for found in measure_cases(rounds, names=names or tuple(known), place=Place(target)):
        print(found.line, flush=True)
        ratios.append(found.ratio)
        slow += [found.case.name] if found.ratio < found.case.minimum else []
    print(mean_line(ratios), flush=True)
    # What must be reached was chosen for processors.
    if slow and target == "cpu":
        sys.exit(f"too slow: {', '.join(slow)}")


def _proofs(given: argparse.Namespace) -> None:
    from benchmarks.proofs import DEFINITIONS, HEADER, TARGETS, decide_all, line, slow, slowest
    from tc.base.errors import nearest

    known = {definition.name: definition for definition in DEFINITIONS}
    for name in given.kernels:
        if name not in known:
            guess = nearest(name, known)
            hint = f"did you mean {guess!r}?" if guess else f"known: {', '.join(known)}"
            raise UsageError(f"no definition is called {name!r}; {hint}")
    if given.count < 1 or given.jobs < 1:
        raise UsageError("--count and --jobs must be at least 1")
    definitions = [known[name] for name in given.kernels or known]
    late: list[str] = []
    longest: list[str] = []
    print(HEADER, flush=True)
    for found in decide_all(definitions, given.targets or TARGETS, given.count, given.seed, given.jobs):
        print(line(found), flush=True)
        late += slow(found)
        longest.append(slowest(found))
    print("\n".join(["", "the slowest of each:", *longest]))
    if late:
        sys.exit("\n".join(["too long to wait for:", *late]))


def _search(given: argparse.Namespace) -> None:
    from benchmarks.measuring.clock import kind_of
    from benchmarks.searching.recording import save_recording
    from benchmarks.searching.search import HEADER, line, search_case, summary
    from benchmarks.searching.tuned import DEFAULT, save_winners
    from tc.tuner.trial.budget import Budget

    with _as_usage():
        Budget.parse(given.budget)
        file = given.options or DEFAULT.with_name(f"{kind_of(given.target)}.json")
    cases, settings, winners = _cases(given), _settings(given), _winners(given)
    print(HEADER, flush=True)
    for case in cases:
        winner, told = search_case(case, given.budget, given.seed, settings.seed, given.cache, given.target)
        print(line(case.name, winner), flush=True)
        winners = winners.with_winner(case.name, winner)
        save_winners(winners, file)
        save_recording(case.name, told, given.record or file.with_name(f"{file.stem}-trials.json"))
    print(summary(winners))


def _without_device(given: argparse.Namespace) -> None:
    """What needs no GPU."""
    if given.command == "predict":
        from benchmarks.predicting.command import lines

        print("\n".join(lines()))
        return
    _compile(given)


def _compile(given: argparse.Namespace) -> None:
    from benchmarks.compiled import HEADER, compile_cases, line
    from benchmarks.problems.case import Suite
    from benchmarks.problems.cases import chosen
    from tc.targets.options import CpuOptions, GpuOptions, Options

    suites = Suite.kernels() if given.suite == "all" else (Suite(given.suite),)
    kind: type[Options] = CpuOptions if given.target.startswith("cpu") else GpuOptions
    with _as_usage():
        cases = chosen(suites, given.kernels)
        options = None if given.json_options is None else kind.from_json(given.json_options)
    print(HEADER, flush=True)
    for compiled in compile_cases(cases, given.target, options):
        print(line(compiled), flush=True)


def _replay(path: Path | None) -> None:
    from benchmarks.problems.case import Suite
    from benchmarks.problems.cases import chosen
    from benchmarks.searching.recording import DEFAULT, HEADER, OtherDecisionsError, line, load_recordings, replay_case

    with _as_usage():
        recorded = load_recordings(path or DEFAULT).cases
        cases = [case for case in chosen(tuple(Suite), recorded) if case.name in recorded]
        print(HEADER, flush=True)
        for case in cases:
            try:
                print(line(case.name, replay_case(case, recorded[case.name])), flush=True)
            except OtherDecisionsError as error:
                sys.exit(f"error: {error}")
    print(f"{counted(len(recorded), 'search', 'searches')} made the decisions that were recorded")


def _offline(given: argparse.Namespace) -> None:
    from benchmarks.offline import OfflineError, gather

    try:
        size = gather(given.folder, given.python, given.present, given.added)
    except OfflineError as error:
        sys.exit(f"error: {error}")
    print(
        f"{given.folder}: {size / (1 << 20):,.1f} MiB; copy it to the machine, and start {given.folder.name}/run there"
    )


def _table(given: argparse.Namespace) -> None:
    from benchmarks.reporting.report import markdown
    from benchmarks.reporting.results import Report
    from tc.base.json_records import load_record

    with _as_usage():
        report = load_record(Report, given.results)
    print(markdown(report))
    if given.plot is not None:
        _plot(report, given.plot)


def _plot(report: Report, path: Path) -> None:
    from benchmarks.reporting.plot import plot

    with _as_usage():
        plot(report, path)


def _cases(given: argparse.Namespace) -> tuple[Case, ...]:
    from benchmarks.problems.case import Suite
    from benchmarks.problems.cases import chosen

    suites = Suite.kernels() if given.suite == "all" else (Suite(given.suite),)
    with _as_usage():
        return chosen(suites, given.kernels)


def _winners(given: argparse.Namespace) -> Winners:
    from benchmarks.measuring.clock import kind_of
    from benchmarks.searching.tuned import DEFAULT, load_winners

    with _as_usage():
        return load_winners(given.options or DEFAULT.with_name(f"{kind_of(given.target)}.json"))


def _settings(given: argparse.Namespace) -> Settings:
    from benchmarks.measuring.clock import kind_of
    from benchmarks.measuring.contender import Contender
    from benchmarks.measuring.lineup import MOST_AHEAD
    from benchmarks.reporting.results import PAUSE, Settings
    from tc.runtime.host.threads import available_threads

    with _as_usage():
        kind = kind_of(given.target)
        most = available_threads()
        usual = "torch" if kind == "cuda" and _torch_has_gpu() else "numpy"
        peers = getattr(given, "peers", ())
        return Settings(
            target=given.target,
            threads=_within("--threads", most if given.threads is None else given.threads, 1, most),
            rounds=_within("--rounds", given.rounds, 1, 1000),
            seconds=_within("--seconds", given.seconds, 0.001, 60),
            pause=0.0 if kind == "cuda" else PAUSE,
            arrays=Contender(given.arrays or usual),
            ahead=_within("--ahead", getattr(given, "ahead", 1), 1, MOST_AHEAD),
            peers=tuple(_peer(name, kind) for name in (PEERS[kind] if peers is None else peers)),
        )


def _torch_has_gpu() -> bool:
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def _within(name: str, number: Number, least: float, most: float) -> Number:
    if not least <= number <= most:
        raise ValueError(f"{name} must be from {least} to {most}, got {number}")
    return number


def _peer(name: str, kind: str) -> Contender:
    from benchmarks.measuring.contender import Contender

    if name not in PEERS[kind]:
        raise ValueError(f"no peer on {kind} is called {name!r}; known: {', '.join(PEERS[kind])}")
    return Contender(name)


@contextmanager
def _as_usage() -> Iterator[None]:
    """What is wrong in here is wrong with the command line."""
    from tc.base.errors import OptionsError

    try:
        yield
    except (ValueError, OSError, ImportError, OptionsError) as error:
        raise UsageError(str(error)) from error


if __name__ == "__main__":
    main()
