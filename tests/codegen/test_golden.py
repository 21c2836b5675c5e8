"""The sources of small kernels, to be read: what the printer makes of each kind of loop and statement."""

from __future__ import annotations

from typing import Final

import pytest

from tc.codegen.printer.source import c_source
from tc.polyhedral.ir.loops import LoopKind, LoopProgram
from tests.codegen.harness import VECTOR_BYTES
from tests.codegen.test_kernels import matrix_product, padded_convolution, row_sums
from tests.conftest import Golden

PROGRAMS: Final[dict[str, LoopProgram]] = {
    "matrix_product": matrix_product(LoopKind.REDUCTION),
    "padded_convolution": padded_convolution(),
    "row_sums": row_sums(),
}
FILES: Final = frozenset(f"codegen/{name}.c" for name in PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_source(name: str, golden: Golden) -> None:
    golden.check(f"codegen/{name}.c", c_source(PROGRAMS[name], VECTOR_BYTES).text)
