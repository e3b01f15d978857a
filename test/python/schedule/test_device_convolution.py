"""Convolutions by tiles of devices, interpreted thread by thread, against float64 NumPy."""

import numpy as np
import pytest
from device_modules import built

RESIDUAL = """
!x = tensor<?x6x?x?xf32, #graph.shape<["n", 6, "h", "w"]>>
!y = tensor<?x40x?x?xf32, #graph.shape<["n", 40, "h", "w - 1"]>>
!b = tensor<40x1x1xf32>
func.func @main(%x: !x, %w: tensor<40x3x3x2xf32>, %b: !b, %r: !y) -> (!y, !y) {
  %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 2, 0, 0, 0>,
    dilation = array<i64: 1, 1>, groups = 2 : i64} : (!x, tensor<40x3x3x2xf32>) -> !y
  %1 = "graph.add"(%0, %b) : (!y, !b) -> !y
  %2 = "graph.subtract"(%r, %1) : (!y, !y) -> !y
  %3 = "graph.nn_relu"(%2) : (!y) -> !y
  return %3, %1 : !y, !y
}
"""


def _convolved(x: np.ndarray, w: np.ndarray, front: tuple[int, int]) -> np.ndarray:
    """A convolution whose zeros are in front of rows and columns."""
    x = np.pad(x, ((0, 0), (0, 0), (front[0], 0), (front[1], 0)))
    view = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.einsum("ncyxuv,fcuv->nfyx", view, w)


@pytest.mark.parametrize(("target", "level"), [("gpu", 2), ("gpu", 3), ("vulkan", 2)])
def test_groups_with_an_epilogue(target: str, level: int) -> None:
    module, _, rules = built(RESIDUAL, target, level)
    assert "convolution" in rules
    generator = np.random.default_rng()
    for n, h, width in ((1, 5, 9), (3, 1, 2), (2, 8, 5), (0, 4, 4), (2, 7, 1)):
        x, w, b, r = (
            generator.standard_normal(shape).astype(np.float32)
            for shape in ((n, 6, h, width), (40, 3, 3, 2), (40, 1, 1), (n, 40, h, width - 1))
        )
        sums = np.zeros(r.shape)
        if width > 1:
            parts = [(x[:, 3 * g : 3 * g + 3], w[20 * g : 20 * g + 20]) for g in range(2)]
            sums = np.concatenate(
                [_convolved(*(a.astype(np.float64) for a in part), (2, 0)) for part in parts], 1
            )
        rest, biased = module["main"](x, w, b, r)
        np.testing.assert_allclose(biased, sums + b, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(rest, np.maximum(r - (sums + b), 0), rtol=1e-5, atol=1e-5)


LAST = """
#image = affine_map<(n, y, x, f, u, v, c) -> (n, y * 2 + u, x + v * 2, c)>
#filters = affine_map<(n, y, x, f, u, v, c) -> (u, v, c, f)>
#out = affine_map<(n, y, x, f, u, v, c) -> (n, y, x, f)>
!x = tensor<?x?x?xOWNxSIDE, #graph.shape<["n", "h", "w", OWN]>>
!y = tensor<?x?x?xFILTERSxSUM, #graph.shape<["n", "(h + 1) floordiv 2", "w - 2", FILTERS]>>
!in = tensor<?x?x?xOWNxSIDE>
!padded = tensor<?x?x?xEVERYxSIDE>
!w = tensor<2x3xEVERYxFILTERSxSIDE>
!out = tensor<?x?x?xFILTERSxSUM>
func.func private @last(%image: !x, %filters: !w, %y: !y) -> !y
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x = tensor.cast %image : !x to !in
  %outs = tensor.cast %y : !y to !out
  %n = tensor.dim %x, %c0 : !in
  %h = tensor.dim %x, %c1 : !in
  %w = tensor.dim %x, %c2 : !in
  %rows = arith.addi %h, %c1 : index
  %columns = arith.addi %w, %c2 : index
  %none = arith.constant ZERO : SIDE
  %start = arith.constant START : SUM
  %empty = tensor.empty(%n, %rows, %columns) : !padded
  %zeros = linalg.fill ins(%none : SIDE) outs(%empty : !padded) -> !padded
  %p = tensor.insert_slice %x into %zeros[0, 0, 1, FRONT] [%n, %h, %w, OWN] [1, 1, 1, 1]
      : !in into !padded
  %s = linalg.fill ins(%start : SUM) outs(%outs : !out) -> !out
  %0 = linalg.generic {indexing_maps = [#image, #filters, #out], iterator_types = [
        "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %filters : !padded, !w) outs(%s : !out) {
  ^bb0(%a: SIDE, %b: SIDE, %t: SUM):
    WIDEN
    %q = arith.MULTIPLY %LEFT, %RIGHT : SUM
    %r = arith.ADD %t, %q : SUM
    linalg.yield %r : SUM
  } -> !out
  %1 = tensor.cast %0 : !out to !y
  return %1 : !y
}
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.call_tir"(%x, %w) {callee = @last, sym_args = #graph.shape<[]>,
      operandSegmentSizes = array<i32: 1, 1, ZEROS>, resultSegmentSizes = array<i32: 1, NONE>}
      : (!x, !w) -> !y
  return %0 : !y
}
""".replace("ZEROS", ", ".join(["0"] * 30)).replace("NONE", ", ".join(["0"] * 7))


def channels_last(
    side: str, total: str, widen: str, channels: tuple[int, int] = (3, 4), filters: int = 17
) -> str:
    """The text for elements and sums of some types; `channels` are those before and with zeros."""
    is_float = total[0] == "f"
    a, b = ("%a1", "%b1") if widen else ("%a", "%b")
    lines = [f"{x}1 = arith.{widen} {x} : {side} to {total}" for x in ("%a", "%b") if widen]
    texts = {
        "SIDE": side, "SUM": total, "ZERO": "0.0" if is_float else "0", "%LEFT": a, "%RIGHT": b,
        "START": "2.0" if is_float else "2", "WIDEN": "\n    ".join(lines),
        "MULTIPLY": "mulf" if is_float else "muli", "ADD": "addf" if is_float else "addi",
    }  # fmt: skip
    own, every = channels
    counts = {"OWN": own, "EVERY": every, "FRONT": every - own, "FILTERS": filters}
    texts |= {name: str(count) for name, count in counts.items()}
    text = LAST
    for name, written in texts.items():
        text = text.replace(name, written)
    return text


@pytest.mark.parametrize(
    ("side", "total", "widen"),
    [("f32", "f32", ""), ("f16", "f32", "extf"), ("i8", "i32", "extsi"), ("i64", "i64", "")],
)
def test_channels_and_filters_last(side: str, total: str, widen: str) -> None:
    """Padding before columns and channels, and after rows and columns."""
    module, _, rules = built(channels_last(side, total, widen), "gpu", 2)
    assert rules == ["convolution"]
    generator = np.random.default_rng()
    dtype = {"f32": "float32", "f16": "float16", "i8": "int8", "i64": "int64", "i32": "int32"}
    for n, h, width in ((2, 5, 7), (1, 1, 3), (3, 4, 23)):
        x = generator.integers(-9, 10, (n, h, width, 3)).astype(dtype[side])
        w = generator.integers(-9, 10, (2, 3, 4, 17)).astype(dtype[side])
        padded = np.pad(x.astype(np.int64), ((0, 0), (0, 1), (1, 1), (1, 0)))
        view = np.lib.stride_tricks.sliding_window_view(padded, (2, 5), (1, 2))[
            :, ::2, :, :, :, ::2
        ]
        exact = 2 + np.einsum("nyxcuv,uvcf->nyxf", view, w.astype(np.int64))
        np.testing.assert_array_equal(module["main"](x, w), exact)


def test_a_row_of_padding_alone() -> None:
    """Windows of one row see only the one in front of images."""
    text = """
    !x = tensor<?x9x1x?xf32, #graph.shape<["n", 9, 1, "w"]>>
    !y = tensor<?x16x1x?xf32, #graph.shape<["n", 16, 1, "w - 2"]>>
    func.func @main(%x: !x, %w: tensor<16x9x1x3xf32>, %b: tensor<16x1x1xf32>) -> !y {
      %0 = "graph.nn_conv2d"(%x, %w) {strides = array<i64: 2, 1>, padding = array<i64: 1, 0, 0, 0>,
        dilation = array<i64: 1, 1>, groups = 1 : i64} : (!x, tensor<16x9x1x3xf32>) -> !y
      %1 = "graph.add"(%0, %b) : (!y, tensor<16x1x1xf32>) -> !y
      return %1 : !y
    }"""
    module, _, rules = built(text, "gpu", 2)
    assert rules == ["convolution"]
    generator = np.random.default_rng()
    for n, width in ((1, 3), (2, 9), (0, 4)):
        shapes = (n, 9, 1, width), (16, 9, 1, 3), (16, 1, 1)
        x, w, b = (generator.standard_normal(shape).astype(np.float32) for shape in shapes)
        wanted = np.broadcast_to(b, (n, 16, 1, width - 2))
        np.testing.assert_array_equal(module["main"](x, w, b), wanted)
