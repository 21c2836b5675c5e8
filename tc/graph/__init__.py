"""Graphs of comprehensions: models are imported, planned and run.

>>> import tc
>>> g = tc.graph.load("model.onnx")
>>> y = g(x)
"""

from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.ir.parse_graph import parse
from tc.graph.load import load
from tc.graph.memory.offsets import Placing
from tc.graph.model import Model
from tc.graph.preparation import Settings
from tc.graph.rewrite.rules import RULES

__all__ = ["RULES", "Builder", "Graph", "Model", "Placing", "Settings", "load", "parse"]
