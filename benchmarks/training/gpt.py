"""A small transformer that learns the documentation of this project, letter by letter."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

import torch
from torch import nn
from torch.nn import functional

from benchmarks.training.workload import Batch, Compiler, Model

_DOCUMENTS: Final = Path(__file__).parents[2] / "docs"
_BATCH: Final = 12


class _Block(nn.Module):
    """Attention and a perceptron, each on what is normalized, added to what came in."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inward = nn.Linear(width, 3 * width)
        self.outward = nn.Linear(width, width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N,T,C) numbers; none looks at later ones."""
        batch, length, width = x.shape
        parts = self.inward(self.norm1(x)).split(width, dim=2)
        query, key, value = (one.view(batch, length, self.heads, -1).transpose(1, 2) for one in parts)
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.outward(found.transpose(1, 2).reshape(batch, length, width))
        return x + self.perceptron(self.norm2(x))  # type: ignore[no-any-return]


class Gpt(nn.Module):
    """Letters and their places, blocks, and the logits of the next letter, whose weights are those of letters."""

    def __init__(self, letters: int, length: int = 64, layers: int = 4, heads: int = 4, width: int = 128) -> None:
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(_Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters, bias=False)
        self.head.weight = self.letters.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, text: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        """The mean entropy of the next letters of (N,T) ones."""
        x = self.letters(text) + self.places(torch.arange(text.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())


class Documentation:
    """``length``: letters that are seen at a time."""

    name: Final = "gpt"
    steps: Final = 200

    def __init__(self, length: int = 64) -> None:
        self._length = length

    def model(self) -> nn.Module:
        """Four layers of 128 numbers and four heads."""
        torch.manual_seed(1)
        return Gpt(len(_letters()[0]), self._length)

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """AdamW."""
        return torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)

    def batch(self, step: int) -> Batch:
        """Twelve pieces of the text, and the letters that come after each."""
        _, text = _letters()
        generator = torch.Generator().manual_seed(step)
        begins = torch.randint(len(text) - self._length, (_BATCH, 1), generator=generator)
        places = begins + torch.arange(self._length)
        return text[places], text[places + 1]

    def loss(self, model: Model, batch: Batch) -> torch.Tensor:
        """The mean entropy."""
        found: torch.Tensor = model(*batch)
        return found

    def score(self, compiled: Compiler) -> None:
        """There is nothing to reach beside the losses."""
        del compiled


@functools.cache
def _letters() -> tuple[str, torch.Tensor]:
    """All letters there are, and the text as their numbers."""
    text = "".join(path.read_text() for path in sorted(_DOCUMENTS.glob("*.md")))
    letters = "".join(sorted(set(text)))
    numbers = {letter: number for number, letter in enumerate(letters)}
    return letters, torch.tensor([numbers[letter] for letter in text])
