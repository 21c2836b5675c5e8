"""``ModelProgram``: an exported model as data: kernels, the steps that call them, and where everything is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tc.artifact.fault_report import check_said
from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.export.exported import Exported
from tc.graph.export.names import distinct_names, plain
from tc.graph.export.weights import Weights, weights_of
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Host
from tc.graph.ir.values import Value
from tc.graph.memory.places import Copy, Place, Placement, placement
from tc.graph.memory.plan import MemoryPlan, statement_of
from tc.graph.memory.storage import bytes_of
from tc.language.text.print_program import program_text
from tc.targets.default_options import default_options
from tc.targets.target import CudaTarget

if TYPE_CHECKING:
    from tc.artifact.executable import Executable

Kernels: TypeAlias = "Mapping[tuple[str, ...], Executable]"


@frozen
class Parameter:
    """An array of the caller: as the model calls it, and in C."""

    name: str
    c_name: str
    value: Value

    @property
    def bytes(self) -> int:
        """Of the array."""
        return bytes_of(self.value)


@frozen
class Launch:
    """A call, by its number among all, of a kernel, by its own, with the places of the operands.

    ``faults``: what is wrong where a check of the kernel fails, in the order of the checks; ``first_fault``: the number
    of the first of them among all of the model, from 1 on.
    """

    number: int
    kernel: int
    operands: tuple[Place, ...]
    said: str
    faults: tuple[str, ...]
    first_fault: int


@frozen
class ModelProgram:
    """``owner``: what names in C begin with.  ``arena``: bytes of memory for a call.  ``copies`` come last."""

    owner: str
    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    weights: Weights
    constants: Mapping[str, Value]
    arena: int
    kernels: tuple[Exported, ...]
    launches: tuple[Launch, ...]
    copies: tuple[Copy, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong, by the number that a call returns, from 1 on."""
        return tuple(fault for launch in self.launches for fault in launch.faults)


def require_kernels(name: str, graph: Graph) -> None:
    """GraphError, which names them, where the host computes nodes of a model."""
    hosts = [node for node in graph.nodes if isinstance(node, Host)]
    if hosts:
        said = ", ".join(f"{node.operator} ({node.origin or ', '.join(node.results)})" for node in hosts)
        raise GraphError(f"`{name}` cannot be exported: Python computes {said}; give outputs that do not need it")


def program_of(owner: str, name: str, outputs: Sequence[str], plan: MemoryPlan, kernels: Kernels) -> ModelProgram:
    """The program of a plan; ``outputs``: how the model calls them."""
    graph = plan.graph
    weights = weights_of(graph.constants)
    placed = placement(plan)
    calls = [node for node in graph.nodes if isinstance(node, Call)]
    exported, numbers = _distinct(owner, calls, kernels)
    return ModelProgram(
        owner=owner,
        name=name,
        inputs=_parameters(graph.inputs, [graph.values[own] for own in graph.inputs], "in"),
        outputs=_parameters(outputs, [graph.values[own] for own in graph.outputs], "out"),
        weights=weights,
        constants={own: graph.values[own] for own in graph.constants},
        arena=plan.arena,
        kernels=exported,
        launches=_launches(calls, kernels, numbers, placed, graph.values),
        copies=placed.copies,
    )


def _parameters(names: Sequence[str], values: Sequence[Value], start: str) -> tuple[Parameter, ...]:
    return tuple(map(Parameter, names, distinct_names(names, start), values))


def _distinct(owner: str, calls: Iterable[Call], kernels: Kernels) -> tuple[tuple[Exported, ...], list[int]]:
    """The kernels, equal ones once, and for each call the number of its own."""
    found: dict[tuple[object, ...], Exported] = {}
    numbers: dict[tuple[object, ...], int] = {}
    order = []
    for call in calls:
        executable = kernels[call.results]
        key = (executable.source, executable.convention.grids, executable.convention.steps)
        if key not in found:
            numbers[key] = len(found)
            found[key] = _exported(f"{owner}_{len(found)}_{plain(call.program.name)}".rstrip("_"), call, executable)
        order.append(numbers[key])
    return tuple(found.values()), order


def _exported(name: str, call: Call, executable: Executable) -> Exported:
    usual = default_options(executable.target, executable.asked.numerics)
    return Exported(
        name=name,
        executable=executable,
        origin=f"a kernel of a model, {call.origin}" if call.origin else "a kernel of a model",
        program=program_text(call.program),
        options="the defaults" if executable.asked == usual else executable.asked.to_json(),
        time="",
        module=isinstance(executable.target, CudaTarget),
    )


def _launches(
    calls: Sequence[Call], kernels: Kernels, numbers: Sequence[int], placed: Placement, values: Mapping[str, Value]
) -> tuple[Launch, ...]:
    found = []
    fault = 1
    for at, (call, kernel) in enumerate(zip(calls, numbers, strict=True)):
        convention = kernels[call.results].convention
        names = dict(zip(convention.interface.arguments, call.operands, strict=True))
        names |= dict(zip(convention.interface.results, call.results, strict=True))
        operands = tuple(placed.places[names[operand.name]] for operand in convention.operands)
        made = ", ".join(str(values[name]) for name in call.results)
        said = f"{made} = {call.program.name}({', '.join(call.operands)})"
        faults = tuple(f"{statement_of(call)}: {check_said(check)}" for check in convention.checks)
        said = f"{said}  # {call.origin}" if call.origin else said
        found.append(Launch(at, kernel, operands, said, faults, fault))
        fault += len(faults)
    return tuple(found)
