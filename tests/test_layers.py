"""Who may import whom: the column of the design's table of rooms, held by reading the source.

A module belongs to the room of its longest matching name.  Imports inside functions count as much as those at the
top, except where the table says so: hiding an import does not make a layer.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"tc": "tc", "grammar": "tc.grammar", "tuner": "tc.tuner", "cache": "tc.cache"}


@dataclass(frozen=True, slots=True)
class Room:
    """``rooms`` and ``packages`` that a room's modules may import, beside themselves and the standard library."""

    rooms: frozenset[str]
    packages: frozenset[str] = frozenset()


def room(rooms: str = "", packages: str = "") -> Room:
    return Room(frozenset(rooms.split()), frozenset(packages.split()))


# What every room shares, by module.  The other modules that lie directly in ``tc`` are its face, save the compiler;
# ``syntax`` is the vocabulary of operators, which programs are made of too.
SHARED = {
    "tc.counted",
    "tc.draft",
    "tc.errors",
    "tc.types",
    "tc.options",
    "tc.options_json",
    "tc.target",
    "tc.multiprocessor",
    "tc.grid",
    "tc.environment",
    "tc.once",
    "tc.faults",
    "tc.interface",
    "tc.locked_folder",
    "tc.private",
    "tc.proof",
    "tc.records",
    "tc.frozen",
    "tc.generator",
    "tc.stage",
    "tc.warn",
}
# What is left of a kernel when its compiler is gone: calls need nothing else.
EXECUTABLE = {
    "tc.arguments",
    "tc.cached",
    "tc.convention",
    "tc.cuda_plan",
    "tc.definition",
    "tc.deposit",
    "tc.executable",
    "tc.fault_report",
    "tc.kernel",
    "tc.measured_machine",
    "tc.packing",
    "tc.placement",
    "tc.resources",
    "tc.sites",
    "tc.streams",
    "tc.wanted",
}
ROOMS = {
    "shared": room(),
    "syntax": room("shared"),
    "grammar": room("shared syntax", "lark"),
    "language": room("shared syntax grammar", "islpy"),
    "reference": room("shared syntax language", "numpy scipy"),
    "polyhedral": room("shared syntax language", "islpy"),
    "codegen": room("shared syntax language polyhedral"),
    "runtime": room("shared cache", "numpy ml_dtypes torch jax cupy cuda pycuda pyopencl"),
    "executable": room("shared cache language runtime"),
    "compiler": room("shared language polyhedral codegen runtime executable"),
    "cache": room("shared", "sqlalchemy"),
    "tuner": room(
        "shared syntax grammar language polyhedral runtime executable compiler reference cache", "numpy distributed"
    ),
    "face": room(
        "shared syntax grammar language reference polyhedral codegen runtime executable compiler cache tuner", "numpy"
    ),
    "commands": room("shared grammar syntax language runtime executable cache tuner face"),
}
# These may be absent, or cost more than the rest of the process: modules named after them hold their imports, and
# whoever needs such a module imports it where it needs it.
OPTIONAL = ("torch", "jax", "cupy", "pycuda", "ml_dtypes", "scipy")


@dataclass(frozen=True, slots=True)
class Import:
    """``module`` (or one of its attributes) imported at ``line``; ``deferred``: inside a function."""

    module: str
    line: int
    deferred: bool


@cache
def modules() -> dict[str, Path]:
    """Every module of the package, by name."""
    found: dict[str, Path] = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join((package, *(part for part in parts if part != "__init__")))] = path
    return found


def room_of(module: str) -> str:
    if module in SHARED:
        return "shared"
    if module in EXECUTABLE:
        return "executable"
    if module == "tc.grammar.syntax":
        return "syntax"
    if module == "tc.compiler" or modules()[module].parent != ROOT / "tc":
        return module.split(".")[1]
    return "face"


@cache
def imports_of(module: str) -> tuple[Import, ...]:
    """What a module imports when it runs; what only type checkers see does not count."""
    return tuple(_imports(ast.parse(modules()[module].read_text(encoding="utf-8")), deferred=False))


def _imports(node: ast.AST, *, deferred: bool) -> Iterator[Import]:
    match node:
        case ast.Import(names):
            yield from (Import(alias.name, node.lineno, deferred) for alias in names)
        case ast.ImportFrom(name, aliases, level):
            assert level == 0, f"line {node.lineno}: relative imports hide the room"
            assert name is not None
            for alias in aliases:
                submodule = f"{name}.{alias.name}"
                yield Import(submodule if submodule in modules() else name, node.lineno, deferred)
        case ast.If(ast.Name("TYPE_CHECKING") | ast.Attribute(_, "TYPE_CHECKING")):
            for statement in node.orelse:
                yield from _imports(statement, deferred=deferred)
        case _:
            inside = deferred or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for child in ast.iter_child_nodes(node):
                yield from _imports(child, deferred=inside)


def _place(module: str, found: Import) -> str:
    return f"{modules()[module].relative_to(ROOT)}:{found.line}"


def _trespass(module: str, found: Import) -> str | None:
    """What is wrong with an import, if anything."""
    own = room_of(module)
    package = found.module.split(".", maxsplit=1)[0]
    if package == "tc":
        if found.module not in modules():
            return f"there is no module {found.module}"
        target = room_of(found.module)
        return None if target == own or target in ROOMS[own].rooms else f"{own} may not import {target}"
    if package in sys.stdlib_module_names or package in ROOMS[own].packages:
        return None
    return f"{own} may not import {package}"


def _haste(module: str, found: Import) -> str | None:
    """What is wrong with importing this when the module is imported, if anything."""
    named_after = found.module.rsplit(".", maxsplit=1)[-1] if found.module.startswith("tc.") else found.module
    for package in OPTIONAL:
        if named_after.startswith(package) and not module.rsplit(".", maxsplit=1)[-1].startswith(package):
            return f"import {found.module} inside the function that needs it"
    return None


def test_every_module_has_a_room() -> None:
    homeless = [module for module in modules() if room_of(module) not in ROOMS]
    assert not homeless, f"name the room of {', '.join(homeless)} in {Path(__file__).name}"


def test_imports_stay_in_the_column() -> None:
    every = ((module, found) for module in modules() for found in imports_of(module))
    assert [f"{_place(m, found)}: {wrong}" for m, found in every if (wrong := _trespass(m, found))] == []


def test_optional_packages_are_imported_where_they_are_needed() -> None:
    eager = ((module, found) for module in modules() for found in imports_of(module) if not found.deferred)
    assert [f"{_place(m, found)}: {wrong}" for m, found in eager if (wrong := _haste(m, found))] == []


def test_no_module_imports_itself_through_others() -> None:
    graph = {
        module: {found.module for found in imports_of(module) if found.module in modules() and found.module != module}
        for module in modules()
    }
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail("a cycle of imports: " + " <- ".join(error.args[1]))


def test_import_is_light() -> None:
    program = "import sys, tc; print(*sys.modules, sep='\\n')"
    listing = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in listing.stdout.split()}
    assert "tc" in loaded
    assert not loaded & {
        "islpy",
        "lark",
        "scipy",
        "sqlalchemy",
        "torch",
        "jax",
        "cupy",
        "pycuda",
        "ml_dtypes",
        "matplotlib",
    }
