"""Models of PyTorch as people ask for them to be tuned: a function of a module of Python makes the model."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tc.base.errors import OptionsError, nearest

if TYPE_CHECKING:
    from tc.torch.tuning import TunedPart

_WRITTEN: Final = "write it as --torch module:function, where the function returns a model and a tuple of its inputs"


def torch_parts(place: str) -> list[TunedPart]:
    """The parts of the model that ``module:function`` returns with example inputs, forward and backward.

    OptionsError for what is not written so, cannot be imported, or returns something else, and for a model that cannot
    be called, or has nothing to tune.
    """
    made = _made(place)
    if not (isinstance(made, tuple) and len(made) == 2 and callable(made[0]) and isinstance(made[1], tuple | list)):
        kind = type(made).__name__
        raise OptionsError(f"{place} returns what is of the type {kind}, not a model and a tuple of its inputs")
    model, inputs = made
    from tc.torch.capture import captured

    try:
        found = captured(model, inputs)
    except Exception as error:  # whatever the model raises is what is wrong with it
        raise OptionsError(f"the model of {place} cannot be called: {_reason(error)}") from error
    if not found:
        raise OptionsError(f"the model of {place} has no part that kernels of ours compute")
    return found


def _made(place: str) -> Any:
    """What the function returns."""
    name, colon, attribute = (part.strip() for part in place.partition(":"))
    if not (name and colon and attribute):
        raise OptionsError(f"{place!r} names no function; {_WRITTEN}")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does
    try:
        module = importlib.import_module(name)
    except Exception as error:
        raise OptionsError(f"cannot import {name}: {_reason(error)}") from error
    function = getattr(module, attribute, None)
    if function is None:
        guess = nearest(attribute, [known for known in vars(module) if not known.startswith("_")])
        raise OptionsError(f"{name} has no {attribute!r}" + (f"; did you mean {guess!r}?" if guess else ""))
    if not callable(function):
        raise OptionsError(f"{place} is no function, but of the type {type(function).__name__}; {_WRITTEN}")
    try:
        return function()
    except Exception as error:
        raise OptionsError(f"{place} failed: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'without a word'}"
