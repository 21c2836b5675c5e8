"""What becomes of a graph, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import indent
from typing import Final

from tc.graph.ir.graph_text import graph_text
from tc.graph.ir.nodes import Call, Host
from tc.graph.libraries.choose import Choice
from tc.graph.memory.plan import MEGABYTE
from tc.graph.preparation import Prepared
from tc.language.text.print_program import program_text

_INDENT: Final = "    "


def explained(prepared: Prepared, steps: Mapping[tuple[str, ...], str] | None = None) -> str:
    """Sections: the graph, what was rewritten, kernels, libraries, what the host computes, memory.

    ``steps``: of the schedule of each kernel, by the names of its results.
    """
    graph, memory = prepared.memory.graph, prepared.memory
    calls = [node for node in graph.nodes if isinstance(node, Call)]
    hosts = Counter(node.operator for node in graph.nodes if isinstance(node, Host))
    applied = Counter(one.rule for one in prepared.trace)
    kernels = [_title(call) if steps is None else _with_steps(call, steps[call.results]) for call in calls]
    sections = (
        ("graph", graph_text(prepared.rewritten).rstrip()),
        ("rewriting", "\n".join(f"{rule}: {count} times" for rule, count in applied.items()) or "nothing"),
        (f"kernels: {len(calls)} for {_count(prepared)} calls", "\n".join(kernels)),
        *([] if prepared.choices is None else [("libraries", _choices(prepared.choices))]),
        ("host", "\n".join(f"{name}: {count}" for name, count in hosts.items()) or "nothing is computed by the host"),
        ("memory", f"{memory.table()}\n{_summary(prepared)}"),
    )
    return "\n\n".join(f"== {title} ==\n{text}" for title, text in sections)


def _choices(choices: Sequence[Choice]) -> str:
    return "\n".join(map(str, choices)) or "there is no node that they can compute"


def _title(call: Call) -> str:
    return f"{', '.join(call.results)}: {call.program.name}" + (f"  # {call.origin}" if call.origin else "")


def _with_steps(call: Call, steps: str) -> str:
    """A kernel with its definition, and the steps of its schedule."""
    return f"{_title(call)}\n{indent(program_text(call.program).rstrip(), _INDENT)}\n{indent(steps, _INDENT)}"


def _count(prepared: Prepared) -> int:
    return sum(isinstance(node, Call) for node in prepared.rewritten.nodes)


def _summary(prepared: Prepared) -> str:
    memory = prepared.memory
    sizes = (("peak", memory.peak), ("arena", memory.arena), ("constants", memory.constants))
    return ", ".join(f"{name} {size / MEGABYTE:.3f} MB" for name, size in sizes)
