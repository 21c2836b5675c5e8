"""Targets by name, where a name can mean what this machine has."""

from __future__ import annotations

import functools
from typing import Final

from tc.base.errors import DeviceError
from tc.targets.target import CudaTarget, Target, parse_target

# Neither names nor machines change.
_parsed: Final = functools.cache(parse_target)


def named_target(name: str, device: int | None = None) -> Target:
    """``parse_target``; ``cuda`` is the architecture of a device of this machine, None for the current one.

    OptionsError for a name that means nothing, DeviceError for a target that cannot serve.
    """
    return _cuda_target(device) if name == "cuda" else _parsed(name)


def _cuda_target(device: int | None) -> CudaTarget:
    from tc.runtime.cuda.cuda import cuda_architecture

    try:
        return CudaTarget(cuda_architecture(device))
    except DeviceError as error:
        raise DeviceError(
            f"target 'cuda' is not available: {error}; to run here, use 'cpu' or 'emulator', "
            "to compile only, name an architecture, as in 'cuda:sm_90'"
        ) from error
