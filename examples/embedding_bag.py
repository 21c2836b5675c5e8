"""An embedding bag: rows of a table, chosen by indices, weighted and added up.

python examples/embedding_bag.py
"""

from __future__ import annotations

import numpy as np

import tc

TEXT = """
def embedding_bag(float(V,D) table, int32(B,L) index, float(B,L) weight) -> (bag) {
    bag(b,d) +=! weight(b,l) * table(index(b,l), d)
}
"""
embedding_bag = tc.define(TEXT).embedding_bag


def main() -> None:
    """Compare it with NumPy, and pass an index that is out of range."""
    random = np.random.default_rng(0)
    table = random.standard_normal((1000, 64), np.float32)
    index = random.integers(0, len(table), (32, 20), np.int32)
    weight = random.random((32, 20), np.float32)
    bag = embedding_bag(table, index, weight)
    np.testing.assert_allclose(bag, np.einsum("bl,bld->bd", weight, table[index]), rtol=1e-4, atol=1e-5)
    print(f"{len(index)} bags of {index.shape[1]} rows: as NumPy computes them")

    index[3, 7] = len(table)
    try:
        embedding_bag(table, index, weight)
    except tc.ArgumentError as error:
        print(f"refused: {error}")


if __name__ == "__main__":
    main()
