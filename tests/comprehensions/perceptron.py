"""Fully connected layers, one and several, and the production model of the paper."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tests.comprehensions.case import Case, Maker, at, indices, normal
from tests.comprehensions.formulas import Floats, embedding_sum, linear_relu

_TWO_TABLES = """
def 2LUT(float(E1,D) LUT1, int(B,L1) I1,
         float(E2,D) LUT2, int(B,L2) I2) -> (O1, O2) {
    O1(i,j) +=! LUT1(I1(i,k),j)
    O2(i,j) +=! LUT2(I2(i,k),j)
}
"""
_PERCEPTRON = """
def MLP1(float(B,M) I, float(N,M) W1, float(N) B1) -> (O1) {
    O1(b,n) = B1(n)
    O1(b,n) += I(b,m) * W1(n,m)
    O1(b,n) = fmaxf(O1(b,n), 0)
}
"""
_THREE_PERCEPTRONS = """
def MLP3(float(B,N) O1, float(O,N) W2, float(O) B2,
         float(P,O) W3, float(P) B3, float(Q,P) W4,
         float(Q) B4) -> (O2,O3,O4) {
    O2(b,o) = B2(o)
    O2(b,o) += O1(b,n) * W2(o,n)
    O2(b,o) = fmaxf(O2(b,o), 0)
    O3(b,p) = B3(p)
    O3(b,p) += O2(b,o) * W3(p,o)
    O3(b,p) = fmaxf(O3(b,p), 0)
    O4(b,q) = B4(q)
    O4(b,q) += O3(b,p) * W4(q,p)
    O4(b,q) = fmaxf(O4(b,q), 0)
}
"""
_PRODUCTION_MODEL = f"""
{_TWO_TABLES}{_PERCEPTRON}{_THREE_PERCEPTRONS}
def prodModel(float(E1,D) LUT1, int(B,L1) I1,
              float(E2,D) LUT2, int(B,L2) I2,
              float(B,WX) I3, float(WY,WX) W,
              float(N,M) W1, float(N) B1,
              float(O,N) W2, float(O) B2,
              float(P,O) W3, float(P) B3,
              float(Q,P) W4, float(Q) B4)
-> (C1,C2,C3,I,O1,O2,O3,O4) {{
    (C1,C2) = 2LUT(LUT1,I1,LUT2,I2)
    C3(b,wy) +=! I3(b,wxx) * W(wy,wxx)
    I(b, c) = C1(b, c)             # the concatenation of C1, C2 and C3
    I(b, c + D) = C2(b, c)
    I(b, c + 2 * D) = C3(b, c)
    O1 = MLP1(I, W1, B1)
    (O2,O3,O4) = MLP3(O1,W2,B2,W3,B3,W4,B4)
    # O4 goes out to binary classifier, omitted here
}}
"""
_TABLES: dict[str, Maker] = {
    "LUT1": normal("E1", "D"),
    "I1": indices("E1", "B", "L1"),
    "LUT2": normal("E2", "D"),
    "I2": indices("E2", "B", "L2"),
}
_LAYER_1: dict[str, Maker] = {"W1": normal("N", "M"), "B1": normal("N")}
_LAYERS_2_TO_4: dict[str, Maker] = {
    "W2": normal("O", "N"),
    "B2": normal("O"),
    "W3": normal("P", "O"),
    "B3": normal("P"),
    "W4": normal("Q", "P"),
    "B4": normal("Q"),
}
_MODEL_SIZES = "E1 E2 D B L1 L2 WX WY M N O P Q"


def _layers(data: Floats, *parameters: Floats) -> tuple[Floats, ...]:
    """Results of perceptrons applied one after the other."""
    results: list[Floats] = []
    for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
        data = linear_relu(data, weight, bias)
        results.append(data)
    return tuple(results)


def _production_model(
    table1: Floats,
    index1: npt.NDArray[np.int32],
    table2: Floats,
    index2: npt.NDArray[np.int32],
    dense: Floats,
    weight: Floats,
    *parameters: Floats,
) -> tuple[Floats, ...]:
    parts = (embedding_sum(table1, index1), embedding_sum(table2, index2), dense @ weight.T)
    joined = np.concatenate(parts, axis=1)
    return (*parts, joined, *_layers(joined, *parameters))


CASES = (
    Case(
        "fcrelu_of_paper",
        "paper, Section 2 (the bias has the size of the outputs)",
        """
        def fcrelu(float(B,I) in, float(O,I) weight,
                   float(O) bias) -> (out) {
            out(i,j) = bias(j)
            out(b,o) += in(b,i) * weight(o,i)
            out(i,j) = fmaxf(out(i,j), 0)
        }
        """,
        {"in": normal("B", "I"), "weight": normal("O", "I"), "bias": normal("O")},
        lambda data, weight, bias: (linear_relu(data, weight, bias),),
        at("B I O", 100, 128, 100),
        (at("B I O", 1, 1, 1), at("B I O", 7, 129, 13), at("B I O", 0, 7, 5)),
        terms=("I",),
    ),
    Case(
        "fcrelu",
        "layers.yaml, fcrelu; layers_database.rst",
        """
        def fcrelu(float(B, M) I, float(N, M) W1, float(N) B1) -> (O1){
          O1(b, n) +=! I(b, m) * W1(n, m)
          O1(b, n) = O1(b, n) + B1(n)
          O1(b, n) = fmax(O1(b, n), 0)
        }
        """,
        {"I": normal("B", "M"), "W1": normal("N", "M"), "B1": normal("N")},
        lambda data, weight, bias: (linear_relu(data, weight, bias),),
        at("B M N", 100, 128, 100),
        (at("B M N", 7, 129, 13),),
        terms=("M",),
    ),
    Case(
        "fcrelu_broadcast",
        "test_python/layers/test_broadcast_fcrelu.py",
        """
        def fcrelu(float(B, M) I, float(N, M) W1, float(N) B1) -> (O1) {
            O1(b, n) = B1(n) where b in 0:B
            O1(b, n) += I(b, m) * W1(n, m)
            O1(b, n) = fmax(O1(b, n), 0)
        }
        """,
        {"I": normal("B", "M"), "W1": normal("N", "M"), "B1": normal("N")},
        lambda data, weight, bias: (linear_relu(data, weight, bias),),
        at("B M N", 100, 128, 100),
        (at("B M N", 7, 13, 129), at("B M N", 3, 0, 5)),
        terms=("M",),
    ),
    Case(
        "fully_connected",
        "layers.yaml, fully_connected; layers_database.rst",
        """
        def fully_connected(float(B, M) I, float(N, M) W1, float(N) B1) -> (O1) {
          O1(b, n) +=! I(b, m) * W1(n, m)
          O1(b, n) = O1(b, n) + B1(n)
        }
        """,
        {"I": normal("B", "M"), "W1": normal("N", "M"), "B1": normal("N")},
        lambda data, weight, bias: (data @ weight.T + bias,),
        at("B M N", 128, 128, 100),
        (at("B M N", 7, 129, 13),),
        terms=("M",),
    ),
    Case(
        "perceptron",
        "paper, Figure 15 (MLP1, its sizes made consistent)",
        _PERCEPTRON,
        {"I": normal("B", "M"), **_LAYER_1},
        lambda data, weight, bias: (linear_relu(data, weight, bias),),
        at("B M N", 128, 2000, 128),
        (at("B M N", 1, 1, 1), at("B M N", 7, 129, 13)),
        terms=("M",),
    ),
    Case(
        "perceptron_untransposed",
        "tc/benchmarks/MLP_model.cc, mlp1",
        """
        def mlp1(float(B,M) I, float(M, N) W1, float(N) B1) -> (O1) {
            O1(b, n) +=! I(b, r_m) * W1(r_m, n)
            O1(b, n)  = O1(b,   n) + B1(n)
            O1(b, n)  = fmax(O1(b, n), 0)
        }
        """,
        {"I": normal("B", "M"), "W1": normal("M", "N"), "B1": normal("N")},
        lambda data, weight, bias: (linear_relu(data, weight.T, bias),),
        at("B M N", 128, 2000, 128),
        (at("B M N", 7, 129, 13),),
        terms=("M",),
    ),
    Case(
        "three_perceptrons",
        "paper, Figure 15 (MLP3, its sizes made consistent); tc/benchmarks/MLP_model.cc",
        _THREE_PERCEPTRONS,
        {"O1": normal("B", "N"), **_LAYERS_2_TO_4},
        _layers,
        at("B N O P Q", 128, 128, 64, 32, 2),
        (at("B N O P Q", 1, 1, 1, 1, 1), at("B N O P Q", 7, 13, 5, 11, 3)),
        even_sizes=at("B N O P Q", 24, 24, 40, 120, 40),
        terms=("N", "O"),
    ),
    Case(
        "four_perceptrons",
        "the public library, 4fcrelu.h",
        """
        def func_4fcrelu(float(B,M) I, float(N,M) W1, float(N) B1, float(O,N) W2, float(O) B2,
                         float(P,O) W3, float(P) B3, float(Q,P) W4, float(Q) B4) -> (O1, O2, O3, O4) {
          O1(b, n) +=! I(b, m) * W1(n, m)
          O1(b, n) = O1(b, n) + B1(n)
          O1(b, n) = fmax(O1(b, n), 0)
          O2(b, o) +=! O1(b, n) * W2(o, n)
          O2(b, o) = O2(b, o) + B2(o)
          O2(b, o) = fmax(O2(b, o), 0)
          O3(b, p) +=! O2(b, o) * W3(p, o)
          O3(b, p) = O3(b, p) + B3(p)
          O3(b, p) = fmax(O3(b, p), 0)
          O4(b, q) +=! O3(b, p) * W4(q, p)
          O4(b, q) = O4(b, q) + B4(q)
          O4(b, q) = fmax(O4(b, q), 0)
        }
        """,
        {"I": normal("B", "M"), **_LAYER_1, **_LAYERS_2_TO_4},
        _layers,
        at("B M N O P Q", 128, 2000, 128, 64, 32, 2),
        (at("B M N O P Q", 7, 13, 5, 11, 3, 2),),
        even_sizes=at("B M N O P Q", 24, 120, 40, 120, 40, 120),
        terms=("M", "N", "O"),
    ),
    Case(
        "tables_and_dense_layer",
        "the public library, dper_lut_concat.h",
        """
        def dper_lut_concat(float(B, M) I1, int(B, L1) I2, int(B, L2) I3, float(N, M) W1, float(N) B1,
                            float(E1, D) LUT1, float(E2, D) LUT2) -> (O1, O2, O3) {
          O1(b, n) +=! I1(b, m) * W1(n, m)
          O1(b, n) = O1(b, n) + B1(n)
          O2(i, j) +=! LUT1(I2(i, k), j)
          O3(i, j) +=! LUT2(I3(i, k), j)
        }
        """,
        {
            "I1": normal("B", "M"),
            "I2": indices("E1", "B", "L1"),
            "I3": indices("E2", "B", "L2"),
            "W1": normal("N", "M"),
            "B1": normal("N"),
            "LUT1": normal("E1", "D"),
            "LUT2": normal("E2", "D"),
        },
        lambda data, index1, index2, weight, bias, table1, table2: (
            data @ weight.T + bias,
            embedding_sum(table1, index1),
            embedding_sum(table2, index2),
        ),
        at("B M N D E1 E2 L1 L2", 64, 32, 32, 16, 1000, 1000, 20, 20),
        (at("B M N D E1 E2 L1 L2", 7, 13, 5, 11, 129, 7, 3, 5),),
        even_sizes=at("B M N D E1 E2 L1 L2", 24, 120, 40, 40, 120, 120, 24, 24),
        terms=("M", "L1"),
    ),
    Case(
        "production_model",
        "paper, Figure 15, with the concatenation written out",
        _PRODUCTION_MODEL,
        {**_TABLES, "I3": normal("B", "WX"), "W": normal("WY", "WX"), **_LAYER_1, **_LAYERS_2_TO_4},
        _production_model,
        at(_MODEL_SIZES, 100000, 100000, 64, 128, 50, 50, 1000, 1024, 1152, 128, 64, 32, 2),
        (at(_MODEL_SIZES, 129, 7, 5, 3, 11, 2, 13, 7, 17, 11, 5, 3, 2),),
        even_sizes=at(_MODEL_SIZES, 120, 120, 40, 24, 24, 24, 120, 40, 120, 40, 120, 40, 40),
        definition="prodModel",
        terms=("M", "N", "WX"),
        note="tables as in the public benchmark, 10000000 rows in the paper; M is 2 D + WY",
    ),
)
