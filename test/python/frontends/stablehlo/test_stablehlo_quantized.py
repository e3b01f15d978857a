"""Quantised elements of StableHLO, against the formulas of its specification in float64."""

from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
import pytest

import relax_mlir
from relax_mlir.bindings import ir, stablehlo
from relax_mlir.errors import CompileError
from relax_mlir.frontends.stablehlo import from_stablehlo
from relax_mlir.interpreter import interpret

FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


@dataclass(frozen=True)
class Kind:
    """A quantised element type: one scale, or one for each index of an axis."""

    storage: str = "i8"
    scales: tuple[float, ...] = (0.1,)
    zeros: tuple[int, ...] = (0,)
    axis: int | None = None
    expressed: str = "f32"
    bounds: tuple[int, int] | None = None

    def __str__(self) -> str:
        each = [f"{s!r}:{z}" for s, z in zip(self.scales, self.zeros, strict=True)]
        axis = "" if self.axis is None else f":{self.axis}"
        values = each[0] if self.axis is None else f"{{{', '.join(each)}}}"
        bounds = "<{}:{}>".format(*self.bounds) if self.bounds else ""
        return f"!quant.uniform<{self.storage}{bounds}:{self.expressed}{axis}, {values}>"

    @property
    def dtype(self) -> np.dtype:
        """NumPy's type of the integers."""
        return np.dtype(("uint" if self.storage[0] == "u" else "int") + self.storage[1:])

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest integer."""
        info = np.iinfo(self.dtype)
        return self.bounds or (info.min, info.max)

    def along(self, values: tuple, rank: int) -> np.ndarray:
        """Scales or zero points so that they broadcast."""
        if self.axis is None:
            return np.array(values[0])
        return np.array(values).reshape([-1 if i == self.axis else 1 for i in range(rank)])

    def steps(self, rank: int) -> np.ndarray:
        """The scales, rounded to the expressed type."""
        return self.along(tuple(np.array(self.scales, FLOATS[self.expressed])), rank).astype(float)

    def floats(self, stored: np.ndarray) -> np.ndarray:
        """What integers stand for."""
        zeros = self.along(self.zeros, stored.ndim).astype(float)
        return (stored.astype(float) - zeros) * self.steps(stored.ndim)

    def rounded(self, stored: np.ndarray) -> np.ndarray:
        """What integers stand for, in the expressed type."""
        return self.floats(stored).astype(FLOATS[self.expressed]).astype(float)

    def check(self, actual: np.ndarray, wanted: np.ndarray, error: float | None = None) -> None:
        """That integers are those nearest to floats that have a relative error."""
        actual = np.asarray(actual)
        assert (actual.dtype, actual.shape) == (self.dtype, wanted.shape)
        steps = self.steps(wanted.ndim)
        exact = wanted / steps + self.along(self.zeros, wanted.ndim)
        if error is None:
            error = 4 * float(ml_dtypes.finfo(FLOATS[self.expressed]).eps)
        most = 0.5 + error * (np.abs(wanted / steps) + np.abs(exact))
        off = np.abs(actual.astype(float) - np.clip(exact, *self.limits))
        assert np.all(off <= most), (str(self), actual, exact)

    def random(self, rng: np.random.Generator, *dims: int) -> np.ndarray:
        """Integers within the bounds, some at them."""
        low, high = self.limits
        values = rng.integers(low, high, dims, endpoint=True)
        ends = np.where(rng.integers(2, size=dims) == 0, low, high)
        return np.where(rng.integers(5, size=dims) == 0, ends, values).astype(self.dtype)


A = Kind("i8", (0.1,), (-30,))
B = Kind("i8", (0.37,), (11,))
C = Kind("i8", (0.02,), (100,))
U = Kind("u8", (0.02,), (128,))
BF16 = Kind("i8", (0.1,), (-30,), None, "bf16")
AXIS = Kind("i8", (0.1, 0.25, 0.013), (-7, 0, 99), 1)


def tensor(dims: str, element: object) -> str:
    """The text of a tensor type."""
    return f"tensor<{dims}x{element}>" if dims else f"tensor<{element}>"


def module(inputs: list[str], body: str, results: list[tuple[str, str]]) -> str:
    """A module of arguments `%0` and so on, of ops, and of results by name."""
    arguments = ", ".join(f"%{i}: {kind}" for i, kind in enumerate(inputs))
    names, kinds = (", ".join(each) for each in zip(*results, strict=True))
    return f"func.func @main({arguments}) -> ({kinds}) {{\n{body}\n return {names} : {kinds}\n}}"


def run_both(text: str, *inputs: np.ndarray) -> list[list[np.ndarray]]:
    """Results interpreted and compiled."""
    imported = from_stablehlo(text)
    mains = [interpret(imported.module)["main"], relax_mlir.compile(imported, opt_level=1)["main"]]
    results = [main(*inputs) for main in mains]
    return [list(each) if isinstance(each, tuple) else [each] for each in results]


def each_run(text: str, inputs: list[list[np.ndarray]]):
    """For each list of inputs what is interpreted, and what is compiled, which is done once."""
    imported = from_stablehlo(text)
    mains = [interpret(imported.module)["main"], relax_mlir.compile(imported, opt_level=1)["main"]]
    for given in inputs:
        for main in mains:
            results = main(*given)
            yield given, list(results) if isinstance(results, tuple) else [results]


# Conversions.


@pytest.mark.rotate(4)
@pytest.mark.parametrize("expressed", FLOATS)
@pytest.mark.parametrize("dims", ["7x3", "?x?"])
def test_conversions_of_all_types(expressed, dims):
    rng = np.random.default_rng(len(expressed) + len(dims))
    scales = (0.5, 0.0625, 0.03) if expressed != "f16" else (0.5, 0.0625, 0.25)
    kinds = [
        *(
            Kind(s, (0.05,), (5,), None, expressed)
            for s in ("i8", "u8", "i16", "u16", "i32", "u32")
        ),
        Kind("i8", scales, (-30, 0, 4), 1, expressed),
        Kind("i8", (0.05,), (3,), None, expressed, (-127, 100)),
    ]
    fine = Kind("i16", (0.01,), (40,), None, expressed)
    body, results = [], []
    floats = tensor(dims, expressed)
    for i, kind in enumerate(kinds):
        own = tensor(dims, kind)
        body.append(f"%d{i} = stablehlo.uniform_dequantize %{i} : ({own}) -> {floats}")
        body.append(f"%q{i} = stablehlo.uniform_quantize %{len(kinds)} : ({floats}) -> {own}")
        body.append(f"%r{i} = stablehlo.uniform_quantize %{i} : ({own}) -> {tensor(dims, fine)}")
        results += [(f"%d{i}", floats), (f"%q{i}", own), (f"%r{i}", tensor(dims, fine))]
    text = module([*(tensor(dims, k) for k in kinds), floats], "\n".join(body), results)
    sizes = [7] if dims == "7x3" else [0, 1, 13]
    given = []
    for size in sizes:
        x = (rng.standard_normal((size, 3)) * 4).astype(FLOATS[expressed])
        given.append([*(kind.random(rng, size, 3) for kind in kinds), x])
    eps = float(ml_dtypes.finfo(FLOATS[expressed]).eps)
    for inputs, actual in each_run(text, given):
        for i, kind in enumerate(kinds):
            exact = kind.floats(inputs[i])
            largest = float(ml_dtypes.finfo(FLOATS[expressed]).max)
            inside = np.abs(exact) < largest
            got = np.asarray(actual[3 * i]).astype(float)
            np.testing.assert_allclose(got[inside], exact[inside], rtol=2 * eps, atol=0)
            kind.check(actual[3 * i + 1], inputs[-1].astype(float))
            fine.check(actual[3 * i + 2], exact)


@pytest.mark.parametrize("storage", ["i8", "u8", "i16", "u16", "i32", "u32"])
@pytest.mark.parametrize("values", [[-5, 3, -1], [-5]])
def test_constants_are_written_as_signed_integers(storage, values):
    kind, given = Kind(storage, (0.5,), (3,)), tensor("3", storage.replace("u", "i"))
    body = (
        f' %c = "stablehlo.constant"() {{value = dense<{values}> : {given}}}'
        f" : () -> {tensor('3', kind)}\n"
        f" %d = stablehlo.uniform_dequantize %c : ({tensor('3', kind)}) -> tensor<3xf32>"
    ).replace("dense<[-5]>", "dense<-5>")
    result = interpret(from_stablehlo(module([], body, [("%d", "tensor<3xf32>")])).module)["main"]()
    stored = np.broadcast_to(np.array(values).astype(kind.dtype), 3)
    np.testing.assert_allclose(result, kind.floats(stored), rtol=1e-6)


def test_halves_are_rounded_to_even_after_the_zero_point_and_clamped():
    kind = Kind("i8", (1.0,), (3,), None, "f32", (-4, 7))
    text = module(
        [tensor("9", "f32")],
        f"%q = stablehlo.uniform_quantize %0 : ({tensor('9', 'f32')}) -> {tensor('9', kind)}",
        [("%q", tensor("9", kind))],
    )
    x = np.array([0.5, 1.5, -0.5, -1.5, 2.5, np.inf, -np.inf, 3e38, -3e38], np.float32)
    for (result,) in run_both(text, x):
        np.testing.assert_array_equal(result, [4, 4, 2, 2, 6, 7, -4, 7, -4])


# Element by element.

UNARY = {
    "abs": np.abs,
    "ceil": np.ceil,
    "cosine": np.cos,
    "exponential": np.exp,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "negate": np.negative,
    "round_nearest_even": np.round,
    "sign": np.sign,
    "tanh": np.tanh,
}
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


@pytest.mark.parametrize("dims", ["7", "?"])
def test_ops_of_elements_are_those_of_floats(dims):
    a, b, c = (tensor(dims, kind) for kind in (A, B, C))
    body, results, expected = [], [], []
    for name, function in UNARY.items():
        body.append(f"%{name} = stablehlo.{name} %0 : ({a}) -> {b}")
        results.append((f"%{name}", b))
        expected.append((B, lambda x, y, f=function: f(A.rounded(x))))
    for name, function in BINARY.items():
        body.append(f"%{name} = stablehlo.{name} %0, %1 : ({a}, {b}) -> {c}")
        body.append(f"%{name}_same = stablehlo.{name} %1, %1 : ({b}, {b}) -> {b}")
        results += [(f"%{name}", c), (f"%{name}_same", b)]
        expected.append((C, lambda x, y, f=function: f(A.floats(x), B.floats(y))))
        expected.append((B, lambda x, y, f=function: f(B.floats(y), B.floats(y))))
    given = [
        [kind.random(np.random.default_rng(n), n) for kind in (A, B)]
        for n in ([7] if dims == "7" else [0, 1, 31])
    ]
    for inputs, actual in each_run(module([a, b], "\n".join(body), results), given):
        for result, (kind, function) in zip(actual, expected, strict=True):
            kind.check(result, function(*inputs))


def test_relations_and_choices():
    a, b, truth = tensor("?", A), tensor("?", B), tensor("?", "i1")
    body = f"""
 %less = stablehlo.compare LT, %0, %1 : ({a}, {b}) -> {truth}
 %same = stablehlo.compare GE, %0, %2 : ({a}, {a}) -> {truth}
 %chosen = stablehlo.select %less, %0, %2 : {truth}, {a}
 %inside = stablehlo.clamp %0, %2, %0 : {a}
 %c = "stablehlo.constant"() {{value = dense<[1, -128, 7]> : tensor<3xi8>}} : () -> {tensor("3", A)}
 %d = stablehlo.uniform_dequantize %c : ({tensor("3", A)}) -> tensor<3xf32>
 %i = stablehlo.iota dim = 0 : {tensor("5", B)}
"""
    results = [("%less", truth), ("%same", truth), ("%chosen", a), ("%inside", a)]
    results += [("%d", "tensor<3xf32>"), ("%i", tensor("5", B))]
    rng = np.random.default_rng(3)
    given = [[A.random(rng, n), B.random(rng, n), A.random(rng, n)] for n in (0, 1, 29)]
    for (x, y, z), actual in each_run(module([a, b, a], body, results), given):
        less = A.floats(x) < B.floats(y)
        np.testing.assert_array_equal(actual[0], less)
        np.testing.assert_array_equal(actual[1], x >= z)
        np.testing.assert_array_equal(actual[2], np.where(less, x, z))
        np.testing.assert_array_equal(actual[3], x)
        exact = A.floats(np.array([1, -128, 7]))
        np.testing.assert_allclose(actual[4], exact, rtol=1e-6)
        B.check(actual[5], np.arange(5.0))


def test_scales_along_an_axis():
    bias = Kind("i32", (0.01, 0.02, 0.5), (0, 0, 0), 0)
    spread = Kind("i32", bias.scales, bias.zeros, 1)
    back = Kind(AXIS.storage, AXIS.scales, AXIS.zeros, 0)
    body = f"""
 %s = stablehlo.add %0, %0 : {tensor("?x3", AXIS)}
 %b = stablehlo.broadcast_in_dim %1, dims = [1] : ({tensor("3", bias)}) -> {tensor("2x3", spread)}
 %t = stablehlo.transpose %0, dims = [1, 0] : ({tensor("?x3", AXIS)}) -> {tensor("3x?", back)}
 %d = stablehlo.uniform_dequantize %t : ({tensor("3x?", back)}) -> tensor<3x?xf32>
"""
    results = [
        ("%s", tensor("?x3", AXIS)),
        ("%b", tensor("2x3", spread)),
        ("%d", "tensor<3x?xf32>"),
    ]
    rng = np.random.default_rng(5)
    given = [[AXIS.random(rng, n, 3), bias.random(rng, 3)] for n in (0, 1, 11)]
    text = module([tensor("?x3", AXIS), tensor("3", bias)], body, results)
    for (x, y), (sums, repeated, floats) in each_run(text, given):
        AXIS.check(sums, 2 * AXIS.floats(x))
        np.testing.assert_array_equal(repeated, np.broadcast_to(y, (2, 3)))
        np.testing.assert_allclose(floats, AXIS.floats(x).T, rtol=1e-6)


# Products.


def dot(lhs: Kind | str, rhs: Kind, result: Kind | str, rows: str = "?") -> str:
    """A product of matrices, of 5 terms and 3 columns."""
    kinds = tensor(f"{rows}x5", lhs), tensor("5x3", rhs), tensor(f"{rows}x3", result)
    op = "%r = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0]"
    body = f"{op} : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}"
    return module(list(kinds[:2]), body, [("%r", kinds[2])])


PER_COLUMN = Kind("i8", (0.1, 0.25, 0.013), (0, 0, 0), 1)


@pytest.mark.rotate(3)
@pytest.mark.parametrize(
    ("lhs", "rhs", "result"),
    [
        (A, Kind("i8", (0.2,)), Kind("i32", (0.1 * 0.2,))),
        (A, Kind("i8", (0.2,)), Kind("i8", (1.7,), (-5,))),
        (U, Kind("u8", (0.2,)), Kind("i32", (0.003,), (9,))),
        (A, PER_COLUMN, Kind("i32", tuple(0.1 * s for s in PER_COLUMN.scales), (0, 0, 0), 1)),
        (A, PER_COLUMN, Kind("i8", (2.0,), (3,))),
        (Kind("i16", (0.2,), (99,)), Kind("i16", (0.3,)), Kind("i32", (7.0,))),
        (Kind("i32", (0.2,), (99,)), Kind("i32", (0.3,)), Kind("i32", (1e9,))),
        (BF16, replace(BF16, zeros=(0,)), Kind("i8", (0.7,), (-3,), None, "bf16")),
        ("f32", PER_COLUMN, "f32"),
        ("f32", Kind("i8", (0.2,)), "f32"),
    ],
    ids=lambda kind: f"{getattr(kind, 'storage', kind)}{getattr(kind, 'axis', None) or ''}",
)
def test_products_are_exact(lhs, rhs, result):
    rng = np.random.default_rng(9)
    weights = rhs.random(rng, 5, 3)
    floats = [rng.standard_normal((n, 5)).astype(np.float32) for n in (0, 1, 7)]
    given = [[x if lhs == "f32" else lhs.random(rng, len(x), 5), weights] for x in floats]
    for (x, w), (actual,) in each_run(dot(lhs, rhs, result), given):
        x = x.astype(float) if lhs == "f32" else lhs.floats(x)
        expected = x @ rhs.floats(w)
        if result == "f32":
            scale = np.abs(x) @ np.abs(rhs.floats(w)) + 1e-30
            assert np.all(np.abs(actual - expected) <= 1e-6 * scale)
        else:
            is_large = lhs.storage == "i32"
            result.check(actual, expected, 1e-5 if is_large else 1e-6)


def test_convolutions_pad_with_zero_points():
    weight = Kind("i8", (0.2, 0.03, 0.5, 0.1), (0,) * 4, 0)
    result = Kind("i8", (3.0,), (-9,))
    x, w, r = tensor("?x6x5x2", A), tensor("4x3x3x2", weight), tensor("?x3x3x4", result)
    body = (
        " %r = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, 1, f]x[o, 0, 1, i]->[b, 0, 1, f],"
        " window = {stride = [2, 2], pad = [[1, 1], [1, 1]]}"
        " {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
        f" : ({x}, {w}) -> {r}"
    )
    rng = np.random.default_rng(12)
    weights = weight.random(rng, 4, 3, 3, 2)
    given = [[A.random(rng, n, 6, 5, 2), weights] for n in (1, 3)]
    for (image, _), (actual,) in each_run(module([x, w], body, [("%r", r)]), given):
        padded = np.pad(A.floats(image), [(0, 0), (1, 1), (1, 1), (0, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2]
        result.check(actual, np.einsum("nijcyx,oyxc->nijo", windows, weight.floats(weights)))


# Regions.


def region(name: str, kind: Kind) -> str:
    """A region of an op of two elements."""
    own = tensor("", kind)
    return (
        f"({{ ^bb0(%a: {own}, %b: {own}):\n %c = stablehlo.{name} %a, %b : {own}\n"
        f" stablehlo.return %c : {own} }})"
    )


REDUCED = {"add": np.sum, "maximum": np.max, "minimum": np.min}


@pytest.mark.parametrize("given", [A, Kind("i8", (0.1,), (0,))], ids=["zero_point", "symmetric"])
def test_reductions(given):
    total = Kind("i32", given.scales, (4,))
    x, start, result = tensor("?x4", given), tensor("", given), tensor("?", given)
    body, results = [], []
    for name in (*REDUCED, "multiply"):
        op = f'"stablehlo.reduce"(%0, %1) <{{dimensions = array<i64: 1>}}> {region(name, given)}'
        body.append(f" %{name} = {op} : ({x}, {start}) -> {result}")
        results.append((f"%{name}", result))
    op = f'"stablehlo.reduce"(%0, %2) <{{dimensions = array<i64: 1>}}> {region("add", total)}'
    body.append(f" %total = {op} : ({x}, {tensor('', total)}) -> {tensor('?', total)}")
    results.append(("%total", tensor("?", total)))
    rng = np.random.default_rng(17)
    inputs = [
        [given.random(rng, n, 4), given.random(rng), total.random(rng) // 4] for n in (0, 1, 9)
    ]
    inputs = [[x, *map(np.asarray, rest)] for x, *rest in inputs]
    text = module([x, start, tensor("", total)], "\n".join(body), results)
    for (x, first, large), actual in each_run(text, inputs):
        floats = np.concatenate([np.full((len(x), 1), given.floats(first)), given.floats(x)], 1)
        for result, function in zip(actual, REDUCED.values()):
            given.check(result, function(floats, axis=1))
        total.check(actual[4], given.floats(x).sum(1) + total.floats(large))


def test_products_of_regions_are_rounded_step_by_step():
    kind = Kind("i8", (0.5,), (3,))
    op = f'"stablehlo.reduce"(%0, %1) <{{dimensions = array<i64: 0>}}> {region("multiply", kind)}'
    types = tensor("2", kind), tensor("", kind)
    text = module(
        list(types), f" %r = {op} : ({', '.join(types)}) -> {types[1]}", [("%r", types[1])]
    )
    x, start = np.array([5, 7], np.int8), np.array(4, np.int8)  # 1 * 2 * 0.5
    for (result,) in run_both(text, x, start):
        assert result == 5


def test_windows_and_scatters():
    own = tensor("6", A)
    window = (
        '"stablehlo.reduce_window"(%0, %1) <{window_dimensions = array<i64: 3>, window_strides ='
        f" array<i64: 2>, padding = dense<[[1, 0]]> : tensor<1x2xi64>}}> {region('add', A)}"
    )
    scatter = (
        '"stablehlo.scatter"(%0, %2, %3) <{scatter_dimension_numbers = #stablehlo.scatter<'
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}>"
        f" {region('add', A)}"
    )
    compare = (
        f"({{ ^bb0(%a: {tensor('', A)}, %b: {tensor('', A)}):\n"
        f" %c = stablehlo.compare GE, %a, %b : ({tensor('', A)}, {tensor('', A)}) -> tensor<i1>\n"
        " stablehlo.return %c : tensor<i1> }"
    )
    chosen = (
        '"stablehlo.select_and_scatter"(%0, %3, %1) <{window_dimensions = array<i64: 2>,'
        f" window_strides = array<i64: 2>}}> {compare}, {region('add', A)[1:]}"
    )
    order = (
        f'"stablehlo.sort"(%0) <{{dimension = 0 : i64}}> ({{ ^bb0(%a: {tensor("", A)},'
        f" %b: {tensor('', A)}):\n %c = stablehlo.compare GT, %a, %b :"
        f" ({tensor('', A)}, {tensor('', A)}) -> tensor<i1>\n stablehlo.return %c : tensor<i1> }})"
    )
    one, three, index = tensor("", A), tensor("3", A), "tensor<3x1xi32>"
    body = f"""
 %w = {window} : ({own}, {one}) -> {three}
 %s = {scatter} : ({own}, {index}, {three}) -> {own}
 %m = {chosen} : ({own}, {three}, {one}) -> {own}
 %o = {order} : ({own}) -> {own}
 %p = stablehlo.pad %0, %1, low = [1], high = [0], interior = [1]
   : ({own}, {one}) -> {tensor("12", A)}
"""
    results = [("%w", three), ("%s", own), ("%m", own), ("%o", own), ("%p", tensor("12", A))]
    rng = np.random.default_rng(23)
    x, start, updates = A.random(rng, 6), np.asarray(A.random(rng)), A.random(rng, 3)
    indices = np.array([[4], [1], [4]], np.int32)
    floats, first = A.floats(x), A.floats(start)
    text = module([own, one, index, three], body, results)
    for w, s, c, o, p in run_both(text, x, start, indices, updates):
        padded = np.concatenate([[first], floats])
        A.check(w, first + np.array([padded[i : i + 3].sum() for i in (0, 2, 4)]))
        scattered = floats.copy()
        np.add.at(scattered, indices[:, 0], A.floats(updates))
        A.check(s, scattered)
        wanted = np.full(6, first)
        wanted[[2 * i + (x[2 * i + 1] > x[2 * i]) for i in range(3)]] += A.floats(updates)
        A.check(c, wanted)
        np.testing.assert_array_equal(o, np.sort(x)[::-1])
        spread = np.full(12, start)
        spread[1::2] = x
        np.testing.assert_array_equal(p, spread)


def test_calls_branches_and_loops_carry_integers():
    own = tensor("?", A)
    text = f"""
func.func @main(%0: {own}, %1: tensor<i1>, %2: tensor<i32>) -> ({own}, {own}) {{
 %d = func.call @twice(%0) : ({own}) -> {own}
 %i = "stablehlo.if"(%1) ({{ stablehlo.return %d : {own} }}, {{ stablehlo.return %0 : {own} }})
   : (tensor<i1>) -> {own}
 %w:2 = "stablehlo.while"(%2, %0) ({{
 ^bb0(%n: tensor<i32>, %x: {own}):
  %z = stablehlo.constant dense<0> : tensor<i32>
  %g = stablehlo.compare GT, %n, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %g : tensor<i1>
 }}, {{
 ^bb0(%n: tensor<i32>, %x: {own}):
  %o = stablehlo.constant dense<1> : tensor<i32>
  %m = stablehlo.subtract %n, %o : tensor<i32>
  %y = stablehlo.add %x, %x : {own}
  stablehlo.return %m, %y : tensor<i32>, {own}
 }}) : (tensor<i32>, {own}) -> (tensor<i32>, {own})
 return %i, %w#1 : {own}, {own}
}}
func.func private @twice(%0: {own}) -> {own} {{
 %r = stablehlo.add %0, %0 : {own}
 return %r : {own}
}}"""
    rng = np.random.default_rng(29)
    given = [[A.random(rng, n), np.array(n > 1), np.array(2, np.int32)] for n in (0, 1, 5)]
    for (x, truth, _), (chosen, looped) in each_run(text, given):
        twice = np.clip(A.floats(x) * 2, *A.floats(np.array([-128, 127])))
        A.check(chosen, twice if truth else A.floats(x))
        A.check(looped, twice * 2, 1e-6)


def test_regions_of_several_ops_run_op_by_op():
    kind = Kind("i8", (0.5,), (-30,))
    own, one_ = tensor("2", kind), tensor("", kind)
    region_ = (
        f"({{ ^bb0(%a: {one_}, %b: tensor<f32>, %c: {one_}, %d: tensor<f32>):\n"
        f" %e = stablehlo.add %a, %c : {one_}\n %f = stablehlo.multiply %b, %d : tensor<f32>\n"
        f" stablehlo.return %e, %f : {one_}, tensor<f32> }})"
    )
    kinds = f"({own}, tensor<2xf32>, {one_}, tensor<f32>) -> ({one_}, tensor<f32>)"
    body = f"""
 %r:2 = "stablehlo.reduce"(%0, %2, %1, %3) <{{dimensions = array<i64: 0>}}> {region_} : {kinds}
 %s = "stablehlo.reduce"(%0, %1) <{{dimensions = array<i64>}}> {region("add", kind)}
   : ({own}, {one_}) -> {own}
 %m = "stablehlo.map"(%0) <{{dimensions = array<i64: 0>}}> ({{ ^bb0(%a: {one_}):
   %c = stablehlo.add %a, %a : {one_}
   stablehlo.return %c : {one_} }}) : ({own}) -> {own}
"""
    results = [("%r#0", one_), ("%r#1", "tensor<f32>"), ("%s", own), ("%m", own)]
    text = module([own, one_, "tensor<2xf32>", "tensor<f32>"], body, results)
    x, start = np.array([-20, -10], np.int8), np.array(-28, np.int8)  # 5, 10 and 1
    others = np.array([2, 3], np.float32), np.array(4, np.float32)
    for total, product, shifted, doubled in run_both(text, x, start, *others):
        assert (total, product) == (2, 24)
        np.testing.assert_array_equal(shifted, [-18, -8])
        np.testing.assert_array_equal(doubled, [-10, 10])


def test_artifacts_of_quantised_modules_are_read():
    text = module(
        [tensor("?", A)],
        f" %r = stablehlo.uniform_quantize %0 : ({tensor('?', A)}) -> {tensor('?', B)}",
        [("%r", tensor("?", B))],
    )
    with ir.Context() as context, ir.Location.unknown():
        stablehlo.load(context)
        artifact = stablehlo.portable(ir.Module.parse(text))
    x = A.random(np.random.default_rng(31), 9)
    B.check(interpret(from_stablehlo(artifact).module)["main"](x), A.floats(x))


# What is refused.


def one(inputs: list[str], op: str, result: str, attributes: str = "") -> str:
    """A module of one op."""
    names = ", ".join(f"%{i}" for i in range(len(inputs)))
    call = f' %r = "{op}"({names}) {attributes} : ({", ".join(inputs)}) -> {result}'
    return module(inputs, call, [("%r", result)])


SMALL = tensor("2", "!quant.uniform<i4:f32, 0.1>")
BLOCKS = tensor("2x2", "!quant.uniform<i8:f32:{0:1, 1:2}, {{0.1}, {0.2}}>")
FAR = tensor("2", "!quant.uniform<i8:f32, 0.1:300>")
OTHER = tensor("2", A)
BRANCHES = f"({{ stablehlo.return %1 : {OTHER} }}, {{ stablehlo.return %2 : {tensor('2', B)} }})"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (one([SMALL], "stablehlo.negate", SMALL), "integers of 8, 16 and 32 bits"),
        (module([BLOCKS], "", [("%0", BLOCKS)]), "uniform ones of a scale"),
        (
            one(
                [tensor("2", "!quant.uniform<i8:f8E4M3FN, 0.1>")],
                "stablehlo.negate",
                tensor("2", "!quant.uniform<i8:f8E4M3FN, 0.1>"),
            ),
            "f16, bf16, f32, f64 are supported",
        ),
        (module([FAR], "", [("%0", FAR)]), "zero points have to be -128 to 127"),
        (
            one([OTHER], "stablehlo.custom_call", OTHER, '{call_target_name = "Sharding"}'),
            "has quantised operands, of which it is not supported",
        ),
        (
            module(
                ["tensor<i1>", OTHER, tensor("2", B)],
                f' %r = "stablehlo.if"(%0) {BRANCHES} : (tensor<i1>) -> {OTHER}',
                [("%r", OTHER)],
            ),
            r"'stablehlo.if': passes elements of .*:-30> as .*:11>",
        ),
    ],
    ids=["bits", "blocks", "float", "zero_point", "custom_call", "branches"],
)
def test_what_is_not_supported_is_refused_where_it_is(text, message):
    with pytest.raises(CompileError, match=message) as caught:
        from_stablehlo(text)
    assert str(caught.value).startswith("-:")


def test_dims_along_scales_are_checked():
    text = one([tensor("2x?", AXIS)], "stablehlo.uniform_dequantize", "tensor<2x?xf32>")
    main = interpret(from_stablehlo(text).module)["main"]
    x = np.zeros((2, 3), np.int8)
    np.testing.assert_allclose(main(x), AXIS.floats(x), rtol=1e-6)
    with pytest.raises(relax_mlir.errors.RelaxError):
        main(np.zeros((2, 4), np.int8))
