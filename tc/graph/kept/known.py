"""Models that earlier processes have read: what callers must know of them comes from the cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from tc.base.environment import environment
from tc.base.errors import GraphError
from tc.graph.ir.source import Source
from tc.graph.kept.contents import Contents
from tc.graph.kept.interface import source_from_json
from tc.store.plans import Model, plan_cache

if TYPE_CHECKING:
    import numpy as np


class StoredSource(Source, Protocol):
    """A model that holds tensors."""

    def arrays(self) -> Mapping[str, np.ndarray]:
        """The tensors by name, which are only to be read."""


class Readable(Protocol):
    """A model that need not be read, if the cache knows it."""

    def read(self) -> StoredSource:
        """The model; GraphError for what is none, and for operators that are not supported."""

    @property
    def digest(self) -> str | None:
        """What identifies the model; None where it is always to be read.  GraphError where it is damaged."""

    @property
    def reader(self) -> str | None:
        """The version of the package that reads it, empty if that is this one; None where it is not installed."""

    def arrays(self) -> Mapping[str, np.ndarray]:
        """The tensors that it holds, by name, which are only to be read."""


def known(model: Readable) -> tuple[Source, Contents | None]:
    """The model as a source, and what identifies it in caches; None if nothing does."""
    try:
        digest = model.digest
    except GraphError:  # reading it says what is wrong
        digest = None
    if digest is None:
        return model.read(), None
    own, cache = Model(digest, model.reader), plan_cache(environment())
    # Who wants to see how kernels are made wants to see it made.
    text = None if cache is None or environment().dump is not None else cache.interface(own)
    if cache is not None and text is not None:
        with cache.reading("a model"):
            return source_from_json(text, model.read), Contents(own, model.arrays)
    source = model.read()
    return source, Contents(own, source.arrays)
