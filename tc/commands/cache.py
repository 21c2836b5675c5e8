"""``tc-cache``: looks into caches of compiled kernels, and brings them where they are needed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

from tc.base.counted import bytes_text, counted
from tc.base.environment import environment
from tc.base.errors import CacheError, OptionsError, TCError
from tc.base.generator import RELEASE
from tc.cache.content.configured import claim, configured, read_key
from tc.cache.content.contents import Contents
from tc.cache.content.difference import Difference, diff
from tc.cache.content.integrity import verify
from tc.cache.content.lookup import Reader
from tc.cache.content.merge import merge
from tc.cache.content.prune import prune
from tc.cache.content.ship import ship
from tc.cache.content.store import Store
from tc.cache.database.database import is_empty
from tc.cache.database.place import File, place_of
from tc.commands.contents.kernel_summary import SHORT, find_summary
from tc.commands.contents.listing import Filter, kernel_line, listing
from tc.commands.contents.plans import plans_listing
from tc.commands.contents.quantities import parse_age, parse_size
from tc.commands.contents.showing import showing, source_text
from tc.commands.contents.sufficiency import missing, unproven
from tc.commands.contents.terminal import printable, shortened
from tc.commands.export.folder import export_folder
from tc.commands.warned import warned

_HELP: Final = """\
Looks into caches of compiled kernels, and brings them where they are needed.

  tc-cache list                                   # what this user's own cache holds
  tc-cache list tuned.db --target cpu --program mm
  tc-cache show tuned.db 0ab905                   # all that is known of one kernel
  tc-cache show tuned.db 0ab905 --source          # the source of its winner

  tc-cache merge all.db monday.db tuesday.db      # what several machines found, in one file
  tc-cache diff all.db monday.db
  tc-cache add all.db kernels.tc --definition mm --size M=64,N=64,K=64 --options options.json
  tc-cache prune all.db --older-than 90d --keep-bytes 1G
  tc-cache verify all.db
  tc-cache manifest all.db                        # one hash, to compare between machines

  tc-cache export all.db --ship production.db     # a small closed file for TC_CACHE_MODE=strict
  tc-cache export all.db --sources kernels/       # C, CUDA and OpenCL for programs without Python

A cache is a file, or the URL of a server.  It is code: whoever can write it decides what runs.  Keep it where no
other user can write, or seal it with a secret (--key, TC_CACHE_KEY).
"""
_EPILOG: Final = """\
exit status:
  0  done                        1  diff: they differ; verify: something is wrong
  2  it cannot be done, and the message says why
"""
_CLOSED: Final = 141
# Of a message.
_LONGEST: Final = 4000

_Command: TypeAlias = Callable[[argparse.Namespace, bytes | None], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    try:
        given = _parser().parse_args(arguments)
        command: _Command = given.command
        with warned(lambda line: print(f"tc-cache: {line}", file=sys.stderr)):
            status = command(given, _key(given.key))
        if sys.stdout is not None:  # as it is for who closes it before the start
            sys.stdout.flush()
    except TCError as error:
        print(f"tc-cache: {shortened(str(error), _LONGEST)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Who read along, head for example, has seen enough; what is still buffered goes nowhere.
        _discard_output()
        return _CLOSED
    except OSError as error:
        _discard_output()
        print(f"tc-cache: cannot print: {error.strerror}; look at where the output goes", file=sys.stderr)
        return 2
    return status


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("tc-cache", description=_HELP, epilog=_EPILOG, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"tc-cache {RELEASE}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")

    def add(name: str, command: _Command, what: str, *examples: str) -> argparse.ArgumentParser:
        description = "\n".join((what, "", *(f"  tc-cache {name} {example}".rstrip() for example in examples)))
        added = commands.add_parser(name, help=what, description=description, formatter_class=raw)
        added.set_defaults(command=command)
        added.add_argument("--key", type=Path, metavar="FILE", help="the secret of its seals (default: TC_CACHE_KEY)")
        return added

    _add_looking(add)
    _add_changing(add)
    return parser


def _add_looking(add: Callable[..., argparse.ArgumentParser]) -> None:
    one = add(
        "list",
        _list,
        "prints a line for every kernel, and for every plan of a graph",
        "",
        "tuned.db --target cpu --program mm",
    )
    one.add_argument("file", nargs="?", help="file or URL (default: TC_CACHE, else this user's own cache)")
    _add_filter(one)
    one = add("show", _show, "prints all that is known of one kernel", "tuned.db 0ab905", "tuned.db 0ab905 --source")
    one.add_argument("file", help="file or URL")
    one.add_argument("kernel", metavar="key", help="the first digits of its key, as tc-cache list prints them")
    one.add_argument("--source", action="store_true", help="print the source that a call here would run, and that only")
    one = add("diff", _diff, "prints what tells two caches apart", "all.db monday.db")
    one.add_argument("first", help="file or URL")
    one.add_argument("second", help="file or URL")
    one = add(
        "verify", _verify, "prints everything that is wrong with a cache, and what production would miss", "tuned.db"
    )
    one.add_argument("file", help="file or URL")
    one = add("manifest", _manifest, "prints one hash over all that decides which kernels run", "a.db", "a.db b.db")
    one.add_argument("files", nargs="+", metavar="file", help="file or URL; of several, each stands behind its hash")


def _add_changing(add: Callable[..., argparse.ArgumentParser]) -> None:
    examples = (
        "tuned.db kernels.tc --definition mm --size M=64,N=64,K=64 --options '{\"threads\": 1}'",
        "tuned.db kernels.tc --definition mm --size M=64,N=64,K=64 --source mm.c",
    )
    adds = "adds options or a source of yours as the winner of a kernel, once it is compiled, checked and timed"
    one = add("add", _add, adds, *examples)
    one.add_argument("files", nargs="+", metavar="file", help="a cache (default: the usual one), and definitions")
    one.add_argument("--definition", help="which one of the definitions")
    sizes = "sizes, ..128 for one that stays open from 1 to 128; may be repeated"
    one.add_argument("--size", action="append", default=[], metavar="M=..128,N=256", help=sizes)
    one.add_argument("--dtype", action="append", default=[], help="in the place of float32; may be repeated")
    one.add_argument("--target", default="cpu", help="cpu (default), cpu:x86-64-v3, cuda, opencl, ...")
    one.add_argument("--options", metavar="JSON", help="options in JSON, or a file with them (default: the default)")
    source = "a source instead of what these options make, with its entry and arguments (`show --source`); not proven"
    one.add_argument("--source", type=Path, metavar="FILE", help=source)
    one = add("merge", _merge, "adds all that other caches hold to one", "all.db monday.db tuesday.db")
    one.add_argument("target", help="file or URL; a file is made if need be")
    one.add_argument("sources", nargs="+", metavar="source", help="file or URL")
    examples = ("tuned.db --older-than 90d", "tuned.db --keep-bytes 1G")
    one = add("prune", _prune, "removes what is old, but no winner, and gives the space back", *examples)
    one.add_argument("file", help="file or URL")
    one.add_argument("--older-than", metavar="90d", help="what was stored longer ago: 30min, 12h, 90d, 4w")
    one.add_argument("--keep-bytes", metavar="1G", help="then the oldest variants, until the file has this size")
    examples = ("tuned.db --ship production.db", "tuned.db --sources kernels/ --target cpu:x86-64-v3")
    one = add("export", _export, "writes what others need of a cache", *examples)
    one.add_argument("file", help="file or URL")
    what = one.add_mutually_exclusive_group(required=True)
    what.add_argument("--ship", metavar="OUT.db", help="a closed file with the winners, for read-only use")
    what.add_argument(
        "--sources", type=Path, metavar="FOLDER", help="their sources, and what C programs need to call them"
    )
    one.add_argument("--seal", type=Path, metavar="FILE", help="seal the shipped file anew, with this secret")
    _add_filter(one)


def _add_filter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", help="only kernels for it: cpu, cpu:x86-64-v3, cuda:sm_90")
    parser.add_argument("--program", metavar="TEXT", help="only kernels with this text in their name or program")


def _key(file: Path | None) -> bytes | None:
    return read_key(environment().cache_key) if file is None else read_key(file, "--key")


@contextmanager
def _contents(where: str, key: bytes | None) -> Iterator[Contents]:
    reader = Reader.open(where, key=key)
    with reader.database.session() as session:
        yield Contents(session, reader.database.place, key)


def _existing(where: str) -> str:
    """The same; CacheError for a file that is not there or is empty, in which some commands would make a cache."""
    place = place_of(where)
    if isinstance(place, File) and not Path(place.path).exists():
        raise CacheError(f"{place} does not exist; name the file of a cache")
    if isinstance(place, File) and Path(place.path).is_file() and is_empty(place.path):
        raise CacheError(f"{place} is empty; name the file of a cache")
    return where


def _list(given: argparse.Namespace, key: bytes | None) -> int:
    with _contents(_own() if given.file is None else given.file, key) as contents:
        print(listing(contents, Filter(given.target, given.program)))
        plans = plans_listing(contents, given.target) if given.program is None else None
        if plans is not None:
            print(f"\n{plans}")
    return 0


def _own() -> str:
    # Whatever calls may do with the cache, everybody may look.
    own = configured(replace(environment(), cache_mode=None, cache_key=None))
    if own is None:
        raise CacheError("this user has no home folder with a cache; name a file")
    claim(own)
    return own.where


def _show(given: argparse.Namespace, key: bytes | None) -> int:
    with _contents(given.file, key) as contents:
        summary = find_summary(contents, given.kernel)
        if not given.source:
            print(showing(contents, summary))
            return 0
        if summary.chosen is None:
            raise CacheError(f"kernel {summary.ingredients.key[:SHORT]} has no variant that a call here would run")
        print(source_text(summary.chosen))
    return 0


def _add(given: argparse.Namespace, key: bytes | None) -> int:
    # Others need neither the compiler nor the tuner.
    from tc.api.tuning import open_store
    from tc.commands.add import add

    def open_cache(where: str | None) -> Store:
        return Store.open(where, key=key) if where is not None else open_store(None, environment(), Path.cwd())

    for line in add(given, open_cache):
        print(printable(line))
    return 0


def _merge(given: argparse.Namespace, key: bytes | None) -> int:
    for source in given.sources:
        _existing(source)
    added = merge(given.target, given.sources, key=key).added
    print(f"{printable(given.target)} gained {_counts(added)}")
    return 0


def _diff(given: argparse.Namespace, key: bytes | None) -> int:
    difference = diff(given.first, given.second, key=key)
    for line in _differences(difference, given.first, given.second):
        print(printable(line))
    return int(difference != Difference((), (), ()))


def _differences(difference: Difference, first: str, second: str) -> Iterator[str]:
    for place, only in ((first, difference.only_first), (second, difference.only_second)):
        yield from (f"only in {place}: {kernel_line(kernel)}" for kernel in only)
    for other in difference.other_winners:
        threads = counted(other.threads, "thread")
        yield f"another winner with {threads} on {other.machine}: {kernel_line(other.kernel)}"
        for place, winner in ((first, other.first), (second, other.second)):
            yield f"    {place}: {'none' if winner is None else 'variant ' + winner[:SHORT]}"


def _prune(given: argparse.Namespace, key: bytes | None) -> int:
    older_than = None if given.older_than is None else parse_age(given.older_than)
    largest = None if given.keep_bytes is None else parse_size(given.keep_bytes)
    report = prune(_existing(given.file), older_than=older_than, largest=largest, key=key)
    sizes = f"; {bytes_text(report.before)} became {bytes_text(report.after)}" if report.before else ""
    print(f"{printable(given.file)} lost {_counts(report.removed)}{sizes}")
    if largest is not None and report.after > largest:
        print("what is left are winners, which stay")
    return 0


def _verify(given: argparse.Namespace, key: bytes | None) -> int:
    complaints = verify(_existing(given.file), key=key)
    if not complaints:
        with _contents(given.file, key) as contents:
            complaints = missing(contents)
            for note in unproven(contents):
                print(printable(note))
    for complaint in complaints:
        print(printable(complaint))
    return int(bool(complaints))


def _manifest(given: argparse.Namespace, key: bytes | None) -> int:
    for file in given.files:
        name = f"  {printable(file)}" if len(given.files) > 1 else ""
        print(f"{Reader.open(file, key=key).manifest()}{name}")
    return 0


def _export(given: argparse.Namespace, key: bytes | None) -> int:
    if given.ship is not None:
        if given.target is not None or given.program is not None:
            raise OptionsError("a shipped file has all kernels; --target and --program choose among --sources")
        with _contents(given.file, key) as contents:
            complaints = missing(contents)
        if complaints:
            more = f" (and {len(complaints) - 1} more: `tc-cache verify`)" if len(complaints) > 1 else ""
            raise CacheError(f"nothing was shipped: {complaints[0]}{more}")
        ship(given.file, given.ship, key=key, seal=read_key(given.seal, "--seal"))
        print(f"wrote {printable(given.ship)}; use it with TC_CACHE={printable(given.ship)} TC_CACHE_MODE=strict")
        return 0
    if given.seal is not None:
        raise OptionsError("only a shipped file is sealed; use --seal with --ship")
    with _contents(given.file, key) as contents:
        selection = export_folder(contents, given.sources, Filter(given.target, given.program))
    for reason in selection.omitted:
        print(f"left out {reason}", file=sys.stderr)
    for kernel in selection.exported:
        print(kernel.file)
    print(f"in {printable(str(given.sources))}: {counted(len(selection.exported), 'kernel')}; see README.txt")
    return 0


def _counts(rows: Mapping[str, int]) -> str:
    parts = [counted(number, name.removesuffix("s")) for name, number in rows.items() if number]
    return ", ".join(parts) or "nothing"


if __name__ == "__main__":
    sys.exit(main())
