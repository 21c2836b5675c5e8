"""All workloads, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from benchmarks.training.gpt import Documentation
from benchmarks.training.mnist import Mnist
from benchmarks.training.resnet import Stripes
from benchmarks.training.unet import Discs
from benchmarks.training.workload import Workload

_ALL: Final[tuple[Workload, ...]] = (Mnist(), Documentation(), Stripes(), Discs())
WORKLOADS: Final[Mapping[str, Workload]] = MappingProxyType({one.name: one for one in _ALL})
