"""Prints where the buffers of a thread are: in its registers, on its stack, in its scratch memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tc.codegen.index.placement import ALIGNMENT, aligned
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.printed import Facts, Printed, line
from tc.codegen.printer.routines import SCRATCH
from tc.codegen.text.fragment import filled, named
from tc.polyhedral.ir.loops import Buffer

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
