"""Definitions of two products with a softmax, or with an activation, in between; ``{0}`` is the type of halves."""

from __future__ import annotations

# Weights are normalized behind the second product.
LATE = """def f({0}(B,N,D) q, {0}(B,M,D) k, {0}(B,M,E) v) -> (o) {{
    t(b,n,m) +=! q(b,n,d) * k(b,m,d)
    h(b,n) max=! 0.125 * t(b,n,m)
    e(b,n,m) = {0}(exp(0.125 * t(b,n,m) - h(b,n)))
    s(b,n) +=! float32(e(b,n,m))
    u(b,n,f) +=! float32(e(b,n,m)) * float32(v(b,m,f))
    o(b,n,f) = {0}(u(b,n,f) / s(b,n)) }}"""
# Before it, with a mask.
EARLY = """def f({0}(B,N,D) q, {0}(B,M,D) k, {0}(B,M,E) v) -> (o) {{
    t(b,n,m) +=! q(b,n,d) * k(b,m,d)
    w(b,n,m) = m <= n ? 0.125 * t(b,n,m) : -1e30
    h(b,n) max=! w(b,n,m)
    e(b,n,m) = exp(w(b,n,m) - h(b,n))
    s(b,n) +=! e(b,n,m)
    p(b,n,m) = {0}(e(b,n,m) / s(b,n))
    o(b,n,f) +=! p(b,n,m) * v(b,m,f) }}"""
# Nothing waits for a row.
PLAIN = """def f({0}(N,D) q, {0}(M,D) k, {0}(M,E) v) -> (o) {{
    t(n,m) +=! q(n,d) * k(m,d)
    e(n,m) = {0}(fmax(t(n,m), 0.0))
    o(n,f) +=! e(n,m) * v(m,f) }}"""
