"""Reads GraphDefs, in binary form and in text."""

from __future__ import annotations

import codecs

from tc.base.errors import GraphError
from tc.graph.graphdef.importer import GraphDefSource
from tc.graph.protobuf.schema import Unread
from tc.graph.protobuf.wire import Encoded


def read_graphdef(data: bytes, place: str, name: str) -> GraphDefSource:
    """The graph that the bytes hold; GraphError if they hold none.  ``name``: what it is called."""
    return _source(Encoded(memoryview(data)), place, name)


def read_graphdef_text(text: str | bytes, place: str, name: str) -> GraphDefSource:
    """The graph that a text holds; GraphError if it holds none."""
    from tc.graph.graphdef.text import parse  # the grammar of the text takes longer to load than most graphs

    if isinstance(text, bytes):
        text = text.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    try:
        found = parse(text)
    except GraphError as error:
        raise GraphError(f"{place} is no GraphDef: {error}") from None
    names = {str(field) for field, _ in found.fields}
    if "ir_version" in names and "node" not in names:
        raise GraphError(f"{place} is an ONNX model as text, which is not read; save it in binary form")
    return _source(found, place, name)


def _source(graph: Unread, place: str, name: str) -> GraphDefSource:
    try:
        return GraphDefSource(graph, name)
    except GraphError as error:
        raise GraphError(f"{place} is no GraphDef: {error}") from None
