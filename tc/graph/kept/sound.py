"""Whether a plan that comes from the cache stays inside its memory, which kernels do not check again."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from tc.graph.ir.nodes import Call, Host, Join, View
from tc.graph.ir.values import Value
from tc.graph.memory.plan import MemoryPlan
from tc.graph.memory.storage import written
from tc.graph.run.arrays import numbers
from tc.language.program.specialization import ArraySpec, Signature
from tc.runtime.views.view import element_strides


def require_sound(plan: MemoryPlan, signatures: Mapping[tuple[str, ...], Signature]) -> None:
    """ValueError or LookupError unless values are made before they are used, each within the memory where it is said to
    lie, and are what kernels take.  ``signatures``: of the kernels, by the results of their calls.
    """
    graph = plan.graph
    given = dict.fromkeys((*graph.inputs, *graph.constants), 0)
    starts = _starts(plan, given, signatures)
    _require(all(name in starts for name in graph.outputs), "an output is not computed")
    _require(all(graph.values[name].is_contiguous for name in graph.outputs), "an output does not lie in order")
    for name, start in starts.items():
        root = plan.storage.roots[name]
        low, high = _reach(graph.values[name])
        _require(low >= -start and start + high <= _bytes(graph.values[root]), f"`{name}` lies outside of `{root}`")
    # Of those that begin together, empty ones come first: nothing is in the place of these.
    placed = sorted(((plan.offsets[own.name], own) for own in plan.blocks), key=lambda item: (item[0], item[1].bytes))
    for number, (start, one) in enumerate(placed):
        for second, other in itertools.islice(placed, number + 1, None):
            if second >= start + one.bytes:
                break  # so are all others
            _require(not one.meets(other), f"`{one.name}` and `{other.name}` lie in one place")
    for block in plan.blocks:
        fits = block.bytes >= _bytes(graph.values[block.name]) and plan.offsets[block.name] >= 0
        _require(fits, f"there is no room for `{block.name}`")


def _starts(
    plan: MemoryPlan, given: Mapping[str, int], signatures: Mapping[tuple[str, ...], Signature]
) -> dict[str, int]:
    """Where values begin, in bytes from where their memory does."""
    graph, roots, found = plan.graph, plan.storage.roots, dict(given)
    returned = written(graph, roots)
    for node in graph.nodes:
        _require(all(name in found for name in node.operands), "a value is used before it is made")
        match node:
            case View():
                _require(roots[node.result] == roots[node.operand], f"`{node.result}` lies elsewhere than its operand")
                step = graph.values[node.operand].type.itemsize
                assert isinstance(node.offset, int)
                found[node.result] = found[node.operand] + node.offset * step
            case Call():
                _require_fit(plan, node, signatures[node.results])
                for name in node.results:
                    root = roots[name]
                    placed = root in plan.offsets or root in returned
                    _require(placed and name not in found and root not in given, f"`{name}` has no memory of its own")
                    found[name] = plan.storage.starts.get(name, 0) * graph.values[name].type.itemsize
            case Join():
                joined = all(roots[name] == roots[node.result] for name in node.operands)
                _require(joined and node.result not in found, f"`{node.result}` is not where its parts are")
                found[node.result] = plan.storage.starts.get(node.result, 0) * graph.values[node.result].type.itemsize
            case Host():
                raise ValueError("functions of the host are not kept")
    return found


def _require_fit(plan: MemoryPlan, call: Call, signature: Signature) -> None:
    """ValueError unless a kernel takes the operands of a call, and writes results that lie as its own do."""
    values = plan.graph.values
    specs = tuple(spec for _, spec in signature.arguments)
    _require(specs == tuple(_spec(values[name]) for name in call.operands), "a kernel takes other operands")
    written = dict(signature.results)
    for own, name in zip(call.program.results, call.results, strict=True):
        value = values[name]
        fits = _spec(value) == written[own] if own in written else value.is_contiguous
        _require(fits, f"a kernel writes `{name}` elsewhere")


def _spec(value: Value) -> ArraySpec:
    """What the signature of a call has of a value: strides that no element follows are those of a contiguous array."""
    shape, steps = numbers(value.shape, value.name), numbers(value.steps, value.name)
    return ArraySpec(shape, value.type, element_strides(shape, steps, 1, value.name))


def _reach(value: Value) -> tuple[int, int]:
    """The bytes that a value takes, from its first element: where the lowest begins, and where the highest ends."""
    shape, steps = numbers(value.shape, value.name), numbers(value.steps, value.name)
    if 0 in shape:
        return 0, 0
    ends = [(extent - 1) * step for extent, step in zip(shape, steps, strict=True)]
    size = value.type.itemsize
    return sum(min(end, 0) for end in ends) * size, (sum(max(end, 0) for end in ends) + 1) * size


def _bytes(value: Value) -> int:
    return math.prod(numbers(value.shape, value.name)) * value.type.itemsize


def _require(holds: bool, wrong: str) -> None:
    if not holds:
        raise ValueError(wrong)
