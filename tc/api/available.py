"""Which targets this machine can run, and which one a call has."""

from __future__ import annotations

from collections.abc import Callable

from tc.base.environment import environment
from tc.base.errors import DeviceError, OptionsError
from tc.runtime.named_target import named_target
from tc.targets.target import Target


def target_of_call(name: str | None, device: int | None = None) -> Target:
    """The target of a call whose arrays lie on a CUDA device; None for those in the memory of this machine."""
    if name is not None and not isinstance(name, str):
        raise OptionsError(f"target must be a name such as 'cpu', got {name!r}")
    return named_target(name or environment().target or ("cpu" if device is None else "cuda"), device)


def targets() -> dict[str, str]:
    """What this machine can run: ``"available"`` and the resolved name, or why not."""
    from tc.runtime.host.c_compiler import find_compiler

    def target() -> Target:
        find_compiler(environment())
        return target_of_call("cpu")

    cpu = _available(target)
    return {
        "cpu": cpu,
        "emulator": "available" if cpu.startswith("available") else cpu,
        "opencl": _available(_opencl_name),
        "cuda": _available(_cuda_name),
    }


def _opencl_name() -> str:
    from tc.runtime.opencl.opencl import opencl_device, require_compiler

    require_compiler()
    return opencl_device().name


def _cuda_name() -> str:
    from tc.runtime.cuda.chosen_driver import cuda_driver
    from tc.runtime.cuda.cuda import cuda_architecture

    driver = cuda_driver()
    device = driver.current_device()
    return f"cuda:{cuda_architecture(device)} ({driver.devices()[device].name}, by {driver.name})"


def _available(name: Callable[[], object]) -> str:
    try:
        return f"available: {name()}"
    except DeviceError as error:
        return f"not available: {error}"
