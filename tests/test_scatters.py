"""Scatters: left-hand sides through index tensors, against NumPy's ``ufunc.at`` and the oracle, on every target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tests.opencl import missing
from tests.turns import every, every_row, one_in

Array: TypeAlias = np.ndarray[Any, Any]
TARGETS = ("cpu", "emulator")
OPERATORS: dict[str, np.ufunc] = {"+=": np.add, "*=": np.multiply, "min=": np.minimum, "max=": np.maximum}
NEUTRAL = {"+=": 0, "*=": 1}
TYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "bool", "uint32", "uint64")


def agree(f: tc.Comprehension, *arrays: Array, **how: Any) -> tuple[Array, ...]:
    """The results of a call, which are those of the oracle."""
    given = how.pop("out", None)
    if given is not None:
        how["out"] = np.array(given)
    results = f(*arrays, **how)
    expected = f.oracle(*arrays, out=given) if given is not None else f.oracle(*arrays)
    found = tuple(map(np.asarray, results if isinstance(results, tuple) else (results,)))
    for name, result in zip(expected, found, strict=True):
        comparison = compare(expected[name], result)
        assert comparison.ok, f"{name}: {comparison}"
        assert not expected[name].ambiguous.any()
    return found


def numbers(shape: tuple[int, ...], type: str, seed: int = 0) -> Array:
    """Small numbers, of which most types hold every sum exactly."""
    values = np.random.default_rng(seed).integers(0, 4, shape)
    return (values > 1 if type == "bool" else values).astype(numpy_dtype(tc.ScalarType(type)))


def indices(count: int, extent: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).integers(0, max(1, extent), count).astype(np.int32)


@one_in(3)
@pytest.mark.parametrize(
    ("operator", "type", "fresh", "target"),
    every_row(13, [(o, t, f, g) for o in OPERATORS for t in TYPES for f in (True, False) for g in TARGETS]),
)
def test_operators_and_types(operator: str, type: str, fresh: bool, target: str) -> None:
    if type == "bool" and operator in NEUTRAL:
        pytest.skip("not defined")
    text = f"{{ y(I(b), d) {operator}{'!' if fresh else ''} x(b, d) }}"
    f = tc.define(f"def f(int32(B) I, {type}(B,D) x, {type}(V,D) z) -> ({type}(V,D) y) {text}").single()
    index, x, z = indices(23, 7), numbers((23, 5), type), numbers((7, 5), type, 2)
    (found,) = agree(f, index, x, z, target=target, **({} if fresh else {"out": z}))
    wanted = z.copy()
    if fresh:
        kind = tc.ScalarType(type)
        least, most = (-np.inf, np.inf) if kind.is_floating else (kind.minimum, kind.maximum)
        wanted[:] = NEUTRAL.get(operator, most if operator == "min=" else least)
    if type not in ("float16", "bfloat16"):
        OPERATORS[operator].at(wanted, index, x)
        np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=1e-6)


FORMS: dict[str, tuple[str, Callable[[], tuple[Array, ...]]]] = {
    "histogram": (
        "def f(uint8(N) x) -> (h) { h(x(i)) +=! 1 where x(i) in 0:256 }",
        lambda: (np.random.default_rng(0).integers(0, 256, 1000).astype(np.uint8),),
    ),
    "with weights": (
        "def f(int32(N) x, float(N) w) -> (h) { h(x(i)) +=! w(i) where x(i) in 0:9 }",
        lambda: (indices(77, 9), numbers((77,), "float32")),
    ),
    "two indices": (
        "def f(int32(N) x, int32(N) y) -> (h) { h(x(i), y(i)) +=! 1 where x(i) in 0:4, y(i) in 0:6 }",
        lambda: (indices(50, 4), indices(50, 6, 2)),
    ),
    "rows and columns": (
        (
            "def f(int32(N) x, int32(M) y, float(N,M) a) -> (h) "
            "{ h(x(i), y(j)) max=! a(i,j) where x(i) in 0:4, y(j) in 0:6 }"
        ),
        lambda: (indices(9, 4), indices(8, 6, 2), numbers((9, 8), "float32")),
    ),
    "computed": (
        (
            "def f(int32(N) x, float(N,D) v) -> (y) "
            "{ y(i, j) = 0 where i in 0:12, j in 0:2*D  y(x(b) + k, 2*d) += v(b,d) where k in 0:3 }"
        ),
        lambda: (indices(21, 10), numbers((21, 4), "float32")),
    ),
    "of a product": (
        "def f(int32(N) x, float(N,K) a, float(K,D) b) -> (y) { y(x(i), d) +=! a(i,k) * b(k,d) where x(i) in 0:5 }",
        lambda: (indices(21, 5), numbers((21, 9), "float32"), numbers((9, 6), "float32")),
    ),
    "bins": (
        "def f(float(N) x) -> (h) { h(int32(x(i)) / 2) +=! 1 where int32(x(i)) / 2 in 0:8 }",
        lambda: ((np.arange(40) % 16).astype(np.float32),),
    ),
    "by a name": (
        "def f(int32(N) x) -> (h) { h(e) +=! 1 where e = x(i) / 2, e in 0:5, i in 0:N }",
        lambda: (indices(31, 10),),
    ),
    "an index of an index": (
        "def f(int32(N) x, int32(M) p, float(N) w) -> (h) { h(p(x(i))) min=! w(i) where p(x(i)) in 0:5 }",
        lambda: (indices(31, 8), indices(8, 5), numbers((31,), "float32")),
    ),
    "a temporary": (
        "def f(int32(N) x, float(N,D) v) -> (z) { y(x(b), d) +=! v(b,d) where x(b) in 0:7  z(d) +=! y(e,d) * y(e,d) }",
        lambda: (indices(21, 7), numbers((21, 4), "float32")),
    ),
    "a half as a temporary": (
        "def f(int32(N) x, float16(N,D) v) -> (z) { y(x(b), d) +=! v(b,d) where x(b) in 0:7  z(e,d) = y(e,d) }",
        lambda: (indices(21, 7), numbers((21, 4), "float16")),
    ),
    "several writes": (
        (
            "def f(int32(N) x, int32(M) u, float(N) v, float(V) z) -> (y) "
            "{ y(i) = z(i)  y(x(b)) += v(b)  y(u(b)) += 2  y(i) += 1  y(x(b)) max= v(b) }"
        ),
        lambda: (indices(21, 7), indices(5, 7), numbers((21,), "float32"), numbers((7,), "float32")),
    ),
    "before and behind": (
        (
            "def f(int32(N) x, float(N) v, float(V) z) -> (y, s) "
            "{ w(b) = exp(v(b))  y(x(b)) +=! w(b) where x(b) in 0:11  s(b) = y(x(b)) * w(b) }"
        ),
        lambda: (indices(21, 11), numbers((21,), "float32"), numbers((11,), "float32")),
    ),
    "a condition": (
        "def f(int32(N) x, float(N) v) -> (y) { y(x(b)) +=! v(b) where b in 0:N, b % 2 == 0, x(b) in 0:7 }",
        lambda: (indices(21, 7), numbers((21,), "float32")),
    ),
    "a triangle": (
        "def f(int32(N) x, float(N,M) v) -> (y) { y(x(b)) +=! v(b,k) where b in 0:N, k in 0:b+1, x(b) in 0:7 }",
        lambda: (indices(9, 7), numbers((9, 9), "float32")),
    ),
    "called": (
        (
            "def g(int32(N) x, float(N) v, float(V) z) -> (y) { y(i) = z(i)  y(x(b)) += v(b) } "
            "def f(int32(N) x, float(N) v, float(V) z) -> (y) { t = g(x, v, z)  y(i) = 2 * t(i) }"
        ),
        lambda: (indices(21, 7), numbers((21,), "float32"), numbers((7,), "float32")),
    ),
    "a mean": (
        (
            "def f(int32(N) x, float(N,D) v) -> (y) { c(x(b)) +=! 1 where x(b) in 0:7  "
            "s(x(b), d) +=! v(b,d) where x(b) in 0:7  y(e,d) = s(e,d) / max(c(e), 1) }"
        ),
        lambda: (indices(21, 7), numbers((21, 3), "float32")),
    ),
    "an index without dimensions": (
        "def f(int32(1) p, float(N) v, float(V) z) -> (y) { y(i) = z(i)  y(p(0)) += v(b) }",
        lambda: (indices(1, 7), numbers((21,), "float32"), numbers((7,), "float32")),
    ),
}


@one_in(3)
@pytest.mark.parametrize(("form", "target"), every_row(9, [(f, t) for f in FORMS for t in TARGETS]))
def test_forms(form: str, target: str) -> None:
    text, given = FORMS[form]
    agree(tc.define(text)["f"], *given(), target=target)


@one_in(6)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.skipif(missing() is not None, reason=f"no OpenCL: {missing()}")
def test_forms_on_opencl(form: str) -> None:
    text, given = FORMS[form]
    agree(tc.define(text)["f"], *given(), target="opencl")


BITS = "def f(int32(B) I, float(B,D) v, float(V,D) z) -> (y) { y(I(b), d) +=! v(b, d) where I(b) in 0:V }"


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_bits_for_any_owners_and_threads(target: str) -> None:
    rng = np.random.default_rng(3)
    arrays = (indices(700, 37), rng.standard_normal((700, 33), np.float32), np.zeros((37, 33), np.float32))
    f, found = tc.define(BITS).single(), set()
    for owners in (1, 3, 37):
        schedule = tc.ScheduleOptions(scatter_owners=owners)
        ways = [tc.CpuOptions(schedule, threads=n) for n in (1, 2)] if target == "cpu" else [tc.GpuOptions(schedule)]
        found |= {np.asarray(f(*arrays, target=target, options=options)).tobytes() for options in ways}
    assert len(found) == 1


@pytest.mark.parametrize("operator", ["min=!", "max=!"])
def test_extremes_have_the_same_bits_in_any_order(operator: str) -> None:
    """Of zeros, too, and of what is no number, whichever comes first."""
    terms = np.array([0.0, -0.0, 3, -3, np.nan, np.inf], np.float32)
    terms = np.concatenate([terms, np.array([0xFFC01234, 0x7FC00077], np.uint32).view(np.float32)])
    text = f"def f(int32(B) I, float(B) v) -> (float(4) y) {{ y(I(b)) {operator} v(b) }}"
    f, found = tc.define(text).single(), set()
    index = np.array([0, 0, 1, 1, 2, 2, 2, 2], np.int32)
    for order in (np.arange(8), np.arange(8)[::-1]):
        for block in (1, 8):
            options = tc.GpuOptions(block=(block,))
            found |= {np.asarray(f(index[order], terms[order], target="emulator", options=options)).tobytes()}
    (bits,) = found
    zero, extreme, none, _ = np.frombuffer(bits, np.float32)
    assert np.signbit(zero) == (operator == "min=!")
    assert extreme == (-3 if operator == "min=!" else 3)
    assert np.isnan(none)


@one_in(2)
@pytest.mark.parametrize("form", every(3, [f for f in FORMS if f not in ("a condition", "a triangle")]))
def test_owners_and_parts(form: str) -> None:
    text, given = FORMS[form]
    for target, options in (("cpu", tc.CpuOptions), ("emulator", tc.GpuOptions)):
        for schedule in (tc.ScheduleOptions(scatter_owners=3), tc.ScheduleOptions(scatter_parts=4)):
            agree(tc.define(text)["f"], *given(), target=target, options=options(schedule))


DISTINCT = {
    "rows": "def f(int32(N) I, float(N,D) v, float(V,D) z) -> (y) "
    "{ y(e,d) = z(e,d)  y(I(b), d) = v(b,d) where distinct I }",
    "two indices": "def f(int32(N) I, float(N,D) v, float(V,D) z) -> (y) "
    "{ y(a,b,d) = z(a,d) where b in 0:9  y(I(i), I(j), d) = v(i,d) - v(j,d) where distinct I }",
    "without a declaration": "def f(int32(N) I, float(N,D) v, float(V,D) z) -> (y) "
    "{ y(a,b) = z(b,0) where a in 0:2*N  y(2*b+1, I(b)) = v(b,0) }",
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", DISTINCT)
def test_distinct_indices(name: str, target: str) -> None:
    f = tc.define(DISTINCT[name]).single()
    index = np.array([3, 1, 8, 0], np.int32)
    others = (numbers((4, 3), "float32"), numbers((9, 3), "float32", 2))
    agree(f, index, *others, target=target)
    options = tc.CpuOptions if target == "cpu" else tc.GpuOptions
    agree(f, index, *others, target=target, options=options(tc.ScheduleOptions(scatter_owners=4)))
    index[1] = 8
    if name == "without a declaration":
        agree(f, index, *others, target=target)
        return
    message = "f: indices in I are declared distinct, and two of them are the same"
    with pytest.raises(tc.ArgumentError, match=message):
        f(index, *others, target=target)
    with pytest.raises(tc.ArgumentError, match=message):
        f.oracle(index, *others)
    f(index, *others, target=target, options=options(check_indices=False))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("y(I(b)) = v(b,0)", "or say that no index comes twice: `where distinct I`"),
        ("y(I(b)) = v(b,d) where distinct I", "may be one element for several `d`"),
        ("y(I(b)+1) = v(b,0) where distinct I", "`distinct I` says nothing: no subscript"),
        ("y(I(b)) += v(b,0) where distinct I", "`distinct I` is said of `=`, and this is a reduction"),
        ("y(int32(y(b))) += v(b,0)", "`y` would change while it says where the statement writes"),
        ("y(I(b)) += v(b,0) where I(b) in 1:9", "let it begin at 0 and end at a size: `I(b) in 0:N`"),
        (
            "z(I(b)) +=! v(b,0) where I(b) in 0:9, I(b) in 0:8",
            "`I(b)` has 2 ranges, but is the subscript of 1 dimension",
        ),
        (
            "z(I(b), I(b), I(b)) +=! v(b,0) where I(b) in 0:9, I(b) in 0:8",
            "give `I(b)` one range, or one for each of its dimensions, in their order",
        ),
    ],
)
def test_refused(statement: str, message: str) -> None:
    with pytest.raises(tc.SemanticError) as caught:
        tc.define(f"def f(int32(N) I, float(N,D) v) -> (y) {{ y(a) = 0.0f where a in 0:9  {statement} }}")
    assert message in str(caught.value)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("ranges", "shape"), [("I(b) in 0:5, I(b) in 0:7", (5, 7)), ("I(b) in 0:5", (5, 5))])
def test_ranges_of_one_subscript_follow_its_dimensions(ranges: str, shape: tuple[int, int], target: str) -> None:
    text = f"def f(int32(B) I, float(B) v) -> (z) {{ z(I(b), I(b)) +=! v(b) where {ranges} }}"
    f = tc.define(text).single()
    index, value = np.array([4, 0, 4], np.int32), np.array([1, 2, 3], np.float32)
    expected = np.zeros(shape, np.float32)
    np.add.at(expected, (index, index), value)
    np.testing.assert_array_equal(f(index, value, target=target), expected)
    assert tc.define(str(f)).single().program.tensor("z").shape == f.program.tensor("z").shape


def test_an_element_without_terms_has_no_index() -> None:
    message = "data choose which elements of `m` have terms, and one without has no index"
    with pytest.raises(tc.SemanticError, match=message):
        tc.define("def f(int32(N) I, float(N) x) -> (m, k) { (m(I(n)), k(I(n))) max=! (x(n), n) where I(n) in 0:5 }")


def test_unknown_extents_are_refused() -> None:
    with pytest.raises(
        tc.RangeError, match=r"the extent of dimension 0 of `h` is not known: `x\(i\)` may be any index"
    ):
        tc.define("def f(int32(N) x) -> (h) { h(x(i)) +=! 1 }")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("wrong", [-1, 7])
def test_indices_are_checked(target: str, wrong: int) -> None:
    f = tc.define("def f(int32(B) I, float(B) v) -> (float(7) y) { y(I(b)) +=! v(b) }").single()
    index = np.array([0, wrong, 3], np.int32)
    with pytest.raises(tc.ArgumentError, match="an index into dimension 0 of y is outside of 0:7"):
        f(index, np.ones(3, np.float32), target=target)
    with pytest.raises(tc.ArgumentError, match=f"index tensor I gives {wrong} for dimension 0 of y"):
        f.oracle(index, np.ones(3, np.float32))


@pytest.mark.parametrize("shape", [(0, 5, 7), (6, 0, 7), (1, 1, 1), (0, 0, 0)])
@pytest.mark.parametrize("target", TARGETS)
def test_empty_sizes(shape: tuple[int, int, int], target: str) -> None:
    terms, width, rows = shape
    f = tc.define(
        "def f(int32(B) I, float(B,D) v, float(V,D) z) -> (float(V,D) y) { y(I(b), d) max=! v(b,d) }"
    ).single()
    agree(f, indices(terms, rows), numbers((terms, width), "float32"), numbers((rows, width), "float32"), target=target)


def test_nan_and_infinities() -> None:
    values = np.array([np.nan, 1, np.inf, -np.inf, 2, -0.0], np.float32)
    index = np.array([0, 0, 1, 1, 2, 3], np.int32)
    for operator in OPERATORS:
        f = tc.define(f"def f(int32(B) I, float(B) v) -> (float(5) y) {{ y(I(b)) {operator}! v(b) }}").single()
        for target in TARGETS:
            agree(f, index, values, target=target)


def test_open_sizes() -> None:
    text = "def f(int32(B) I, float(B,D) v, float(V,D) z) -> (float(V,D) y) { y(I(b), d) +=! v(b,d) }"
    f, open_ = tc.define(text).single(), tc.dynamic(40)
    index, rows = tc.ArraySpec((open_,), tc.ScalarType.INT32), tc.ArraySpec((open_, 5), tc.ScalarType.FLOAT32)
    owned = tc.CpuOptions(tc.ScheduleOptions(scatter_owners=3))
    for kernel, most in ((f.compile(index, rows, (7, 5)), 7), (f.compile(index, rows, rows, options=owned), 40)):
        for terms, elements in ((1, 7), (23, most)):  # of few elements, some owners have none
            arrays = (indices(terms, 7), numbers((terms, 5), "float32"), numbers((elements, 5), "float32"))
            assert compare(f.oracle(*arrays)["y"], np.asarray(kernel(*arrays))).ok
    arrays = (indices(9, 2), numbers((9, 5), "float32"), numbers((2, 5), "float32"))
    assert compare(f.oracle(*arrays)["y"], np.asarray(kernel(*arrays))).ok


def test_options_of_other_statements() -> None:
    """Copies of unrolled loops have indices of their own, and nothing of a scatter is in shared memory."""
    f = tc.define(BITS).single()
    arrays = (indices(5, 3), numbers((5, 4), "float32"), numbers((3, 4), "float32"))
    agree(f, *arrays, options=tc.CpuOptions(tc.ScheduleOptions(unroll=64)))
    points = tc.GpuOptions(tc.ScheduleOptions(scatter_parts=3), layout=tc.TileLayout.POINTS)
    agree(f, *arrays, target="emulator", options=points)


def test_what_explain_says() -> None:
    f = tc.define(BITS).single()
    owned = f.explain((1024,), (1024, 64), (100, 64), options=tc.CpuOptions(tc.ScheduleOptions(scatter_owners=4)))
    assert "== scatters ==\nS0: 4 owners of ranges of its elements, who look at all indices" in owned
    parts = f.explain((1024,), (1024, 64), (4, 64), options=tc.CpuOptions(tc.ScheduleOptions(scatter_parts=8)))
    assert "== scatters ==\nS0: 8 parts with some of the terms each, combined in this order" in parts


def test_scatters_of_batches_have_no_owners() -> None:
    """``n`` has elements of its own for each of its values, so that its loop is parallel as it is."""
    f = tc.define(
        "def f(float(N,P) G, int64(N,P) I) -> (y) { y(n, I(n,p)) +=! G(n,p) where I(n,p) in 0:1024 }"
    ).single()
    batches = f.explain((512, 256), (512, 256))
    assert "== scatters ==" not in batches
    assert "{ S0[n, p] -> [(n)]; S0_init[n, e1] -> [(n)] }  # parallel, coincident" in batches
    rows = tc.define("def f(float(P,N) G, int64(P) I) -> (y) { y(I(p), n) +=! G(p,n) where I(p) in 0:1024 }").single()
    assert "owners of ranges" in rows.explain((256, 512), (256,))


REDUCED = {"sum": "+=", "prod": "*=", "amin": "min=", "amax": "max="}


@pytest.mark.parametrize("mode", REDUCED)
def test_like_scatter_reduce(mode: str) -> None:
    torch = pytest.importorskip("torch")
    text = (
        f"def f(float(V,D) x, int64(B) I, float(B,D) v) -> (y) {{ y(e,d) = x(e,d)  y(I(b), d) {REDUCED[mode]} v(b,d) }}"
    )
    random = np.random.default_rng(4)
    x, v = random.uniform(0.5, 1.5, (9, 5)), random.uniform(0.5, 1.5, (23, 5))
    x, v, index = x.astype(np.float32), v.astype(np.float32), indices(23, 9).astype(np.int64)
    given = torch.from_numpy(index)[:, None].expand(-1, 5)
    wanted = torch.from_numpy(x).scatter_reduce(0, given, torch.from_numpy(v), mode)
    np.testing.assert_allclose(np.asarray(tc.define(text).single()(x, index, v)), wanted.numpy(), rtol=1e-5)


BAGS = {
    "sum": "y(bag(n), d) +=! t(i(n), d) where bag(n) in 0:B",
    "mean": (
        "c(bag(n)) +=! 1 where bag(n) in 0:B  s(bag(n), d) +=! t(i(n), d) where bag(n) in 0:B  "
        "y(b,d) = s(b,d) / max(c(b), 1)"
    ),
    "max": "y(bag(n), d) max=! t(i(n), d) where bag(n) in 0:B",
}


@pytest.mark.parametrize("mode", BAGS)
def test_like_embedding_bag(mode: str) -> None:
    torch = pytest.importorskip("torch")
    f = tc.define(f"def f(float(V,D) t, int64(N) i, int64(N) bag, int64(B) begins) -> (y) {{ {BAGS[mode]} }}").single()
    table = np.random.default_rng(5).standard_normal((11, 6)).astype(np.float32)
    begins = np.array([0, 3, 4, 9], np.int64)
    index, bags = indices(13, 11).astype(np.int64), np.repeat(np.arange(4), (3, 1, 5, 4))
    given = map(torch.from_numpy, (index, table, begins))
    wanted = torch.nn.functional.embedding_bag(*given, mode=mode)
    found = np.asarray(f(table, index, bags, begins))
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-6)
