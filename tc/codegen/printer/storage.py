"""Prints where buffers are: on the stack of a thread, in its scratch memory, shared by a block; and, with variables for
what all tiles have in common, where threads copy to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tc.codegen.index.kept_offsets import KeptOffsets
from tc.codegen.index.placement import ALIGNMENT, aligned
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.expressions import Site
from tc.codegen.printer.printed import Facts, Printed, line, together
from tc.codegen.printer.routines import SCRATCH, Parameter
from tc.codegen.text.dialect import Dialect
from tc.codegen.text.fragment import Fragment, element, filled, infix, named
from tc.language.program.program import Expression
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.ir.loops import Barrier, Buffer, IndexLiteral, Loop, LoopKind, leaves

# Of buffers on the stack of a thread, which may have as few as 32 KiB in all.
_STACK_BYTES: Final = 8 << 10


def own_storage(context: Context, buffer: Buffer, scope: Scope) -> tuple[Printed, Scope]:
    """Storage of a thread, aligned for the widest vectors, and the scope in which it is taken.

    The target of a reduction is a plain array, which the compiler takes apart into registers.  It does so only
    where it knows that nothing else reaches the array, so other buffers are behind restricted pointers.  Threads of
    a grid have all of them in registers.  A single element is a plain array, too: of loops with pointers to elements
    of one iteration compilers make no lanes.  What a small stack may not hold lies in the thread's scratch memory.
    """
    name, type = context.pointer(buffer.name), context.storage(buffer.layout.type)
    restrict = context.dialect.restrict
    own = Parameter(filled("{} *", type), restrict, name.text, name.text)
    scope = replace(scope, buffers=(*scope.buffers, own))
    size = aligned(max(buffer.layout.span, 1) * buffer.layout.type.itemsize)
    if scope.launch is None and scope.stack + size > _STACK_BYTES:
        inside = replace(scope, scratch=scope.scratch + size)
        begin = filled("({} *)({} + {})", type, named(SCRATCH.name), scope.scratch)
        declared = line("{} *{} {} = {};", type, restrict, name, begin).declaring(name)
        return declared.with_facts(Facts(scratch_bytes=inside.scratch)), inside
    inside = replace(scope, stack=scope.stack + size)
    facts = Facts(private_bytes=inside.stack)
    if buffer.name in context.scalars:
        return line("{} {};", type, name).declaring(name).with_facts(facts), inside
    if context.dialect.grids:
        return line("{} {}[{}];", type, name, buffer.layout.span).declaring(name).with_facts(facts), inside
    if buffer.layout.span == 1:
        declared = line("{} {}[1];", type, name).declaring(name)
        if context.dialect.watches:
            declared += line("__builtin_memset({0}, 0xff, sizeof {0});", name)
        return declared.with_facts(facts), inside
    # The last vector of a row is loaded whole where that is in one line of the cache.
    aligning = f"__attribute__((aligned({ALIGNMENT})))"
    reduced = any(body.target == buffer.name and body.reduction is not None for body in context.bodies.values())
    array = name if reduced else named(f"storage_{name}")
    declared = line("{} {}[{}] {};", type, array, size // buffer.layout.type.itemsize, aligning).declaring(array, name)
    if context.dialect.watches:
        # Reads before the first write find poison.
        declared += line("__builtin_memset({0}, 0xff, sizeof {0});", array)
    if not reduced:
        declared += line("{} *{} {} = {};", type, restrict, name, array)
    return declared.with_facts(facts), inside


# --- offsets of copies to what blocks share


def is_over_tiles(loop: Loop) -> bool:
    """Whether the threads of a block wait for each other in every iteration of a loop."""
    return loop.kind is LoopKind.SEQUENTIAL and any(isinstance(leaf, Barrier) for leaf in leaves(loop.body))


def declared(context: Context, kept: KeptOffsets, scope: Scope) -> Printed:
    """The variables, in the scope around the loop over tiles."""
    return together(_declared(context, kept, scope))


def _declared(context: Context, kept: KeptOffsets, scope: Scope) -> Iterator[Printed]:
    dialect = context.dialect
    index = dialect.index
    assert dialect.kept is not None
    for name, value, loop in kept.computed():
        if loop is None:
            yield kept_variable(dialect, name, context.index(value, scope))
            continue
        assert isinstance(loop.upper, IndexLiteral)
        inside, count = scope.inside(loop), loop.upper.value + 1
        iterator = inside.variables[loop.iterator]
        place = element(name, iterator)
        computed = line("{} = {};", place, context.index(value, inside))
        computed += line(dialect.kept, value=place, letter=_letter(dialect))
        yield line("{} {}[{}];", index, named(name), count).declaring(named(name))
        header = filled("for ({0} {1} = 0; {1} < {2}; {1} += 1)", index, iterator, count)
        yield computed.braced(header).between([dialect.unroll.format(count=count)] if dialect.unroll else [])


def kept_variable(dialect: Dialect, name: str, value: Fragment) -> Printed:
    """A variable that stays in a register, whatever it was computed from."""
    assert dialect.kept is not None
    declared = line("{} {} = {};", dialect.index, named(name), value).declaring(named(name))
    return declared + line(dialect.kept, value=named(name), letter=_letter(dialect))


def _letter(dialect: Dialect) -> str:
    """Of an index, as inline assembly calls it."""
    return "r" if dialect.narrow else "l"


def copied_element(
    context: Context, scope: Scope, tensor: str, subscripts: tuple[Expression, ...], site: Site
) -> Fragment:
    """The element that a copy for a tile reads or writes."""
    form = (
        None
        if scope.kept is None or tensor in context.swizzles
        else context.expressions.offset(tensor, subscripts, site)
    )
    found = None if form is None or scope.kept is None else scope.kept.split(form, scope.copying)
    if found is None:
        location = context.expressions.location(tensor, subscripts, site)
        if scope.kept is not None and scope.fixed is not None:
            scope.fixed.copies_with(location.names)
        return location
    name = named(found.name)
    offset = name if found.loop is None else element(found.name, scope.variables[found.loop.iterator])
    if found.left != LinearForm():
        offset = infix("+", offset, context.index(found.left.expression(), scope))
    return element(context.names.tensors[tensor], offset)
