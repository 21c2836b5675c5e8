"""What a person asks to be tuned: definitions in files, at sizes, on element types."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tc.api.comprehension import Comprehension, Pair
from tc.api.definitions import parsed
from tc.artifact.definition import Definition, Parsed
from tc.base.errors import ArgumentError, OptionsError, TCError, nearest
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.commands.models import ModelRequest, read_shapes
from tc.dispatch.arguments import bind_specs
from tc.language.program.program import Expression, Literal, Program, SizeReference
from tc.language.program.specialization import ArraySpec, Dynamic, dynamic
from tc.tuner.session.subject import Subject


@frozen
class Job:
    """A subject at one set of sizes, which are kept as given: ``tc.dynamic`` for those that stay open."""

    subject: Subject
    sizes: Mapping[str, int]
    dtype: str | None = None

    def __str__(self) -> str:
        parts = [f"{name}={_size_text(size)}" for name, size in self.sizes.items()]
        if self.dtype is not None:
            parts.append(self.dtype)
        return f"{self.subject.definition.interface.name}({','.join(parts)})"


@frozen
class Request:
    """Definitions of a text, by name (none: all of them), at every set of sizes, with every element type.

    ``place``: where it was asked for, for messages.  ``dtypes``: what takes the place of float32; none: nothing does.
    ``gradient``: the arguments by which each definition is differentiated, ``("all",)`` for all of them: then the
    forward and the gradient of ``Comprehension.with_gradient`` are asked for in its place.
    """

    place: str
    text: str
    definitions: tuple[str, ...]
    sizes: tuple[Mapping[str, int], ...]
    dtypes: tuple[str, ...] = ()
    gradient: tuple[str, ...] = ()

    def jobs(self) -> Iterator[Job]:
        """The jobs; OptionsError or an error of the text for what cannot be one."""
        for dtype in self.dtypes or (None,):
            text = self.text if dtype is None else _with_dtype(self.text, dtype, self.place)
            siblings = _definitions(text)
            for name, sizes in itertools.product(self.definitions or tuple(siblings), self.sizes or ({},)):
                if name not in siblings:
                    guess = nearest(name, siblings) or _one_letter_off(name, siblings)
                    hint = f"did you mean {guess!r}?" if guess else f"defined: {', '.join(siblings)}"
                    raise OptionsError(f"{self.place} defines no {name!r}; {hint}")
                definition = siblings[name]
                if self.gradient:
                    made: tuple[Job, ...] = _with_gradient(definition, siblings, sizes, self.gradient, self.place)
                else:
                    made = (_job(definition, siblings, sizes, self.place),)
                yield from (replace(job, dtype=dtype) for job in made)


@frozen
class JobFile:
    """A file of requests, for kernels and for models; what it says of the search counts where the command line says
    nothing.

    ``starts``: options to try first, in JSON or in files.
    """

    requests: tuple[Request, ...]
    settings: Mapping[str, str]
    starts: tuple[str, ...] = ()
    models: tuple[ModelRequest, ...] = ()


_SIZE: Final = re.compile(r"[0-9]{1,18}")
_OPEN: Final = re.compile(r"\.\.([0-9]{1,18})")
_SETTINGS: Final = (
    "budget",
    "effort",
    "devices",
    "target",
    "cache",
    "seed",
    "jobs",
    "strategy",
    "numerics",
    "reproducers",
    "workers",
)
_KERNEL: Final = ("file", "text", "definition", "sizes", "dtypes", "gradient")
_MODEL: Final = ("file", "sizes", "shapes")
# Stands for all arguments that have a gradient.
_ALL: Final = "all"


def read_job_file(path: Path) -> JobFile:
    """The requests in a TOML file; OptionsError, naming the place, for anything else."""
    data = _toml(path)
    _require_known(data, (*_SETTINGS, "start", "kernel", "model"), str(path))
    kernels, models, starts = data.pop("kernel", []), data.pop("model", []), data.pop("start", [])
    if not isinstance(kernels, list) or not isinstance(models, list) or not (kernels or models):
        raise OptionsError(
            f"{path} names no kernels; write a table [[kernel]] with file, definition and sizes for each, or a table "
            "[[model]] with file, and sizes or shapes"
        )
    requests = tuple(
        _request(kernel, f"{path}: kernel {number}", path.parent) for number, kernel in enumerate(kernels, 1)
    )
    settings = {name: str(value) for name, value in data.items()}
    asked = tuple(_model(model, f"{path}: model {number}", path.parent) for number, model in enumerate(models, 1))
    return JobFile(requests, settings, tuple(_starts(starts, path)), asked)


def _starts(given: object, path: Path) -> Iterator[str]:
    """Names of files are relative to that of the job file."""
    for one in given if isinstance(given, list) else (given,):
        match one:
            case dict():
                yield json.dumps(one)
            case str(text):
                yield text if text.lstrip().startswith(("{", "[")) else str(path.parent / text)
            case _:
                raise OptionsError(f"{path}: start must be tables, JSON or names of files, got {one!r}")


def _one_letter_off(name: str, known: Iterable[str]) -> str | None:
    """The first known name that differs in a letter; ``nearest`` finds two letters of three too few."""
    for other in known:
        if len(other) == len(name) > 1 and sum(a != b for a, b in zip(name, other, strict=True)) == 1:
            return other
    return None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionsError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise OptionsError(f"{path} is no TOML: {error}") from error


def _request(kernel: object, place: str, folder: Path) -> Request:
    if not isinstance(kernel, dict):
        raise OptionsError(f"{place} must be a table, got {kernel!r}")
    _require_known(kernel, _KERNEL, place)
    if ("file" in kernel) == ("text" in kernel):
        raise OptionsError(f"{place} needs either file or text")
    text = kernel["text"] if "text" in kernel else read_text(folder / str(kernel["file"]))
    definitions, dtypes, gradient = (_names(kernel, own, place) for own in ("definition", "dtypes", "gradient"))
    return Request(place, str(text), definitions, _sizes(kernel, place), dtypes, gradient)


def _model(model: object, place: str, folder: Path) -> ModelRequest:
    if not isinstance(model, dict):
        raise OptionsError(f"{place} must be a table, got {model!r}")
    _require_known(model, _MODEL, place)
    if not isinstance(model.get("file"), str):
        raise OptionsError(f"{place} needs a file")
    return ModelRequest(
        place, folder / model["file"], _sizes(model, place), read_shapes(model.get("shapes", []), place)
    )


def _names(kernel: Mapping[str, object], setting: str, place: str) -> tuple[str, ...]:
    match kernel.get(setting, []):
        case str(name):
            return (name,)
        case list(names) if all(isinstance(name, str) for name in names):
            return tuple(names)
        case other:
            raise OptionsError(f"{place}: {setting} must be a name or a list of names, got {other!r}")


def _sizes(kernel: Mapping[str, object], place: str) -> tuple[Mapping[str, int], ...]:
    given = kernel.get("sizes", [])
    wrong = (
        f'{place}: sizes must be tables of integers, such as {{M = 128, N = 64}}, where M = "..128" stays open from '
        f"1 to 128, got {given!r}"
    )
    listed = given if isinstance(given, list) else [given]
    tables = [table for table in listed if isinstance(table, dict)]
    if len(tables) < len(listed):
        raise OptionsError(wrong)
    return tuple({name: _size(value, wrong) for name, value in table.items()} for table in tables)


def _size(value: object, wrong: str) -> int:
    """The size that an integer or ``"..128"`` says; OptionsError for anything else."""
    match value:
        case str() if (found := _OPEN.fullmatch(value)) is not None and int(found[1]) > 0:
            return dynamic(int(found[1]))
        case int() if not isinstance(value, bool):
            return value
        case _:
            raise OptionsError(wrong)


def _size_text(size: int) -> str:
    return f"..{int(size)}" if isinstance(size, Dynamic) else str(size)


def _require_known(data: Mapping[str, object], known: Sequence[str], place: str) -> None:
    for name in data:
        if name not in known:
            guess = nearest(name, known)
            hint = f"did you mean {guess!r}?" if guess else f"known: {', '.join(known)}"
            raise OptionsError(f"{place} has an unknown setting {name!r}; {hint}")


def read_text(path: Path) -> str:
    """The text of definitions in a file; OptionsError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise OptionsError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OptionsError(f"{path} is no text: {error}") from error


def parse_sizes(text: str) -> dict[str, int]:
    """``M=..1024,K=512``; OptionsError for anything else."""
    wrong = f"sizes are written as M=1024,K=512, where M=..1024 stays open from 1 to 1024, got {text!r}"
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        if name in sizes:
            raise OptionsError(f"{name} has two sizes in {text!r}; repeat --size to tune for both")
        sizes[name] = _size(int(value) if _SIZE.fullmatch(value) else value, wrong)
    return sizes


def parse_names(text: str) -> tuple[str, ...]:
    """``A,B``; OptionsError where a name is missing."""
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise OptionsError(f"arguments are written as A,B, got {text!r}")
    return names


def _definitions(text: str) -> dict[str, Definition]:
    return {name: Parsed(program, text) for name, program in parsed(text).items()}


def _with_dtype(text: str, dtype: str, place: str) -> str:
    """The text with another type in the place of float32 in all parameters."""
    from tc.grammar.parser import parse
    from tc.grammar.printer import print_definition

    names = [type.value for type in ScalarType if type.is_floating]
    if dtype not in names:
        raise OptionsError(f"{place}: dtypes must be among {', '.join(names)}, got {dtype!r}")
    changed = []
    for definition in parse(text).definitions:
        parameters = tuple(
            replace(p, type_name=dtype) if p.type_name in ("float", "float32") else p for p in definition.parameters
        )
        changed.append(print_definition(replace(definition, parameters=parameters)))
    return "\n".join(changed)


def _job(definition: Definition, siblings: Mapping[str, Definition], sizes: Mapping[str, int], place: str) -> Job:
    program, interface = definition.program, definition.interface
    name = interface.name
    structural = [scalar.name for scalar in interface.scalars if scalar.structural]
    needed = [*program.sizes, *structural]
    if missing := [size for size in needed if size not in sizes]:
        raise OptionsError(f"{place}: {name} needs the sizes {', '.join(needed)}; missing: {', '.join(missing)}")
    scalars = {scalar.name: sizes.get(scalar.name, 1) for scalar in interface.scalars}
    if unknown := [size for size in sizes if size not in needed and size not in scalars]:
        raise OptionsError(f"{place}: {name} has no size {', '.join(unknown)}; it has {', '.join(needed)}")
    if opened := [scalar for scalar, value in scalars.items() if isinstance(value, Dynamic)]:
        raise OptionsError(f"{place}: {name} takes a number as {', '.join(opened)}; only sizes can stay open")
    arguments = [
        scalars[argument]
        if argument in scalars
        else ArraySpec(_shape(program, argument, sizes), interface.tensor(argument).type)
        for argument in interface.arguments
    ]
    try:
        signature = bind_specs(interface, arguments)
    except ArgumentError as error:
        raise OptionsError(f"{place}: {error}") from error
    return Job(Subject(definition, siblings, signature, scalars), dict(sizes))


def _with_gradient(
    definition: Definition,
    siblings: Mapping[str, Definition],
    sizes: Mapping[str, int],
    names: Sequence[str],
    place: str,
) -> tuple[Job, Job]:
    """The forward and the gradient of a definition, at the same sizes."""
    own = Comprehension(definition, siblings)
    pair = own.with_gradient(*(() if tuple(names) == (_ALL,) else names))
    forward = Parsed(pair.forward.program)
    if pair.forward is own:
        first = _job(definition, siblings, sizes, place)
    else:
        first = _job(forward, {forward.program.name: forward}, sizes, place)
    backward = Parsed(pair.backward.program)
    all_sizes = {**sizes, **_sizes_of_results(own, pair, first)}
    return first, _job(backward, {backward.program.name: backward}, all_sizes, place)


def _sizes_of_results(own: Comprehension, pair: Pair, forward: Job) -> Mapping[str, int]:
    """The sizes that the backward has beside those of the forward: extents of results, open where any size is."""
    program, backward = pair.forward.program, pair.backward.program
    greatest, scalars = {name: int(size) for name, size in forward.sizes.items()}, forward.subject.scalars
    arguments = [scalars[n] if n in scalars else _shape(program, n, greatest) for n in program.arguments]
    shapes = pair.forward.output_shapes(*arguments)
    results = program.results[: len(own.program.results)]
    floating = [name for name in results if program.tensor(name).type.is_floating]
    taken = backward.arguments[len(program.arguments) :]
    is_open = any(isinstance(size, Dynamic) for size in forward.sizes.values())
    found: dict[str, int] = {}
    for argument, result in zip(taken, (*pair.kept, *floating), strict=True):
        for extent, size in zip(backward.tensor(argument).shape, shapes[result], strict=True):
            if isinstance(extent, SizeReference) and extent.name not in program.sizes:
                found[extent.name] = dynamic(size) if is_open else size
    return found


def _shape(program: Program, tensor: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(_extent(extent, sizes) for extent in program.tensor(tensor).shape)


def _extent(extent: Expression, sizes: Mapping[str, int]) -> int:
    match extent:
        case SizeReference(name):
            return sizes[name]
        case Literal(value):
            return int(value)
        case _:
            raise TCError(f"the extent of a parameter is neither a size nor a number: {extent}")
