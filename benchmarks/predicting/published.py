"""Published times of kernels on GPUs, to judge the model by.

KernelBench (https://github.com/ScalingIntelligence/KernelBench, Ouyang et al., arXiv 2502.10517), level 1, PyTorch 2.5
without ``torch.compile``, float32, milliseconds of 100 calls on average by the wall clock: ``_FIRST`` are the sizes and
times of its version 0.1 (``results/timing`` of January 2025: A100-80GB_modal, H100_together, B200_together),
``_SECOND`` those of version 0.2 (H100_Modal, H100_PCIe_LambdaLabs).  Problems are those of its level 1 that are one
kernel, apart from convolutions; times of less than 0.1 ms are left out, since they are those of Python.  ``_HALVES``:
products with matrix instructions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks.predicting.described import Described, Elementwise, Product, Rows


@dataclass(frozen=True, slots=True)
class Published:
    """``case``: the number of the problem in KernelBench.  ``device``: of ``tc.targets.devices``."""

    source: str
    case: str
    device: str
    call: Described
    seconds: float


@dataclass(frozen=True, slots=True)
class _Problem:
    case: str
    call: Described
    milliseconds: tuple[float, ...]


_FIRST_DEVICES: Final = ("A100", "H100", "B200")
_FIRST: Final = (
    _Problem("1 square", Product(2048, 2048, 2048), (1.20, 0.347, 0.372)),
    _Problem("2 standard", Product(1024, 2048, 4096), (1.17, 0.392, 0.356)),
    _Problem("3 batched", Product(128, 512, 256, 128), (0.327, 0.104, 0.128)),
    _Problem("5 times a number", Elementwise(16384 * 4096), (0.324, 0.185, 0.100)),
    _Problem("6 long sums", Product(256, 256, 131072), (1.27, 0.350, 0.596)),
    _Problem("7 short sums", Product(16384, 16384, 32), (1.26, 0.662, 0.541)),
    _Problem("8 ragged", Product(8205, 5921, 2949), (15.7, 6.38, 4.64)),
    _Problem("9 tall", Product(16384, 16384, 16), (0.804, 0.489, 0.403)),
    _Problem("10 3D", Product(16 * 1024, 768, 2048), (3.19, 1.04, 0.968)),
    _Problem("11 4D", Product(16 * 256 * 512, 768, 256), (43.8, 22.6, 14.5)),
    _Problem("13 symmetric", Product(4096, 4096, 4096), (7.60, 2.66, 2.25)),
    _Problem("16 transposed A", Product(1024, 2048, 4096), (1.21, 0.363, 0.345)),
    _Problem("17 transposed B", Product(1024, 2048, 4096), (1.34, 0.368, 0.359)),
    _Problem("18 both", Product(1024, 2048, 4096), (1.27, 0.376, 0.350)),
    _Problem("40 layer norm", Rows(16, 64 * 256 * 256, passes=2, threads=128, chain=8), (10.2, 8.22, 8.98)),
)

_SECOND_DEVICES: Final = ("H100", "H100 PCIe")
_LARGE: Final = 4096 * 393216
_CUBE: Final = 128 * 4096 * 4095
_SECOND: Final = (
    _Problem("1 square", Product(4096, 4096, 4096), (2.66, 3.68)),
    _Problem("2 standard", Product(2048, 4096, 8192), (2.61, 4.53)),
    _Problem("3 batched", Product(512, 2048, 1024, 128), (5.33, 8.17)),
    _Problem("4 matrix times vector", Rows(2048, 1 << 20, written=False), (2.77, 4.51)),
    _Problem("5 times a number", Elementwise(65536 * 16384), (2.85, 4.64)),
    _Problem("6 long sums", Product(256, 256, 524288), (1.30, 1.77)),
    _Problem("7 short sums", Product(32768, 32768, 64), (4.06, 6.12)),
    _Problem("8 ragged", Product(8205, 5921, 2949), (6.38, 7.69)),
    _Problem("9 tall", Product(32768, 32768, 32), (2.59, 4.29)),
    _Problem("10 3D", Product(16 * 1024, 768, 2048), (1.04, 1.54)),
    _Problem("11 4D", Product(8 * 256 * 512, 768, 256), (11.0, 12.6)),
    _Problem("16 transposed A", Product(2048, 4096, 8192), (2.62, 3.40)),
    _Problem("17 transposed B", Product(2048, 4096, 8192), (2.68, 4.90)),
    _Problem("18 both", Product(2048, 4096, 8192), (2.74, 3.54)),
    _Problem("19 ReLU", Elementwise(_LARGE), (4.28, 6.96)),
    _Problem("21 sigmoid", Elementwise(_LARGE, special=2), (4.32, 6.95)),
    _Problem("22 tanh", Elementwise(_LARGE, special=2), (4.31, 6.95)),
    _Problem("23 softmax", Rows(4096, 393216, passes=3, threads=1024, special=1), (8.52, 14.3)),
    _Problem("24 log of softmax", Rows(4096, 393216, passes=3, threads=1024, special=1), (8.48, 13.8)),
    _Problem("26 GELU", Elementwise(_LARGE, special=1), (4.30, 6.95)),
    _Problem("40 layer norm", Rows(16, 64 * 256 * 256, passes=2, threads=128, chain=8), (8.12, 9.01)),
    _Problem("47 sum", Rows(128 * 4095, 4096, written=False, threads=128), (3.11, 4.60)),
    _Problem("48 mean", Rows(128 * 4095, 4096, written=False, threads=128), (2.88, 4.60)),
    _Problem("49 greatest", Rows(128 * 4095, 4096, written=False, threads=128), (3.14, 4.75)),
    _Problem("53 least", Rows(128 * 4095, 4096, written=False, threads=128), (3.14, 4.75)),
)


# Teraflops of products of bfloat16 (A100) and float16 (H200) with matrix instructions: Triton's best and the library's,
# of https://github.com/gau-nernst/learn-cuda, and Tilus' and PyTorch's, of https://github.com/NVIDIA/tilus/pull/86.
_HALVES: Final = (
    ("gau-nernst", "A100", (2048, 2048, 2048), (181, 155)),
    ("gau-nernst", "A100", (4096, 4096, 4096), (229, 246)),
    ("gau-nernst", "A100", (8192, 8192, 8192), (242, 262)),
    ("Tilus", "H200", (4096, 4096, 4096), (631, 765)),
    ("Tilus", "H200", (4096, 4096, 14336), (708, 786)),
    ("Tilus", "H200", (8192, 8192, 8192), (621, 759)),
)


def _halves() -> Iterator[Published]:
    for source, device, (m, n, k), teraflops in _HALVES:
        for who, speed in zip(("compiled", "library"), teraflops, strict=True):
            call = Product(m, n, k, halves=True)
            yield Published(source, f"halves {m}x{n}x{k}, {who}", device, call, 2e-12 * m * n * k / speed)


def published() -> Iterator[Published]:
    """All of them."""
    yield from _halves()
    for source, devices, problems in (
        ("KernelBench 0.1", _FIRST_DEVICES, _FIRST),
        ("KernelBench 0.2", _SECOND_DEVICES, _SECOND),
    ):
        for problem in problems:
            for device, milliseconds in zip(devices, problem.milliseconds, strict=True):
                yield Published(source, problem.case, device, problem.call, 1e-3 * milliseconds)
