"""Every definition printed in the paper, as printed (with ``->`` for the arrow), is in the grammar."""

from __future__ import annotations

import pytest

from tc.grammar.parser import parse
from tc.grammar.printer import print_text

MV = """
def mv(float(M,K) A, float(K) x) -> (C) {
C(i) = 0
C(i) += A(i,k) * x(k)
}
"""
MV_INITIALIZING = """
def mv(float(M,K) A, float(K) x) -> (C) {
C(i) +=! A(i,k) * x(k)
}
"""
SGEMM = """
def sgemm(float a, float b,
float(N,M) A, float(M,K) B) -> (C) {
C(i,j) = b * C(i,j) # initialization
C(i,j) += a * A(i,k) * B(k,j) # accumulation
}
"""
FCRELU = """
def fcrelu(float(B,I) in, float(O,I) weight,
float(I) bias) -> (out) {
out(i,j) = bias(j)
out(b,o) += in(b,i) * weight(o,i)
out(i,j) = fmaxf(out(i,j), 0)
}
"""
CONV2D = """
def conv2d(float(B,IP,H,W) in,
float(OP,IP,KH,KW) weight) -> (out) {
out(b,op,h,w) +=! in(b,ip, h + kh, w + kw)
* weight(op,ip,kh,kw)
}
"""
MAXPOOL = """
def maxpool2x2(float(B,C,H,W) in) -> (out) {
out(b,c,i,j) max=! in(b,c, 2 * i + kw, 2 * j + kh)
where kw in 0:2, kh in 0:2
}
"""
GATHER = """
def gather(float(N) X, int(A,B) I) -> (Z) {
Z(i,j) = X(I(i,j))
}
"""
STRIDED = """
def sconv2d(int sh, int sw, float(N,C,H,W) I,
float(F,C,KH,KW) W, float(F) B) -> (O) {
O(n,f,h,w) = B(f)
O(n,f,h,w) += I(n,c, sh * h + kh, sw * w + kw)
* W(f,c,kh,kw)
}
"""
CONV1D = """
def conv1d(float(M) I, float(N) K) -> (O) {
O(i) = K(x) * I(i + x)
}
"""
OUTER_PRODUCT = """
def outerProductMM(float(P,Q,R) A, float(S,R,T) B) -> (O) {
O(p,s,q,t) +=! A(p,q,r) * B(s,r,t)
}
"""
TMM = """
def tmm(float(M,K) A, float(N,K) B) -> (C) {
C(m,n) +=! A(m,kk) * B(n,kk)
}
"""
TBMM = """
def tbmm(float(B,N,M) X, float(B,K,M) Y) -> (Z) {
Z(b,n,k) +=! X(b,n,m) * Y(b,k,m)
}
"""
GCONV = """
def gconv(float(N,G,C,H,W) I,float(G,F,C,KH,KW) W1,
float(M) B) -> (O) {
O(n,g,o,h,w) +=! I(n,g,i, h + kh, w + kw)
* W1(g,o,i,kh,kw)
O(n,g,o,h,w) = O(n,g,o,h,w) + B(m)
}
"""
MM = """
def mm(float(M,K) A,
float(K,N) B) -> (C) {
C(m,n) +=! A(m,kk) * B(kk,n)
}
"""
DCONV = """
def dconv(float(N,F,H,W) I, float(F,GCI,KH,KW) W1, float(M) B) -> (O) {
O(n,o,h,w) +=! I(n,gci, h + kh, w + kw) *
W1(gci % grp, o / grp, gci / grp, kh, kw)
O(n,o,h,w) = O(n,o,h,w) + B(m)
}
"""
PRODUCTION = """
def 2LUT(float(E1,D) LUT1, int(B,L1) I1,
float(E2,D) LUT2, int(B,L2) I2) -> (O1,O2) {
O1(i,j) +=! LUT1(I1(i,k),j)
O2(i,j) +=! LUT2(I2(i,k),j)
}
def MLP1(float(B,M) I, float(O,N) W1, float(O) B1) -> (O1) {
O1(b,n) = B1(n)
O1(b,n) += I(b,m) * W1(n,m)
O1(b,n) = fmaxf(O1(b,n), 0)
}
def MLP3(float(B,M) I, float(O,N) W2, float(O) B2,
float(P,O) W3, float(P) B3, float(Q,P) W4,
float(Q) B4) -> (O1,O2,O3,O4) {
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
def prodModel(float(E1,D) LUT1, int(B,L1) I1,
float(E2,D) LUT2, int(B,L2) I2,
float(B,WX) I3, float(WY,WX) W,
float(N,M) W1, float(N) B1,
float(O,N) W2, float(O) B2,
float(P,O) W3, float(P) B3,
float(Q,P) W4, float(Q) B4)
-> (C1,C2,C3,I,O1,O2,O3,O4) {
(C1,C2) = 2LUT(LUT1,I1,LUT2,I2)
C3(b,wy) += I3(b,wxx) * W(wy,wxx)
I = concat(C1, C2, C3) # not implemented yet
O1 = MLP1(I, W1, B1)
(O2,O3,O4) = MLP3(O1,W2,B2,W3,B3,W4,B4)
# O4 goes out to binary classifier, omitted here
}
"""

# Each text with the canonical form of its last statement.
PAPER = [
    (MV, "C(i) += A(i, k) * x(k)"),
    (MV_INITIALIZING, "C(i) +=! A(i, k) * x(k)"),
    (SGEMM, "C(i, j) += a * A(i, k) * B(k, j)"),
    (FCRELU, "out(i, j) = fmaxf(out(i, j), 0)"),
    (CONV2D, "out(b, op, h, w) +=! in(b, ip, h + kh, w + kw) * weight(op, ip, kh, kw)"),
    (MAXPOOL, "out(b, c, i, j) max=! in(b, c, 2 * i + kw, 2 * j + kh) where kw in 0:2, kh in 0:2"),
    (GATHER, "Z(i, j) = X(I(i, j))"),
    (STRIDED, "O(n, f, h, w) += I(n, c, sh * h + kh, sw * w + kw) * W(f, c, kh, kw)"),
    (CONV1D, "O(i) = K(x) * I(i + x)"),
    (OUTER_PRODUCT, "O(p, s, q, t) +=! A(p, q, r) * B(s, r, t)"),
    (TMM, "C(m, n) +=! A(m, kk) * B(n, kk)"),
    (TBMM, "Z(b, n, k) +=! X(b, n, m) * Y(b, k, m)"),
    (GCONV, "O(n, g, o, h, w) = O(n, g, o, h, w) + B(m)"),
    (MM, "C(m, n) +=! A(m, kk) * B(kk, n)"),
    (DCONV, "O(n, o, h, w) = O(n, o, h, w) + B(m)"),
    (PRODUCTION, "(O2, O3, O4) = MLP3(O1, W2, B2, W3, B3, W4, B4)"),
]


@pytest.mark.parametrize(("text", "last"), PAPER)
def test_definitions_of_the_paper(text: str, last: str) -> None:
    parsed = parse(text)
    printed = print_text(parsed)
    assert printed.splitlines()[-2].strip() == last
    assert parse(printed) == parsed


def test_the_production_model_has_four_definitions() -> None:
    definitions = parse(PRODUCTION).definitions
    assert [(d.name, len(d.parameters), len(d.results), len(d.statements)) for d in definitions] == [
        ("2LUT", 4, 2, 2),
        ("MLP1", 3, 1, 3),
        ("MLP3", 7, 4, 9),
        ("prodModel", 14, 8, 5),
    ]
