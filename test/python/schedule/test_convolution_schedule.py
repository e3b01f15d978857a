"""The convolution rule: what it schedules, and epilogues, against float64 NumPy."""

import ml_dtypes
import numpy as np
import pytest
from scheduled import ZEN5, built_from_graph, runnable

import relax_mlir
from relax_mlir.errors import CompileError
from relax_mlir.symbolic import parse


def _tensor(*dims: int | str) -> str:
    shape = "x".join("?" if isinstance(dim, str) else str(dim) for dim in dims)
    names = ", ".join(f'"{dim}"' if isinstance(dim, str) else str(dim) for dim in dims)
    names = f", #graph.shape<[{names}]>" if "?" in shape else ""
    return f"tensor<{shape}xf32{names}>"


def _convolution(image, weight, strides, padding, groups=1, flags="none") -> tuple[str, str]:
    """The text of an op with fast-math flags, and the type of its result."""
    pixels = [
        f"({image[2 + i]} + {padding[i] + padding[i + 2]} - {weight[2 + i]})"
        f" floordiv {strides[i]} + 1"
        for i in range(2)
    ]
    pixels = [str(parse(extent)) for extent in pixels]
    result = _tensor(image[0], weight[0], *pixels)
    pads = ", ".join(map(str, padding))
    return (
        f'"graph.nn_conv2d"(%x, %w) {{strides = array<i64: {strides[0]}, {strides[1]}>, '
        f"padding = array<i64: {pads}>, dilation = array<i64: 1, 1>, groups = {groups} : i64, "
        f"graph.fastmath = #arith.fastmath<{flags}>}}"
        f" : ({_tensor(*image)}, {_tensor(*weight)}) -> {result}",
        result,
    )


def _reference(x, w, strides, padding):
    top, left, bottom, right = padding
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    view = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    view = view[:, :, :: strides[0], :: strides[1]]
    return np.einsum("nchwuv,fcuv->nfhw", view, w.astype(np.float64), optimize=True)


@pytest.mark.parametrize(
    ("weight", "groups", "rule"),
    [((40, 3, 3, 3), 1, "convolution"), ((32, 1, 3, 3), 2, "convolution"),
     ((6, 1, 3, 3), 6, "fallback")],
)  # fmt: skip
def test_rule(weight, groups, rule) -> None:
    image = ("n", weight[1] * groups, "h", "w")
    op, kind = _convolution(image, weight, (1, 1), (1, 1, 1, 1), groups)
    text = f"func.func @main(%x: {_tensor(*image)}, %w: {_tensor(*weight)}) -> {kind} {{\n"
    built = built_from_graph(f"{text}  %0 = {op}\n  return %0 : {kind}\n}}")
    assert built.rule == rule


CASES = (
    ((33, 5, 3, 3), (1, 1), (1, 1, 1, 1)),
    ((16, 9, 1, 1), (1, 1), (0, 0, 0, 0)),
    ((71, 33, 1, 1), (1, 1), (0, 0, 0, 0)),
    ((33, 6, 1, 1), (1, 1), (1, 0, 0, 2)),
    ((12, 7, 1, 1), (2, 2), (0, 0, 0, 0)),
    ((75, 65, 1, 1), (2, 3), (0, 0, 0, 0)),
    ((70, 2, 3, 3), (2, 2), (1, 1, 1, 1)),
    ((8, 3, 7, 7), (2, 2), (3, 3, 3, 3)),
    ((43, 2, 3, 4), (2, 3), (1, 2, 0, 1)),
    ((12, 300, 2, 2), (1, 1), (0, 1, 1, 0)),
    ((9, 4, 2, 5), (1, 3), (0, 2, 1, 4)),
)
# Whole blocks of channels, and blocks with some more.
CHANNELS = (
    ((33, 16, 5, 5), (1, 1), (2, 2, 2, 2)),
    ((16, 37, 3, 3), (2, 3), (1, 0, 0, 2)),
)
ALGEBRAIC = (
    ((33, 17, 3, 3), (1, 1, 1, 1)),
    ((16, 130, 3, 3), (0, 0, 0, 0)),
    ((43, 16, 3, 3), (2, 0, 1, 3)),
)
SIZES = (
    (1, 7, 7), (2, 14, 15), (1, 3, 131), (1, 29, 28), (1, 9, 95), (2, 31, 64), (0, 9, 9),
    (13, 9, 7), (2, 58, 8),
)  # fmt: skip


@pytest.mark.rotate(4)
@pytest.mark.parametrize("level", [2, 3])
@pytest.mark.parametrize(("weight", "strides", "padding"), CASES)
def test_bias_residual_and_relu_are_fused(weight, strides, padding, level) -> None:
    """The kernel packs the filters itself at level 2."""
    _check_fused(weight, strides, padding, level, "none")


@pytest.mark.parametrize(("level", "case"), [(2, 0), (3, 1), (3, 2)])
def test_fused_after_winograd_tiles(level, case) -> None:
    weight, padding = ALGEBRAIC[case]
    _check_fused(weight, (1, 1), padding, level, "reassoc,nnan,ninf")


@pytest.mark.parametrize("target", ZEN5)
def test_copied_channel_by_channel(target) -> None:
    for case in (0, 6, 9):
        weight, strides, padding = CASES[case]
        _check_fused(weight, strides, padding, 3, "none", target)


@pytest.mark.rotate(3)
@pytest.mark.parametrize("target", runnable("x86-64-v3", "x86-64-v2"))
@pytest.mark.parametrize("case", [5, 6, 9, *CHANNELS])
def test_channels_side_by_side(case, target) -> None:
    weight, strides, padding = CASES[case] if isinstance(case, int) else case
    _check_fused(weight, strides, padding, 3, "none", target)


@pytest.mark.parametrize("level", [2, 3])
def test_many_channels_of_few_pixels(level) -> None:
    """The last vector of pixels would be nearly empty, so lanes run along filters."""
    sizes = (2, 1, 1), (1, 3, 11), (2, 7, 7), (1, 5, 13), (0, 2, 2)
    _check_fused((20, 250, 1, 1), (1, 1), (0, 0, 0, 0), level, "none", sizes=sizes)


def _check_fused(weight, strides, padding, level, flags, target="native", sizes=SIZES) -> None:
    """Compares with NumPy, for sizes that the compiler does not know."""
    image = ("n", weight[1], "h", "w")
    op, kind = _convolution(image, weight, strides, padding, flags=flags)
    bias = _tensor(weight[0], 1, 1)
    exe = relax_mlir.compile(
        f"""
        func.func @main(%x: {_tensor(*image)} {{graph.name = "x"}}, %r: {kind} {{graph.name = "r"}},
            %w: {_tensor(*weight)} {{graph.name = "w"}}, %b: {bias} {{graph.name = "b"}}) -> {kind}
            attributes {{graph.num_inputs = 2 : i64}} {{
          %0 = {op}
          %1 = "graph.add"(%0, %b) : ({kind}, {bias}) -> {kind}
          %2 = "graph.add"(%1, %r) : ({kind}, {kind}) -> {kind}
          %3 = "graph.nn_relu"(%2) : ({kind}) -> {kind}
          return %3 : {kind}
        }}""",
        target,
        opt_level=level,
    )
    kernels = [name for name in exe.metadata["kernels"] if name != "pack_filters"]
    assert kernels == ["fused_conv2d_add_relu" + ("_packed" if level == 3 else "")]
    generator = np.random.default_rng(sum(weight))
    w = generator.standard_normal(weight).astype(np.float32)
    b = generator.standard_normal((weight[0], 1, 1)).astype(np.float32)
    parameters = exe["main_params"](w, b) if level == 3 else (w, b)
    for n, h, width in sizes:
        if h < weight[2] or width < weight[3]:
            continue
        x = generator.standard_normal((n, weight[1], h, width)).astype(np.float32)
        expected = _reference(x, w, strides, padding) + b
        residual = generator.standard_normal(expected.shape).astype(np.float32)
        actual = exe["main"](x, residual, *parameters)
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, np.maximum(expected + residual, 0), atol=2e-4, rtol=1e-4)


def _three_by_three(channels: int, flags: str, dtype: str = "f32") -> relax_mlir.Executable:
    """A convolution of as many filters as channels, whose result is as large as the image."""
    weight = (channels, channels, 3, 3)
    image = ("n", channels, "h", "w")
    op, kind = _convolution(image, weight, (1, 1), (1, 1, 1, 1), flags=flags)
    arguments = f"%x: {_tensor(*image)}, %w: {_tensor(*weight)}"
    text = f"func.func @main({arguments}) -> {kind} {{\n  %0 = {op}\n  return %0 : {kind}\n}}"
    return relax_mlir.compile(text.replace("xf32", f"x{dtype}"))


@pytest.mark.parametrize(("dtype", "rounding"), [("bf16", 2**-8), ("f16", 2**-11)])
def test_tiles_of_narrow_floats(dtype, rounding) -> None:
    narrow = ml_dtypes.bfloat16 if dtype == "bf16" else np.float16
    exe = _three_by_three(33, "fast", dtype)
    generator = np.random.default_rng(7)
    w = generator.standard_normal((33, 33, 3, 3)).astype(narrow)
    x = generator.standard_normal((3, 33, 9, 20)).astype(narrow)
    expected = _reference(x, w, (1, 1), (1, 1, 1, 1))
    actual = exe["main"](x, w).astype(np.float64)
    np.testing.assert_allclose(actual, expected, rtol=rounding, atol=1e-4)


def test_tiles_of_products_are_as_accurate_as_sums() -> None:
    """Four pixels by 16 products: no worse than the sums of 9 products for each channel in f32."""
    exe = _three_by_three(96, "fast")
    generator = np.random.default_rng(5)
    w = generator.standard_normal((96, 96, 3, 3)).astype(np.float32)
    x = generator.standard_normal((2, 96, 13, 21)).astype(np.float32)
    expected = _reference(x, w, (1, 1), (1, 1, 1, 1))
    error = np.abs(exe["main"](x, w) - expected)
    # One rounding for each sum of a chain of 96, of values that grow to the spread of the result.
    spread, epsilon = expected.std(), np.finfo(np.float32).eps / 2
    assert error.max() <= 96 * epsilon * spread
    assert np.sqrt((error**2).mean()) <= np.sqrt(96) * epsilon * spread
    whole = [generator.integers(-8, 9, a.shape).astype(np.float32) for a in (x, w)]
    np.testing.assert_array_equal(exe["main"](*whole), _reference(*whole, (1, 1), (1, 1, 1, 1)))


@pytest.mark.parametrize("value", [np.inf, np.nan, np.float32(3e38)])
@pytest.mark.parametrize("flags", ["none", "reassoc", "fast"])
def test_reach_of_nonfinite_values(value, flags) -> None:
    exe = _three_by_three(16, flags)
    generator = np.random.default_rng(6)
    w = generator.standard_normal((16, 16, 3, 3)).astype(np.float32)
    x = generator.standard_normal((1, 16, 20, 30)).astype(np.float32)
    clean = exe["main"](x, w).copy()
    x[0, 3, 8, 13] = value
    actual = exe["main"](x, w)
    rows, columns = np.indices((20, 30))
    near = (abs(rows - 8) <= 1) & (abs(columns - 13) <= 1)
    assert np.isfinite(value) or not np.isfinite(actual[..., near]).any()
    if flags == "fast":  # tiles begin at even pixels: rows 6 to 9, columns 12 to 15 have it
        near = (rows >= 6) & (rows < 10) & (columns >= 12) & (columns < 16)
    np.testing.assert_array_equal(actual[..., ~near], clean[..., ~near])


def test_flags_are_checked() -> None:
    op, kind = _convolution((1, 3, 8, 8), (8, 3, 3, 3), (1, 1), (0, 0, 0, 0))
    text = f"func.func @main(%x: {_tensor(1, 3, 8, 8)}, %w: {_tensor(8, 3, 3, 3)}) -> {kind}"
    op = op.replace("#arith.fastmath<none>", '"fast"')
    with pytest.raises(CompileError, match=r"graph\.fastmath"):
        relax_mlir.compile(f"{text} {{\n  %0 = {op}\n  return %0 : {kind}\n}}")
