"""The matmul rule against NumPy in float64, at the sizes where tiles, vectors and blocks end."""

import numpy as np
import pytest
from matmul_programs import (
    AVX2,
    MULTIPLY_ADD,
    NATIVE,
    Kernel,
    function,
    generic,
    pack,
    product,
    schedule,
    tensor,
)
from scheduled import before_a_border, runnable

import relax_mlir

MATRIX = tensor(None, None)
SIZES_M = [0, 1, 2, 3, 5, 7, 8, 9, 13, 14, 15, 16, 17, 31, 33, 64, 65, 127, 129]
SIZES_N = [1, 7, 33, 576]
SIZES_K = [0, 1, 7, 100]
RANDOM = np.random.default_rng(0)


def random(*shape: int, dtype: type = np.float32) -> np.ndarray:
    """Normally distributed values."""
    return RANDOM.standard_normal(shape).astype(dtype)


def check(result: np.ndarray, expected: np.ndarray, depth: int, tolerance: float = 1e-6) -> None:
    """Compares with an error that grows with the count of terms of a sum."""
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=tolerance * (depth + 4))


def exact(x: np.ndarray) -> np.ndarray:
    """In float64."""
    return x.astype(np.float64)


def matmul_text(rhs: str, dims: dict[str, int | None] | None = None) -> str:
    """x[m, k] times w[`rhs`], with dynamic extents or those of `dims`."""
    dims = dims or {}
    x, w, out = (tensor(*(dims.get(d) for d in at)) for at in ("mk", rhs, "mn"))
    body = product("%c", "mnk", ("%x", "m, k", x), ("%w", ", ".join(rhs), w), ("%out", "m, n", out))
    return function([("%x", x), ("%w", w), ("%out", out)], 1, body, "%c")


@pytest.fixture(scope="module", params=["nk", "kn"])
def plain(request) -> tuple[str, Kernel]:
    """The product for each layout of the weights."""
    return request.param, Kernel(matmul_text(request.param))


@pytest.mark.parametrize("m", SIZES_M)
def test_product_at_sizes_around_tiles(plain, m):
    rhs, kernel = plain
    for n in SIZES_N:
        for k in SIZES_K:
            check_plain(kernel, rhs, m, n, k)


@pytest.mark.parametrize("k", [767, 768, 769, 1537])
@pytest.mark.parametrize("m", [1, 9, 33])
def test_product_at_depths_around_blocks(plain, m, k):
    rhs, kernel = plain
    check_plain(kernel, rhs, m, 40, k)


def test_product_of_several_row_blocks_and_panel_groups(plain):
    rhs, kernel = plain
    check_plain(kernel, rhs, 300, 1100, 50)
    check_plain(kernel, rhs, 5, 4500, 9)


def check_plain(kernel: Kernel, rhs: str, m: int, n: int, k: int) -> None:
    """One call of the product."""
    x, w = random(m, k), random(n, k)
    out = np.full((m, n), np.nan, np.float32)
    kernel(x, w if rhs == "nk" else np.ascontiguousarray(w.T), out)
    check(out, exact(x) @ exact(w).T, k)


@pytest.mark.parametrize("rhs", ["nk", "kn"])
def test_product_for_narrower_vectors(rhs):
    kernel = Kernel(matmul_text(rhs), AVX2)
    for m in [1, 2, 3, 4, 5, 6, 7, 11, 12, 13]:
        for n in [1, 8, 15, 16, 17, 31]:
            for k in [0, 1, 8, 33]:
                check_plain(kernel, rhs, m, n, k)


@pytest.mark.parametrize("m", [1, 4, 20])
def test_product_with_static_extents(m):
    kernel = Kernel(matmul_text("nk", {"m": m, "n": 33, "k": 70}))
    check_plain(kernel, "nk", m, 33, 70)


@pytest.mark.parametrize(("n", "k"), [(290, 100), (33, 1024), (48, 1536), (1090, 1600)])
def test_rows_that_are_read_in_place_or_copied(n, k):
    # Rows of 1024 elements share sets of the cache; 1600 are more than one block of k.
    kernel = Kernel(matmul_text("nk", {"n": n, "k": k}))
    for m in (65, 71, 129, 300):
        check_plain(kernel, "nk", m, n, k)


def test_left_side_stored_by_columns():
    body = product(
        "%c", "mnk", ("%x", "k, m", MATRIX), ("%w", "n, k", MATRIX), ("%out", "m, n", MATRIX)
    )
    arguments = [("%x", MATRIX), ("%w", MATRIX), ("%out", MATRIX)]
    kernel = Kernel(function(arguments, 1, body, "%c"))
    for m, n, k in [(1, 5, 40), (3, 17, 16), (8, 9, 17), (20, 40, 100), (33, 33, 1)]:
        x, w, out = random(k, m), random(n, k), np.full((m, n), np.nan, np.float32)
        kernel(x, w, out)
        check(out, exact(x).T @ exact(w).T, k)


def test_threads_share_the_work():
    kernel = Kernel(matmul_text("nk"))
    for threads in (1, 2, 3):
        kernel.library.rx_set_threads(threads)
        for m, n in [(1, 700), (9, 700), (130, 200)]:
            check_plain(kernel, "nk", m, n, 100)


def test_nothing_past_the_output_is_written():
    kernel = Kernel(matmul_text("nk"))
    for m, n in [(3, 7), (15, 33), (9, 1)]:
        memory = np.full(m * n + 64, 42, np.float32)
        out = memory[: m * n].reshape(m, n)
        kernel(random(m, 5), random(n, 5), out)
        assert (memory[m * n :] == 42).all()
        assert not (out == 42).any()


SILU = """
    ^bb0(%a: f32, %o: f32):
      %y0 = arith.constant 1.0 : f32
      %y1 = arith.negf %a : f32
      %y2 = math.exp %y1 : f32
      %y3 = arith.addf %y0, %y2 : f32
      %y4 = arith.divf %a, %y3 : f32
      linalg.yield %y4 : f32"""
ADD = """
    ^bb0(%a: f32, %b: f32, %o: f32):
      %y = arith.addf %a, %b : f32
      linalg.yield %y : f32"""
MULTIPLY = ADD.replace("addf", "mulf")


def silu(x: np.ndarray) -> np.ndarray:
    """x * sigmoid(x)."""
    return x / (1 + np.exp(-x))


def test_epilogue_of_bias_activation_and_residual():
    vector = tensor(None)
    at = ("%out", "m, n", MATRIX)
    body = (
        product("%c", "mnk", ("%x", "m, k", MATRIX), ("%w", "n, k", MATRIX), at)
        + generic("%d", "mn", [("%c", "m, n", MATRIX), ("%bias", "n", vector)], at, ADD)
        + generic("%e", "mn", [("%d", "m, n", MATRIX)], at, SILU)
        + generic("%f", "mn", [("%r", "m, n", MATRIX), ("%e", "m, n", MATRIX)], at, ADD)
        + generic("%g", "mn", [("%f", "m, n", MATRIX), ("%scale", "m", vector)], at, MULTIPLY)
    )
    arguments = [
        ("%x", MATRIX), ("%w", MATRIX), ("%bias", vector), ("%r", MATRIX), ("%scale", vector),
        ("%out", MATRIX),
    ]  # fmt: skip
    kernel = Kernel(function(arguments, 1, body, "%g"))
    for m, n, k in [(1, 33, 20), (3, 7, 7), (13, 64, 100), (31, 65, 16)]:
        x, w, bias, r, scale = random(m, k), random(n, k), random(n), random(m, n), random(m)
        out = np.full((m, n), np.nan, np.float32)
        kernel(x, w, bias, r, scale, out)
        inner = silu(exact(x) @ exact(w).T + bias) + r
        check(out, inner * scale[:, None], k)


def gated(element: str = "f32") -> str:
    """Two products of one left side: silu(x gate) * (x up)."""
    at = ("%out", "m, n", MATRIX)
    x = ("%x", "m, k", MATRIX)
    gate = product("%g", "mnk", x, ("%wg", "n, k", MATRIX), ("%e1", "m, n", MATRIX))
    up = product("%u", "mnk", x, ("%wu", "n, k", MATRIX), ("%e2", "m, n", MATRIX))
    body = f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %out, %c0 : {MATRIX}
  %n = tensor.dim %out, %c1 : {MATRIX}
  %e1 = tensor.empty(%m, %n) : {MATRIX}
  %e2 = tensor.empty(%m, %n) : {MATRIX}"""
    body += gate + up + generic("%s", "mn", [("%g", "m, n", MATRIX)], ("%e1", "m, n", MATRIX), SILU)
    body += generic("%o", "mn", [("%s", "m, n", MATRIX), ("%u", "m, n", MATRIX)], at, MULTIPLY)
    arguments = [("%x", MATRIX), ("%wg", MATRIX), ("%wu", MATRIX), ("%out", MATRIX)]
    return function(arguments, 1, body, "%o")


def test_two_products_of_one_left_side():
    kernel = Kernel(gated())
    for m, n, k in [(1, 100, 33), (2, 7, 5), (8, 33, 17), (14, 40, 64), (33, 65, 100)]:
        x, gate, up = random(m, k), random(n, k), random(n, k)
        out = np.full((m, n), np.nan, np.float32)
        kernel(x, gate, up, out)
        expected = silu(exact(x) @ exact(gate).T) * (exact(x) @ exact(up).T)
        check(out, expected, k * 4)


def test_two_outputs():
    at = [(f"%out{i}", "m, n", MATRIX) for i in (0, 1)]
    body = product("%c", "mnk", ("%x", "m, k", MATRIX), ("%w", "n, k", MATRIX), at[0])
    body += generic("%d", "mn", [("%c", "m, n", MATRIX), ("%r", "m, n", MATRIX)], at[1], ADD)
    arguments = [(name, MATRIX) for name in ("%x", "%w", "%r", "%out0", "%out1")]
    kernel = Kernel(function(arguments, 2, body, "%c, %d"))
    x, w, r = random(11, 9), random(35, 9), random(11, 35)
    outs = [np.full((11, 35), np.nan, np.float32) for _ in range(2)]
    kernel(x, w, r, *outs)
    check(outs[0], exact(x) @ exact(w).T, 9)
    check(outs[1], exact(x) @ exact(w).T + r, 9)


def test_residual_that_is_updated_in_place():
    at = ("%out", "m, n", MATRIX)
    body = f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %out, %c0 : {MATRIX}
  %n = tensor.dim %out, %c1 : {MATRIX}
  %e = tensor.empty(%m, %n) : {MATRIX}"""
    target = ("%e", "m, n", MATRIX)
    body += product("%c", "mnk", ("%x", "m, k", MATRIX), ("%w", "n, k", MATRIX), target)
    in_place = ADD.replace("%b: f32, ", "").replace("%a, %b", "%a, %o")
    body += generic("%d", "mn", [("%c", "m, n", MATRIX)], at, in_place)
    arguments = [(name, MATRIX) for name in ("%x", "%w", "%out")]
    kernel = Kernel(function(arguments, 1, body, "%d"))
    for m in (1, 20):
        x, w, out = random(m, 9), random(35, 9), random(m, 35)
        expected = exact(x) @ exact(w).T + out
        kernel(x, w, out)
        check(out, expected, 9)


BATCHED = {
    "both": ("bmk", "bkn", "bmn"),
    "shared_weights": ("bmk", "nk", "bmn"),
    "shared_left": ("mk", "bnk", "bmn"),
    "heads_inside": ("mbk", "nbk", "bmn"),
    "heads_outside": ("bmk", "bnk", "mbn"),
    "two_batch_loops": ("abmk", "abkn", "abmn"),
    "two_row_loops": ("abk", "nk", "abn"),
    "two_column_loops": ("mk", "abk", "mab"),
    "vector_left": ("k", "nk", "n"),
    "vector_right": ("mk", "k", "m"),
}


@pytest.mark.parametrize("name", BATCHED)
def test_batch_loops(name):
    lhs, rhs, out = BATCHED[name]
    loops = "".join(sorted({*lhs, *rhs, *out} - {"k"})) + "k"
    kinds = [tensor(*[None] * len(at)) for at in (lhs, rhs, out)]
    maps = [", ".join(at) for at in (lhs, rhs, out)]
    x, w, o = zip(("%x", "%w", "%out"), maps, kinds, strict=True)
    body = product("%c", loops, x, w, o)
    arguments = list(zip(("%x", "%w", "%out"), kinds, strict=True))
    kernel = Kernel(function(arguments, 1, body, "%c"))
    for sizes in [(1, 1, 1, 1, 1), (2, 3, 5, 7, 11), (3, 4, 17, 33, 20), (1, 5, 9, 64, 65)]:
        extents = dict(zip("abmnk", sizes, strict=True))
        left = random(*(extents[d] for d in lhs))
        right = random(*(extents[d] for d in rhs))
        result = np.full([extents[d] for d in out], np.nan, np.float32)
        kernel(left, right, result)
        expected = np.einsum(f"{lhs},{rhs}->{out}", exact(left), exact(right))
        check(result, expected, extents["k"])


def test_rows_of_two_loops_with_an_epilogue():
    cube = tensor(None, None, None)
    at = ("%out", "a, b, n", cube)
    body = (
        product("%c", "abnk", ("%x", "a, b, k", cube), ("%w", "n, k", MATRIX), at)
        + generic("%d", "abn", [("%c", "a, b, n", cube), ("%r", "a, b, n", cube)], at, ADD)
        + generic("%e", "abn", [("%d", "a, b, n", cube), ("%sc", "b, n", MATRIX)], at, MULTIPLY)
    )
    arguments = [("%x", cube), ("%w", MATRIX), ("%r", cube), ("%sc", MATRIX), ("%out", cube)]
    kernel = Kernel(function(arguments, 1, body, "%e"))
    for a, b in [(1, 1), (2, 3), (1, 17), (5, 4), (3, 0)]:
        x, w, r, s = random(a, b, 7), random(33, 7), random(a, b, 33), random(b, 33)
        out = np.full((a, b, 33), np.nan, np.float32)
        kernel(x, w, r, s, out)
        check(out, (exact(x) @ exact(w).T + r) * s, 7)


def test_unit_batch_and_reshaped_result():
    """A batch of one, as graph operators emit it, reshaped to heads."""
    unit, flat, heads = tensor(1, None, None), tensor(1, None, 24), tensor(1, None, 3, 8)
    body = f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c1 : {unit}
  %e = tensor.empty(%m) : {flat}"""
    x, w = ("%x", "0, m, k", unit), ("%w", "0, n, k", tensor(1, 24, None))
    body += product("%c", "bmnk", x, w, ("%e", "b, m, n", flat))
    body += f"""
  %split = tensor.expand_shape %c [[0], [1], [2, 3]] output_shape [1, %m, 3, 8]
    : {flat} into {heads}"""
    operands = [("%split", "b, m, h, d", heads), ("%sc", "h, d", tensor(3, 8))]
    body += generic("%d", "bmhd", operands, ("%out", "b, m, h, d", heads), MULTIPLY)
    arguments = [("%x", unit), ("%w", tensor(1, 24, None)), ("%sc", tensor(3, 8)), ("%out", heads)]
    kernel = Kernel(function(arguments, 1, body, "%d"))
    for m in (1, 5, 9, 30):
        x, w, s = random(1, m, 7), random(1, 24, 7), random(3, 8)
        out = np.full((1, m, 3, 8), np.nan, np.float32)
        kernel(x, w, s, out)
        check(out, (exact(x) @ exact(w)[0].T).reshape(1, m, 3, 8) * s, 7)


def test_heads_that_share_keys():
    """Batch indices may be any function of the batch loops."""
    kinds = [tensor(6, None, 8), tensor(2, None, 8), tensor(6, None, None)]
    x, w, out = zip(
        ("%x", "%w", "%out"), ("h, m, k", "h floordiv 3, n, k", "h, m, n"), kinds, strict=True
    )
    arguments = list(zip(("%x", "%w", "%out"), kinds, strict=True))
    kernel = Kernel(function(arguments, 1, product("%c", "hmnk", x, w, out), "%c"))
    for m in (1, 10):
        x, w = random(6, m, 8), random(2, 19, 8)
        result = np.full((6, m, 19), np.nan, np.float32)
        kernel(x, w, result)
        check(result, exact(x) @ np.repeat(exact(w), 3, 0).transpose(0, 2, 1), 8)


@pytest.mark.parametrize("target", [NATIVE, AVX2], ids=["native", "avx2"])
def test_packed_weights(target):
    columns = 2 * target.host.f32_lanes
    panels, blocks = tensor(None, None, columns), tensor(None, None, columns)
    body = f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : {MATRIX}
  %p = tensor.dim %w, %c0 : {panels}
  %n = tensor.dim %out, %c1 : {MATRIX}
  %e = tensor.empty(%m, %p) : {blocks}"""
    body += product(
        "%c", "mpjk", ("%x", "m, k", MATRIX), ("%w", "p, k, j", panels), ("%e", "m, p, j", blocks)
    )
    body += f"""
  %flat = tensor.collapse_shape %c [[0], [1, 2]] : {blocks} into {MATRIX}
  %cut = tensor.extract_slice %flat[0, 0] [%m, %n] [1, 1] : {MATRIX} to {MATRIX}"""
    operands = [("%cut", "m, n", MATRIX), ("%r", "m, n", MATRIX)]
    body += generic("%d", "mn", operands, ("%out", "m, n", MATRIX), ADD)
    arguments = [("%x", MATRIX), ("%w", panels), ("%r", MATRIX), ("%out", MATRIX)]
    kernel = Kernel(function(arguments, 1, body, "%d"), target)
    for m in (0, 1, 2, 3, 8, 13, 14, 15, 33):
        for n, k in [(1, 7), (33, 101), (576, 20), (17, 0), (64, 1600)]:
            x, w, r = random(m, k), random(n, k), random(m, n)
            out = np.full((m, n), np.nan, np.float32)
            kernel(*map(before_a_border, (x, pack(w, columns), r)), out)
            check(out, exact(x) @ exact(w).T + r, k)


@pytest.mark.parametrize(("n", "k"), [(512, 0), (1023, 3), (512, 28), (512, 29)])
@pytest.mark.parametrize("target", ["native", *runnable("x86-64-v3")])
def test_rows_that_lie_half_a_page_apart(n, k, target):
    x_type, y_type = (f'tensor<?x{d}xf32, #graph.shape<["m", {d}]>>' for d in (k, n))
    w_type, t_type = f"tensor<{n}x{k}xf32>", f"tensor<{k}x{n}xf32>"
    text = f"""
    func.func @main(%x: {x_type}, %w: {w_type}) -> {y_type}
        attributes {{graph.num_inputs = 1 : i64}} {{
      %t = "graph.permute_dims"(%w) {{axes = array<i64: 1, 0>}} : ({w_type}) -> {t_type}
      %y = "graph.matmul"(%x, %t) : ({x_type}, {t_type}) -> {y_type}
      return %y : {y_type}
    }}"""
    executable, w = relax_mlir.compile(text, target, opt_level=3), random(n, k)
    packed = executable["main_params"](w)
    for m in (0, 1, 2, 13, 15, 43, 300):
        x = random(m, k)
        check(executable["main"](x, packed), exact(x) @ exact(w).T, k)


WIDEN = """
    ^bb0(%a: f16, %b: f16, %s: f32):
      %widened_a = arith.extf %a : f16 to f32
      %widened_b = arith.extf %b : f16 to f32
      %ab = arith.mulf %widened_a, %widened_b : f32
      %sum = arith.addf %s, %ab : f32
      linalg.yield %sum : f32"""


def test_half_precision_inputs_are_widened():
    half = tensor(None, None, element="f16")
    for rhs in ("n, k", "k, n"):
        body = product(
            "%c", "mnk", ("%x", "m, k", half), ("%w", rhs, half), ("%out", "m, n", MATRIX), WIDEN
        )
        arguments = [("%x", half), ("%w", half), ("%out", MATRIX)]
        kernel = Kernel(function(arguments, 1, body, "%c"))
        for m, n, k in [(1, 33, 40), (3, 5, 17), (9, 33, 40), (20, 64, 33)]:
            x, w = random(m, k, dtype=np.float16), random(n, k, dtype=np.float16)
            out = np.full((m, n), np.nan, np.float32)
            kernel(x, w if rhs == "n, k" else np.ascontiguousarray(w.T), out)
            check(out, exact(x) @ exact(w).T, k)


def test_half_precision_throughout_is_summed_in_single_precision():
    half = tensor(None, None, element="f16")
    zero = "arith.constant 0.0 : f32"
    body = product(
        "%c", "mnk", ("%x", "m, k", half), ("%w", "n, k", half), ("%out", "m, n", half),
        MULTIPLY_ADD.replace("f32", "f16"),
    ).replace(zero, zero.replace("f32", "f16")).replace(": f32)", ": f16)")  # fmt: skip
    arguments = [("%x", half), ("%w", half), ("%out", half)]
    kernel = Kernel(function(arguments, 1, body, "%c"))
    for m, n, k in [(1, 33, 300), (9, 33, 300)]:
        x, w = random(m, k, dtype=np.float16), random(n, k, dtype=np.float16)
        out = np.full((m, n), np.nan, np.float16)
        kernel(x, w, out)
        np.testing.assert_allclose(out, exact(x) @ exact(w).T, rtol=2e-3, atol=2e-2)


def test_weights_that_pass_through_a_transposing_cast():
    """An elementwise stage before the product is computed while packing."""
    half = tensor(None, None, element="bf16")
    cast = """
    ^bb0(%a: bf16, %o: f32):
      %y = arith.extf %a : bf16 to f32
      linalg.yield %y : f32"""
    body = f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = tensor.dim %x, %c1 : {MATRIX}
  %n = tensor.dim %w, %c0 : {half}
  %e = tensor.empty(%k, %n) : {MATRIX}"""
    body += generic("%v", "kn", [("%w", "n, k", half)], ("%e", "k, n", MATRIX), cast)
    body += product(
        "%c", "mnk", ("%x", "m, k", MATRIX), ("%v", "k, n", MATRIX), ("%out", "m, n", MATRIX)
    )
    arguments = [("%x", MATRIX), ("%w", half), ("%out", MATRIX)]
    kernel = Kernel(function(arguments, 1, body, "%c"))
    for m, n, k in [(1, 33, 40), (12, 33, 40)]:
        x, w = random(m, k), random(n, k)
        bits = (w.view(np.uint32) >> 16).astype(np.uint16)
        rounded = (bits.astype(np.uint32) << 16).view(np.float32)
        out = np.full((m, n), np.nan, np.float32)
        kernel(x, bits, out)
        check(out, exact(x) @ exact(rounded).T, k)


def test_sums_with_an_initial_value():
    text = matmul_text("nk").replace("constant 0.0", "constant 2.5")
    kernel = Kernel(text)
    for m in (1, 9):
        x, w, out = random(m, 7), random(5, 7), np.full((m, 5), np.nan, np.float32)
        kernel(x, w, out)
        check(out, exact(x) @ exact(w).T + 2.5, 7)


REFUSED = {
    "another_sum": matmul_text("nk").replace("addf", "maximumf"),
    "another_product": matmul_text("nk").replace("mulf", "subf"),
    "elementwise_only": function(
        [("%x", MATRIX), ("%out", MATRIX)], 1,
        generic("%c", "mn", [("%x", "m, n", MATRIX)], ("%out", "m, n", MATRIX), SILU), "%c",
    ),
    "transposed_use_of_the_product": function(
        [("%x", MATRIX), ("%w", MATRIX), ("%e", MATRIX), ("%out", MATRIX)], 2,
        product("%c", "mnk", ("%x", "m, k", MATRIX), ("%w", "n, k", MATRIX), ("%e", "m, n", MATRIX))
        + generic("%d", "mn", [("%c", "m, n", MATRIX), ("%c", "n, m", MATRIX)],
                  ("%out", "m, n", MATRIX), ADD), "%c, %d",
    ),
    "reduction_of_the_product": function(
        [("%x", MATRIX), ("%w", MATRIX), ("%e", MATRIX), ("%out", tensor(None))], 2,
        product("%c", "mnk", ("%x", "m, k", MATRIX), ("%w", "n, k", MATRIX), ("%e", "m, n", MATRIX))
        + generic("%d", "mn", [("%c", "m, n", MATRIX)], ("%out", "m", tensor(None)),
                  ADD.replace(", %o: f32", ""), "n"), "%c, %d",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_other_programs_are_left_alone(name):
    assert schedule(REFUSED[name]) is None
