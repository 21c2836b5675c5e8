"""What PyTorch is called where times of it are kept."""

from __future__ import annotations

import torch

from tc.base.counted import counted


def torch_title() -> str:
    """Its version, and how many threads it is set to."""
    return f"PyTorch {torch.__version__}, {counted(torch.get_num_threads(), 'thread')}"
