"""Applies rules to a graph until none fits: a worklist of nodes, each tried with all rules."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Node, View
from tc.graph.rewrite.candidates import Candidates
from tc.graph.rewrite.net import Net
from tc.graph.rewrite.pattern import matched
from tc.graph.rewrite.rule import Rule

# Applications for each node of the graph: rules that undo each other would go on for ever.
MOST_PER_NODE: Final = 50


@frozen
class Applied:
    """One application: the rule, the value that was replaced, and the one in its place."""

    rule: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.old} -> {self.new}"


def rewritten(graph: Graph, rules: Sequence[Rule], *, share: bool = True) -> tuple[Graph, tuple[Applied, ...]]:
    """The graph after all applications, and these in order.

    ``share``: equal nodes with equal operands become one.  GraphError where rules undo each other.
    """
    net = Net(graph)
    trace: list[Applied] = []
    waiting = deque(net.nodes)
    queued = set(waiting)
    limit = MOST_PER_NODE * (len(graph.nodes) + 1)
    known: dict[object, int] = {}
    candidates = Candidates(rules)
    while waiting:
        at = waiting.popleft()
        queued.discard(at)
        if at not in net.nodes:
            continue
        found = _shared(net, at, known) if share else None
        found = found or _applied(net, at, candidates)
        if found is None:
            continue
        trace.append(found[0])
        if len(trace) > limit:
            last = ", ".join(dict.fromkeys(applied.rule for applied in trace[-10:]))
            raise GraphError(f"rewriting does not end: rules undo each other, among them {last}")
        for number in found[1]:
            if number not in queued:
                queued.add(number)
                waiting.append(number)
    return net.graph(), tuple(trace)


def _applied(net: Net, at: int, candidates: Candidates) -> tuple[Applied, list[int]] | None:
    """The first rule that fits a node, applied; with the nodes to look at again."""
    node = net.nodes[at]
    for rule in candidates.of(net, node):
        match = matched(net, node, rule.pattern)
        if match is None or not rule.condition(match):
            continue
        net.builder.origin = node.origin
        old = match.result
        new = rule.replacement(net.builder, match)
        added = net.added()
        if new is None:
            continue
        if new.shape != old.shape or new.type is not old.type:
            raise GraphError(f"the rule `{rule.name}` replaces `{old}` by `{new}`, which is something else")
        users = net.exchange(old.name, new.name)
        net.drop_unused(at)
        return Applied(rule.name, old.name, new.name), [*added, *users]
    return None


def _shared(net: Net, at: int, known: dict[object, int]) -> tuple[Applied, list[int]] | None:
    """A node replaced by an equal one."""
    node = net.nodes[at]
    key = _key(node)
    if key is None:
        return None
    first = known.setdefault(key, at)
    other = net.nodes.get(first)
    if other is None or _key(other) != key:
        known[key] = at
        return None
    if first == at:
        return None
    users = []
    for old, new in zip(node.results, other.results, strict=True):
        users += net.exchange(old, new)
    net.drop_unused(at)
    return Applied("common subexpression", node.results[0], other.results[0]), users


def _key(node: Node) -> object | None:
    """What equal nodes have in common; None for those of the host."""
    match node:
        case Call():
            return node.program, node.operands
        case View():
            return node.operand, node.how
        case _:
            return None
