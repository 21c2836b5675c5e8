"""Models as people ask for them to be tuned: files, sizes of open dimensions, shapes of inputs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tc.base.errors import OptionsError, nearest
from tc.base.frozen import frozen
from tc.graph.formats import format_of, is_text
from tc.graph.ir.graph import Graph
from tc.graph.ir.sizes import Size, number, shape_at
from tc.graph.ir.source import Declared
from tc.graph.load import load
from tc.graph.model import Model
from tc.graph.tuning.model_search import Keep
from tc.language.program.specialization import Dynamic

Sizes = Mapping[str, int]
Shapes = Mapping[str, tuple[int, ...]]

_SHAPE: Final = re.compile(r"(?:scalar|[0-9]{1,18}(?:x[0-9]{1,18})*)")
# Bytes that texts have not, and models in binary form have.
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")


@frozen
class ModelRequest:
    """A model at every set of sizes, each with every set of shapes.

    ``place``: where it was asked for, for messages.  ``sizes``: of open dimensions by name.  ``shapes``: of inputs by
    name, where the model does not declare them.
    """

    place: str
    file: Path
    sizes: tuple[Sizes, ...] = ()
    shapes: tuple[Shapes, ...] = ()

    def graphs(self, target: str) -> Iterator[tuple[str, Graph, Keep | None]]:
        """The graphs, each with a name for people, and what keeps its plans for a target.

        OptionsError for sizes that are missing or that the model has not; GraphError for what is no model, or depends
        on what inputs hold.
        """
        model = load(self.file)
        for sizes, shapes in itertools.product(self.sizes or ({},), self.shapes or ({},)):
            given = {name: str(size) for name, size in sizes.items()}
            given |= {name: "x".join(map(str, shape)) or "scalar" for name, shape in shapes.items()}
            said = ",".join(f"{name}={value}" for name, value in given.items())
            found = self._shapes(model, sizes, shapes)
            yield f"{self.file.name}({said})", model.graph(**found), model.keeping(**found, target=target)

    def _shapes(self, model: Model, sizes: Sizes, shapes: Shapes) -> Shapes:
        """The shapes of all inputs."""
        _require_known(shapes, [declared.name for declared in model.inputs], "input", self.place)
        needed = dict.fromkeys(name for own in model.inputs if own.name not in shapes for name in _open_names(own))
        _require_known(sizes, tuple(needed), "open size", self.place)
        if missing := [name for name in needed if name not in sizes]:
            raise OptionsError(
                f"{self.place}: the model needs the sizes {', '.join(needed)}; missing: {', '.join(missing)}"
            )
        if opened := [name for name, size in sizes.items() if isinstance(size, Dynamic)]:
            raise OptionsError(f"{self.place}: {opened[0]} of a model cannot stay open; give a number")
        found = dict(shapes)
        for declared in model.inputs:
            if declared.name not in shapes and declared.shape is not None:
                extents = shape_at(declared.shape, sizes)
                found[declared.name] = tuple(number(extent, f"an extent of {declared.name}") for extent in extents)
            elif declared.name not in shapes and not declared.optional:
                raise OptionsError(
                    f"{self.place}: the model does not declare the shape of {declared.name}; give one, as in --shape "
                    f"{declared.name}=1x3x224x224"
                )
        return found


def is_model(file: Path) -> bool:
    """Whether a file is a model, by its contents; not where it cannot be read."""
    try:
        data = file.read_bytes()
    except OSError:
        return False
    return is_text(data) if _CONTROL.search(data) is None else format_of(data) is not None


def parse_shapes(texts: Sequence[str]) -> Shapes:
    """``input=1x3x224x224`` of every text; OptionsError for anything else."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, _, shape = (part.strip() for part in text.rpartition("="))
        if not name or _SHAPE.fullmatch(shape) is None:
            raise OptionsError(f"a shape is written as input=1x3x224x224, or input=scalar, got {text!r}")
        if name in found:
            raise OptionsError(f"{name} has two shapes; tune for both with two commands, or in a file of jobs")
        found[name] = () if shape == "scalar" else tuple(map(int, shape.split("x")))
    return found


def read_shapes(given: object, place: str) -> tuple[Shapes, ...]:
    """The ``shapes`` of a model in a file of jobs: tables of lists of integers; OptionsError for anything else."""
    listed = given if isinstance(given, list) else [given]
    tables = [table for table in listed if isinstance(table, dict) and all(map(_is_shape, table.values()))]
    if len(tables) < len(listed):
        raise OptionsError(
            f"{place}: shapes must be tables of lists of integers, such as {{x = [1, 3, 224, 224]}}, got {given!r}"
        )
    return tuple({name: tuple(shape) for name, shape in table.items()} for table in tables)


def _is_shape(value: object) -> bool:
    return isinstance(value, list) and all(type(extent) is int and extent >= 0 for extent in value)


def _open_names(declared: Declared) -> list[str]:
    sizes = (extent for extent in declared.shape or () if isinstance(extent, Size))
    return [name for size in sizes for name in sorted(size.names)]


def _require_known(given: Mapping[str, object], known: Sequence[str], what: str, place: str) -> None:
    for name in given:
        if name not in known:
            guess = nearest(name, known)
            some = f"it has {', '.join(known)}" if known else "it has none"
            hint = f"did you mean {guess!r}?" if guess else some
            raise OptionsError(f"{place}: the model has no {what} {name!r}; {hint}")
