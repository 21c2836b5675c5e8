"""Writes a model as a folder of sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from tc.api.available import target_of_call
from tc.base.errors import GraphError
from tc.export.folder import Content, is_free, write_folder
from tc.export.header import header
from tc.export.launch_table import launch_table
from tc.export.makefile import makefile
from tc.export.sources import source_file
from tc.export.support import support_files
from tc.graph.export.cuda_makefile import cuda_makefile
from tc.graph.export.cuda_source import cubins_source, cuda_source
from tc.graph.export.description import DESCRIPTION, description, foreign_file
from tc.graph.export.example import example
from tc.graph.export.header import model_header
from tc.graph.export.names import owner_of
from tc.graph.export.processor_source import processor_source
from tc.graph.export.program import ModelProgram, program_of, require_kernels
from tc.graph.export.readme import readme
from tc.graph.run.kernels import compiled, wanted_in
from tc.targets.options import GpuOptions, TensorCores
from tc.targets.target import CpuTarget, CudaTarget, EmulatorTarget, OpenClTarget

if TYPE_CHECKING:
    from tc.artifact.executable import Executable
    from tc.graph.memory.plan import MemoryPlan
    from tc.targets.target import Target


def write_model(folder: Path, name: str, outputs: Sequence[str], plan: MemoryPlan, target: str | None) -> None:
    """Writes the program of a plan, whose outputs lie in order, into a folder that is new, empty or an earlier export.

    GraphError for what cannot be exported, and where the folder cannot be written; then nothing is changed.
    """
    chosen = target_of_call(target)
    cuda = _is_cuda(chosen)
    _require_place(folder)
    require_kernels(name, plan.graph)
    kernels = _executables(plan, target)
    program = program_of(owner_of(folder.absolute().name), name, outputs, plan, kernels)
    contents = dict(_cuda_files(program) if cuda else _processor_files(program))
    contents["README.md"] = readme(program, str(chosen), cuda=cuda)
    contents[DESCRIPTION] = description(program, str(chosen), list(contents))
    try:
        write_folder(folder, contents.items())
    except OSError as error:
        raise GraphError(f"{folder} cannot be written: {error.strerror or error}; name another folder") from error


def _executables(plan: MemoryPlan, target: str | None) -> dict[tuple[str, ...], Executable]:
    """By the names of results.  Kernels that copy boxes of tensors are compiled again, so that threads copy them: an
    exported program has no descriptions of tensors, which only the driver makes.
    """
    found = {}
    for (results, kernel), wanted in zip(compiled(plan, target).items(), wanted_in(plan), strict=True):
        executable = kernel.executable
        if any(grid.maps for grid in executable.convention.grids) and isinstance(executable.asked, GpuOptions):
            options = replace(executable.asked, tensor_cores=TensorCores.WARPGROUPS)
            executable = wanted.comprehension.kernels.get(wanted.signature, kernel.target, options).executable
        found[results] = executable
    return found


def _is_cuda(target: Target) -> bool:
    match target:
        case CpuTarget() | EmulatorTarget():
            return False
        case CudaTarget():
            return True
        case OpenClTarget():
            raise GraphError(
                f"models are exported for cpu and cuda, not for {target}: buffers of OpenCL cannot begin where values "
                "of an arena do; load the model with another target"
            )
        case _:
            assert_never(target)


def _require_place(folder: Path) -> None:
    """GraphError where something would be lost."""
    try:
        if is_free(folder):
            return
        if folder.is_symlink() or not folder.is_dir():
            raise GraphError(f"{folder} is there already, and not a folder; name a new one")
        foreign = foreign_file(folder)
    except OSError as error:
        raise GraphError(f"{folder} cannot be used: {error.strerror}; name another folder") from error
    if foreign is not None:
        raise GraphError(f"{folder} holds {foreign!r}, which no export has written; name a new folder")


def _processor_files(program: ModelProgram) -> Iterator[tuple[str, Content]]:
    yield "model.h", model_header(program, cuda=False)
    yield "model.c", processor_source(program)
    yield "main.c", example(program, cuda=False)
    yield "Makefile", makefile(program.kernels, f"lib{program.owner}", ("model.o", "kernels.o"), "main")
    yield from _common_files(program)
    yield from support_files(program.owner)


def _cuda_files(program: ModelProgram) -> Iterator[tuple[str, Content]]:
    yield "model.h", model_header(program, cuda=True)
    yield "model.c", cuda_source(program)
    yield "main.c", example(program, cuda=True)
    yield "Makefile", cuda_makefile(program)
    yield "cubins.s", cubins_source(program)
    yield from ((f"{kernel.name}.cubin", (kernel.executable.binary.code,)) for kernel in program.kernels)
    yield from ((name, _own(name)) for name in ("launch.h", "compile.c"))
    yield from _common_files(program)
    yield from support_files(program.owner, threads=False)


def _common_files(program: ModelProgram) -> Iterator[tuple[str, Content]]:
    yield "kernels.h", header(program.kernels)
    yield "kernels.c", launch_table(program.kernels)
    yield from ((kernel.file, source_file(kernel)) for kernel in program.kernels)
    yield "weights.bin", program.weights.pieces
    yield from ((name, _own(name)) for name in ("weights.h", "files.h"))


def _own(name: str) -> str:
    return files("tc.graph.export").joinpath(name).read_text(encoding="utf-8")
