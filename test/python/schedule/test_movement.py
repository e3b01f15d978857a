"""Copies, slices, insertions, and programs that update their outputs in place."""

import numpy as np
import pytest
from call_segments import segments
from scheduled import (
    LOOPS_OVER_ROWS,
    TARGETS,
    assert_guarded,
    before_a_border,
    built,
    built_from_graph,
    generic,
    guarded,
    program,
)

ROW = "tensor<?xf32>"
MATRIX = "tensor<?x?xf32>"


def random_values(shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def run(kernel, inputs, *shapes, symbols=(), dtype=np.float32):
    pairs = [guarded(shape, np.dtype(dtype)) for shape in shapes]
    kernel(*inputs, *(out for out, _ in pairs), *symbols)
    for _, memory in pairs:
        assert_guarded(memory)
    outs = [out for out, _ in pairs]
    return outs[0] if len(outs) == 1 else outs


def shaped(*dims):
    mlir = "x".join("?" if isinstance(d, str) else str(d) for d in dims)
    names = ", ".join(f'"{d}"' if isinstance(d, str) else str(d) for d in dims)
    return f"tensor<{mlir}xf32, #graph.shape<[{names}]>>"


def one_op(op, ins, outs, extra="", symbols=()):
    """A module whose function applies one graph operator."""
    arguments = [f"%x{i}: {kind}" for i, kind in enumerate(ins)]
    arguments += [f'%s{i}: !graph.shape_value<["{name}"]>' for i, name in enumerate(symbols)]
    values = ", ".join(f"%x{i}" for i in range(len(ins)))
    results = ", ".join(f"%r#{i}" for i in range(len(outs))) if len(outs) > 1 else "%r"
    count = f":{len(outs)}" if len(outs) > 1 else ""
    kinds = ", ".join(outs)
    signature = f"({', '.join(ins)}) -> {kinds if len(outs) == 1 else f'({kinds})'}"
    return f"""func.func @main({", ".join(arguments)}) -> ({kinds}) {{
      %r{count} = "graph.{op}"({values}) {{{extra}}} : {signature}
      return {results} : {kinds}
    }}"""


@pytest.mark.parametrize("axis", [0, 1])
def test_concat_copies_each_operand_once(axis):
    sizes = [(3, 17), (1, 17), (0, 17)] if axis == 0 else [(5, 16), (5, 1), (5, 33)]
    names = ("a", "b", "c")
    ins = [shaped(name, "n") if axis == 0 else shaped("n", name) for name in names]
    joined = "a + b + c"
    out = shaped(joined, "n") if axis == 0 else shaped("n", joined)
    text = one_op("concat", ins, [out], f"axis = {axis} : i64, {segments(3)}")
    kernel = built_from_graph(text)
    assert "memref.alloc" not in kernel.text
    xs = [random_values(size, i) for i, size in enumerate(sizes)]
    expected = np.concatenate(xs, axis)
    np.testing.assert_array_equal(run(kernel, xs, expected.shape), expected)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("n", 64), ("n", 4, 16)),
        (("n", 4, 16), ("n", 64)),
        (("n", "m"), ("n*m",)),
        (("n", 1, 7), ("n", 7)),
    ],
)
def test_reshape_is_one_copy(before, after):
    names = ", ".join(f'"{d}"' if isinstance(d, str) else str(d) for d in after)
    dims = f"#graph.shape<[{names}]>"
    kernel = built_from_graph(
        one_op("reshape", [shaped(*before)], [shaped(*after)], f"shape = {dims}")
    )
    assert kernel.text.count("scf.for") == 2  # several vectors at a time, then one
    for n, m in ((1, 1), (3, 5), (17, 9)):
        sizes = {"n": n, "m": m, "n*m": n * m}
        x = random_values([sizes.get(d, d) for d in before])
        expected = x.reshape([sizes.get(d, d) for d in after])
        np.testing.assert_array_equal(run(kernel, [x], expected.shape), expected)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("width", [2, 16, 64, 70])
def test_rotary_rotates_both_halves(heads, width):
    kind, table = shaped("n", heads, width), shaped("n", width // 2)
    kernel = built_from_graph(one_op("nn_rotary", [kind, table, table], [kind]))
    assert width % 32 or "vector.gather" not in kernel.text
    for n in (0, 1, 5, 33):
        x, cos, sin = (
            random_values((n, heads, width), 1),
            random_values((n, width // 2), 2),
            random_values((n, width // 2), 3),
        )
        low, high = np.split(x.astype(np.float64), 2, -1)
        c, s = cos[:, None], sin[:, None]
        expected = np.concatenate([low * c - high * s, high * c + low * s], -1)
        got = run(kernel, [x, cos, sin], x.shape)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_appending_to_a_cache_writes_the_new_rows_only():
    cache, new = shaped(2, "c", 16), shaped("n", 2, 16)
    extra = 'position = #graph.shape<["m"]>'
    text = one_op("nn_kv_append", [cache, cache, new, new], [cache] * 2, extra, ("m",))
    kernel = built_from_graph(text)
    assert "memref.alloc" not in kernel.text
    for n, m in ((1, 0), (1, 7), (5, 3), (0, 2)):
        key, value = random_values((n, 2, 16), 1), random_values((n, 2, 16), 2)
        keys, guard_keys = guarded((2, 12, 16), np.dtype(np.float32))
        values, guard_values = guarded((2, 12, 16), np.dtype(np.float32))
        keys[...], values[...] = random_values(keys.shape, 3), random_values(keys.shape, 4)
        expected = [keys.copy(), values.copy()]
        for old, x in zip(expected, (key, value), strict=True):
            old[:, m : m + n] = x.transpose(1, 0, 2)
        kernel(key, value, keys, values, m)
        assert_guarded(guard_keys)
        assert_guarded(guard_values)
        np.testing.assert_array_equal(keys, expected[0])
        np.testing.assert_array_equal(values, expected[1])


def add_one(result, source, target, kind=ROW, source_map="(a) -> (a)", target_map="(a) -> (a)"):
    block = """^bb0(%p: f32, %o: f32):
      %one = arith.constant 1.0 : f32
      %t = arith.addf %p, %one : f32
      linalg.yield %t : f32"""
    dims = target_map.split("->")[0].count(",") + 1
    return generic(
        result, [(source, kind, source_map)], [(target, kind, target_map)], "p" * dims, block
    )


def in_place(kernel, before, *inputs):
    out, memory = guarded(before.shape, before.dtype)
    out[...] = before
    kernel(*inputs, out)
    assert_guarded(memory)
    return out


@pytest.mark.parametrize("size", [0, 1, 16, 33, 4099])
def test_an_output_that_is_also_read_element_by_element(size):
    kernel = built(program([], [ROW], add_one("%r", "%y0", "%y0") + "\nreturn %r"))
    assert "memref.alloc" not in kernel.text
    x = random_values(size)
    np.testing.assert_array_equal(in_place(kernel, x), x + np.float32(1))


@pytest.mark.parametrize("shape", [(3, 5), (33, 17), (16, 65)])
def test_a_transposed_tensor_is_added_to_the_output_once(shape):
    """Squares that are transposed in registers overlap at the edges."""
    block = """^bb0(%p: f32, %o: f32):
      %t = arith.addf %p, %o : f32
      linalg.yield %t : f32"""
    reads = [("%x0", MATRIX, "(a, b) -> (b, a)")]
    body = generic("%r", reads, [("%y0", MATRIX, "(a, b) -> (a, b)")], "pp", block)
    kernel = built(program([MATRIX], [MATRIX], body + "\nreturn %r"))
    x, y = random_values(shape[::-1], 1), random_values(shape, 2)
    np.testing.assert_array_equal(in_place(kernel, y, x), y + x.T)


@pytest.mark.parametrize("size", [2, 16, 33, 257])
def test_an_output_that_is_read_elsewhere_goes_through_scratch(size):
    kind = f"tensor<{size}xf32>"
    body = add_one("%r", "%y0", "%y0", kind, f"(a) -> ({size - 1} - a)")
    kernel = built(program([], [kind], body + "\nreturn %r"))
    assert "memref.alloc" in kernel.text
    x = random_values(size)
    np.testing.assert_array_equal(in_place(kernel, x), x[::-1] + np.float32(1))


def test_an_output_that_is_read_after_it_was_overwritten_goes_through_scratch():
    body = add_one("%r", "%x0", "%y0") + "\n" + add_one("%s", "%y0", "%y1") + "\nreturn %r, %s"
    kernel = built(program([ROW], [ROW, ROW], body))
    x, before = random_values(33, 1), random_values(33, 2)
    first, memory = guarded((33,), np.dtype(np.float32))
    first[...] = before
    second = np.empty(33, np.float32)
    kernel(x, first, second)
    assert_guarded(memory)
    np.testing.assert_array_equal(first, x + np.float32(1))
    np.testing.assert_array_equal(second, before + np.float32(1))


@pytest.mark.parametrize("axis", [0, 1])
def test_a_reduction_of_the_output_it_is_subtracted_from(axis):
    other = "ab"[1 - axis]
    total = """^bb0(%p: f32, %o: f32):
      %t = arith.maximumf %p, %o : f32
      linalg.yield %t : f32"""
    minus = """^bb0(%p: f32, %q: f32, %o: f32):
      %t = arith.subf %p, %q : f32
      linalg.yield %t : f32"""
    both, by_row = "(a, b) -> (a, b)", f"(a, b) -> ({other})"
    body = f"""%c = arith.constant {1 - axis} : index
      %n = tensor.dim %y0, %c : {MATRIX}
      %e = tensor.empty(%n) : {ROW}
      %low = arith.constant 0xFF800000 : f32
      %f = linalg.fill ins(%low : f32) outs(%e : {ROW}) -> {ROW}
    """
    body += generic(
        "%m", [("%y0", MATRIX, both)], [("%f", ROW, by_row)], "rp" if axis == 0 else "pr", total
    )
    operands = [("%y0", MATRIX, both), ("%m", ROW, by_row)]
    body += "\n" + generic("%r", operands, [("%y0", MATRIX, both)], "pp", minus) + "\nreturn %r"
    kernel = built(program([], [MATRIX], body))
    assert kernel.text.count("scf.parallel") == (LOOPS_OVER_ROWS + 1 if axis == 1 else 1)
    for shape in ((1, 1), (5, 17), (17, 5), (33, 64)):
        x = random_values(shape)
        got = in_place(kernel, x)
        np.testing.assert_array_equal(got, x - x.max(axis, keepdims=True))


@pytest.mark.parametrize("offset", [0, 3])
def test_a_computed_slice_is_computed_where_it_is_inserted(offset):
    body = f"""%c0 = arith.constant 0 : index
      %n = tensor.dim %x0, %c0 : {ROW}
      %e = tensor.empty(%n) : {ROW}
    """
    body += (
        add_one("%v", "%x0", "%e")
        + f"""
      %r = tensor.insert_slice %v into %y0[{offset}] [%n] [1] : {ROW} into {ROW}
      return %r"""
    )
    kernel = built(program([ROW], [ROW], body))
    assert "memref.alloc" not in kernel.text
    for size in (0, 1, 16, 33):
        x, before = random_values(size, 1), random_values(size + 5, 2)
        expected = before.copy()
        expected[offset : offset + size] = x + np.float32(1)
        np.testing.assert_array_equal(in_place(kernel, before, x), expected)


def test_padding_fills_and_then_inserts():
    body = f"""%z = arith.constant 9.0 : f32
      %c1 = arith.constant 1 : index
      %n = tensor.dim %x0, %c1 : {MATRIX}
      %c0 = arith.constant 0 : index
      %m = tensor.dim %x0, %c0 : {MATRIX}
      %f = linalg.fill ins(%z : f32) outs(%y0 : {MATRIX}) -> {MATRIX}
      %r = tensor.insert_slice %x0 into %f[2, 1] [%m, %n] [1, 1] : {MATRIX} into {MATRIX}
      return %r"""
    kernel = built(program([MATRIX], [MATRIX], body))
    for shape in ((1, 1), (3, 17), (0, 3)):
        x = random_values(shape)
        expected = np.full((shape[0] + 5, shape[1] + 2), 9, np.float32)
        expected[2 : 2 + shape[0], 1 : 1 + shape[1]] = x
        np.testing.assert_array_equal(run(kernel, [x], expected.shape), expected)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_strided_slices_of_computed_tensors(stride):
    body = f"""%c0 = arith.constant 0 : index
      %n = tensor.dim %x0, %c0 : {ROW}
      %k = tensor.dim %y0, %c0 : {ROW}
      %e = tensor.empty(%n) : {ROW}
    """
    body += (
        add_one("%v", "%x0", "%e")
        + f"""
      %s = tensor.extract_slice %v[2] [%k] [{stride}] : {ROW} to {ROW}
    """
    )
    body += add_one("%r", "%s", "%y0") + "\nreturn %r"
    kernel = built(program([ROW], [ROW], body))
    for size in (2, 3, 17, 65):
        x = random_values(size)
        expected = (x[2::stride] + np.float32(1)) + np.float32(1)
        np.testing.assert_array_equal(run(kernel, [x], expected.shape), expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stride", [2, 3, 4, 5])
def test_strided_reads_end_at_the_last_element(stride, target):
    body = f"""%c0 = arith.constant 0 : index
      %k = tensor.dim %y0, %c0 : {ROW}
      %s = tensor.extract_slice %x0[0] [%k] [{stride}] : {ROW} to {ROW}
    """
    body += add_one("%r", "%s", "%y0") + "\nreturn %r"
    kernel = built(program([ROW], [ROW], body), target=target)
    for count in (1, 2, 7, 8, 9, 16, 17, 63, 65):
        x = before_a_border(random_values((count - 1) * stride + 1))
        expected = x[::stride] + np.float32(1)
        np.testing.assert_array_equal(run(kernel, [x], expected.shape), expected)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("parts", [2, 3, 4])
def test_rows_are_interleaved_in_registers(parts, target):
    """As the phases of a transposed convolution are; masked, at sizes around those of vectors."""
    block = """^bb0(%p: f32, %q: f32, %o: f32):
      %t = arith.addf %p, %q : f32
      linalg.yield %t : f32"""
    before, after, bias = f"tensor<{parts}x?xf32>", f"tensor<?x{parts}xf32>", f"tensor<{parts}xf32>"
    reads = [("%x0", before, "(a, b) -> (b, a)"), ("%x1", bias, "(a, b) -> (b)")]
    body = generic("%r", reads, [("%y0", after, "(a, b) -> (a, b)")], "pp", block)
    text = program([before, bias], [after], body + "\nreturn %r")
    kernel = built(text, target=target)
    assert parts == 3 or "vector.scatter" not in kernel.text
    y = random_values(parts, 1)
    for width in (0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 129, 4099):
        x = before_a_border(random_values(parts * width)).reshape(parts, width)
        np.testing.assert_array_equal(run(kernel, [x, y], (width, parts)), x.T + y)


@pytest.mark.parametrize("stride", [1, 3])
def test_powers_are_computed_where_their_slice_is_read(stride):
    block = """^bb0(%p: f32, %o: f32):
      %t = math.exp %p : f32
      linalg.yield %t : f32"""
    body = f"""%c0 = arith.constant 0 : index
      %n = tensor.dim %x0, %c0 : {ROW}
      %k = tensor.dim %y0, %c0 : {ROW}
      %e = tensor.empty(%n) : {ROW}
    """
    same = "(a) -> (a)"
    body += generic("%v", [("%x0", ROW, same)], [("%e", ROW, same)], "p", block)
    body += f"\n%s = tensor.extract_slice %v[1] [%k] [{stride}] : {ROW} to {ROW}\n"
    body += add_one("%r", "%s", "%y0") + "\nreturn %r"
    kernel = built(program([ROW], [ROW], body))
    assert "memref.alloc" not in kernel.text
    for size in (1, 2, 17, 65):
        x = random_values(size)
        expected = np.exp(x.astype(np.float64))[1::stride] + 1
        got = run(kernel, [x], expected.shape)
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_diagonal_is_no_whole_tensor():
    """What writes the diagonal of a filled tensor is neither inlined, nor the loop of a reader."""
    copy = """^bb0(%p: f32, %o: f32):
      linalg.yield %p : f32"""
    body = f"""%c0 = arith.constant 0 : index
      %z = arith.constant 9.0 : f32
      %n = tensor.dim %x0, %c0 : {ROW}
      %e = tensor.empty(%n, %n) : {MATRIX}
      %f = linalg.fill ins(%z : f32) outs(%e : {MATRIX}) -> {MATRIX}
    """
    diagonal = [("%f", MATRIX, "(a) -> (a, a)")]
    body += generic("%d", [("%x0", ROW, "(a) -> (a)")], diagonal, "p", copy) + "\n"
    body += add_one("%r", "%d", "%y0", MATRIX, "(a, b) -> (a, b)", "(a, b) -> (a, b)")
    kernel = built(program([ROW], [MATRIX], body + "\nreturn %r"))
    for size in (0, 1, 3, 17, 33):
        x = random_values(size)
        expected = np.full((size, size), 10, np.float32)
        np.fill_diagonal(expected, x + np.float32(1))
        np.testing.assert_array_equal(run(kernel, [x], expected.shape), expected)


def test_one_tensor_returned_twice_is_copied():
    body = add_one("%r", "%x0", "%y0") + "\nreturn %r, %r"
    kernel = built(program([ROW], [ROW, ROW], body))
    x = random_values(33)
    for got in run(kernel, [x], (33,), (33,)):
        np.testing.assert_array_equal(got, x + np.float32(1))


def test_arguments_and_constants_that_are_returned_are_copied():
    kind = "tensor<3xf32>"
    body = f"""%c = arith.constant dense<[1.0, 2.0, 5.0]> : {kind}
      %s = arith.constant dense<4.0> : {kind}
      return %x0, %c, %s"""
    kernel = built(program([kind], [kind] * 3, body))
    x = random_values(3)
    got = run(kernel, [x], (3,), (3,), (3,))
    for a, b in zip(got, (x, [1, 2, 5], [4, 4, 4]), strict=True):
        np.testing.assert_array_equal(a, np.float32(b))


def test_a_scalar_read_from_a_computed_tensor_splits_the_program():
    total = """^bb0(%p: f32, %o: f32):
      %t = arith.addf %p, %o : f32
      linalg.yield %t : f32"""
    scale = """^bb0(%p: f32, %o: f32):
      %t = arith.divf %p, %whole : f32
      linalg.yield %t : f32"""
    body = """%z = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<f32>
      %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
    """
    body += generic(
        "%s", [("%x0", ROW, "(a) -> (a)")], [("%f", "tensor<f32>", "(a) -> ()")], "r", total
    )
    body += "\n%whole = tensor.extract %s[] : tensor<f32>\n"
    body += generic("%r", [("%x0", ROW, "(a) -> (a)")], [("%y0", ROW, "(a) -> (a)")], "p", scale)
    kernel = built(program([ROW], [ROW], body + "\nreturn %r"))
    for size in (1, 16, 33):
        x = np.abs(random_values(size)) + 1
        np.testing.assert_allclose(run(kernel, [x], (size,)), x / x.sum(), rtol=1e-5)


def test_a_scalar_read_through_a_slice_has_memory():
    scale = """^bb0(%p: f32, %o: f32):
      %t = arith.divf %p, %second : f32
      linalg.yield %t : f32"""
    body = f"""%c0 = arith.constant 0 : index
      %n = tensor.dim %x0, %c0 : {ROW}
      %e = tensor.empty(%n) : {ROW}
    """
    body += add_one("%v", "%x0", "%e")
    body += f"""
      %s = tensor.extract_slice %v[1] [1] [1] : {ROW} to tensor<f32>
      %second = tensor.extract %s[] : tensor<f32>
    """
    body += generic("%r", [("%x0", ROW, "(a) -> (a)")], [("%y0", ROW, "(a) -> (a)")], "p", scale)
    kernel = built(program([ROW], [ROW], body + "\nreturn %r"))
    for size in (2, 17, 33):
        x = np.abs(random_values(size)) + 1
        np.testing.assert_allclose(run(kernel, [x], (size,)), x / (x[1] + 1), rtol=1e-5)
