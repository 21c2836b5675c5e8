"""What becomes of a graph, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import indent
from typing import Final

from tc.base.counted import counted
from tc.graph.ir.graph_text import graph_text
from tc.graph.ir.nodes import Call, Host
from tc.graph.libraries.choose import Choice
from tc.graph.memory.plan import MEGABYTE
from tc.graph.partition.costs import Cost
from tc.graph.preparation import Prepared
from tc.language.text.print_program import program_text

_INDENT: Final = "    "


def explained(prepared: Prepared, steps: Mapping[tuple[str, ...], str] | None = None) -> str:
    """Sections: the graph, what was rewritten, kernels and what they cost, why some are apart, libraries, what the host
    computes, memory.

    ``steps``: of the schedule of each kernel, by the names of its results.
    """
    graph, memory = prepared.memory.graph, prepared.memory
    calls = [node for node in graph.nodes if isinstance(node, Call)]
    hosts = Counter(node.operator for node in graph.nodes if isinstance(node, Host))
    applied = Counter(one.rule for one in prepared.trace)
    costs, cuts = _costs(prepared), prepared.decision.reasons(prepared.rewritten)
    titles = [f"{', '.join(call.results)}: {call.program.name}, {costs[call.results[0]]}" for call in calls]
    titles = [line + _place(call.origin) for line, call in zip(titles, calls, strict=True)]
    kernels = [
        title if steps is None else _with_steps(title, call, steps[call.results])
        for title, call in zip(titles, calls, strict=True)
    ]
    sections = (
        ("graph", graph_text(prepared.rewritten).rstrip()),
        ("rewriting", "\n".join(f"{rule}: {count} times" for rule, count in applied.items()) or "nothing"),
        (f"kernels: {len(calls)} for {_count(prepared)} calls", "\n".join([*kernels, *_sums(prepared, costs)])),
        ("cuts", "\n".join(f"{name}: {why}" for name, why in cuts.items()) or "nothing is cut"),
        *([] if prepared.choices is None else [("libraries", _choices(prepared.choices))]),
        ("host", "\n".join(f"{name}: {count}" for name, count in hosts.items()) or "nothing is computed by the host"),
        ("memory", f"{memory.table()}\n{_summary(prepared)}"),
    )
    return "\n\n".join(f"== {title} ==\n{text}" for title, text in sections)


def _costs(prepared: Prepared) -> dict[str, Cost]:
    """What the kernel costs that makes a value."""
    partition, nodes = prepared.decision.partition, prepared.rewritten.nodes
    found = ((group, prepared.costs.of(group)) for group in partition.groups)
    return {name: cost for group, cost in found for at in group for name in nodes[at].results}


def _choices(choices: Sequence[Choice]) -> str:
    return "\n".join(map(str, choices)) or "there is no node that they can compute"


def _sums(prepared: Prepared, costs: dict[str, Cost]) -> list[str]:
    """What all kernels take, measured and predicted ones apart."""
    calls = (node for node in prepared.memory.graph.nodes if isinstance(node, Call))
    found = [costs[call.results[0]] for call in calls]
    kinds = ([cost.seconds for cost in found if cost.measured is measured] for measured in (True, False))
    words = zip(kinds, (True, False), strict=True)
    return [
        f"in all: {Cost(sum(seconds), measured)} of {counted(len(seconds), 'kernel')}"
        for seconds, measured in words
        if seconds
    ]


def _place(origin: str) -> str:
    return f"  # {origin}" if origin else ""


def _with_steps(title: str, call: Call, steps: str) -> str:
    """A kernel with its definition, and the steps of its schedule."""
    return f"{title}\n{indent(program_text(call.program).rstrip(), _INDENT)}\n{indent(steps, _INDENT)}"


def _count(prepared: Prepared) -> int:
    return sum(isinstance(node, Call) for node in prepared.rewritten.nodes)


def _summary(prepared: Prepared) -> str:
    memory = prepared.memory
    sizes = (("peak", memory.peak), ("arena", memory.arena), ("constants", memory.constants))
    return ", ".join(f"{name} {size / MEGABYTE:.3f} MB" for name, size in sizes)
