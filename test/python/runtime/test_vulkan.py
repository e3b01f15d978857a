"""Modules whose kernels run by Vulkan; each operator does in `test_compiled.py`."""

import gc
import math
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import vulkan

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu import device_kernels
from relax_mlir.codegen.gpu.spirv import print_spirv
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError, OutOfMemoryError
from relax_mlir.runtime.build import SOURCES
from relax_mlir.target import Device

LAYER = """
!x = tensor<?x?x33xf32, #graph.shape<["b", "n", 33]>>
!w = tensor<33x33xf32>
func.func @main(%x: !x, %w: !w) -> !x {
  %0 = "graph.matmul"(%x, %w) : (!x, !w) -> !x
  %1 = "graph.nn_gelu"(%0) : (!x) -> !x
  %2 = "graph.nn_softmax"(%1) {axis = -1 : i64} : (!x) -> !x
  %3 = "graph.add"(%x, %2) : (!x, !x) -> !x
  return %3 : !x
}
"""
PROBE = """
gpu.module @probe {
  gpu.func @probe(%x: memref<?xf32>) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %a = memref.load %x[%c0] : memref<?xf32>
    %b = memref.load %x[%c1] : memref<?xf32>
    %r = math.fma %a, %a, %b fastmath<contract> : f32
    memref.store %r, %x[%c2] : memref<?xf32>
    gpu.return
  }
}
"""


SPECIAL = """
!x = tensor<?xTYPE, #graph.shape<["n"]>>
func.func @main(%x: !x) -> (!x, !x, !x) {
  %0:3 = "graph.call_tir"(%x) {callee = @by_zero, operandSegmentSizes = array<i32: 1, 1ZEROS>,
    resultSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0>, sym_args = #graph.shape<[]>}
    : (!x) -> (!x, !x, !x)
  return %0#0, %0#1, %0#2 : !x, !x, !x
}
func.func private @by_zero(%x: tensor<?xTYPE>, %p: tensor<?xTYPE>, %q: tensor<?xTYPE>,
    %r: tensor<?xTYPE>) -> (tensor<?xTYPE>, tensor<?xTYPE>, tensor<?xTYPE>)
    attributes {tir.prim_func, tir.num_outs = 3 : i64} {
  %0:3 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
      affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<?xTYPE>) outs(%p, %q, %r : tensor<?xTYPE>, tensor<?xTYPE>, tensor<?xTYPE>) {
  ^bb0(%a: TYPE, %o0: TYPE, %o1: TYPE, %o2: TYPE):
    %zero = arith.constant 0.0 : TYPE
    %minus = arith.constant -0.0 : TYPE
    %1 = arith.mulf %a, %zero : TYPE
    %2 = arith.mulf %minus, %a : TYPE
    %3 = arith.divf %a, %minus : TYPE
    linalg.yield %1, %2, %3 : TYPE, TYPE, TYPE
  } -> (tensor<?xTYPE>, tensor<?xTYPE>, tensor<?xTYPE>)
  return %0#0, %0#1, %0#2 : tensor<?xTYPE>, tensor<?xTYPE>, tensor<?xTYPE>
}
""".replace("1ZEROS", "0" + ", 0" * 30)


@pytest.fixture
def driver() -> None:
    vulkan.require()


def printed(text: str) -> bytes:
    """The code of the only kernel of a module."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (kernel,) = device_kernels(module.operation)
        return print_spirv(kernel, Device.parse("vulkan"))


def layer(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    x, w = x.astype(np.float64), w.astype(np.float64)
    y = x @ w
    y = y * 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(y / math.sqrt(2)))
    e = np.exp(y - y.max(-1, keepdims=True))
    return x + e / e.sum(-1, keepdims=True)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("level", [0, 2, 3])
def test_a_layer(level: int) -> None:
    module = relax_mlir.compile(LAYER, "vulkan", opt_level=level)
    random = np.random.default_rng()
    w = random.standard_normal((33, 33)).astype(np.float32)
    given = module["main_params"](w) if "main_params" in module.functions else w
    for b, n in ((0, 3), (1, 1), (2, 65), (3, 127)):
        x = random.standard_normal((b, n, 33)).astype(np.float32)
        expected = layer(x, w)
        np.testing.assert_allclose(module["main"](x, given), expected, rtol=1e-5, atol=1e-5)
        result = module["main"](module.device.array(x), given)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(("type_", "dtype"), [("f32", "f4"), ("f16", "f2"), ("f64", "f8")])
def test_products_and_quotients_by_the_constant_zero(type_: str, dtype: str) -> None:
    """Which drivers may simplify: NaN and infinities are none, and zeros have signs."""
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, np.finfo(dtype).max, -1e-7]
    x = np.array(values, dtype)
    with np.errstate(all="ignore"):
        expected = (x * x.dtype.type(0), x.dtype.type(-0.0) * x, x / x.dtype.type(-0.0))
    module = relax_mlir.compile(SPECIAL.replace("TYPE", type_), "vulkan")
    for got, wanted in zip(module["main"](x), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(wanted)[numbers])


COMPARED = """
!n = tensor<?xi32, #graph.shape<["n"]>>
!w = tensor<?xi64, #graph.shape<["n"]>>
!t = tensor<?xi1, #graph.shape<["n"]>>
func.func @main(%x: !n) -> (!t, !t, !t) {
  %0 = "graph.astype"(%x) {dtype = i64} : (!n) -> !w
  %c = arith.constant dense<VALUE> : tensor<i64>
  %1 = "graph.less"(%0, %c) : (!w, tensor<i64>) -> !t
  %2 = "graph.greater"(%0, %c) : (!w, tensor<i64>) -> !t
  %3 = "graph.equal"(%0, %c) : (!w, tensor<i64>) -> !t
  return %1, %2, %3 : !t, !t, !t
}
"""


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("value", [2, -1, 2**31 - 1, 2**31])
def test_extended_integers_compared_with_constants(value: int) -> None:
    """Which drivers rewrite as comparisons of fewer bits."""
    x = np.array([0, 1, 2, 3, -1, -2, 2**31 - 1, 2**31 - 2, -(2**31)], np.int32)
    found = relax_mlir.compile(COMPARED.replace("VALUE", str(value)), "vulkan")["main"](x)
    wide = x.astype(np.int64)
    for got, expected in zip(found, (wide < value, wide > value, wide == value), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.usefixtures("driver")
def test_memory_is_freed() -> None:
    module = relax_mlir.compile(LAYER, "vulkan")
    x, w = np.ones((1, 5, 33), np.float32), np.ones((33, 33), np.float32)
    module["main"](x, w)
    gc.collect()
    before = module.device.bytes
    for _ in range(20):
        module["main"](module.device.array(x), w)
    gc.collect()
    assert module.device.bytes == before


@pytest.mark.usefixtures("driver")
def test_no_memory() -> None:
    module = relax_mlir.compile(LAYER, "vulkan")
    with pytest.raises(OutOfMemoryError, match="out of memory: vulkan has no"):
        module.device.new(1 << 46)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("RELAX_VULKAN", "no such", "finds no device of 1.1 that computes whose name has 'no su"),
        (
            "RELAX_VULKAN_LOADER",
            "libnone.so",
            "file or directory; packages such as libvulkan1 have it (RELAX_V",
        ),
        ("VK_ICD_FILENAMES", "/none.json", "vulkan: Vulkan finds no d"),
    ],
)
def test_what_is_missing_is_said(name: str, value: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "m.so"
    relax_mlir.compile(LAYER, "vulkan").save(path)
    program = f"import relax_mlir; relax_mlir.load({str(path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, name: value}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "ExecutionError: cannot load" in done.stderr
    assert says in done.stderr


def test_the_words_of_the_probe() -> None:
    text = (SOURCES / "device" / "vulkan" / "probe.h").read_text()
    words = [int(word, 16) for word in re.findall(r"0x[0-9a-f]+", text.partition("{")[2])]
    assert struct.pack(f"<{len(words)}I", *words) == printed(PROBE)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("%x: memref<?xf32>", f"%x: memref<?xf32>, {', '.join(f'%s{i}: f64' for i in range(17))}",
         "takes scalars of 136 bytes; devices have 128 for them"),
        ("math.fma %a, %a, %b fastmath<contract>", "math.powf %a, %b", ""),
        ("%r = math.fma", "%l = llvm.mlir.undef : !llvm.ptr\n    %r = math.fma",
         "'llvm.mlir.undef' op cannot be code for 'vulkan': is not known"),
    ],
)  # fmt: skip
def test_kernels_that_are_refused(old: str, new: str, says: str) -> None:
    text = PROBE.replace(old, new)
    if says:
        with pytest.raises(CompileError, match=says):
            printed(text)
    else:
        assert printed(text)[:4] == b"\x03\x02\x23\x07"
