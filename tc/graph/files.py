"""Models as callers give them: the bytes of a file, or what the package ``onnx`` has parsed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from tc.base.digest import sha256_hex
from tc.base.errors import GraphError
from tc.base.generator import installed_version
from tc.graph.formats import Format, format_of

if TYPE_CHECKING:
    from onnx import ModelProto

    from tc.graph.kept.known import StoredSource

# Of a model that has none of its own.
_NAME: Final = "graph"


class ModelFile:
    """A model in any format, with the file that it comes from, if it is one."""

    def __init__(self, data: bytes, path: str | None = None) -> None:
        self._data: Final = data
        self._path: Final = path
        self._format: Final = format_of(data)

    def read(self) -> StoredSource:
        """The model; GraphError for what is none, and for operators that are not supported."""
        place = "what was given" if self._path is None else self._path
        name = _NAME if self._path is None else os.path.splitext(os.path.basename(self._path))[0]
        from tc.graph.graphdef.load import read_graphdef, read_graphdef_text
        from tc.graph.onnx.load import read_model, source_of

        match self._format:
            case Format.ONNX:
                return source_of(read_model(self._data, place), self._folder)
            case Format.GRAPHDEF:
                return read_graphdef(self._data, place, name)
            case Format.GRAPHDEF_TEXT:
                return read_graphdef_text(self._data, place, name)
            case Format.SAVED_MODEL:
                raise GraphError(f"{place} is a SavedModel, which is not read; freeze it, and give its GraphDef")
            case None:
                raise GraphError(f"{place} is no model: neither ONNX nor a GraphDef")

    @property
    def digest(self) -> str | None:
        """What identifies the model; None for texts, which are to be read in any case, and for what is no model."""
        match self._format:
            case Format.ONNX:
                from tc.graph.onnx.stored import digest_of

                return digest_of(self._data, self._folder)
            case Format.GRAPHDEF:
                return sha256_hex(self._data)
            case _:
                return None

    @property
    def reader(self) -> str | None:
        """The package that reads the model, and has a part in what becomes of it; None where it is not installed."""
        return _onnx() if self._format is Format.ONNX else ""

    def arrays(self) -> Mapping[str, np.ndarray]:
        """The tensors that the model holds, by name."""
        if self._format is not Format.ONNX:
            return self.read().arrays()
        from tc.graph.onnx.stored import stored_arrays

        return stored_arrays(self._data, self._folder)

    @property
    def _folder(self) -> str | None:
        return None if self._path is None else os.path.dirname(self._path) or os.curdir


class ParsedModel:
    """A ``ModelProto``."""

    def __init__(self, model: ModelProto) -> None:
        self._model: Final = model

    def read(self) -> StoredSource:
        """As of ``ModelFile``."""
        from tc.graph.onnx.load import source_of

        return source_of(self._model)

    @property
    def digest(self) -> str | None:
        """What identifies the model; None for one that is too large to be written."""
        from tc.graph.onnx.load import digest_of

        return digest_of(self._model)

    @property
    def reader(self) -> str | None:
        """As of ``ModelFile``."""
        return _onnx()

    def arrays(self) -> Mapping[str, np.ndarray]:
        """The tensors that the model holds, by name."""
        return self.read().arrays()


def _onnx() -> str | None:
    version = installed_version("onnx")
    return None if version is None else f"onnx {version}"
