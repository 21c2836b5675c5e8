"""A layer of PyTorch: a linear layer, its bias and its activation in one kernel.

python examples/layer.py
"""

from __future__ import annotations

import torch

import tc

TEXT = """
def linear_gelu(float(B,I) x, float(O,I) weight, float(O) bias) -> (y) {
    sum(b,o) = bias(o)
    sum(b,o) += x(b,i) * weight(o,i)
    y(b,o) = 0.5 * sum(b,o) * (1 + erf(sum(b,o) * 0.70710678))
}
"""
linear_gelu = tc.define(TEXT).linear_gelu


class LinearGelu(torch.nn.Linear):
    """``torch.nn.Linear`` and GELU, for inference."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The layer's result, of one kernel."""
        result = linear_gelu(input, self.weight, self.bias)
        assert isinstance(result, torch.Tensor)
        return result


def main() -> None:
    """Compare it with PyTorch."""
    torch.manual_seed(0)
    layer, x = LinearGelu(96, 160), torch.randn(32, 96)
    with torch.no_grad():
        result = layer(x)
        expected = torch.nn.functional.gelu(torch.nn.functional.linear(x, layer.weight, layer.bias))
    torch.testing.assert_close(result, expected)
    print(f"a batch of {len(x)}: as PyTorch computes it")


if __name__ == "__main__":
    main()
