"""PyTorch's products and convolutions, which are MKL's or OpenBLAS' and oneDNN's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import torch

from tc.base.frozen import frozen
from tc.graph.libraries.form import Convolution, Form, MatrixProduct
from tc.graph.libraries.torch_title import torch_title

if TYPE_CHECKING:
    from tc.graph.ir.nodes import HostFunction

_CONVOLUTIONS: Final = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d, 3: torch.nn.functional.conv3d}


@frozen
class PyTorch:
    """PyTorch, on the processor, with as many threads as it is set to."""

    @property
    def title(self) -> str:
        """See ``Library``."""
        return torch_title()

    def function(self, form: Form) -> HostFunction:
        """Of all forms."""
        return _product(form) if isinstance(form, MatrixProduct) else _convolution(form)


def _product(form: MatrixProduct) -> HostFunction:
    plain = len(form.left) == len(form.right) == 2

    def run(operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        with torch.inference_mode():
            left, right, *bias = map(_tensor, operands)
            if bias and plain:
                return (torch.addmm(bias[0], left, right).numpy(),)
            found = torch.matmul(left, right)
            return ((found.add_(bias[0]) if bias else found).numpy(),)

    return run


def _convolution(form: Convolution) -> HostFunction:
    convolve = _CONVOLUTIONS[len(form.stride)]

    def run(operands: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        with torch.inference_mode():
            image, weights, *bias = map(_tensor, operands)
            found = convolve(
                image.reshape(form.image),
                weights.reshape(form.weights),
                bias[0].reshape(-1) if bias else None,
                form.stride,
                form.padding,
                form.dilation,
                form.groups,
            )
            return (found.reshape(form.result).numpy(),)

    return run


def _tensor(array: np.ndarray) -> torch.Tensor:
    """The same memory, which is only read."""
    if any(step < 0 for step in array.strides):
        array = np.ascontiguousarray(array)
    return torch.from_numpy(array if array.flags.writeable else np.asarray(_Writable(array)))


class _Writable:
    """Memory that PyTorch takes without a warning that it could be written."""

    def __init__(self, array: np.ndarray) -> None:
        self._array: Final = array
        self.__array_interface__: Final = {**array.__array_interface__, "data": (array.ctypes.data, False)}
