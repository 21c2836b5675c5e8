"""What became of a definition on its way to a kernel, as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from tc.compiler import Compilation
from tc.counted import noun_for
from tc.language.print_program import program_text
from tc.stage import Stage


def explain_kernel(compilation: Compilation, stages: tuple[Stage, ...], decision: str) -> str:
    """Sections: definition, target, buffers, schedule before and after, kernels, sums, proof, times, cache, source.

    ``decision``: what the cache has for such a call.
    """
    return "\n\n".join(f"== {title} ==\n{text}" for title, text in _sections(compilation, stages, decision) if text)


def _sections(compilation: Compilation, stages: tuple[Stage, ...], decision: str) -> Iterator[tuple[str, str]]:
    yield "definition, with sizes and ranges", program_text(compilation.specialization.program).rstrip()
    yield "target", f"{compilation.target}\n{compilation.options}"
    yield "buffers", "\n".join(_buffers(compilation))
    yield "statements", _stage(stages, "scop")
    yield "schedule", _stage(stages, "schedule")
    yield "schedule, mapped", compilation.schedule
    yield "kernels", _stage(stages, "kernels")
    yield "sums", _stage(stages, "sums")
    yield "proof", str(compilation.proof)
    yield "times", "\n".join(f"{stage.seconds * 1e3:9.2f} ms  {stage.name}" for stage in stages)
    yield "cache", decision
    yield "source", compilation.source.text.rstrip()


def _stage(stages: tuple[Stage, ...], name: str) -> str:
    found = [stage for stage in stages if stage.name == name]
    return found[0].text if found else ""


def _buffers(compilation: Compilation) -> Iterator[str]:
    roles = {tensor.name: tensor.role.value for tensor in compilation.specialization.program.tensors}
    for buffer in compilation.buffers:
        layout, role = buffer.layout, roles.get(buffer.name, "accumulator")
        size = layout.size * layout.type.itemsize
        shape, strides = list(layout.shape), list(layout.strides)
        yield f"{buffer.name}: {role}, {layout.type}{shape}, strides {strides}, {size} {noun_for(size, 'byte')}"
