"""Which format a model has, by its contents: names of files say little."""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from tc.base.errors import GraphError
from tc.graph.protobuf.wire import LENGTH, VARINT, fields


class Format(Enum):
    """What reads a model."""

    ONNX = "ONNX"
    GRAPHDEF = "GraphDef"
    GRAPHDEF_TEXT = "GraphDef in text"
    SAVED_MODEL = "SavedModel"


# Messages in binary form have bytes that no text has, among those which say what fields they are.
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
# A text begins with the name of a field, after comments and white space.
_BEGIN: Final = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|#[^\n]*\n)*[A-Za-z_][A-Za-z0-9_]*\s*[:{<]")
_GRAPH: Final = 7  # the field of ONNX's ModelProto that is its graph


def format_of(data: bytes) -> Format | None:
    """The format of a model; None if it is none that is known.

    ONNX's ``ModelProto`` begins with a version, a GraphDef with its nodes, which are fields 1 of both.
    """
    if is_text(data):
        return Format.GRAPHDEF_TEXT
    kinds: dict[int, int] = {}
    try:
        for number, kind, _ in fields(memoryview(data)):
            kinds.setdefault(number, kind)
            if kinds.get(1) == LENGTH:
                return Format.GRAPHDEF
            if _GRAPH in kinds:
                return Format.ONNX
    except GraphError:  # damaged, which the reader says
        first = data[:1]
        return Format.GRAPHDEF if first == b"\x0a" else Format.ONNX if first == b"\x08" else None
    if kinds.get(1) == VARINT:
        return Format.SAVED_MODEL if kinds.get(2) == LENGTH else Format.ONNX
    return None


def is_text(data: bytes) -> bool:
    """Whether bytes are a message in protobuf's text format."""
    if _BEGIN.match(data) is None or _CONTROL.search(data) is not None:
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
