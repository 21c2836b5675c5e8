"""A stencil: steps of the heat equation on a plate whose border is kept at its temperature.

python examples/stencil.py
"""

from __future__ import annotations

import numpy as np

import tc

TEXT = """
def step(float(H,W) u, float alpha) -> (v) {
    v(i,j) = i >= 1 && i < H - 1 && j >= 1 && j < W - 1
        ? u(i,j) + alpha * (u(i-1,j) + u(i+1,j) + u(i,j-1) + u(i,j+1) - 4 * u(i,j))
        : u(i,j)
        where i in 0:H, j in 0:W
}
"""
step = tc.define(TEXT).step


def main() -> None:
    """Run 200 steps."""
    plate = np.zeros((64, 96), np.float32)
    plate[0] = 100
    following = np.empty_like(plate)
    for _ in range(200):
        step(plate, 0.2, out=following)
        plate, following = following, plate
    assert (plate[0] == 100).all()
    assert (np.diff(plate[:, 48]) <= 0).all()
    print("temperatures below the hot edge:", plate[1:6, 48].round(1))


if __name__ == "__main__":
    main()
