"""Graphs of comprehensions: models are imported, planned and run.

>>> import tc
>>> g = tc.graph.load("model.onnx")
>>> y = g(x)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tc.graph.compiled import CompiledModel
from tc.graph.ir.graph import Graph
from tc.graph.load import load
from tc.graph.memory.placing import Placing
from tc.graph.model import Model
from tc.graph.settings import Settings

if TYPE_CHECKING:
    from tc.graph.ir.builder import Builder
    from tc.graph.ir.parse_graph import parse
    from tc.graph.rewrite.rules import RULES

__all__ = ["RULES", "Builder", "CompiledModel", "Graph", "Model", "Placing", "Settings", "load", "parse"]

_LATER = {"Builder": "tc.graph.ir.builder", "parse": "tc.graph.ir.parse_graph", "RULES": "tc.graph.rewrite.rules"}


def __getattr__(name: str) -> Any:
    """What makes graphs is imported when it is asked for: models whose plans are kept need none of it."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'tc.graph' has no attribute {name!r}")
