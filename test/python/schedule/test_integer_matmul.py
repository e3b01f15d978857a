"""Products of 8-bit integers against NumPy's 64-bit integers, which are cut to 32 bits."""

from functools import cache

import numpy as np
import pytest
from integer_programs import body, exact, product, random_bytes, tensor, tensor_program
from scheduled import assert_guarded, built, generic, guarded, program, runnable

from relax_mlir.compiler import compile
from relax_mlir.executable import Executable
from relax_mlir.target import host_flags

NATIVE = runnable("native", "x86-64-v4", "x86-64-v3", "x86-64-v2")
MAIN = ["native", "x86-64-v3"]
if "amx_int8" in host_flags():
    NATIVE.append("native+-amx-tile")
    MAIN.append("native+-amx-tile")
SIZES = [
    (0, 3, 4), (2, 0, 3), (5, 40, 0), (1, 1, 1), (3, 7, 100), (14, 32, 64), (15, 33, 65),
    (2, 50, 67), (127, 129, 131), (1, 97, 4001), (33, 2, 20000), (300, 70, 3100),
]  # fmt: skip


@cache
def unpacked(layout: str, target: str) -> Executable:
    """The product for all sizes, with weights that are not packed."""
    return compile(product("m", "n", "k", layout), target)


@pytest.mark.parametrize("layout", ["nk", "kn"])
@pytest.mark.parametrize("target", NATIVE)
def test_products_of_all_sizes(target, layout):
    executable = unpacked(layout, target)
    rng = np.random.default_rng(len(target))
    for m, n, k in SIZES:
        x, w = random_bytes(rng, m, k), random_bytes(rng, n, k)
        stored = w if layout == "nk" else np.ascontiguousarray(w.T)
        np.testing.assert_array_equal(executable["main"](x, stored), exact(x, w))


@pytest.mark.parametrize(
    ("n", "k", "layout", "target"),
    [
        (7, 100, "nk", "native"), (33, 1, "kn", "native"), (70, 3101, "nk", "native"),
        (48, 6400, "nk", "native"), (70, 3101, "nk", NATIVE[-1]),
        (129, 131, "kn", "x86-64-v3"), (5, 0, "nk", "native"), (1024, 17, "nk", "native"),
        *((3, 66, "nk", target) for target in runnable("x86-64-v4")),
    ],
)  # fmt: skip
def test_weights_in_panels(n, k, layout, target):
    executable = compile(product("m", n, k, layout, True), target, opt_level=3)
    rng = np.random.default_rng(n)
    w = random_bytes(rng, n, k)
    packed = executable["main_params"](w if layout == "nk" else np.ascontiguousarray(w.T))
    for m in (0, 1, 2, 5, 13, 14, 15, 43, 300):
        x = random_bytes(rng, m, k)
        np.testing.assert_array_equal(executable["main"](x, packed), exact(x, w))


@pytest.mark.parametrize("target", NATIVE)
def test_all_row_counts(target):
    """Blocks of rows of every height, in one block of k and in several."""
    executable = unpacked("nk", target)
    rng = np.random.default_rng(6)
    for n, k in [(33, 131), (40, 1281), (40, 6501)]:
        x, w = random_bytes(rng, 70, k), random_bytes(rng, n, k)
        expected = exact(x, w)
        for m in range(1, 71):
            np.testing.assert_array_equal(executable["main"](x[:m], w), expected[:m])


@pytest.mark.parametrize("target", NATIVE)
def test_sums_of_extremes(target):
    """Sums that overflow 16 bits at once, and 32 bits at the end: modulo 2^32."""
    executable = unpacked("nk", target)
    for a, b, k in [(-128, -128, 20000), (-128, 127, 20000), (127, 127, 3), (-128, -128, 140001)]:
        for m in (2, 6):
            x, w = np.full((m, k), a, np.int8), np.full((3, k), b, np.int8)
            np.testing.assert_array_equal(executable["main"](x, w), exact(x, w))


@pytest.mark.parametrize("m", [2, 6])
def test_sums_of_extremes_in_panels(m):
    executable = compile(product("m", 3, 20001, "nk", True), opt_level=3)
    for a, b in [(-128, -128), (127, -128)]:
        x, w = np.full((m, 20001), a, np.int8), np.full((3, 20001), b, np.int8)
        actual = executable["main"](x, executable["main_params"](w))
        np.testing.assert_array_equal(actual, exact(x, w))


def test_threads_share_the_work():
    executable = compile(product("m", 190, 1030, "nk", True), opt_level=3)
    rng = np.random.default_rng(1)
    w = random_bytes(rng, 190, 1030)
    packed = executable["main_params"](w)
    for m in (1, 257):
        x = random_bytes(rng, m, 1030)
        for threads in (1, 2, 3):
            executable.threads = threads
            np.testing.assert_array_equal(executable["main"](x, packed), exact(x, w))


@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize(("n", "k"), [(40, 100), (32, 64), (129, 3073)])
def test_sums_are_scaled_and_rounded_in_place(n, k, target):
    """Scale, bias, clamping and rounding to 8 bits are one kernel with the product."""
    left, out = tensor(("m", k), "i8"), tensor(("m", n), "i8")
    widened, sums = left.replace("xi8", "xi32"), out.replace("xi8", "xi32")
    floats = out.replace("xi8", "xf32")
    text = f"""
    func.func @main(%x: {left}, %s: tensor<{n}xf32>, %b: tensor<{n}xf32>, %w: tensor<{n}x{k}xi8>)
        -> {out} attributes {{graph.num_inputs = 3 : i64}} {{
      %l = "graph.astype"(%x) {{dtype = i32}} : ({left}) -> {widened}
      %r = "graph.astype"(%w) {{dtype = i32}} : (tensor<{n}x{k}xi8>) -> tensor<{n}x{k}xi32>
      %t = "graph.permute_dims"(%r) {{axes = array<i64: 1, 0>}}
        : (tensor<{n}x{k}xi32>) -> tensor<{k}x{n}xi32>
      %y = "graph.matmul"(%l, %t) : ({widened}, tensor<{k}x{n}xi32>) -> {sums}
      %f = "graph.astype"(%y) {{dtype = f32}} : ({sums}) -> {floats}
      %m = "graph.multiply"(%f, %s) : ({floats}, tensor<{n}xf32>) -> {floats}
      %a = "graph.add"(%m, %b) : ({floats}, tensor<{n}xf32>) -> {floats}
      %p = "graph.nn_relu"(%a) : ({floats}) -> {floats}
      %o = "graph.round"(%p) : ({floats}) -> {floats}
      %z = "graph.astype"(%o) {{dtype = i8}} : ({floats}) -> {out}
      return %z : {out}
    }}"""
    executable = compile(text, target, opt_level=3)
    rng = np.random.default_rng(n)
    w = random_bytes(rng, n, k)
    scale = (rng.uniform(0.5, 1.5, n) * 0.3 / (74 * k**0.5)).astype(np.float32)
    bias = rng.uniform(-9, 9, n).astype(np.float32)
    packed = executable["main_params"](w)
    for m in (1, 13, 14, 31):
        x = random_bytes(rng, m, k)
        sums = exact(x, w).astype(np.float32)
        expected = np.clip(np.maximum(sums * scale + bias, 0).round(), -128, 127)
        actual = executable["main"](x, scale, bias, packed)
        # A fused multiply-add rounds once: halves may fall on the other side.
        assert np.abs(actual - expected).max() <= 1
        assert (actual == expected).mean() > 0.99
    assert expected.max() > 9, "a test of zeros only"


def run(text: str, x: np.ndarray, w: np.ndarray, shape: tuple[int, ...], target: str) -> np.ndarray:
    """What a tensor program makes of its sides, scheduled by the rule for integers."""
    kernel = built(text, True, target)
    assert kernel.rule == "matmul"
    out, memory = guarded(shape, np.int32)
    kernel(x, w, out)
    assert_guarded(memory)
    return out


FORMS = [
    (left, right, offset)
    for left in ("extsi", "extui")
    for right in ("extsi", "extui")
    for offset in (0, -13)
]


@pytest.mark.parametrize("target", MAIN)
@pytest.mark.parametrize(("left", "right", "offset"), FORMS)
def test_signs_and_a_zero_point(left, right, offset, target):
    text = tensor_program(
        body(left, right, offset),
        ("tensor<?x?xi8>", "m, k"),
        ("tensor<?x?xi8>", "n, k"),
        ("tensor<?x?xi32>", "m, n"),
        "mnk",
    )
    rng = np.random.default_rng(3)
    for m, n, k in [(3, 5, 130), (30, 33, 64), (1, 1, 0), (6, 17, 0), (37, 70, 67)]:
        x, w = random_bytes(rng, m, k), random_bytes(rng, n, k)
        kinds = [np.int8 if name == "extsi" else np.uint8 for name in (left, right)]
        expected = exact(x.view(kinds[0]), w.view(kinds[1]).astype(np.int32) + offset) + 7
        np.testing.assert_array_equal(run(text, x, w, (m, n), target), expected)


@pytest.mark.parametrize("target", MAIN)
def test_a_left_side_stored_by_columns(target):
    text = tensor_program(
        body(),
        ("tensor<?x?xi8>", "k, m"),
        ("tensor<?x?xi8>", "k, n"),
        ("tensor<?x?xi32>", "m, n"),
        "mnk",
    )
    rng = np.random.default_rng(4)
    for m, n, k in [(3, 5, 130), (35, 33, 64), (16, 64, 3), (5, 4, 3100)]:
        x, w = random_bytes(rng, m, k), random_bytes(rng, n, k)
        stored = np.ascontiguousarray(x.T), np.ascontiguousarray(w.T)
        actual = run(text, *stored, (m, n), target)
        np.testing.assert_array_equal(actual, exact(x, w) + 7)


def test_batches():
    text = tensor_program(
        body(),
        ("tensor<?x?x19xi8>", "b, m, k"),
        ("tensor<?x?x19xi8>", "b, n, k"),
        ("tensor<?x?x?xi32>", "b, m, n"),
        "bmnk",
    )
    rng = np.random.default_rng(5)
    x, w = random_bytes(rng, 5, 17, 19), random_bytes(rng, 5, 40, 19)
    actual = run(text, x, w, (5, 17, 40), "native")
    np.testing.assert_array_equal(actual, exact(x, w) + 7)


# What is no group of 8-bit elements is multiplied element by element, or by another rule.
OTHERS = {
    "64-bit sums": (body().replace("i32", "i64"), "i64", lambda x, w: x @ w.T),
    "16-bit sums": (body().replace("i32", "i16"), "i16", lambda x, w: x @ w.T),
    "a shift": (
        body(offset=3).replace("arith.addi %r, %o", "arith.shli %r, %o"),
        "i32", lambda x, w: x @ (w << 3).T,
    ),
    "squares of one side": (
        body().replace("muli %l, %f", "muli %f, %f"), "i32",
        lambda x, w: 0 * x[:, :1] + (w * w).sum(1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_products_of_other_forms(name):
    text, element, expected = OTHERS[name]
    sides = (("tensor<4x9xi8>", "m, k"), ("tensor<35x9xi8>", "n, k"))
    text = tensor_program(text, *sides, (f"tensor<4x35x{element}>", "m, n"), "mnk")
    text = text.replace("7 : i32", f"7 : {element}").replace(
        "(%zero : i32)", f"(%zero : {element})"
    )
    rng = np.random.default_rng(11)
    x, w = random_bytes(rng, 4, 9), random_bytes(rng, 35, 9)
    kind = np.dtype({"i64": np.int64, "i16": np.int16, "i32": np.int32}[element])
    out = np.zeros((4, 35), kind)
    kernel = built(text)
    kernel(x, w, out)
    assert (kernel.rule == "matmul") == (name != "squares of one side")
    widened = expected(x.astype(np.int64), w.astype(np.int64)) + 7
    np.testing.assert_array_equal(out, widened.astype(kind))


@pytest.mark.parametrize("target", MAIN)
def test_products_that_share_a_left_side(target):
    """The product of two products, in one kernel."""
    left, right, out = "tensor<?x?xi8>", "tensor<?x?xi8>", "tensor<?x?xi32>"
    maps = [f"(m, n, k) -> ({indices})" for indices in ("m, k", "n, k", "m, n")]
    own = "(m, n) -> (m, n)"
    lines = ["%zero = arith.constant 7 : i32"]
    lines.append(f"%init = linalg.fill ins(%zero : i32) outs(%y0 : {out}) -> {out}")
    for name, side in (("%first", "%x1"), ("%last", "%x2")):
        ins = [("%x0", left, maps[0]), (side, right, maps[1])]
        lines.append(generic(name, ins, [("%init", out, maps[2])], "ppr", body()))
    multiplied = """
    ^bb0(%l: i32, %r: i32, %s: i32):
      %p = arith.muli %l, %r : i32
      linalg.yield %p : i32"""
    ins = [("%first", out, own), ("%last", out, own)]
    lines += [generic("%z", ins, [("%y0", out, own)], "pp", multiplied), "return %z"]
    kernel = built(program([left, right, right], [out], "\n".join(lines)), True, target)
    assert kernel.rule == "matmul"
    rng = np.random.default_rng(7)
    for m, n, k in [(3, 33, 100), (37, 45, 130), (41, 70, 6501)]:
        x, a, b = (random_bytes(rng, rows, k) for rows in (m, n, n))
        actual, memory = guarded((m, n), np.int32)
        kernel(x, a, b, actual)
        assert_guarded(memory)
        np.testing.assert_array_equal(actual, (exact(x, a) + 7) * (exact(x, b) + 7))
