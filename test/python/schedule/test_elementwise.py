"""Elementwise schedules: types, sizes around the vector width, index maps, gathers."""

import ml_dtypes
import numpy as np
import pytest
from scheduled import assert_guarded, built, generic, guarded, program

SIZES = (0, 1, 2, 3, 7, 15, 16, 17, 31, 64, 65, 127, 1031, 2049, 4099)
SHAPES = (
    (1, 1, 1),
    (2, 3, 5),
    (0, 3, 4),
    (3, 0, 4),
    (7, 11, 13),
    (1, 1, 5000),
    (5000, 1, 1),
    (2, 64, 64),
)
ID3 = "(a, b, c) -> (a, b, c)"
FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
EPSILON = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 1e-6, "f64": 1e-14}


def random_values(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


def run(kernel, inputs, shape, dtype, *symbols):
    out, memory = guarded(shape, np.dtype(dtype))
    kernel(*inputs, out, *symbols)
    assert_guarded(memory)
    return out


def one_dim(dtype, block, ins=1, out=None):
    kind, result = f"tensor<?x{dtype}>", f"tensor<?x{out or dtype}>"
    operands = [(f"%x{i}", kind, "(a) -> (a)") for i in range(ins)]
    target = [("%y0", result, "(a) -> (a)")]
    return program(
        [kind] * ins, [result], generic("%r", operands, target, "p", block) + "\nreturn %r"
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", SIZES)
def test_elementwise_of_floats(dtype, size):
    block = f"""^bb0(%p: {dtype}, %q: {dtype}, %o: {dtype}):
      %s = arith.mulf %p, %q : {dtype}
      %t = arith.addf %s, %p : {dtype}
      linalg.yield %t : {dtype}"""
    kernel = built(one_dim(dtype, block, 2))
    assert kernel.rule == "elementwise"
    x, y = random_values(size, FLOATS[dtype], 1), random_values(size, FLOATS[dtype], 2)
    expected = x.astype(np.float64) * y.astype(np.float64) + x.astype(np.float64)
    got = run(kernel, [x, y], (size,), FLOATS[dtype])
    np.testing.assert_allclose(
        got.astype(np.float64), expected, rtol=EPSILON[dtype], atol=EPSILON[dtype]
    )


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("size", SIZES)
def test_elementwise_of_integers(dtype, size):
    block = f"""^bb0(%p: {dtype}, %q: {dtype}, %o: {dtype}):
      %s = arith.muli %p, %q : {dtype}
      %t = arith.subi %s, %p : {dtype}
      linalg.yield %t : {dtype}"""
    kernel = built(one_dim(dtype, block, 2))
    x, y = random_values(size, INTEGERS[dtype], 1), random_values(size, INTEGERS[dtype], 2)
    with np.errstate(over="ignore"):
        expected = x * y - x
    np.testing.assert_array_equal(run(kernel, [x, y], (size,), INTEGERS[dtype]), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_does_not_trap_in_lanes_beyond_the_end(dtype):
    block = f"""^bb0(%p: {dtype}, %q: {dtype}, %o: {dtype}):
      %s = arith.divsi %p, %q : {dtype}
      %t = arith.remui %s, %q : {dtype}
      linalg.yield %t : {dtype}"""
    kernel = built(one_dim(dtype, block, 2))
    for size in SIZES:
        x = random_values(size, INTEGERS[dtype], 1) // 2
        y = np.abs(random_values(size, INTEGERS[dtype], 2) // 2) + 1
        expected = np.trunc(x.astype(np.float128) / y).astype(x.dtype)
        unsigned = x.dtype.str.replace("i", "u")
        expected = (expected.view(unsigned) % y.view(unsigned)).view(x.dtype)
        np.testing.assert_array_equal(run(kernel, [x, y], (size,), x.dtype), expected)


@pytest.mark.parametrize("size", SIZES)
def test_predicates_take_one_byte(size):
    block = """^bb0(%p: f32, %q: f32, %o: i1):
      %s = arith.cmpf olt, %p, %q : f32
      linalg.yield %s : i1"""
    kernel = built(one_dim("f32", block, 2, "i1"))
    x, y = random_values(size, np.float32, 1), random_values(size, np.float32, 2)
    np.testing.assert_array_equal(run(kernel, [x, y], (size,), np.bool_), x < y)
    block = """^bb0(%p: i1, %q: i1, %o: i1):
      %s = arith.xori %p, %q : i1
      linalg.yield %s : i1"""
    p, q = x > 0, y > 0
    got = run(built(one_dim("i1", block, 2)), [p, q], (size,), np.bool_)
    np.testing.assert_array_equal(got.view(np.uint8), (p ^ q).view(np.uint8))


@pytest.mark.parametrize(
    ("source", "target"), [("i8", "f32"), ("f32", "i32"), ("f16", "f64"), ("i64", "f64")]
)
@pytest.mark.parametrize("size", [0, 1, 17, 65, 4099])
def test_conversions_between_widths(source, target, size):
    ops = {
        ("i8", "f32"): "arith.sitofp",
        ("f32", "i32"): "arith.fptosi",
        ("f16", "f64"): "arith.extf",
        ("i64", "f64"): "arith.sitofp",
    }
    block = f"""^bb0(%p: {source}, %o: {target}):
      %s = {ops[source, target]} %p : {source} to {target}
      linalg.yield %s : {target}"""
    kernel = built(one_dim(source, block, 1, target))
    types = FLOATS | INTEGERS
    x = random_values(size, types[source])
    np.testing.assert_array_equal(run(kernel, [x], (size,), types[target]), x.astype(types[target]))


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_dims_that_are_walked_together_are_one_loop(shape, fuse):
    kind = "tensor<?x?x?xf32>"
    block = """^bb0(%p: f32, %q: f32, %o: f32):
      %t = arith.addf %p, %q : f32
      linalg.yield %t : f32"""
    first = generic(
        "%s", [("%x0", kind, ID3), ("%x1", kind, ID3)], [("%y0", kind, ID3)], "ppp", block
    )
    kernel = built(program([kind] * 2, [kind], first + "\nreturn %s"), fuse)
    assert kernel.text.count("scf.for") == 2  # several vectors at a time, then one
    x, y = random_values(shape, np.float32, 1), random_values(shape, np.float32, 2)
    np.testing.assert_array_equal(run(kernel, [x, y], shape, np.float32), x + y)


@pytest.mark.parametrize("shape", SHAPES)
def test_broadcast_reads(shape):
    kind, row, column = "tensor<?x?x?xf32>", "tensor<?xf32>", "tensor<?x1x1xf32>"
    block = """^bb0(%p: f32, %q: f32, %r: f32, %o: f32):
      %s = arith.mulf %p, %q : f32
      %t = arith.addf %s, %r : f32
      linalg.yield %t : f32"""
    operands = [
        ("%x0", kind, ID3),
        ("%x1", row, "(a, b, c) -> (c)"),
        ("%x2", column, "(a, b, c) -> (a, 0, 0)"),
    ]
    text = generic("%r", operands, [("%y0", kind, ID3)], "ppp", block)
    kernel = built(program([kind, row, column], [kind], text + "\nreturn %r"))
    x, r = random_values(shape, np.float32, 1), random_values(shape[2], np.float32, 2)
    c = random_values((shape[0], 1, 1), np.float32, 3)
    expected = x.astype(np.float64) * r + c
    got = run(kernel, [x, r, c], shape, np.float32)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


# Whole squares, and parts of them of up to 4, 8 and all columns, and of up to half of the rows.
TRANSPOSED = [
    (1, 1),
    (2, 3),
    (0, 3),
    (17, 33),
    (64, 65),
    (1, 100),
    (7, 90),
    (90, 7),
    (5, 5),
    (15, 15),
]
TRANSPOSED += [(100, n) for n in (3, 4, 5, 8, 9, 15)] + [(n, 100) for n in (3, 4, 5, 8, 9, 15)]


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8", "i64"])
@pytest.mark.parametrize("shape", TRANSPOSED)
def test_transposition(shape, dtype):
    kind = f"tensor<?x?x{dtype}>"
    block = f"^bb0(%p: {dtype}, %o: {dtype}):\n linalg.yield %p : {dtype}"
    text = generic(
        "%r", [("%x0", kind, "(a, b) -> (b, a)")], [("%y0", kind, "(a, b) -> (a, b)")], "pp", block
    )
    kernel = built(program([kind], [kind], text + "\nreturn %r"))
    x = random_values(shape, (FLOATS | INTEGERS)[dtype])
    np.testing.assert_array_equal(run(kernel, [x], shape[::-1], x.dtype), x.T)


@pytest.mark.parametrize("size", SIZES)
def test_index_maps_and_loop_indices(size):
    kind = "tensor<?xf32>"
    flipped = """%c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = tensor.dim %x0, %c0 : tensor<?xf32>
      %last = arith.subi %n, %c1 : index
    """
    block = """^bb0(%o: f32):
      %i = linalg.index 0 : index
      %j = arith.subi %last, %i : index
      %v = tensor.extract %x0[%j] : tensor<?xf32>
      %k = arith.index_cast %i : index to i32
      %f = arith.sitofp %k : i32 to f32
      %t = arith.addf %v, %f : f32
      linalg.yield %t : f32"""
    text = flipped + generic("%r", [], [("%y0", kind, "(a) -> (a)")], "p", block)
    kernel = built(program([kind], [kind], text + "\nreturn %r"))
    x = random_values(size, np.float32)
    got = run(kernel, [x], (size,), np.float32)
    np.testing.assert_array_equal(got, x[::-1] + np.arange(size, dtype=np.float32))


_DIVIDED = "%z = arith.{} %x, %d : {}\n %t = arith.index_cast %z : {} to index"


@pytest.mark.parametrize(
    ("dtype", "step", "line", "wanted"),
    [
        ("i8", 1, "%t = arith.index_cast %x : i8 to index", lambda x: x),
        ("i8", 1, "%t = arith.index_castui %x : i8 to index", lambda x: x % 256),
        ("i32", 99991, "%t = arith.index_cast %x : i32 to index", lambda x: x),
        (
            "i32",
            1,
            _DIVIDED.format("divsi", "i32", "i32"),
            lambda x: -(-x // 8) if x < 0 else x // 8,
        ),
        ("i32", 1, _DIVIDED.format("remsi", "i32", "i32"), lambda x: -(-x % 8) if x < 0 else x % 8),
        ("i64", 1, _DIVIDED.format("floordivsi", "i64", "i64"), lambda x: x // 8),
    ],
)
def test_indices_that_wrap_as_integers(dtype, step, line, wanted):
    """Each lane wraps on its own, so that neighbours are none and the first may be below 0."""
    size, bits = 4099, np.iinfo(INTEGERS[dtype]).bits
    begin = 2 ** (bits - 1) - 1024 if bits > 8 else 3
    block = f"""^bb0(%o: i64):
      %i = linalg.index 0 : index
      %a = arith.index_cast %i : index to {dtype}
      %s = arith.constant {step} : {dtype}
      %b = arith.muli %a, %s : {dtype}
      %k = arith.constant {begin % 2**bits} : {dtype}
      %x = arith.addi %b, %k : {dtype}
      %d = arith.constant 8 : {dtype}
      {line}
      %y = arith.index_cast %t : index to i64
      linalg.yield %y : i64"""
    kind = f"tensor<{size}xi64>"
    text = generic("%r", [], [("%y0", kind, "(a) -> (a)")], "p", block)
    kernel = built(program([], [kind], text + "\nreturn %r"))
    half = 2 ** (bits - 1)
    elements = [(i * step + begin + half) % 2**bits - half for i in range(size)]
    got = run(kernel, [], (size,), np.int64)
    np.testing.assert_array_equal(got, [wanted(x) for x in elements])


def test_strided_floordiv_and_mod_maps():
    block = """^bb0(%p: f32, %q: f32, %r: f32, %o: f32):
      %s = arith.addf %p, %q : f32
      %t = arith.addf %s, %r : f32
      linalg.yield %t : f32"""
    for size in (1, 5, 16, 33, 100):
        half = (size + 2) // 3
        kinds = [f"tensor<{2 * size}xf32>", f"tensor<{half}xf32>", "tensor<16xf32>"]
        maps = ["(a) -> (a * 2)", "(a) -> (a floordiv 3)", "(a) -> ((a + 8) mod 16)"]
        operands = [(f"%x{i}", kinds[i], maps[i]) for i in range(3)]
        out = f"tensor<{size}xf32>"
        text = generic("%r", operands, [("%y0", out, "(a) -> (a)")], "p", block)
        kernel = built(program(kinds, [out], text + "\nreturn %r"))
        x, y, z = (random_values(int(k[7:-5]), np.float32, i) for i, k in enumerate(kinds))
        i = np.arange(size)
        expected = x[2 * i].astype(np.float64) + y[i // 3] + z[(i + 8) % 16]
        got = run(kernel, [x, y, z], (size,), np.float32)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("count", [0, 1, 5, 33])
@pytest.mark.parametrize("width", [1, 3, 16, 64, 67])
def test_take_copies_rows(count, width):
    table, out = f"tensor<?x{width}xf16>", f"tensor<?x{width}xf16>"
    block = f"""^bb0(%p: i32, %o: f16):
      %i = arith.index_cast %p : i32 to index
      %j = linalg.index 1 : index
      %v = tensor.extract %x0[%i, %j] : {table}
      linalg.yield %v : f16"""
    text = generic(
        "%r",
        [("%x1", "tensor<?xi32>", "(a, b) -> (a)")],
        [("%y0", out, "(a, b) -> (a, b)")],
        "pp",
        block,
    )
    kernel = built(program([table, "tensor<?xi32>"], [out], text + "\nreturn %r"))
    assert width < 3 or "vector.gather" not in kernel.text
    x = random_values((37, width), np.float16)
    rows = np.random.default_rng(1).integers(0, 37, count).astype(np.int32)
    np.testing.assert_array_equal(run(kernel, [x, rows], (count, width), np.float16), x[rows])


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_chains_of_stages(size, fuse):
    kind = "tensor<?xf32>"
    lines = [
        "%c0 = arith.constant 0 : index",
        f"%n = tensor.dim %x0, %c0 : {kind}",
        f"%e = tensor.empty(%n) : {kind}",
    ]
    square = """^bb0(%p: f32, %o: f32):
      %t = arith.mulf %p, %p : f32
      %u = math.exp %t : f32
      linalg.yield %u : f32"""
    both = """^bb0(%p: f32, %q: f32, %o: f32, %v: f32):
      %t = arith.addf %p, %q : f32
      %u = arith.subf %p, %q : f32
      linalg.yield %t, %u : f32, f32"""
    same = "(a) -> (a)"
    lines.append(generic("%s", [("%x0", kind, same)], [("%e", kind, same)], "p", square))
    targets = [("%y0", kind, same), ("%y1", kind, same)]
    lines.append(
        generic("%r:2", [("%s", kind, same), ("%x0", kind, same)], targets, "pp"[:1], both)
    )
    kernel = built(program([kind], [kind] * 2, "\n".join(lines) + "\nreturn %r#0, %r#1"), fuse)
    assert kernel.text.count("scf.parallel") == (1 if fuse else 2)
    assert "memref.alloc" not in kernel.text  # what is in between lies in an output
    x = random_values(size, np.float32)
    (a, guard_a), (b, guard_b) = (guarded((size,), np.dtype(np.float32)) for _ in range(2))
    kernel(x, a, b)
    assert_guarded(guard_a)
    assert_guarded(guard_b)
    power = np.exp(x.astype(np.float64) ** 2)
    np.testing.assert_allclose(a, power + x, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(b, power - x, rtol=1e-5, atol=1e-6)


def test_a_program_of_one_element():
    block = """^bb0(%p: f32, %q: f32, %o: f32):
      %t = arith.divf %p, %q : f32
      linalg.yield %t : f32"""
    operands = [("%x0", "tensor<f32>", "() -> ()"), ("%x1", "tensor<f32>", "() -> ()")]
    text = generic("%r", operands, [("%y0", "tensor<f32>", "() -> ()")], "", block)
    kernel = built(program(["tensor<f32>"] * 2, ["tensor<f32>"], text + "\nreturn %r"))
    x, y = np.array(3, np.float32), np.array(8, np.float32)
    assert run(kernel, [x, y], (), np.float32) == np.float32(0.375)


@pytest.mark.parametrize("size", SIZES)
def test_scalars_of_the_program_reach_the_lanes(size):
    kind = "tensor<?xf32>"
    block = """^bb0(%p: f32, %o: f32):
      %t = arith.mulf %p, %length : f32
      linalg.yield %t : f32"""
    lines = """%twice = arith.addi %m, %m : index
      %cast = arith.index_cast %twice : index to i64
      %length = arith.sitofp %cast : i64 to f32
    """
    text = lines + generic(
        "%r", [("%x0", kind, "(a) -> (a)")], [("%y0", kind, "(a) -> (a)")], "p", block
    )
    kernel = built(program([kind], [kind], text + "\nreturn %r", ["m"]))
    x = random_values(size, np.float32)
    np.testing.assert_array_equal(run(kernel, [x], (size,), np.float32, 21), x * np.float32(42))


@pytest.mark.parametrize("dtype", ["f32", "f16", "i8", "i64", "i1"])
@pytest.mark.parametrize("order", [(0, 2, 1), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_permutations_of_three_dims(order, dtype):
    kind = f"tensor<?x?x?x{dtype}>"
    names = "abc"
    source = ", ".join(names[order.index(i)] for i in range(3))
    block = f"^bb0(%p: {dtype}, %o: {dtype}):\n linalg.yield %p : {dtype}"
    operands = [("%x0", kind, f"(a, b, c) -> ({source})")]
    text = generic("%r", operands, [("%y0", kind, ID3)], "ppp", block)
    kernel = built(program([kind], [kind], text + "\nreturn %r"))
    kinds = FLOATS | INTEGERS | {"i1": np.bool_}
    for shape in ((1, 1, 1), (2, 3, 5), (17, 2, 33), (16, 16, 16), (3, 65, 64), (2, 0, 3)):
        x = (
            random_values(shape, np.float32).astype(kinds[dtype])
            if dtype != "i1"
            else random_values(shape, np.float32) > 0
        )
        expected = x.transpose(order)
        got = run(kernel, [x], expected.shape, x.dtype)
        np.testing.assert_array_equal(got, expected)
