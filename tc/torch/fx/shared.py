"""Results that share memory: views of arguments or of one tensor are PyTorch's, of what is computed once."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import torch
from torch import fx

from tc.base.frozen import frozen

aten: Final = torch.ops.aten

# A function of a tensor, or of several ones, and its other arguments.
Step: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


@frozen
class Shared:
    """A result: the argument with a number, or else what is computed with it, and the views that are made of it."""

    given: bool
    number: int
    steps: tuple[Step, ...] = ()

    def of(self, arguments: Sequence[Any], computed: Sequence[Any]) -> Any:
        """The result."""
        found = (arguments if self.given else computed)[self.number]
        for function, rest, named in self.steps:
            found = function(found, *rest, **named)
        return found


def without_views(module: fx.GraphModule) -> tuple[fx.GraphModule, tuple[Shared, ...], bool]:
    """A module that returns what is computed for all results, each once, and how the results are made of that.

    The last is whether the module returns its only result itself.
    """
    graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    copied = graph.graph_copy(module.graph, copies)
    every: Sequence[Any] = copied if isinstance(copied, list | tuple) else (copied,)
    places = {node: at for at, node in enumerate(node for node in graph.nodes if node.op == "placeholder")}
    chains = [_chain(one) for one in every]
    roots = Counter(root for root, _ in chains if isinstance(root, fx.Node))
    computed: list[Any] = []
    results = []
    for one, (root, steps) in zip(every, chains, strict=True):
        if root in places:
            results.append(Shared(True, places[root], steps))
            continue
        # A view that is alone is made by a kernel, which may compute no more than it shows.
        kept, rest = (root, steps) if isinstance(root, fx.Node) and roots[root] > 1 else (one, ())
        number = computed.index(kept) if isinstance(kept, fx.Node) and kept in computed else len(computed)
        computed[number:] = computed[number:] or [kept]
        results.append(Shared(False, number, rest))
    graph.output(tuple(computed))
    graph.eliminate_dead_code()
    return fx.GraphModule(module, graph), tuple(results), every is not copied


def _chain(given: Any) -> tuple[Any, tuple[Step, ...]]:
    """What a result is a view of, and how."""
    steps: list[Step] = []
    while isinstance(given, fx.Node) and (source := _viewed(given)) is not None:
        # What PyTorch itself computed may lie in memory as it was not traced.
        function: Any = aten.reshape.default if given.target is aten.view.default else given.target
        steps.append((function, tuple(given.args[1:]), dict(given.kwargs)))
        given = source
    return given, tuple(reversed(steps))


def _viewed(node: fx.Node) -> fx.Node | None:
    """What a node looks at, if it moves nothing and its other arguments are numbers."""
    source = node.args[0] if node.args else None
    if node.op != "call_function" or not isinstance(source, fx.Node) or len(node.all_input_nodes) > 1:
        return None
    if node.target is operator.getitem:
        return source if _viewed(source) is not None else None
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    schema = node.target._schema
    first = schema.arguments[0].alias_info if schema.arguments else None
    is_view = first is not None and not first.is_write and all(one.alias_info is not None for one in schema.returns)
    return source if is_view and _is_tensor(source) else None


def _is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)
