"""What callers must know of a model, as JSON and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from tc.base.once import Once
from tc.base.types import ScalarType
from tc.graph.ir.graph import Graph
from tc.graph.ir.sizes import Dimension, open_size
from tc.graph.ir.source import Declared, Request, Source


class KnownSource:
    """A model that an earlier process has read; it is read again by ``read`` when a graph of it is asked for."""

    def __init__(
        self, name: str, inputs: tuple[Declared, ...], outputs: tuple[str, ...], read: Callable[[], Source]
    ) -> None:
        self.name: Final = name
        self.inputs: Final = inputs
        self.outputs: Final = outputs
        self._read: Final = read
        self._source: Final[Once[None, Source]] = Once()

    def elaborate(self, request: Request) -> Graph:
        """The graph; raises Demand, or GraphError."""
        return self._source.get(None, self._read).elaborate(request)


def interface_to_json(source: Source) -> str:
    """Names, inputs and outputs of a source, whose open sizes have names."""
    inputs = [
        (one.name, one.type.value, None if one.shape is None else list(map(_size_to_json, one.shape)), one.optional)
        for one in source.inputs
    ]
    return json.dumps({"name": source.name, "inputs": inputs, "outputs": source.outputs})


def source_from_json(text: str, read: Callable[[], Source]) -> KnownSource:
    """The source; ValueError, LookupError or TypeError for what ``interface_to_json`` did not make."""
    data = json.loads(text)
    inputs = (
        Declared(name, ScalarType(type), None if shape is None else tuple(map(_size, shape)), optional)
        for name, type, shape, optional in data["inputs"]
    )
    return KnownSource(data["name"], tuple(inputs), tuple(data["outputs"]), read)


def _size_to_json(size: Dimension) -> int | str:
    return size if isinstance(size, int) else str(size)


def _size(data: int | str) -> Dimension:
    return data if isinstance(data, int) else open_size(data)
