"""Who may import whom, by folder: the table of rooms, held by reading the source.

A module belongs to the room of its folder, or to one of its own where the table names the module.  A room may import
what stands above it in the table, as far as its line says so.  Imports inside functions and for type checkers only
count as much as those at the top: hiding an import does not make a layer.
"""

from __future__ import annotations

import ast
import re
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
MOST_MODULES = 25


@dataclass(frozen=True, slots=True)
class Room:
    """``rooms`` and ``packages`` that a room's modules may import, beside themselves and the standard library."""

    rooms: frozenset[str]
    packages: frozenset[str] = frozenset()


def room(rooms: str = "", packages: str = "") -> Room:
    return Room(frozenset(rooms.split()), frozenset(packages.split()))


# By folder, without ``tc.``, those below first.
ROOMS = {
    "base": room(packages="setuptools"),
    "grammar.syntax": room("base"),
    "language.program": room("base grammar.syntax"),
    "targets": room("base"),
    # What kernels ask of a GPU, as data, and the time that follows: artifacts keep the first.
    "prediction": room("base targets"),
    "language.isl": room("base grammar.syntax language.program", "islpy"),
    "language.algebra": room("base grammar.syntax language.program language.isl", "islpy"),
    "grammar": room("base grammar.syntax", "lark"),
    "language.draft": room("base grammar.syntax language.program language.algebra"),
    "language.text": room("base grammar.syntax language.program language.algebra grammar"),
    "language.prove": room(
        "base grammar.syntax language.program language.isl language.algebra language.text",
        "islpy",
    ),
    "language.check": room(
        "base grammar.syntax language.program language.algebra grammar language.draft language.text language.prove",
    ),
    "language.ranges": room(
        "base grammar.syntax language.program language.algebra grammar language.draft language.text",
    ),
    "language.lower": room(
        "base grammar.syntax language.program language.algebra language.draft language.text language.prove "
        "language.check language.ranges",
    ),
    "gradient": room(
        "base grammar.syntax language.program language.isl language.algebra grammar language.draft language.text "
        "language.prove language.lower",
        "islpy scipy",
    ),
    "graph.ir": room(
        "base grammar.syntax language.program grammar language.text language.lower",
        "lark numpy",
    ),
    "graph.operators": room("base graph.ir", "numpy"),
    "graph.operators.neural": room("base graph.ir graph.operators", "numpy"),
    "graph.partition": room(
        "base grammar.syntax language.program grammar language.text language.lower targets graph.ir graph.operators"
    ),
    "graph.memory": room("base graph.ir graph.operators graph.partition", "numpy ortools"),
    "cache.format": room("base", "sqlalchemy"),
    "cache.database": room("base cache.format", "sqlalchemy"),
    "cache.content": room("base cache.format cache.database", "sqlalchemy"),
    "runtime.host": room("base cache.content targets", "numpy"),
    "runtime.views": room("base", "numpy"),
    "runtime.cuda": room("base targets runtime.host runtime.views", "cuda pycuda"),
    "runtime.opencl": room("base runtime.host", "numpy pyopencl"),
    "runtime": room("base targets runtime.host runtime.cuda runtime.opencl"),
    "artifact": room(
        "base prediction language.program language.text language.lower targets runtime.host runtime.cuda "
        "runtime.opencl runtime",
    ),
    # Kernels as sources that programs without Python compile: of a cache (commands.export), of a model (graph.export).
    "export": room("base language.program targets runtime.host runtime.cuda runtime.opencl runtime artifact"),
    "polyhedral.ir": room("base language.program language.isl language.prove", "islpy"),
    "codegen.text": room("base language.program polyhedral.ir"),
    "polyhedral.analysis": room("base grammar.syntax language.program language.isl polyhedral.ir", "islpy"),
    "polyhedral.schedule": room(
        "base grammar.syntax language.program language.isl language.algebra language.prove targets "
        "polyhedral.ir polyhedral.analysis",
        "islpy",
    ),
    "polyhedral.operands": room(
        "base grammar.syntax language.program language.algebra polyhedral.ir polyhedral.analysis polyhedral.schedule",
    ),
    "polyhedral.transform": room(
        "base grammar.syntax language.program language.isl targets polyhedral.ir polyhedral.analysis",
        "islpy",
    ),
    "polyhedral.cpu": room(
        "base language.program language.isl targets polyhedral.ir polyhedral.analysis polyhedral.schedule "
        "polyhedral.transform",
        "islpy",
    ),
    "polyhedral.prefetch": room("base language.program polyhedral.ir polyhedral.analysis"),
    "polyhedral.execution": room("base language.program language.isl polyhedral.ir polyhedral.analysis", "islpy"),
    "codegen.index": room("base language.program polyhedral.ir codegen.text polyhedral.analysis polyhedral.execution"),
    "polyhedral.generate": room(
        "base grammar.syntax language.program language.isl targets polyhedral.ir polyhedral.analysis "
        "polyhedral.transform polyhedral.execution",
        "islpy",
    ),
    "polyhedral.steps": room(
        "base language.isl targets polyhedral.ir polyhedral.analysis polyhedral.execution",
        "islpy",
    ),
    "polyhedral.separate": room(
        "base language.program polyhedral.ir polyhedral.analysis polyhedral.execution",
        "islpy",
    ),
    "polyhedral.proof.tensor": room(
        "base language.program language.isl polyhedral.ir polyhedral.analysis polyhedral.execution",
        "islpy",
    ),
    "polyhedral.proof": room(
        "base grammar.syntax language.program language.isl language.prove polyhedral.ir polyhedral.analysis "
        "polyhedral.execution polyhedral.proof.tensor",
        "islpy",
    ),
    "polyhedral.proof.printed": room(
        "base language.program language.isl polyhedral.ir polyhedral.analysis polyhedral.execution",
        "islpy",
    ),
    "polyhedral.proof.rewrites": room(
        "base grammar.syntax language.program language.algebra language.isl language.prove polyhedral.ir",
        "islpy",
    ),
    "codegen.printer": room(
        "base grammar.syntax language.program language.isl language.text polyhedral.ir codegen.text "
        "polyhedral.analysis codegen.index polyhedral.cpu polyhedral.execution "
        "polyhedral.generate polyhedral.proof polyhedral.proof.printed",
    ),
    # Predictions: what printers unroll, compilers do.
    "polyhedral.gpu.cost": room(
        "base grammar.syntax language.program language.isl polyhedral.ir polyhedral.analysis "
        "polyhedral.execution polyhedral.generate codegen.index codegen.printer prediction",
        "numpy",
    ),
    "polyhedral.gpu.barriers": room("language.isl polyhedral.ir polyhedral.analysis", "islpy"),
    "polyhedral.gpu.feasibility": room(
        "base targets polyhedral.ir polyhedral.execution polyhedral.generate",
        "islpy",
    ),
    "polyhedral.gpu.mapping": room(
        "base language.program language.isl language.algebra targets polyhedral.ir polyhedral.analysis "
        "polyhedral.schedule polyhedral.transform",
        "islpy",
    ),
    "polyhedral.gpu.tensor": room(
        "base language.program language.isl targets polyhedral.ir polyhedral.analysis polyhedral.transform "
        "polyhedral.execution",
        "islpy",
    ),
    "polyhedral.gpu.promotion": room(
        "base grammar.syntax language.program language.isl language.algebra targets polyhedral.ir "
        "polyhedral.analysis polyhedral.transform polyhedral.gpu.tensor",
        "islpy",
    ),
    "polyhedral": room(
        "base language.program language.isl targets polyhedral.ir polyhedral.analysis polyhedral.schedule "
        "polyhedral.operands polyhedral.transform polyhedral.cpu polyhedral.prefetch polyhedral.execution "
        "polyhedral.generate "
        "polyhedral.separate polyhedral.steps polyhedral.proof polyhedral.proof.printed polyhedral.proof.rewrites "
        "polyhedral.gpu.barriers polyhedral.gpu.feasibility polyhedral.gpu.mapping polyhedral.gpu.promotion "
        "polyhedral.gpu.tensor",
        "islpy",
    ),
    "compiler": room(
        "base prediction language.program targets runtime.host runtime.cuda runtime.opencl runtime artifact "
        "polyhedral.ir polyhedral.gpu.cost codegen.text codegen.printer polyhedral",
    ),
    "runtime.frameworks": room(
        "base runtime.host runtime.views runtime.cuda",
        "cupy jax ml_dtypes numpy pycuda torch",
    ),
    "dispatch": room(
        "prediction base language.program targets runtime.host runtime.views runtime.cuda runtime.opencl runtime "
        "artifact compiler runtime.frameworks",
        "numpy",
    ),
    "reference": room("base grammar.syntax language.program", "numpy scipy"),
    "store": room(
        "base language.program cache.format cache.database cache.content targets runtime.host runtime.cuda "
        "runtime.opencl runtime artifact",
    ),
    "tuner.trial": room(
        "base language.program grammar language.lower targets runtime.host runtime.views runtime.cuda "
        "artifact polyhedral compiler runtime.frameworks dispatch reference",
        "numpy",
    ),
    "tuner.roofline": room(
        "base language.program targets runtime.host runtime.views runtime.cuda tuner.trial",
        "numpy",
    ),
    "tuner.space": room("base language.program targets tuner.trial", "_typeshed"),
    "tuner.search": room("base targets tuner.trial tuner.space"),
    "tuner.session": room(
        "base language.program language.text language.lower cache.format cache.content targets runtime.host "
        "runtime.cuda runtime artifact compiler reference store tuner.trial tuner.roofline tuner.space "
        "tuner.search",
        "numpy",
    ),
    "tuner.cluster": room("base targets runtime.host runtime store tuner.trial tuner.session", "distributed"),
    "api": room(
        "base prediction grammar.syntax language.program grammar language.text language.lower gradient graph.ir "
        "cache.content polyhedral.gpu.cost targets runtime.host runtime.views runtime.cuda runtime.opencl runtime "
        "artifact polyhedral.schedule "
        "polyhedral compiler runtime.frameworks dispatch reference store tuner.trial tuner.space "
        "tuner.session tuner.cluster",
        "numpy torch",
    ),
    "graph.run": room(
        "base language.program targets runtime.host runtime.views runtime.cuda runtime.opencl runtime "
        "runtime.frameworks dispatch store api graph.ir graph.partition graph.memory",
        "numpy",
    ),
    # Models as programs in C and CUDA.
    "graph.export": room(
        "base language.text targets artifact export api graph.ir graph.memory graph.run",
        "numpy",
    ),
    "graph.libraries": room(
        "base grammar.syntax language.program graph.ir graph.operators graph.operators.neural graph.partition "
        "cache.format runtime.host runtime.frameworks store api graph.run",
        "numpy scipy torch",
    ),
    "graph.rewrite": room("base graph.ir graph.operators graph.partition graph.run", "numpy"),
    "graph.rewrite.rules": room("base graph.ir graph.operators graph.operators.neural graph.rewrite", "numpy"),
    "graph.settings": room("base graph.memory graph.rewrite"),
    # Models are prepared, and tuned, which prepares them for what was measured meanwhile.
    "graph.preparation": room(
        "base targets runtime.host api graph.ir graph.partition graph.memory graph.run graph.libraries "
        "graph.rewrite graph.rewrite.rules graph.settings",
        "numpy",
    ),
    "graph.tuning": room(
        "base targets runtime.host cache.content artifact store tuner.trial tuner.session api graph.ir "
        "graph.partition graph.memory graph.run graph.settings graph.preparation",
    ),
    "graph.kept": room(
        "base language.program cache.format targets runtime.views runtime.frameworks artifact dispatch store api "
        "graph.ir graph.memory graph.run graph.rewrite.rules graph.settings",
        "numpy",
    ),
    "graph.protobuf": room("base"),
    "graph.onnx.tensors": room("base runtime.frameworks", "numpy onnx"),
    "graph.onnx.operation": room("base language.program graph.ir graph.onnx.tensors", "numpy onnx"),
    "graph.onnx.operators": room(
        "base graph.ir graph.operators graph.onnx.tensors graph.onnx.operation",
        "numpy",
    ),
    "graph.onnx.operators.neural": room(
        "base graph.ir graph.operators graph.operators.neural graph.onnx.tensors graph.onnx.operation",
        "numpy",
    ),
    "graph.onnx": room(
        "base graph.ir graph.protobuf graph.onnx.tensors graph.onnx.operation graph.onnx.operators "
        "graph.onnx.operators.neural",
        "google numpy onnx",
    ),
    "graph.graphdef.schema": room("graph.protobuf"),
    "graph.graphdef.tensors": room("base graph.protobuf graph.graphdef.schema runtime.frameworks", "numpy"),
    "graph.graphdef.nodes": room("base graph.protobuf graph.graphdef.schema graph.graphdef.tensors"),
    "graph.graphdef.operation": room("base graph.ir graph.graphdef.tensors graph.graphdef.nodes", "numpy"),
    "graph.graphdef.operators": room(
        "base runtime.frameworks graph.ir graph.operators graph.operators.neural graph.graphdef.operation",
        "numpy",
    ),
    "graph.graphdef": room(
        "base runtime.frameworks graph.ir graph.protobuf graph.graphdef.schema graph.graphdef.tensors "
        "graph.graphdef.nodes "
        "graph.graphdef.operation graph.graphdef.operators",
        "lark numpy",
    ),
    "graph": room(
        "base language.text targets dispatch tuner.trial graph.ir graph.partition "
        "graph.memory graph.run graph.export graph.libraries graph.rewrite graph.rewrite.rules graph.settings "
        "graph.preparation "
        "graph.tuning graph.kept graph.protobuf graph.onnx graph.graphdef api",
        "numpy onnx",
    ),
    "torch.fx": room("base graph.ir", "ml_dtypes numpy torch"),
    "torch.aten": room(
        "base language.program gradient graph.ir graph.operators graph.operators.neural torch.fx", "numpy torch"
    ),
    "torch": room(
        "base cache.format runtime.host store tuner.trial api graph.ir graph.memory graph.run graph.libraries "
        "graph.settings graph.preparation graph.tuning graph.kept torch.fx torch.aten",
        "numpy torch",
    ),
    "jax": room("base runtime.frameworks api", "jax numpy"),
    "tc": room("base language.program targets runtime.host dispatch api"),
    "cache": room("base cache.content"),
    "commands.contents": room(
        "base cache.format cache.content targets runtime.host artifact store tuner.trial",
    ),
    "commands.export": room("base cache.format cache.content targets artifact export commands.contents"),
    "tuner.report": room(
        "base language.program grammar cache.format cache.content artifact store tuner.trial tuner.search",
    ),
    "commands": room(
        "base language.program grammar cache.database cache.content targets runtime.host runtime artifact "
        "dispatch store tuner.trial tuner.space tuner.session api graph.ir graph.settings graph.tuning graph "
        "torch commands.contents commands.export tuner.report",
    ),
}
# These may be absent, or cost more than the rest of the process: modules and folders named after them hold their
# imports, and whoever needs such a module imports it where it needs it.
OPTIONAL = ("torch", "jax", "cupy", "pycuda", "ml_dtypes", "scipy")


@dataclass(frozen=True, slots=True)
class Import:
    """``module`` (or one of its attributes) imported at ``line``; ``deferred``: not when the module is imported."""

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
    name = module.removeprefix("tc.")
    if name in ROOMS:
        return name
    return name.rpartition(".")[0]


@cache
def imports_of(module: str) -> tuple[Import, ...]:
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
        case _:
            checked = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            inside = deferred or checked or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, ast.expr):  # expressions import nothing, and are most of a tree
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
        own = module.startswith(f"tc.{package}.") or module.rsplit(".", maxsplit=1)[-1].startswith(package)
        if named_after.startswith(package) and not own:
            return f"import {found.module} inside the function that needs it"
    return None


def _require_no_cycle(graph: dict[str, set[str]]) -> None:
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail("a cycle of imports: " + " <- ".join(error.args[1]))


def test_every_module_has_a_room() -> None:
    """Packages of rooms say what they are, and import nothing."""
    homeless = [module for module in modules() if room_of(module) not in ROOMS and imports_of(module)]
    assert not homeless, f"name the room of {', '.join(homeless)} in {Path(__file__).name}"


def test_rooms_stand_below_those_that_import_them() -> None:
    order = list(ROOMS)
    assert [
        f"{name} imports {other}, which stands below it in the table"
        for name, found in ROOMS.items()
        for other in found.rooms
        if order.index(other) > order.index(name)
    ] == []


def test_the_table_allows_no_more_than_there_is() -> None:
    used: dict[str, set[str]] = {name: set() for name in ROOMS}
    for module in modules():
        if (own := room_of(module)) in used:
            used[own] |= {room_of(found.module) for found in imports_of(module) if found.module in modules()}
    assert {name: sorted(found.rooms - used[name]) for name, found in ROOMS.items() if found.rooms - used[name]} == {}


def test_no_folder_has_too_many_modules() -> None:
    counts: dict[Path, int] = {}
    for path in modules().values():
        counts[path.parent] = counts.get(path.parent, 0) + 1
    assert {str(folder.relative_to(ROOT)): count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_words_are_those_of_the_field() -> None:
    """Names of Python's C API aside."""
    wrong = re.compile(r"nobody|somebody|crew|hired|(?<!Py)capsule|given.back", re.IGNORECASE)
    sources = (path for top in FOLDERS for kind in ("py", "h", "c", "lark") for path in (ROOT / top).rglob(f"*.{kind}"))
    found = ((path, wrong.search(path.read_text(encoding="utf-8"))) for path in sources)
    assert [f"{path.relative_to(ROOT)}: {word[0]}" for path, word in found if word] == []


def test_imports_stay_in_the_column() -> None:
    every = ((module, found) for module in modules() if room_of(module) in ROOMS for found in imports_of(module))
    assert [f"{_place(m, found)}: {wrong}" for m, found in every if (wrong := _trespass(m, found))] == []


def test_optional_packages_are_imported_where_they_are_needed() -> None:
    eager = ((module, found) for module in modules() for found in imports_of(module) if not found.deferred)
    assert [f"{_place(m, found)}: {wrong}" for m, found in eager if (wrong := _haste(m, found))] == []


def test_no_module_imports_itself_through_others() -> None:
    """Imports for type checkers count, too."""
    graph = {
        module: {found.module for found in imports_of(module) if found.module in modules() and found.module != module}
        for module in modules()
    }
    _require_no_cycle(graph)


def test_tests_import_no_tests() -> None:
    """What several tests need is in modules of its own; programs that tests start as text count, too."""
    tests = r"from tests(?:\.\w+)*(?:\.| import (?:.*, )?)test_|import tests(?:\.\w+)*\.test_"
    importing = re.compile(rf"^\s*(?:{tests})", re.MULTILINE)
    files = (ROOT / "tests").rglob("*.py")
    assert [str(path.relative_to(ROOT)) for path in files if importing.search(path.read_text())] == []


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
