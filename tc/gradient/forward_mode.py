"""Forward mode: how results change with arguments, in one direction.

The gradient of a definition is linear in the adjoints that it is given.  So its own gradient, by these adjoints, is the
transposed map: the directional derivative (Townsend, *A new trick for calculating Jacobian vector products*, 2017).
What is computed from the given adjoints is not needed for it, and falls away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tc.base.errors import Diagnostic, GradientError
from tc.gradient.assemble import lowered
from tc.gradient.gradient import Derived, derived_gradient
from tc.gradient.reads import expressions_of, named_by, needed_for
from tc.gradient.ties import Ties
from tc.language.algebra.fold import substitute
from tc.language.algebra.rewriting import fresh_name, map_statement, rename
from tc.language.program.program import Expression, Program, Role, SizeReference, Statement, reads_in, walk


def directional(
    program: Program, names: Sequence[str] = (), ties: Ties = Ties.SPLIT, own: Derived | None = None
) -> Program:
    """The directional derivative of a definition by some of its arguments; without names, by its floating tensors.

    It takes the arguments of the definition and, for each argument ``A``, ``t_A``: in which direction it changes.  Its
    results are ``t_C``, how every floating result ``C`` changes with them.  ``own``: the gradient that is taken.
    GradientError for what has no derivative.
    """
    first = derived_gradient(program, names, ties) if own is None else own
    second = derived_gradient(first.raw, tuple(first.given.values()), ties)
    return _renamed(program, first, second)


def _renamed(program: Program, first: Derived, second: Derived) -> Program:
    """The second gradient without the adjoints that it does not depend on, with names that say what is what."""
    made = second.raw
    dropped = set(first.given.values())
    read = {r.tensor for s in made.statements for e in (s.value, *s.subscripts) for r in reads_in(e)}
    if not dropped.isdisjoint(read):
        message = f"the gradient of `{program.name}` is not linear in the adjoints that it is given: it has no `jvp`"
        raise GradientError(Diagnostic(message))
    taken = {*made.sizes, *(t.name for t in made.tensors), *(s.name for s in made.scalars)}
    names: dict[str, str] = {}
    tangents = {second.given[result]: argument for argument, result in first.results.items()}
    changes = {second.results[adjoint]: result for result, adjoint in first.given.items()}
    for old, new in (*tangents.items(), *changes.items()):
        names[old] = fresh_name(f"t_{new}", taken)
        taken.add(names[old])
    values = {**first.extents, **second.extents}
    for adjoint, argument in tangents.items():
        # The front end may have found another expression for the extents of the first gradient.
        values.update(zip(made.tensor(adjoint).shape, program.tensor(argument).shape, strict=True))
    kept = [n for n in made.arguments if n not in dropped and n not in tangents]
    own = {e for t in made.tensors if t.name in kept for e in t.shape} | {SizeReference(s) for s in program.sizes}
    values = {size: value for size, value in values.items() if size not in own}
    sizes = tuple(size for size in made.sizes if SizeReference(size) in own)

    def changed(statement: Statement) -> Statement:
        found = map_statement(statement, lambda e: rename(substitute(e, values), names, {}))
        return replace(found, target=names.get(found.target, found.target))

    found = _with_named_extents(
        program,
        replace(
            made,
            name=f"{program.name}_derivative",
            sizes=sizes,
            tensors=tuple(
                replace(
                    tensor,
                    name=names.get(tensor.name, tensor.name),
                    shape=tuple(substitute(extent, values) for extent in tensor.shape),
                )
                for tensor in made.tensors
                if tensor.name not in dropped
            ),
            arguments=tuple(names.get(name, name) for name in made.arguments if name not in dropped),
            results=tuple(names[name] for name in made.results),
            statements=tuple(map(changed, made.statements)),
            preconditions=tuple(p for p in made.preconditions if _sizes(p.condition) <= set(sizes)),
        ),
    )
    return lowered(found)


def _with_named_extents(program: Program, derivative: Program) -> Program:
    """The derivative with the results of the definition whose extents it names: only what writes them tells these."""
    own = {tensor.name for tensor in derivative.tensors}
    named = named_by(e for s in derivative.statements for e in expressions_of(s)) - own
    needed = needed_for(program.statements, named)
    written = list(dict.fromkeys(statement.target for statement in needed))
    if any(program.tensor(name).role is Role.IN_OUT for name in written):
        return derivative
    taken, names = {*own, *derivative.sizes, *(scalar.name for scalar in derivative.scalars)}, {}
    for name in written:
        names[name] = fresh_name(name, taken)
        taken.add(names[name])
    added = (map_statement(statement, lambda e: rename(e, names, {})) for statement in needed)
    statements = (*(replace(s, target=names[s.target]) for s in added), *derivative.statements)
    temporaries = (replace(program.tensor(n), name=names[n], role=Role.TEMPORARY) for n in written)
    return replace(
        derivative,
        tensors=(*derivative.tensors, *temporaries),
        statements=tuple(replace(statement, name=f"S{number}") for number, statement in enumerate(statements)),
    )


def _sizes(expression: Expression) -> set[str]:
    return {part.name for part in walk(expression) if isinstance(part, SizeReference)}
