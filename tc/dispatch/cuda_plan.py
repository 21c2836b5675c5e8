"""Plans of repeated calls on CUDA."""

from __future__ import annotations

from tc.artifact.convention import Convention
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
    interface = convention.interface
    slots = {name: slot for slot, name in enumerate(interface.names)}
    views = {**bound.inputs, **bound.outputs}
    extents = {name: extent(view) for name, view in views.items()}
    absent = {name: convention.layout(name).at(sizes) for name in interface.results if name not in views}
    announcers = {name: announcer(view.framework) for name, view in bound.outputs.items()}
    # Only PyCUDA's arrays have allocators of their own.
    asked = bound.framework is Framework.PYCUDA and bool(absent or site.kernel.workspace)
    return CudaPlan(
        site=site.at(site.place.memory.stream, None, ()),
        begins=tuple(extents[name][0] - views[name].address if name in views else 0 for name in slots),
        ends=tuple(extents[name][1] - views[name].address if name in views else 0 for name in slots),
        masks=tuple(views[name].type.itemsize - 1 if name in views else 0 for name in slots),
        sources=tuple(slots[operand.name] for operand in convention.operands),
        sizes=sizes,
        absent=tuple((slots[name], layout.shape, layout.type) for name, layout in absent.items()),
        announce=tuple((slots[name], tell) for name, tell in announcers.items() if tell is not None),
        like=next(slots[n] for n, view in views.items() if view.framework is bound.framework) if asked else None,
    )
