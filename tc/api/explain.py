"""Explains how a definition became a kernel, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tc.artifact.executable import Executable
from tc.base.counted import noun_for
from tc.base.decision import Decision
from tc.base.stage import Stage
from tc.compiler import Compilation
from tc.language.program.specialization import Layout, Specialization
from tc.language.text.print_program import program_text
from tc.polyhedral.gpu.cost.count_kernels import count_kernels
from tc.prediction.predict import predict
from tc.targets.devices import DEVICES, USUAL
from tc.targets.options import Options
from tc.targets.target import CudaTarget, Target


def explain_kernel(compilation: Compilation, stages: tuple[Stage, ...], decision: str) -> str:
    """Sections: definition, target, decisions, buffers, schedule before and after, its steps, kernels, their
    predicted time, sums, proof, times, cache, and source.

    ``decision``: what the cache has for such a call.
    """
    return _joined(_sections(compilation, stages, decision))


def explain_injected(specialization: Specialization, executable: Executable, decision: str) -> str:
    """The same of a kernel with an injected source, which has no schedule.

    ``decision``: what the cache has for such a call.
    """
    layouts = [(operand.name, operand.layout) for operand in executable.convention.operands]
    sections = (
        ("definition, with sizes and ranges", program_text(specialization.program).rstrip()),
        ("target", _target(executable.target, executable.asked)),
        ("buffers", "\n".join(_buffers(specialization, layouts))),
        ("proof", str(executable.proof)),
        ("cache", decision),
        ("source", executable.source.rstrip()),
    )
    return _joined(iter(sections))


def _joined(sections: Iterator[tuple[str, str]]) -> str:
    return "\n\n".join(f"== {title} ==\n{text}" for title, text in sections if text)


def _sections(compilation: Compilation, stages: tuple[Stage, ...], decision: str) -> Iterator[tuple[str, str]]:
    yield "definition, with sizes and ranges", program_text(compilation.specialization.program).rstrip()
    yield "target", _target(compilation.target, compilation.asked)
    yield "decisions", _decisions(compilation.decisions)
    own = compilation.specialization.layouts
    layouts = [(buffer.name, own.get(buffer.name, buffer.layout)) for buffer in compilation.buffers]
    yield "buffers", "\n".join(_buffers(compilation.specialization, layouts))
    yield "statements", _stage(stages, "scop")
    yield "softmax", _stage(stages, "softmax")
    yield "sampled operands", _stage(stages, "sampled operands")
    yield "pull forms", _stage(stages, "pull forms")
    yield "collapsed dimensions", _stage(stages, "collapsed dimensions")
    yield "recurrences", _stage(stages, "recurrences")
    yield "scans", _stage(stages, "scans")
    yield "contractions", _stage(stages, "contractions")
    yield "invariants", _stage(stages, "invariants")
    yield "dot products", _stage(stages, "dot products")
    yield "transposed operands", _stage(stages, "transposed operands")
    yield "scatters", _stage(stages, "scatters")
    yield "schedule", _stage(stages, "schedule")
    yield "schedule, mapped", compilation.schedule
    yield "steps", compilation.steps
    yield "kernels", _stage(stages, "kernels")
    yield "prediction", _prediction(compilation)
    yield "sums", _stage(stages, "sums")
    yield "proof", str(compilation.proof)
    yield "times", "\n".join(f"{stage.seconds * 1e3:9.2f} ms  {stage.name}" for stage in stages)
    yield "cache", decision
    yield "source", compilation.source.text.rstrip()


def _stage(stages: tuple[Stage, ...], name: str) -> str:
    found = [stage for stage in stages if stage.name == name]
    return found[0].text if found else ""


def _prediction(compilation: Compilation) -> str:
    """The time on the usual GPU of the architecture, with registers as they are estimated."""
    target = compilation.target
    if not isinstance(target, CudaTarget) or target.architecture not in USUAL:
        return ""
    return str(predict(count_kernels(compilation.mapped.loops), DEVICES[USUAL[target.architecture]]))


def _target(target: Target, options: Options) -> str:
    return f"{target}\n{options}"


def _decisions(decisions: Sequence[Decision]) -> str:
    """A line for each."""
    return "\n".join(map(str, decisions))


def _buffers(specialization: Specialization, layouts: Sequence[tuple[str, Layout]]) -> Iterator[str]:
    roles = {tensor.name: tensor.role.value for tensor in specialization.program.tensors}
    for name, layout in layouts:
        role = roles.get(name, "accumulator")
        size = layout.size * layout.type.itemsize
        shape, strides = list(layout.shape), list(layout.strides)
        yield f"{name}: {role}, {layout.type}{shape}, strides {strides}, {size} {noun_for(size, 'byte')}"
