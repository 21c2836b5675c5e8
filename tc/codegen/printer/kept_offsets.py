"""Prints where threads copy for a tile, with variables for what all tiles have in common."""

from __future__ import annotations

from collections.abc import Iterator

from tc.codegen.index.kept_offsets import KeptOffsets
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.expressions import Site
from tc.codegen.printer.printed import Printed, line, together
from tc.codegen.text.fragment import Fragment, element, filled, infix, named
from tc.language.program.program import Expression
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.ir.loops import Barrier, IndexLiteral, Loop, LoopKind, leaves


def is_over_tiles(loop: Loop) -> bool:
    """Whether the threads of a block wait for each other in every iteration of a loop."""
    return loop.kind is LoopKind.SEQUENTIAL and any(isinstance(leaf, Barrier) for leaf in leaves(loop.body))


def declared(context: Context, kept: KeptOffsets, scope: Scope) -> Printed:
    """The variables, in the scope around the loop over tiles."""
    return together(_declared(context, kept, scope))


def _declared(context: Context, kept: KeptOffsets, scope: Scope) -> Iterator[Printed]:
    dialect = context.dialect
    index, letter = dialect.index, "r" if dialect.narrow else "l"
    assert dialect.kept is not None
    for name, value, loop in kept.computed():
        if loop is None:
            yield line("{} {} = {};", index, named(name), context.index(value, scope))
            yield line(dialect.kept, value=named(name), letter=letter)
            continue
        assert isinstance(loop.upper, IndexLiteral)
        inside, count = scope.inside(loop), loop.upper.value + 1
        iterator = inside.variables[loop.iterator]
        place = element(name, iterator)
        computed = line("{} = {};", place, context.index(value, inside)) + line(
            dialect.kept, value=place, letter=letter
        )
        yield line("{} {}[{}];", index, named(name), count)
        header = filled("for ({0} {1} = 0; {1} < {2}; {1} += 1)", index, iterator, count)
        yield computed.braced(header).between([dialect.unroll.format(count=count)] if dialect.unroll else [])


def copied_element(
    context: Context, scope: Scope, tensor: str, subscripts: tuple[Expression, ...], site: Site
) -> Fragment:
    """The element that a copy for a tile reads or writes."""
    form = None if scope.kept is None else context.expressions.offset(tensor, subscripts, site)
    found = None if form is None or scope.kept is None else scope.kept.split(form, scope.copying)
    if found is None:
        return context.expressions.location(tensor, subscripts, site)
    name = named(found.name)
    offset = name if found.loop is None else element(found.name, scope.variables[found.loop.iterator])
    if found.left != LinearForm():
        offset = infix("+", offset, context.index(found.left.expression(), scope))
    return element(context.names.tensors[tensor], offset)
