"""The libraries that are installed here."""

from __future__ import annotations

from importlib.util import find_spec

from tc.graph.libraries.library import Library


def installed() -> tuple[Library, ...]:
    """PyTorch, with its BLAS and oneDNN, if it is there; and the BLAS of SciPy."""
    from tc.graph.libraries.scipy_calls import SciPy

    if find_spec("torch") is None:
        return (SciPy(),)
    from tc.graph.libraries.torch_calls import PyTorch

    return PyTorch(), SciPy()
