"""A C program that calls a kernel: export its source, build the library, compile and run the program.

python examples/from_c.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

# What decides a kernel: the definition and the sizes.
COMPILE = """
import tc
mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }")
mm.compile((2, 3), (3, 4))
"""
PROGRAM = """
#include <stdio.h>
#include "kernels.h"

int main(void) {
  float A[2][3] = {{1, 2, 3}, {4, 5, 6}}, B[3][4] = {{1, 0, 0, 1}, {0, 1, 0, 1}, {0, 0, 1, 1}}, C[2][4];
  void *buffers[] = {A, B, C};
  int fault = tc_call(tc_find("kernel_mm_2x3_3x4"), buffers, NULL, 1);
  for (int m = 0; m < 2; m++) printf("%g %g %g %g\\n", C[m][0], C[m][1], C[m][2], C[m][3]);
  return fault;
}
"""


def main() -> None:
    """Export a kernel, and call it from C."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cache, kernels = folder / "kernels.db", folder / "kernels"
        stored = {**os.environ, "TC_CACHE": str(cache), "TC_CACHE_MODE": "store"}
        subprocess.run([sys.executable, "-c", COMPILE], env=stored, check=True)
        export = [sys.executable, "-m", "tc.commands.cache", "export", str(cache), "--sources", str(kernels)]
        subprocess.run(export, check=True)
        (kernels / "program.c").write_text(PROGRAM)
        for command in ("make -s libkernels.a", "cc program.c -I. libkernels.a -lm -o program", "./program"):
            subprocess.run(command.split(), cwd=kernels, check=True)


if __name__ == "__main__":
    main()
