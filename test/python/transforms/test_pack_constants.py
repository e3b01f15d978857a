"""Weights that are constants: laid out while compiling, as the tensor programs for others do it."""

from typing import Any

import numpy as np
import pytest

import relax_mlir
from relax_mlir.schedule.build.packed_constants import fill_filters, fill_weights
from relax_mlir.schedule.build.packed_weights import ALONE, PAIRS, Groups

pytestmark = pytest.mark.usefixtures("llvm_turns")

PRODUCT = """
!x = tensor<?x{k}x{e}, #graph.shape<["m", {k}]>>
!y = tensor<?x{n}x{s}, #graph.shape<["m", {n}]>>
!wide = tensor<?x{k}x{s}, #graph.shape<["m", {k}]>>
func.func @main(%x: !x {{graph.name = "x"}}, %w: tensor<{a}x{b}x{e}> {{graph.name = "w"}}) -> !y
    attributes {{graph.num_inputs = 1 : i64}} {{
  %l = "graph.astype"(%x) {{dtype = {s}}} : (!x) -> !wide
  %r = "graph.astype"(%w) {{dtype = {s}}} : (tensor<{a}x{b}x{e}>) -> tensor<{a}x{b}x{s}>
  %t = "graph.permute_dims"(%r) {{axes = array<i64: {axes}>}}
      : (tensor<{a}x{b}x{s}>) -> tensor<{k}x{n}x{s}>
  %0 = "graph.matmul"(%l, %t) : (!wide, tensor<{k}x{n}x{s}>) -> !y
  return %0 : !y
}}"""
GROUPS = {"f32": ALONE, "f16": ALONE, "bf16": PAIRS, "i8": Groups(4, is_biased=True)}
TARGET = "x86-64-v4+avx512vnni"


def product(layout: str, n: int, k: int, element: str = "f32") -> str:
    """The text of a product with weights [n, k] or [k, n]."""
    sums = "i32" if element == "i8" else "f32"
    a, b = (n, k) if layout == "nk" else (k, n)
    axes = "1, 0" if layout == "nk" else "0, 1"
    return PRODUCT.format(n=n, k=k, a=a, b=b, e=element, s=sums, axes=axes)


def random_weights(random: np.random.Generator, shape: tuple[int, ...], element: str) -> Any:
    if element == "i8":
        return random.integers(-128, 128, shape, np.int8)
    if element == "bf16":
        return (random.standard_normal(shape, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return random.standard_normal(shape).astype({"f16": np.float16, "f32": np.float32}[element])


@pytest.mark.rotate(3)
@pytest.mark.parametrize("layout", ["nk", "kn"])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (31, 64), (33, 7), (65, 127)])
@pytest.mark.parametrize("element", sorted(GROUPS))
def test_panels_are_those_of_the_tensor_program(layout, n, k, element):
    made = relax_mlir.interpret(packing(product(layout, n, k, element)))["main_params"]
    weights = random_weights(
        np.random.default_rng(n), (n, k) if layout == "nk" else (k, n), element
    )
    expected = np.asarray(made(weights))
    panels = np.zeros(expected.shape, weights.dtype)
    groups = GROUPS[element] if expected.ndim == 4 else ALONE
    assert len(list(fill_weights(weights, panels, layout, groups))) == len(panels)
    np.testing.assert_array_equal(panels.view(np.uint8), expected.view(np.uint8))


def packing(text: str) -> str:
    """The module with its parameters lifted."""
    from relax_mlir.bindings import ir
    from relax_mlir.dialects import make_context
    from relax_mlir.passes import Pipeline

    passes = (
        "relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,"
        f"relax-pack-weights{{target={TARGET}}},relax-pack-filters{{target={TARGET}}},"
        "relax-lift-params,symbol-dce"
    )
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        Pipeline.parse(f"builtin.module({passes})").run(module)
        return str(module)


@pytest.mark.rotate(2)
@pytest.mark.parametrize("layout", ["nk", "kn"])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (31, 64), (33, 7), (65, 127)])
def test_products(layout, n, k):
    random = np.random.default_rng(n)
    weights = random.standard_normal((n, k) if layout == "nk" else (k, n), np.float32)
    exe = relax_mlir.compile(product(layout, n, k), opt_level=2, parameters={"w": weights})
    assert exe.functions == ("main",)
    calls = exe.metadata["functions"]["main"]["calls"]
    assert n == 1 or all("packed" in name for name in calls)  # one element is a splat
    right = weights.astype(np.float64)
    right = right.T if layout == "nk" else right
    for m in (0, 1, 2, 7, 8, 9, 13, 33):
        x = random.standard_normal((m, k), np.float32)
        expected = x.astype(np.float64) @ right
        np.testing.assert_allclose(exe["main"](x), expected, rtol=1e-4, atol=1e-5 * k)


def test_integers_are_exact():
    random = np.random.default_rng(0)
    weights = random_weights(random, (33, 101), "i8")
    exe = relax_mlir.compile(product("nk", 33, 101, "i8"), parameters={"w": weights})
    for m in (0, 1, 5, 17):
        x = random_weights(random, (m, 101), "i8")
        expected = x.astype(np.int32) @ weights.T.astype(np.int32)
        np.testing.assert_array_equal(exe["main"](x), expected)


def test_panels_in_a_file_of_weights(tmp_path):
    """What was laid out is stored as it is, once, beside the shared object."""
    random = np.random.default_rng(0)
    weights = random.standard_normal((96, 200), np.float32)
    exe = relax_mlir.compile(product("nk", 96, 200), parameters={"w": weights})
    exe.save(tmp_path / "made.so", external_data=True)
    (data,) = tmp_path.glob("*.safetensors")
    assert weights.nbytes <= data.stat().st_size < 1.5 * weights.nbytes
    x = random.standard_normal((5, 200), np.float32)
    again = relax_mlir.load(tmp_path / "made.so")["main"](x)
    np.testing.assert_array_equal(again, exe["main"](x))
    np.testing.assert_allclose(again, x.astype(np.float64) @ weights.T, rtol=1e-4, atol=1e-3)


SHARED = """
!x = tensor<?x7xf32, #graph.shape<["m", 7]>>
!y = tensor<?x33xf32, #graph.shape<["m", 33]>>
!w = tensor<33x7xf32>
func.func @main(%ids: tensor<?xi32, #graph.shape<["m"]>>, %w: !w {graph.name = "w"}) -> !y {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (!w) -> tensor<7x33xf32>
  %x = "graph.take"(%w, %ids) {axis = 0 : i64} : (!w, tensor<?xi32, #graph.shape<["m"]>>) -> !x
  %0 = "graph.matmul"(%x, %t) : (!x, tensor<7x33xf32>) -> !y
  return %0 : !y
}
func.func @other(%x: !x, %w: !w {graph.name = "w"}) -> (!y, !w, !w) {
  %t = "graph.permute_dims"(%w) {axes = array<i64: 1, 0>} : (!w) -> tensor<7x33xf32>
  %0 = "graph.matmul"(%x, %t) : (!x, tensor<7x33xf32>) -> !y
  %1 = "graph.exp"(%w) : (!w) -> !w
  return %0, %1, %w : !y, !w, !w
}"""


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_shared_weights(opt_level):
    """Read by products and lookups, plainly, and as a result, in two functions."""
    random = np.random.default_rng(0)
    w = random.standard_normal((33, 7), np.float32)
    exe = relax_mlir.compile(SHARED, opt_level=opt_level, parameters={"w": w})
    right = w.T.astype(np.float64)
    for m in (0, 1, 5):
        ids = random.integers(0, 33, m, np.int32)
        np.testing.assert_allclose(exe["main"](ids), w[ids] @ right, rtol=1e-4, atol=1e-5)
        x = random.standard_normal((m, 7), np.float32)
        y, e, same = exe["other"](x)
        np.testing.assert_allclose(y, x @ right, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(e, np.exp(w.astype(np.float64)), rtol=1e-6)
        np.testing.assert_array_equal(same, w)


CONVOLUTION = """
!x = tensor<?x{c}x?x9xf32, #graph.shape<["b", {c}, "h", 9]>>
!w = tensor<{o}x{c}x{u}x{v}xf32>
!y = tensor<?x{o}x?x{width}xf32, #graph.shape<["b", {o}, "h - {u} + 1", {width}]>>
func.func @main(%x: !x {{graph.name = "x"}}, %w: !w {{graph.name = "w"}}) -> !y
    attributes {{graph.num_inputs = 1 : i64, graph.facts = ["h >= {u}"]}} {{
  %0 = "graph.nn_conv2d"(%x, %w) {{strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 1 : i64}} : (!x, !w) -> !y
  return %0 : !y
}}"""


@pytest.mark.rotate(2)
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (33, 3, 3, 2), (31, 8, 1, 5), (64, 5, 3, 3)])
def test_filters(shape):
    o, c, u, v = shape
    random = np.random.default_rng(o)
    filters = random.standard_normal(shape, np.float32)
    text = CONVOLUTION.format(o=o, c=c, u=u, v=v, width=10 - v)
    made = np.asarray(relax_mlir.interpret(packing(text))["main_params"](filters))
    panels = np.zeros_like(made)
    assert len(list(fill_filters(filters, panels))) == len(panels)
    np.testing.assert_array_equal(panels, made)
    exe = relax_mlir.compile(text, opt_level=2, parameters={"w": filters})
    assert exe.functions == ("main",)
    for b, h in ((0, u), (1, u), (2, 7)):
        x = random.standard_normal((b, c, h, 9), np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (u, v), (2, 3))
        expected = np.einsum("bchwuv,ocuv->bohw", windows, filters)
        np.testing.assert_allclose(exe["main"](x), expected, rtol=1e-4, atol=1e-4)
