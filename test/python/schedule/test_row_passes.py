"""Several passes over rows: their intermediate memory, long rows of columns, extrema."""

import numpy as np
import pytest
from scheduled import assert_guarded, built, built_from_graph, generic, guarded, program

KIND = "tensor<?x?xf32>"
ID, TRANSPOSED = "(a, b) -> (a, b)", "(a, b) -> (b, a)"
EXP = """^bb0(%p: f32, %o: f32):
  %t = math.exp %p : f32
  linalg.yield %t : f32"""
SIZES = (1, 2, 15, 16, 17, 31, 32, 47, 49, 63, 64, 65, 129, 577)


def run(kernel, inputs, shape):
    out, memory = guarded(shape, np.dtype(np.float32))
    kernel(*inputs, out)
    assert_guarded(memory)
    return out


def of_graph(op: str, extra: str, result: str = "m, n", **known: int):
    """The kernel of one operator on a matrix [m, n], with static or dynamic extents."""

    def shaped(dims: str) -> str:
        dims = [known.get(dim, dim) for dim in dims.split(", ")]
        names = [f'"{dim}"' if isinstance(dim, str) else str(dim) for dim in dims]
        sizes = ["?" if isinstance(dim, str) else str(dim) for dim in dims]
        shape = f", #graph.shape<[{', '.join(names)}]>" if "?" in sizes else ""
        return f"tensor<{'x'.join(sizes)}xf32{shape}>"

    return built_from_graph(f"""
    func.func @main(%x: {shaped("m, n")}) -> {shaped(result)} {{
      %y = "graph.{op}"(%x) {{{extra}}} : ({shaped("m, n")}) -> {shaped(result)}
      return %y : {shaped(result)}
    }}""")


def powers_and(last: str, result: str = KIND) -> str:
    """exp(x) in a tensor of its own, and the result of `last` on it."""
    lines = [
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        f"%m = tensor.dim %x0, %c0 : {KIND}",
        f"%n = tensor.dim %x0, %c1 : {KIND}",
        f"%e = tensor.empty(%m, %n) : {KIND}",
        generic("%s", [("%x0", KIND, ID)], [("%e", KIND, ID)], "pp", EXP),
        last,
    ]
    return program([KIND], [result], "\n".join(lines) + "\nreturn %r")


@pytest.mark.parametrize("size", SIZES)
def test_what_is_read_elsewhere_has_memory_of_its_own(size):
    block = """^bb0(%p: f32, %q: f32, %o: f32):
      %t = arith.subf %p, %q : f32
      linalg.yield %t : f32"""
    last = generic(
        "%r", [("%s", KIND, ID), ("%s", KIND, TRANSPOSED)], [("%y0", KIND, ID)], "pp", block
    )
    kernel = built(powers_and(last))
    assert "memref.alloc" in kernel.text
    x = np.random.default_rng(size).standard_normal((size, size)).astype(np.float32)
    powers = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(run(kernel, [x], x.shape), powers - powers.T, rtol=1e-5, atol=1e-5)


def test_all_pairs_of_what_one_loop_computes():
    """exp(x)[a, :] * exp(x)[b, :]: loops a and b are the axis along which exp(x) was computed."""
    block = """^bb0(%p: f32, %q: f32, %o: f32):
      %t = arith.mulf %p, %q : f32
      linalg.yield %t : f32"""
    cube = "tensor<?x?x?xf32>"
    reads = [("%s", KIND, "(a, b, c) -> (a, c)"), ("%s", KIND, "(a, b, c) -> (b, c)")]
    last = generic("%r", reads, [("%y0", cube, "(a, b, c) -> (a, b, c)")], "ppp", block)
    kernel = built(powers_and(last, cube))
    for rows, columns in ((0, 3), (1, 1), (1, 17), (3, 1), (7, 5), (17, 33)):
        x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
        powers = np.exp(x.astype(np.float64))
        expected = powers[:, None] * powers
        np.testing.assert_allclose(run(kernel, [x], expected.shape), expected, rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("size", SIZES)
def test_softmax_needs_no_memory(rows, size):
    kernel = of_graph("nn_softmax", "axis = 1 : i64")
    assert "memref.alloc" not in kernel.text
    x = 5 * np.random.default_rng(size).standard_normal((rows, size)).astype(np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(run(kernel, [x], x.shape), expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("columns", [1, 17, 33])
def test_softmax_of_known_columns(columns):
    kernel = of_graph("nn_softmax", "axis = 1 : i64", n=columns)
    x = np.random.default_rng(columns).standard_normal((5, columns)).astype(np.float32)
    powers = np.exp(x.astype(np.float64))
    expected = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(run(kernel, [x], x.shape), expected, rtol=1e-5)


@pytest.mark.parametrize("size", [0, *SIZES])
def test_row_of_scratch(size):
    """sum((p / sum(p)) ** 2) for p = exp(x): nothing of the row is an output."""
    total = """^bb0(%p: f32, %o: f32):
      %t = arith.addf %p, %o : f32
      linalg.yield %t : f32"""
    squares = """^bb0(%p: f32, %q: f32, %o: f32):
      %d = arith.divf %p, %q : f32
      %u = arith.mulf %d, %d : f32
      %t = arith.addf %u, %o : f32
      linalg.yield %t : f32"""
    row = "tensor<?xf32>"
    last = f"""%z = arith.constant 0.0 : f32
    %h = tensor.empty(%m) : {row}
    %f = linalg.fill ins(%z : f32) outs(%h : {row}) -> {row}
    %g = linalg.fill ins(%z : f32) outs(%y0 : {row}) -> {row}"""
    last += "\n" + generic("%v", [("%s", KIND, ID)], [("%f", row, "(a, b) -> (a)")], "pr", total)
    reads = [("%s", KIND, ID), ("%v", row, "(a, b) -> (a)")]
    last += "\n" + generic("%r", reads, [("%g", row, "(a, b) -> (a)")], "pr", squares)
    kernel = built(powers_and(last, row))
    assert "memref.alloc" in kernel.text
    x = np.random.default_rng(size).standard_normal((5, size)).astype(np.float32)
    powers = np.exp(x.astype(np.float64))
    expected = ((powers / powers.sum(1, keepdims=True)) ** 2).sum(1)
    np.testing.assert_allclose(run(kernel, [x], (5,)), expected, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_of_special_values(axis):
    kernel = of_graph("nn_softmax", f"axis = {axis} : i64")
    x = np.zeros((6, 67), np.float32)
    x[1, 66], x[2, 0], x[3, :], x[4, 5], x[5, :66] = np.nan, np.inf, -np.inf, 3e38, -np.inf
    x = x if axis else np.ascontiguousarray(x.T)
    actual = run(kernel, [x], x.shape)
    actual = actual if axis else actual.T
    np.testing.assert_allclose(actual[0], np.full(67, 1 / 67), rtol=1e-6)
    assert np.isnan(actual[1:4]).all()
    for row, column in ((4, 5), (5, 66)):
        assert actual[row, column] == 1
        assert (np.delete(actual[row], column) == 0).all()


@pytest.mark.parametrize("columns", [255, 256, 257, 511, 1031, 2049])
@pytest.mark.parametrize("rows", [0, 1, 7, 33])
@pytest.mark.parametrize("operator", ["sum", "max", "mean"])
def test_columns(operator, rows, columns):
    if operator != "sum" and rows == 0:
        rows = 2
    kernel = of_graph(operator, "axes = array<i64: 0>, keepdims = false", "n")
    x = np.random.default_rng(columns).standard_normal((rows, columns)).astype(np.float32)
    expected = getattr(x.astype(np.float64), operator)(0)
    actual = run(kernel, [x], (columns,))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("columns", [1, 16, 17, 31, 63, 100, 129, 200, 257])
@pytest.mark.parametrize("knows_rows", [True, False])
def test_known_columns(columns, knows_rows):
    known = {"n": columns} | ({"m": 33} if knows_rows else {})
    kernel = of_graph("sum", "axes = array<i64: 0>, keepdims = false", "n", **known)
    for rows in (33,) if knows_rows else (0, 1, 33):
        x = np.random.default_rng(columns).standard_normal((rows, columns)).astype(np.float32)
        actual = run(kernel, [x], (columns,))
        np.testing.assert_allclose(actual, x.astype(np.float64).sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("predicate", ["ogt", "olt", "oge", "ole"])
@pytest.mark.parametrize("size", [0, *SIZES, 1031])
def test_extremum_by_one_comparison(size, predicate):
    start = "0xFF800000" if predicate[1] == "g" else "0x7F800000"
    block = f"""^bb0(%p: f32, %o: f32):
      %c = arith.cmpf {predicate}, %p, %o : f32
      %t = arith.select %c, %p, %o : f32
      linalg.yield %t : f32"""
    row = "tensor<?xf32>"
    lines = [
        f"%z = arith.constant {start} : f32",
        f"%f = linalg.fill ins(%z : f32) outs(%y0 : {row}) -> {row}",
        generic("%r", [("%x0", KIND, ID)], [("%f", row, "(a, b) -> (a)")], "pr", block),
    ]
    kernel = built(program([KIND], [row], "\n".join(lines) + "\nreturn %r"))
    x = np.random.default_rng(size).standard_normal((3, size)).astype(np.float32)
    x[1, : size // 2] = np.nan  # passed over
    reference = np.fmax if predicate[1] == "g" else np.fmin
    expected = reference.reduce(x, 1, initial=-np.inf if predicate[1] == "g" else np.inf)
    np.testing.assert_array_equal(run(kernel, [x], (3,)), expected)
