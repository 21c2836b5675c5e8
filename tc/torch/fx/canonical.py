"""Graphs of ``torch.fx`` as text: all that decides what becomes of them, and nothing that does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from tc.base.digest import sha256_hex
from tc.torch.fx.layout import attribute_of
from tc.torch.fx.types import hinted

# Modules whose functions are what they are called: those of numbers, such as sizes.
_KNOWN: Final = ("_operator", "builtins", "math", "torch")
_NAMED: Final = torch.dtype | torch.device | torch.layout | torch.memory_format

Meaning: TypeAlias = Callable[[Any], str]


class _DoubtError(Exception):
    """Two graphs may differ in something that has no text."""


def canonical(module: fx.GraphModule, meaning: Meaning) -> str | None:
    """Equal for equal graphs on equal examples; None where that is in doubt.

    A line for each node: its name, what it calls, its arguments, and the example of its results.  ``meaning``: of
    operators that are what their user has made of them, beside their names.  Places in the user's code are left out.
    """
    written = _Writer(module, meaning)
    try:
        return "\n".join(map(written.line, module.graph.nodes))
    except _DoubtError:
        return None


def constants_of(module: fx.GraphModule) -> dict[str, torch.Tensor]:
    """The tensors that a graph has as attributes, by the names of the nodes that read them."""
    nodes = (node for node in module.graph.nodes if node.op == "get_attr")
    found = {node.name: attribute_of(module, node) for node in nodes}
    return {name: one for name, one in found.items() if isinstance(one, torch.Tensor)}


class _Writer:
    """Writes nodes, which are numbered in order."""

    def __init__(self, module: fx.GraphModule, meaning: Meaning) -> None:
        self._module: Final = module
        self._meaning: Final = meaning
        self._numbers: Final = {node: number for number, node in enumerate(module.graph.nodes)}

    def line(self, node: fx.Node) -> str:
        """A node; raises _DoubtError."""
        named = ", ".join(f"{name}={self._argument(one)}" for name, one in node.kwargs.items())
        called = f"{self._target(node)}{self._argument(node.args)}{{{named}}}"
        return f"{node.name}: {node.op} {called} -> {_example(node.meta.get('val'))}"

    def _target(self, node: fx.Node) -> str:
        target: Any = node.target
        match node.op:
            case "placeholder" | "output":
                return ""
            case "get_attr":
                return _contents(attribute_of(self._module, node))
            case "call_function" if isinstance(target, torch._ops.OpOverload):
                # Operators of others may have had other arguments when they were asked for last.
                own = "" if target.namespace == "aten" else f" {target._schema}"
                return f"{target}{own} {self._meaning(target)}"
            case "call_function" if _is_known(target):
                return f"{target.__module__}.{target.__qualname__}"
            case _:
                raise _DoubtError

    def _argument(self, given: Any) -> str:
        match given:
            case fx.Node():
                return f"%{self._numbers[given]}"
            case tuple() | list():
                # Lists of FX are of a class of its own.
                kind = "t" if isinstance(given, tuple) else "l"
                return f"{kind}({', '.join(map(self._argument, given))})"
            case None | bool() | int() | float() | str():
                return repr(given)
            case _ if isinstance(given, _NAMED):
                return f"<{given}>"
            case _:
                raise _DoubtError


def _is_known(target: Any) -> bool:
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    return module in _KNOWN and isinstance(name, str) and "<" not in name


def _example(found: Any) -> str:
    match found:
        case torch.Tensor():
            if found.layout is not torch.strided:
                raise _DoubtError
            sizes = (tuple(map(_number, numbers)) for numbers in (found.shape, found.stride()))
            return f"<{found.dtype} {' '.join(map(str, sizes))} {found.device}>"
        case tuple() | list():
            return f"({', '.join(map(_example, found))})"
        case torch.SymInt():
            return f"size {_number(found)}"
        case None | bool() | int() | float():
            return repr(found)
        case _:
            raise _DoubtError


def _number(size: int | torch.SymInt) -> int:
    try:
        return hinted(size)
    except (TypeError, AttributeError):  # it depends on data
        raise _DoubtError from None


def _contents(found: Any) -> str:
    """A tensor by its elements."""
    known = type(found) in (torch.Tensor, torch.nn.Parameter) and found.layout is torch.strided
    if not known or found.device.type != "cpu" or found.is_complex():
        raise _DoubtError
    with _disable_current_modes():  # graphs are compiled while PyTorch traces, in a mode where tensors have no elements
        elements = found.detach().resolve_neg().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    return f"<{found.dtype} {tuple(found.shape)} {sha256_hex(elements)}>"
