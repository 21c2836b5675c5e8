"""What became of a definition on its way to a kernel, as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from tc.kernel import Kernel
from tc.language.print_program import program_text
from tc.polyhedral.pipeline import Stage


def explain_kernel(kernel: Kernel) -> str:
    """Sections: definition with ranges, target, buffers, schedule before and after, proof, times, source."""
    return "\n\n".join(f"== {title} ==\n{text}" for title, text in _sections(kernel) if text)


def _sections(kernel: Kernel) -> Iterator[tuple[str, str]]:
    yield "definition, with sizes and ranges", program_text(kernel.specialization.program).rstrip()
    yield "target", f"{kernel.target}\n{kernel.options}"
    yield "buffers", "\n".join(_buffers(kernel))
    yield "statements", _stage(kernel, "scop")
    yield "schedule", _stage(kernel, "schedule")
    yield "schedule, mapped", kernel.schedule
    yield "proof", str(kernel.proof)
    yield "times", "\n".join(f"{stage.seconds * 1e3:9.2f} ms  {stage.name}" for stage in kernel.stages)
    yield "source", kernel.source.rstrip()


def _stage(kernel: Kernel, name: str) -> str:
    found: list[Stage] = [stage for stage in kernel.stages if stage.name == name]
    return found[0].text if found else ""


def _buffers(kernel: Kernel) -> Iterator[str]:
    roles = {tensor.name: tensor.role.value for tensor in kernel.specialization.program.tensors}
    for name in kernel.buffers:
        layout = kernel.layout(name)
        role = roles.get(name, "accumulator")
        size = layout.size * layout.type.itemsize
        yield f"{name}: {role}, {layout.type}{list(layout.shape)}, strides {list(layout.strides)}, {size} bytes"
