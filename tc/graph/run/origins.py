"""Errors of kernels that say where in the model they come from."""

from __future__ import annotations

from collections.abc import Callable

from tc.base.errors import ArgumentError


def at_origin(origin: str, run: Callable[[], None]) -> None:
    """Runs something; what it finds in arguments begins with the origin."""
    try:
        run()
    except ArgumentError as error:
        raise ArgumentError(f"{origin}: {error}" if origin else str(error)) from None
