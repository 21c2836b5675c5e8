"""Plans of repeated calls on CUDA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tc.artifact.convention import Convention
from tc.base.types import ScalarType
from tc.dispatch.arguments import Arguments
from tc.dispatch.sites import CudaSite
from tc.dispatch.warm_cuda import CudaPlan
from tc.runtime.frameworks.array_bytes import extent
from tc.runtime.frameworks.arrays import announcer
from tc.runtime.views.view import Framework


def cuda_plan(site: CudaSite, convention: Convention, bound: Arguments, sizes: tuple[int, ...]) -> CudaPlan:
    """The plan for calls like this one, which was made at ``site``.

    They pass no scalars but ``sizes``, and their results need no conversion.
    """
    names = convention.interface.names
    layouts = {name: convention.layout(name).at(sizes) for name in convention.interface.results}
    results = {name: (layout.shape, layout.type) for name, layout in layouts.items()}
    sources = [names.index(operand.name) for operand in convention.operands]
    return plan_of(site, bound, results, sources, sizes)


def plan_of(
    site: CudaSite,
    bound: Arguments,
    results: Mapping[str, tuple[tuple[int, ...], ScalarType]],
    sources: Sequence[int],
    sizes: tuple[int, ...] = (),
) -> CudaPlan:
    """The plan of calls that bring arrays in the order of ``bound``: inputs, then outputs.

    ``results``: shapes and types of all outputs, in order.  ``sources``: the slot of every buffer of what is launched.
    """
    given = [bound.outputs.get(name) for name in results]
    slots = [*bound.inputs.values(), *given]
    first = len(bound.inputs)
    extents = [(0, 0) if view is None else extent(view) for view in slots]
    firsts = [0 if view is None else view.address for view in slots]
    # Only PyCUDA's arrays have allocators of their own.
    asked = bound.framework is Framework.PYCUDA and (None in given or bool(site.kernel.workspace))
    alike = [slot for slot, view in enumerate(slots) if view is not None and view.framework is bound.framework]
    announcers = [None if view is None else announcer(view.framework) for view in given]
    return CudaPlan(
        site=site.at(site.place.memory.stream, None, ()),
        begins=tuple(begin - address for (begin, _), address in zip(extents, firsts, strict=True)),
        ends=tuple(end - address for (_, end), address in zip(extents, firsts, strict=True)),
        masks=tuple(0 if view is None else view.type.itemsize - 1 for view in slots),
        sources=tuple(sources),
        sizes=sizes,
        absent=tuple((first + n, *made) for n, made in enumerate(results.values()) if given[n] is None),
        announce=tuple((first + n, tell) for n, tell in enumerate(announcers) if tell is not None),
        like=alike[0] if asked and alike else None,
    )
