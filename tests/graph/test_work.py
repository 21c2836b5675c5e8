"""The work of calls: operations of statements, bytes of values."""

from __future__ import annotations

import pytest

from tc.base.types import ScalarType
from tc.graph.ir.builder import program_of
from tc.graph.ir.values import Value
from tc.graph.partition.work import bytes_read, operations

COUNTS = {
    "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }": (((3, 5), (5, 7)), 2 * 3 * 5 * 7),
    "def relu(float(N) A) -> (B) { B(i) = max(A(i), 0.0) }": (((9,),), 9),
    "def e(float(N) A) -> (B) { B(i) = exp(A(i)) + 1.0 }": (((9,),), 17 * 9),
    "def two(float(N) A) -> (B) { S(i) = A(i) * A(i)  B(i) = S(i) + 1.0 }": (((9,),), 2 * 9),
    "def conv(float(H) I, float(K) W) -> (O) { O(h) +=! I(h+k) * W(k) where k in 0:K }": (((12,), (3,)), 2 * 10 * 3),
    "def strided(float(H) I, float(3) W) -> (O) { O(h) +=! I(2*h+k) * W(k) where h in 0:(H-1)/2 }": (((13,), (3,)), 36),
    "def part(float(N) A) -> (B) { B(i) = 2.0 * A(i + 2) where i in 0:min(N - 2, 5) }": (((9,),), 5),
    "def prefix(float(N) A) -> (B) { B(i) +=! A(j) where i in 0:N, j in 0:i+1 }": (((9,),), 81),
    "def copy(float(N) A) -> (B) { B(i) = A(N - 1 - i) }": (((9,),), 0),
    "def rows(float(N) A, int32(M) R) -> (B) { B(i) +=! A(j) where i in 0:M-1, j in R(i):R(i+1) }": (((9,), (4,)), 27),
}


@pytest.mark.parametrize("text", COUNTS)
def test_operations(text: str) -> None:
    shapes, count = COUNTS[text]
    assert operations(program_of(text), shapes) == count


def test_what_is_repeated_is_read_once() -> None:
    assert bytes_read(Value("a", ScalarType.FLOAT32, (3, 5))) == 60
    assert bytes_read(Value("a", ScalarType.FLOAT64, (3, 5), (0, 1))) == 40
    assert bytes_read(Value("a", ScalarType.INT8, ())) == 1
