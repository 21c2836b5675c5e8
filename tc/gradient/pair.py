"""A forward and its gradient that share values: the forward keeps what the gradient does not compute again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tc.base.errors import Diagnostic, GradientError
from tc.base.frozen import frozen
from tc.gradient.assemble import lowered, pruned
from tc.gradient.gradient import swept_through, wanted_of
from tc.gradient.images import reach_all
from tc.gradient.reads import needed_for, read_by
from tc.gradient.saved import dependent_on, smallest_cut
from tc.gradient.ties import Ties
from tc.gradient.workspace import Workspace, filled
from tc.language.program.program import Expression, Program, Reduction, Statement
from tc.language.program.within import neutral_element


@frozen
class DerivedPair:
    """``forward``: the definition, with what it keeps as further results.  ``backward``: its gradient from these.

    ``kept``: the results of the forward that the backward takes, those of the definition among them, in its order.
    ``raw``: the backward before the front end has read it.
    """

    forward: Program
    backward: Program
    raw: Program
    kept: tuple[str, ...]


def derived_pair(
    program: Program,
    names: Sequence[str] = (),
    ties: Ties = Ties.SPLIT,
    save: Sequence[str] | None = None,
    only: Sequence[str] = (),
) -> DerivedPair:
    """The forward and the gradient by some arguments.

    The gradient takes the arguments of the definition, what is kept, and the adjoints of its results.  ``save``: the
    values to keep, all others are computed again; None: those of the minimum cut (``tc.gradient.saved``).  ``only``: of
    the arguments, those whose adjoints are computed; without any, all.  GradientError for what has no gradient, and for
    values that there are not.
    """
    wanted = wanted_of(program, names)
    sweep, swept = swept_through(program, wanted, ties, saving=True)
    results = sweep.program.results
    joint = sweep.program_of(swept, [*results, *swept.results])
    behind = dependent_on(joint, [tensor.name for tensor in swept.given.values()]) | set(swept.results)
    computed = dict.fromkeys(s.target for s in joint.statements if s.target not in behind)
    needed = {name for s in joint.statements if s.target in behind for name in read_by(s)}
    if save is None:
        chosen = smallest_cut(joint, list(computed), results, needed)
    else:
        _require(program, save, tuple(computed))
        chosen = set(save)
    unknown = next((name for name in only if name not in wanted), None)
    if unknown is not None:
        raise GradientError(Diagnostic(f"`{unknown}` is not among the arguments asked for: {', '.join(wanted)}"))
    asked = tuple(own for name, own in zip(wanted, swept.results, strict=True) if not only or name in only)
    own = needed_for(joint.statements, asked, chosen)
    read = {name for statement in own for name in read_by(statement)}
    kept = tuple(name for name in computed if name in chosen & read)
    saved = tuple(name for name in kept if name not in results)
    forward = pruned(
        replace(
            joint,
            name=f"{program.name}_forward",
            statements=(*_begun(joint, saved, sweep.workspace), *joint.statements),
            sizes=sweep.own_sizes,
            arguments=sweep.program.arguments,
            results=(*results, *saved),
            preconditions=sweep.own_preconditions,
        )
    )
    taken = {name: sweep.parameter(joint.tensor(name)) for name in kept}
    raw = pruned(
        replace(
            joint,
            name=f"{program.name}_backward",
            sizes=tuple(sweep.sizes),
            tensors=tuple(taken.get(tensor.name, tensor) for tensor in joint.tensors),
            arguments=(*sweep.program.arguments, *kept, *(tensor.name for tensor in swept.given.values())),
            results=asked,
            statements=tuple(own),
            preconditions=tuple(sweep.preconditions),
        )
    )
    is_itself = not saved and results == program.results
    return DerivedPair(program if is_itself else lowered(forward), lowered(raw), raw, kept)


def _begun(program: Program, saved: Sequence[str], workspace: Workspace) -> Iterator[Statement]:
    """Zeros for what the steps of a block do not write of a value, which nothing reads: results are whole."""
    for name in saved:
        tensor = program.tensor(name)
        writers = [statement for statement in program.statements if statement.target == name]
        if any(statement.blocks for statement in writers) and not reach_all(writers, tensor, program):
            zero = neutral_element(Reduction.ADD, tensor.type)
            yield filled(workspace, tensor, _always(zero), "elements that no step writes")


def _always(value: Expression) -> Callable[[tuple[Expression, ...]], Expression]:
    return lambda _: value


def _require(program: Program, save: Sequence[str], computed: Sequence[str]) -> None:
    """GradientError for a value to keep that is none of the forward."""
    for name in save:
        if name not in computed:
            listed = f"it computes {', '.join(computed)}"
            raise GradientError(Diagnostic(f"`{name}` cannot be saved by `{program.name}`: {listed}"))
