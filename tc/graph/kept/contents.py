"""``Contents``: what identifies a model, and the tensors that it holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from tc.base.frozen import frozen
from tc.store.plans import Model

if TYPE_CHECKING:
    import numpy as np

    Arrays: TypeAlias = Callable[[], Mapping[str, np.ndarray]]


@frozen
class Contents:
    """``arrays``: by name, those that plans need not store, since they are found in the model again."""

    model: Model
    arrays: Arrays
