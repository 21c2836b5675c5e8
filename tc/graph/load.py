"""``load``: a model from a path, from bytes or text, or from what another package has parsed."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Final

from tc.base.errors import GraphError
from tc.graph.files import ModelFile, ParsedModel
from tc.graph.formats import is_text
from tc.graph.kept.interface import KnownSource
from tc.graph.kept.known import known
from tc.graph.model import Model
from tc.graph.settings import Settings

if TYPE_CHECKING:
    from onnx import ModelProto

_PLANNER: Final = "tc.graph.preparation"


def load(
    model: str | os.PathLike[str] | bytes | ModelProto, *, target: str | None = None, libraries: bool = False
) -> Model:
    """The model of an ONNX file or of a GraphDef of TensorFlow.

    Given by its path, as bytes, as a ``ModelProto``, or as the text of a GraphDef.  Contents say which of them it is.
    ``target``: as of calls of definitions; None takes that of the arrays of a call.  ``libraries``: see ``Settings``.
    GraphError for what is no model, and for one with operators that are not supported, which it names.
    """
    source, contents = known(_given(model))
    if not isinstance(source, KnownSource):
        import_module(_PLANNER)  # no plan of it is kept: the first call should not wait for imports, too
    return Model(source, Settings(target=target, libraries=libraries), contents)


def _given(model: str | os.PathLike[str] | bytes | ModelProto) -> ModelFile | ParsedModel:
    if isinstance(model, str) and "{" in model and not _exists(model):
        text = model.encode("utf-8", "replace")
        if is_text(text):
            return ModelFile(text)
    if isinstance(model, str | os.PathLike):
        path = os.fspath(model)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except (OSError, ValueError) as error:
            raise GraphError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
        return ModelFile(data, path)
    if isinstance(model, bytes):
        return ModelFile(model)
    from tc.graph.onnx.load import onnx_package

    onnx_package("a ModelProto")
    from onnx import ModelProto

    if not isinstance(model, ModelProto):
        raise GraphError(f"tc.graph.load takes a path, bytes, a text or a ModelProto, got {type(model).__name__}")
    return ParsedModel(model)


def _exists(path: str) -> bool:
    try:
        return os.path.exists(path)
    except (OSError, ValueError):  # it is too long for a path, or has characters that none has
        return False
