"""What options were called in the release before: options in JSON are still read by these names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# By class.
RENAMED: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "CpuOptions": MappingProxyType(
            {
                "accumulators": "register_accumulators",
                "packed": "packed_operands",
                "local": "local_temporaries",
                "streamed": "nontemporal_stores",
                "prefetch": "gather_prefetch",
                "ahead": "block_prefetch",
                "lane": "vector_axis",
            }
        ),
        "GpuOptions": MappingProxyType(
            {
                "private": "register_accumulators",
                "fragments": "register_operands",
                "shared": "shared_memory",
                "across": "split_k_blocks",
                "split": "split_k_threads",
                "resident": "min_blocks_per_multiprocessor",
            }
        ),
    }
)
