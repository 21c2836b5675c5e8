"""``torch.compile(model, backend="tc")``: what PyTorch's tracer captures, as kernels of ours.

AOTAutograd makes graphs of ATen's operators of the forward and the backward.  Those that a rule takes become graphs of
comprehensions; what is left runs as PyTorch's own kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition

from tc.api.progress import Progress
from tc.torch.compiled import Compiled, Submodule, Watch
from tc.torch.decompositions import decompositions
from tc.torch.fx.canonical import canonical
from tc.torch.fx.origin import place_of
from tc.torch.fx.parts import partitioned
from tc.torch.fx.shared import Shared, without_views
from tc.torch.kept import Claims, cache_here
from tc.torch.options import Fallback, Options, options_of, require_no_mode
from tc.torch.recurrences import with_whole_recurrences
from tc.torch.report import Part, Report
from tc.torch.rules import meaning_of, rules


def backend(
    module: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
    report: Report | None = None,
    watch: Watch | None = None,
) -> Callable[..., Any]:
    """What ``torch.compile`` calls with a graph, and example inputs; ``options`` are its own (see ``Options``).

    ``mode``: OptionsError, since all there are but the default are of Inductor.
    ``watch``: is told of each call of a part, and PyTorch runs them all.
    """
    require_no_mode(mode)
    wanted, found = options_of(options), Report() if report is None else report

    def compiler(kind: str) -> Callable[[fx.GraphModule, Sequence[Any]], Callable[..., Any]]:
        def compile(graph: fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
            del examples
            part = Part(kind, sum(node.op == "call_function" for node in graph.graph.nodes))
            found.parts.append(part)
            run = _compiled(graph, part, wanted, timed=found.timed)
            for own in part.compiled:
                own.watch, own.claims = watch, part.claims
            boxed: Callable[..., Any] = make_boxed_func(run if watch is not None else _tuned(run, part, wanted))
            return boxed

        return compile

    trains = torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)
    made = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    result: Callable[..., Any] = made(with_whole_recurrences(module, trains=trains), inputs)
    return result


def _tuned(run: Callable[..., Any], part: Part, options: Options) -> Callable[..., Any]:
    """What tunes the parts first, if that is wanted."""
    if options.tune is None or not part.compiled:
        return run
    from tc.torch.tuning import Tuned

    return Tuned(run, part.compiled, options.tune)


def _compiled(module: fx.GraphModule, part: Part, options: Options, *, timed: bool) -> Callable[..., Any]:
    """The module with kernels of ours for all that is claimed."""
    left = _left(module, part)
    if not left:
        return _made(module, part, options, timed=timed)
    for node, reason in left.items():
        part.leave(str(node.target), reason, place_of(node) or "no place in the code")
    part.require(options.fallback)
    fused, names = partitioned(module, left)
    for name in names:
        setattr(fused, name, Submodule(_made(getattr(fused, name), part, options, timed=timed)))
    fused.recompile()
    return fused


def _left(module: fx.GraphModule, part: Part) -> dict[fx.Node, str]:
    """The nodes that are left to PyTorch, and why: by the cache, or else by trying rules."""
    cache, nodes, text = cache_here(), list(module.graph.nodes), canonical(module, meaning_of)
    known = None if cache is None or text is None else Claims.find(cache, text, len(nodes))
    if known is not None:
        part.claims = known
        return {nodes[number]: reason for number, reason in known.left.items()}
    from tc.torch.fx.claims import refused

    with Progress(f"reading {part.kind}", len(nodes)) as bar:
        found = refused(module, rules(), bar.at)
    if text is not None:
        part.claims = Claims(text, {number: found[node] for number, node in enumerate(nodes) if node in found})
        if cache is not None:
            part.claims.keep(cache)
    return found


def _made(module: fx.GraphModule, part: Part, options: Options, *, timed: bool) -> Callable[..., Any]:
    """The module, whose results that are views are made by PyTorch of what is computed."""
    own, results, single = without_views(module)
    compiled: Callable[..., Any] = _nothing
    if not all(one.given for one in results):
        compiled = Compiled(
            own,
            f"{part.kind} {len(part.compiled)}",
            options.settings,
            lambda why: part.fails(why, options.fallback),
            measured=options.fallback is Fallback.MEASURED,
            timed=timed,
        )
        part.compiled.append(compiled)
        if not single and all(one == Shared(False, at) for at, one in enumerate(results)):
            return compiled

    def call(*arguments: Any) -> Any:
        computed = compiled(*arguments)
        found = [one.of(arguments, computed) for one in results]
        return found[0] if single else found

    return call


def _nothing(*arguments: Any) -> tuple[Any, ...]:
    del arguments
    return ()
