"""Chooses who computes each product and convolution: our kernels, or a library that was measured to be quicker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Host
from tc.graph.libraries.form import Form, form_of
from tc.graph.libraries.outcomes import GAIN, RIGHT
from tc.graph.libraries.trials import trial_of
from tc.graph.libraries.work import Work, work_of

if TYPE_CHECKING:
    from tc.cache.format.records import LibraryTrial
    from tc.graph.libraries.library import Library
    from tc.graph.libraries.trials import Ready
    from tc.graph.partition.partition import Partition


@frozen
class Choice:
    """Who computes a node: ``taken`` is the title of a library, None for our kernels.

    ``trials``: by title, those of all libraries that can; None where none is known, and none may be made.
    """

    results: tuple[str, ...]
    name: str
    origin: str
    taken: str | None
    trials: Mapping[str, LibraryTrial | None]

    def __str__(self) -> str:
        said = [_said(title, trial) for title, trial in self.trials.items()]
        place = f"  # {self.origin}" if self.origin else ""
        return f"{', '.join(self.results)} = {self.name} by {self.taken or 'tc'}, since {'; '.join(said)}{place}"


def _said(title: str, trial: LibraryTrial | None) -> str:
    if trial is None:
        return f"{title} was not measured, and the cache is only read"
    if trial.ours is None or trial.theirs is None:
        return f"{title} is wrong: {trial.outcome}"
    ours, theirs = (f"{seconds * 1e6:,.1f} us" for seconds in (trial.ours, trial.theirs))
    return f"{title} takes {theirs}, and our kernels {ours}"


def with_libraries(
    graph: Graph, partition: Partition, libraries: Sequence[Library], settings: str, ready: Ready
) -> tuple[Graph, tuple[Choice, ...]]:
    """The graph in which libraries compute the nodes that they are quicker with, and why, for all that they could.

    What is compared are the kernels of a group without the library, and with it those of the rest of the group: to
    divide it has a price, which is counted.
    ``settings``: what, besides the graph, our kernels follow from.  ``ready``: makes a graph ready to run.
    """
    nodes, choices = list(graph.nodes), list[Choice]()
    for group in partition.groups:
        forms = {at: form for at in group if (form := _form(graph, at)) is not None}
        if len(forms) != 1:
            continue
        ((at, form),) = forms.items()
        choice, library = _chosen(work_of(graph, group, at, settings), form, libraries, ready)
        if not choice.trials:
            continue
        call = nodes[at]
        choices.append(replace(choice, results=call.results, origin=call.origin))
        if library is not None:
            function = library.function(form)
            assert function is not None
            name = f"{choice.name} by {library.title}"
            nodes[at] = Host(name, function, call.operands, call.results, call.origin)
    return replace(graph, nodes=tuple(nodes)), tuple(choices)


def _form(graph: Graph, at: int) -> Form | None:
    node = graph.nodes[at]
    return form_of(node, graph.values) if isinstance(node, Call) else None


def _chosen(work: Work, form: Form, libraries: Sequence[Library], ready: Ready) -> tuple[Choice, Library | None]:
    able = {library.title: library for library in libraries if library.function(form) is not None}
    trials = {title: trial_of(library, work, form, ready) for title, library in able.items()}
    gains = {
        title: trial.ours / trial.theirs
        for title, trial in trials.items()
        if trial is not None and trial.outcome == RIGHT and trial.ours is not None and trial.theirs is not None
    }
    best = max(gains, key=lambda title: gains[title], default=None)
    taken = best if best is not None and gains[best] >= GAIN else None
    call = work.call
    return Choice(call.results, call.program.name, "", taken, trials), None if taken is None else able[taken]
