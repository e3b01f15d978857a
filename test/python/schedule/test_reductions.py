"""Reductions and chains around them against float64, ties and NaN included."""

import ml_dtypes
import numpy as np
import pytest
from scheduled import HERE, LOOPS_OVER_ROWS, assert_guarded, built, generic, guarded, program

FLOATS = {"f32": np.float32, "f64": np.float64}
INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
LENGTHS = (0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 257, 1031)
SHAPES = ((1, 1), (3, 0), (0, 3), (3, 17), (17, 3), (33, 65), (5, 257), (257, 5))
FLOAT_OPS = {
    "addf": (0.0, np.add),
    "mulf": (1.0, np.multiply),
    "maximumf": (-np.inf, np.maximum),
    "minimumf": (np.inf, np.minimum),
    "maxnumf": (-np.inf, np.fmax),
    "minnumf": (np.inf, np.fmin),
}
INTEGER_OPS = {
    "addi": np.add,
    "muli": np.multiply,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
}


def random_values(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


def reduction(dtype, op, axis, rank=2, init=None):
    """Reduces one axis into the output; starts from `init`, or from what the output holds."""
    dims = ["a", "b", "c"][:rank]
    remaining = [d for i, d in enumerate(dims) if i != axis]
    source = f"tensor<{'?x' * rank}{dtype}>"
    target = f"tensor<{'?x' * (rank - 1)}{dtype}>"
    block = f"""^bb0(%p: {dtype}, %o: {dtype}):
      %t = arith.{op} %p, %o : {dtype}
      linalg.yield %t : {dtype}"""
    lines, start = [], "%y0"
    if init is not None:
        lines.append(f"%z = arith.constant {init} : {dtype}")
        lines.append(f"%f = linalg.fill ins(%z : {dtype}) outs(%y0 : {target}) -> {target}")
        start = "%f"
    names = ", ".join(dims)
    lines.append(
        generic(
            "%r",
            [("%x0", source, f"({names}) -> ({names})")],
            [(start, target, f"({names}) -> ({', '.join(remaining)})")],
            "".join("r" if i == axis else "p" for i in range(rank)),
            block,
        )
    )
    return program([source], [target], "\n".join(lines) + "\nreturn %r")


def run(kernel, inputs, shape, dtype, before=None):
    out, memory = guarded(shape, np.dtype(dtype))
    if before is not None:
        out[...] = before
    kernel(*inputs, out)
    assert_guarded(memory)
    return out


def constant(dtype, value):
    if np.isinf(value):
        bits = {"f32": "7F800000", "f64": "7FF0000000000000"}[dtype]
        return f"0x{'F' + bits[1:] if value < 0 else bits}"
    return f"{value:e}" if "f" in dtype else str(value)


@pytest.mark.rotate(2)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", FLOAT_OPS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_reductions(dtype, op, axis):
    start, reference = FLOAT_OPS[op]
    kernel = built(reduction(dtype, op, axis, init=constant(dtype, start)))
    assert kernel.rule == "row_reduction"
    for shape in SHAPES:
        x = random_values(shape, FLOATS[dtype])
        expected = reference.reduce(x.astype(np.float64), axis=axis, initial=start)
        got = run(kernel, [x], expected.shape, FLOATS[dtype])
        tolerance = 1e-5 if dtype == "f32" else 1e-12
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", INTEGER_OPS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_reductions_into_what_the_output_holds(dtype, op, axis):
    kernel = built(reduction(dtype, op, axis))
    for shape in SHAPES:
        x = random_values(shape, INTEGERS[dtype])
        before = random_values(x.shape[1 - axis], INTEGERS[dtype], 1)
        together = np.concatenate([np.expand_dims(before, axis), x], axis)
        with np.errstate(over="ignore"):
            expected = INTEGER_OPS[op].reduce(together, axis=axis, dtype=x.dtype)
        got = run(kernel, [x], before.shape, x.dtype, before)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_each_axis_of_three(axis):
    kernel = built(reduction("f32", "addf", axis, 3, "0.0"))
    for shape in ((1, 1, 1), (2, 3, 5), (7, 17, 33), (17, 1, 16), (3, 64, 64), (3, 0, 2)):
        x = random_values(shape, np.float32)
        expected = x.astype(np.float64).sum(axis)
        got = run(kernel, [x], expected.shape, np.float32)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_a_vector_of_many_operations_is_alone():
    """Bodies that are neither unrolled nor have code of their own for short rows."""
    source, target = "tensor<?x?xf32>", "tensor<?xf32>"
    lines = ["^bb0(%p0: f32, %o: f32):"]
    lines += [f"%p{i + 1} = math.tanh %p{i} : f32" for i in range(5)]
    lines += ["%t = arith.addf %p5, %o : f32", "linalg.yield %t : f32"]
    reads, written = [("%x0", source, "(a, b) -> (a, b)")], [("%y0", target, "(a, b) -> (a)")]
    body = generic("%r", reads, written, "pr", "\n".join(lines))
    kernel = built(program([source], [target], body + "\nreturn %r"))
    for shape in SHAPES:
        x, before = random_values(shape, np.float32), random_values(shape[0], np.float32, 1)
        expected = x.astype(np.float64)
        for _ in range(5):
            expected = np.tanh(expected)
        got = run(kernel, [x], before.shape, np.float32, before)
        np.testing.assert_allclose(got, before + expected.sum(1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kinds", ["prr", "rpr", "rrp", "rrr"])
@pytest.mark.parametrize("dtype", ["f32", "i64"])
def test_several_axes_at_once(dtype, kinds):
    source = f"tensor<?x?x?x{dtype}>"
    remaining = [d for d, kind in zip("abc", kinds, strict=True) if kind == "p"]
    target = f"tensor<{'?x' * len(remaining)}{dtype}>"
    op = "addf" if dtype == "f32" else "addi"
    block = f"""^bb0(%p: {dtype}, %o: {dtype}):
      %t = arith.{op} %p, %o : {dtype}
      linalg.yield %t : {dtype}"""
    operands = [("%x0", source, "(a, b, c) -> (a, b, c)")]
    results = [("%y0", target, f"(a, b, c) -> ({', '.join(remaining)})")]
    text = generic("%r", operands, results, kinds, block) + "\nreturn %r"
    kernel = built(program([source], [target], text))
    axes = tuple(i for i, kind in enumerate(kinds) if kind == "r")
    for shape in ((1, 1, 1), (2, 3, 5), (3, 17, 65), (2, 5, 259), (7, 64, 1), (2, 0, 3)):
        x = random_values(shape, (FLOATS | INTEGERS)[dtype])
        expected = x.astype(np.float64).sum(axes) if dtype == "f32" else x.sum(axes)
        before = random_values(expected.shape, x.dtype, 1)
        got = run(kernel, [x], expected.shape, x.dtype, before)
        np.testing.assert_allclose(got, expected + before, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("position", [0, 1, 16, 40])
def test_nan_is_propagated_or_ignored(axis, position):
    x = random_values((41, 41), np.float32)
    x[position, position] = np.nan
    for op, (start, reference) in FLOAT_OPS.items():
        kernel = built(reduction("f32", op, axis, init=constant("f32", start)))
        expected = reference.reduce(x, axis=axis, initial=np.float32(start))
        got = run(kernel, [x], expected.shape, np.float32)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("shape", ["a", "1a", "a1"])
def test_all_elements_into_a_scalar(length, shape):
    sizes = {"a": (length,), "1a": (1, length), "a1": (length, 1)}[shape]
    dims = "abc"[: len(sizes)]
    source = f"tensor<{'x'.join('1' if c == '1' else '?' for c in shape)}xf32>"
    names = ", ".join(dims)
    block = """^bb0(%p: f32, %o: f32):
      %s = arith.mulf %p, %p : f32
      %t = arith.addf %o, %s : f32
      linalg.yield %t : f32"""
    text = """%z = arith.constant 0.0 : f32
      %f = linalg.fill ins(%z : f32) outs(%y0 : tensor<f32>) -> tensor<f32>
    """ + generic(
        "%r",
        [("%x0", source, f"({names}) -> ({names})")],
        [("%f", "tensor<f32>", f"({names}) -> ()")],
        "r" * len(sizes),
        block,
    )
    kernel = built(program([source], ["tensor<f32>"], text + "\nreturn %r"))
    x = random_values(sizes, np.float32)
    expected = (x.astype(np.float64) ** 2).sum()
    np.testing.assert_allclose(run(kernel, [x], (), np.float32), expected, rtol=1e-5)


def argmax(dtype, axis, predicate):
    source, index = f"tensor<?x?x{dtype}>", "tensor<?xi64>"
    remaining = "ab"[1 - axis]
    nan = "" if dtype[0] == "i" else (
        f"""%u = arith.cmpf uno, %p, %p : {dtype}
      %d = arith.cmpf ord, %v, %v : {dtype}
      %n = arith.andi %u, %d : i1
      %c = arith.ori %g, %n : i1"""
    )  # fmt: skip
    compare = "cmpi" if dtype[0] == "i" else "cmpf"
    condition = "%g" if dtype[0] == "i" else "%c"
    block = f"""^bb0(%p: {dtype}, %v: {dtype}, %at: i64):
      %g = arith.{compare} {predicate}, %p, %v : {dtype}
      {nan}
      %i = linalg.index {axis} : index
      %j = arith.index_cast %i : index to i64
      %x = arith.select {condition}, %p, %v : {dtype}
      %y = arith.select {condition}, %j, %at : i64
      linalg.yield %x, %y : {dtype}, i64"""
    least = {"f32": "0xFF800000", "i32": "-2147483648", "i8": "-128"}[dtype]
    best = f"tensor<?x{dtype}>"
    lines = f"""%c0 = arith.constant {1 - axis} : index
      %size = tensor.dim %x0, %c0 : {source}
      %e = tensor.empty(%size) : {best}
      %l = arith.constant {least} : {dtype}
      %z = arith.constant 0 : i64
      %fv = linalg.fill ins(%l : {dtype}) outs(%e : {best}) -> {best}
      %fi = linalg.fill ins(%z : i64) outs(%y0 : {index}) -> {index}
    """
    map_ = f"(a, b) -> ({remaining})"
    text = lines + generic(
        "%r:2",
        [("%x0", source, "(a, b) -> (a, b)")],
        [("%fv", best, map_), ("%fi", index, map_)],
        "rp" if axis == 0 else "pr",
        block,
    )
    return program([source], [index], text + "\nreturn %r#1")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["f32", "i32", "i8"])
def test_argmax_takes_the_first_of_equals(dtype, axis):
    kernel = built(argmax(dtype, axis, "ogt" if dtype == "f32" else "sgt"))
    rng = np.random.default_rng(0)
    for shape in ((1, 1), (3, 17), (17, 3), (33, 65), (5, 257), (257, 5), (2, 100)):
        x = rng.integers(-2, 2, shape).astype((FLOATS | INTEGERS)[dtype])
        got = run(kernel, [x], (shape[1 - axis],), np.int64)
        np.testing.assert_array_equal(got, x.argmax(axis))


@pytest.mark.parametrize("axis", [0, 1])
def test_argmax_takes_the_last_of_equals_where_the_body_does(axis):
    kernel = built(argmax("f32", axis, "oge"))
    rng = np.random.default_rng(0)
    for shape in ((1, 1), (3, 17), (17, 3), (33, 65), (5, 257), (257, 5)):
        x = rng.integers(-2, 2, shape).astype(np.float32)
        last = shape[axis] - 1 - np.flip(x, axis).argmax(axis)
        np.testing.assert_array_equal(run(kernel, [x], (shape[1 - axis],), np.int64), last)


@pytest.mark.parametrize("positions", [(0,), (40,), (3, 35), (20, 4)])
def test_argmax_takes_the_first_nan(positions):
    kernel = built(argmax("f32", 1, "ogt"))
    x = random_values((3, 41), np.float32)
    x[1, list(positions)] = np.nan
    np.testing.assert_array_equal(run(kernel, [x], (3,), np.int64), x.argmax(1))


@pytest.mark.parametrize("length", LENGTHS[1:])
@pytest.mark.parametrize("fuse", [True, False])
def test_rms_norm_of_half_precision(length, fuse):
    matrix, row, flat = "tensor<?x?xf16>", "tensor<?xf32>", "tensor<?xf16>"
    squares = """^bb0(%p: f16, %o: f32):
      %w = arith.extf %p : f16 to f32
      %s = arith.mulf %w, %w : f32
      %t = arith.addf %o, %s : f32
      linalg.yield %t : f32"""
    scale = """^bb0(%p: f16, %s: f32, %g: f16, %o: f16):
      %m = arith.divf %s, %len : f32
      %e = arith.addf %m, %eps : f32
      %q = math.rsqrt %e : f32
      %w = arith.extf %p : f16 to f32
      %v = arith.extf %g : f16 to f32
      %a = arith.mulf %w, %q : f32
      %b = arith.mulf %a, %v : f32
      %c = arith.truncf %b : f32 to f16
      linalg.yield %c : f16"""
    lines = f"""%c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = tensor.dim %x0, %c0 : {matrix}
      %k = tensor.dim %x0, %c1 : {matrix}
      %ki = arith.index_cast %k : index to i64
      %len = arith.sitofp %ki : i64 to f32
      %eps = arith.constant 1.0e-5 : f32
      %z = arith.constant 0.0 : f32
      %e1 = tensor.empty(%n) : {row}
      %f = linalg.fill ins(%z : f32) outs(%e1 : {row}) -> {row}
    """
    both, left, right = "(a, b) -> (a, b)", "(a, b) -> (a)", "(a, b) -> (b)"
    lines += generic("%sum", [("%x0", matrix, both)], [("%f", row, left)], "pr", squares) + "\n"
    operands = [("%x0", matrix, both), ("%sum", row, left), ("%x1", flat, right)]
    lines += generic("%r", operands, [("%y0", matrix, both)], "pp", scale)
    kernel = built(program([matrix, flat], [matrix], lines + "\nreturn %r"), fuse)
    assert kernel.rule == ("row_reduction" if fuse else "fallback")
    assert ("memref.alloc" in kernel.text) != fuse
    for rows in (0, 1, 3):
        x, g = random_values((rows, length), np.float16, 1), random_values(length, np.float16, 2)
        widened_x = x.astype(np.float64)
        expected = widened_x / np.sqrt((widened_x**2).mean(1, keepdims=True) + 1e-5) * g
        got = run(kernel, [x, g], x.shape, np.float16)
        np.testing.assert_allclose(got.astype(np.float64), expected, rtol=2e-3, atol=1e-3)


def softmax(axis):
    matrix, row = "tensor<?x?xf32>", "tensor<?xf32>"
    both, by_row = "(a, b) -> (a, b)", f"(a, b) -> ({'ab'[1 - axis]})"
    kinds = "rp" if axis == 0 else "pr"
    lines = f"""%c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = tensor.dim %x0, %c0 : {matrix}
      %m = tensor.dim %x0, %c1 : {matrix}
      %low = arith.constant 0xFF800000 : f32
      %z = arith.constant 0.0 : f32
      %e1 = tensor.empty({"%n" if axis else "%m"}) : {row}
      %e2 = tensor.empty(%n, %m) : {matrix}
      %f = linalg.fill ins(%low : f32) outs(%e1 : {row}) -> {row}
      %g = linalg.fill ins(%z : f32) outs(%e1 : {row}) -> {row}
    """
    top = """^bb0(%p: f32, %o: f32):
      %t = arith.maximumf %p, %o : f32
      linalg.yield %t : f32"""
    power = """^bb0(%p: f32, %q: f32, %o: f32):
      %t = arith.subf %p, %q : f32
      %u = math.exp %t : f32
      linalg.yield %u : f32"""
    total = """^bb0(%p: f32, %o: f32):
      %t = arith.addf %p, %o : f32
      linalg.yield %t : f32"""
    part = """^bb0(%p: f32, %q: f32, %o: f32):
      %t = arith.divf %p, %q : f32
      linalg.yield %t : f32"""
    lines += generic("%top", [("%x0", matrix, both)], [("%f", row, by_row)], kinds, top) + "\n"
    operands = [("%x0", matrix, both), ("%top", row, by_row)]
    lines += generic("%pow", operands, [("%e2", matrix, both)], "pp", power) + "\n"
    lines += generic("%sum", [("%pow", matrix, both)], [("%g", row, by_row)], kinds, total) + "\n"
    operands = [("%pow", matrix, both), ("%sum", row, by_row)]
    lines += generic("%r", operands, [("%y0", matrix, both)], "pp", part)
    return program([matrix], [matrix], lines + "\nreturn %r")


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_is_one_nest(axis, fuse):
    kernel = built(softmax(axis), fuse)
    loops = LOOPS_OVER_ROWS if axis == 1 else 1
    fetching = 1 if axis == 1 else 0
    assert kernel.text.count("scf.parallel") == (loops + fetching if fuse else 2 * loops + 2)
    for shape in SHAPES:
        x = random_values(shape, np.float32) * 10
        matrix = x.astype(np.float64)
        if shape[axis]:
            matrix = np.exp(matrix - matrix.max(axis, keepdims=True))
        expected = matrix / matrix.sum(axis, keepdims=True)
        got = run(kernel, [x], shape, np.float32)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("transposed", [True, False])
def test_contractions_without_the_matmul_rule(transposed):
    left = "tensor<?x?xi32>"
    block = """^bb0(%p: i32, %q: i32, %o: i32):
      %s = arith.muli %p, %q : i32
      %t = arith.addi %o, %s : i32
      linalg.yield %t : i32"""
    second = "(m, n, k) -> (n, k)" if transposed else "(m, n, k) -> (k, n)"
    lines = f"""%z = arith.constant 0 : i32
      %f = linalg.fill ins(%z : i32) outs(%y0 : {left}) -> {left}
    """ + generic(
        "%r",
        [("%x0", left, "(m, n, k) -> (m, k)"), ("%x1", left, second)],
        [("%f", left, "(m, n, k) -> (m, n)")],
        "ppr",
        block,
    )
    kernel = built(program([left] * 2, [left], lines + "\nreturn %r"))
    for m, n, k in ((1, 1, 1), (3, 17, 5), (17, 3, 33), (5, 64, 0), (9, 65, 127)):
        a = random_values((m, k), np.int32, 1)
        b = random_values((n, k) if transposed else (k, n), np.int32, 2)
        with np.errstate(over="ignore"):
            expected = a @ (b.T if transposed else b)
        np.testing.assert_array_equal(run(kernel, [a, b], (m, n), np.int32), expected)


def test_sums_of_narrow_floats_round_once_a_step():
    kernel = built(reduction("bf16", "addf", 0, init="0.0"))
    x = random_values((9, 33), ml_dtypes.bfloat16)
    expected = np.zeros(33, ml_dtypes.bfloat16)
    for row in x:
        expected = (expected.astype(np.float32) + row.astype(np.float32)).astype(x.dtype)
    np.testing.assert_array_equal(run(kernel, [x], (33,), x.dtype), expected)


def test_a_reduction_over_one_element_ends_before_it_is_read():
    kind = "tensor<?x1xf32>"
    block = """^bb0(%p: f32, %o: f32):
      %t = arith.addf %p, %o : f32
      linalg.yield %t : f32"""
    text = """%z = arith.constant 0.0 : f32
      %f = linalg.fill ins(%z : f32) outs(%y0 : tensor<?xf32>) -> tensor<?xf32>
    """
    both, left = "(a, b) -> (a, b)", "(a, b) -> (a)"
    text += generic("%r", [("%x0", kind, both)], [("%f", "tensor<?xf32>", left)], "pr", block)
    kernel = built(program([kind], ["tensor<?xf32>"] * 2, text + "\nreturn %r, %r"))
    for size in (1, 17):
        x = random_values((size, 1), np.float32)
        first, second = np.empty(size, np.float32), np.empty(size, np.float32)
        kernel(x, first, second)
        np.testing.assert_array_equal(first, x[:, 0])
        np.testing.assert_array_equal(second, x[:, 0])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("op", "reference"), [("ori", np.any), ("andi", np.all)])
def test_predicates(op, reference, axis):
    kernel = built(reduction("i1", op, axis))
    for shape in SHAPES:
        x = np.random.default_rng(0).integers(0, 8, shape) > (6 if op == "ori" else 0)
        before = np.full(shape[1 - axis], op == "andi")
        got = run(kernel, [x], before.shape, np.bool_, before)
        np.testing.assert_array_equal(got.view(np.uint8), reference(x, axis).view(np.uint8))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_the_greatest_of_narrow_floats(dtype, axis):
    kernel = built(reduction(dtype, "maximumf", axis))
    kind = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}[dtype]
    for shape in SHAPES:
        x = random_values(shape, kind)
        before = random_values(shape[1 - axis], kind, 1)
        expected = np.maximum(x.astype(np.float32).max(axis, initial=-np.inf), before)
        got = run(kernel, [x], before.shape, kind, before)
        np.testing.assert_array_equal(got.astype(np.float32), expected)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_reduction_that_depends_on_the_order_runs_in_order(axis):
    source, target = "tensor<?x?xf32>", "tensor<?xf32>"
    block = """^bb0(%p: f32, %o: f32):
      %half = arith.constant 0.5 : f32
      %s = arith.mulf %o, %half : f32
      %t = arith.addf %s, %p : f32
      linalg.yield %t : f32"""
    operands = [("%x0", source, "(a, b) -> (a, b)")]
    results = [("%y0", target, f"(a, b) -> ({'ab'[1 - axis]})")]
    text = generic("%r", operands, results, "rp" if axis == 0 else "pr", block) + "\nreturn %r"
    in_order = axis == 1 and HERE.host.vector_bytes < 64
    kernel = built(program([source], [target], text), in_order=in_order)
    for shape in SHAPES:
        x = random_values(shape, np.float32)
        expected = before = random_values(shape[1 - axis], np.float32, 1)
        for row in np.moveaxis(x, axis, 0):
            expected = expected * 0.5 + row
        got = run(kernel, [x], before.shape, np.float32, before)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)
