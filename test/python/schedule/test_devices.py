"""Modules whose kernels are those of devices: interpreted thread by thread, against float64.

Each operator is run so by its own tests, as the route `simt`.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from device_modules import built

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.dialects.tir import SORT, PrimFunc, prim_funcs
from relax_mlir.passes import Pipeline
from relax_mlir.schedule.backend import schedule
from relax_mlir.schedule.gpu.backend import DeviceBackend
from relax_mlir.target import Device

MLP = """
!x = tensor<?x40xf32, #graph.shape<["n", 40]>>
!h = tensor<?x72xf32, #graph.shape<["n", 72]>>
!y = tensor<?x10xf32, #graph.shape<["n", 10]>>
func.func @main(%x: !x, %w: tensor<40x72xf32>, %v: tensor<72x10xf32>, %b: tensor<10xf32>) -> !y
    attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<40x72xf32>) -> !h
  %1 = "graph.nn_relu"(%0) : (!h) -> !h
  %2 = "graph.matmul"(%1, %v) : (!h, tensor<72x10xf32>) -> !y
  %3 = "graph.add"(%2, %b) : (!y, tensor<10xf32>) -> !y
  %4 = "graph.nn_softmax"(%3) {axis = -1 : i64} : (!y) -> !y
  return %4 : !y
}
"""
BATCHED = """
!x = tensor<2x?x?xTYPE, #graph.shape<[2, "m", "k"]>>
!w = tensor<2x?x?xTYPE, #graph.shape<[2, "n", "k"]>>
!t = tensor<2x?x?xTYPE, #graph.shape<[2, "k", "n"]>>
!y = tensor<2x?x?xTYPE, #graph.shape<[2, "m", "n"]>>
func.func @main(%x: !x, %w: !w, %r: !y) -> !y {
  %0 = "graph.permute_dims"(%w) {axes = array<i64: 0, 2, 1>} : (!w) -> !t
  %1 = "graph.matmul"(%x, %0) : (!x, !t) -> !y
  %2 = "graph.subtract"(%r, %1) : (!y, !y) -> !y
  return %2 : !y
}
"""


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("target", "level"),
    [("gpu", 0), ("gpu", 1), ("gpu", 2), ("gpu", 3), ("cuda:sm_90a", 2), ("vulkan", 2),
     ("x86-64-v3@webgpu", 2)],
)  # fmt: skip
def test_a_perceptron(target: str, level: int) -> None:
    module, kernels, rules = built(MLP, target, level)
    assert "products" in rules
    device = Device.parse(target.rpartition("@")[2])
    for kernel in kernels:
        assert np.prod(kernel.block) <= device.workgroup
        assert kernel.workgroup_bytes <= device.shared_bytes
    w, v, b = normal(40, 72), normal(72, 10), normal(10)
    parameters = [w, v, b]
    if "main_params" in module.functions:
        made = module["main_params"](*parameters)
        parameters = list(made) if isinstance(made, tuple) else [made]
    for n in (0, 1, 7, 65):
        x = normal(n, 40)
        last = np.maximum(x.astype(np.float64) @ w, 0) @ v + b
        exact = np.exp(last - last.max(1, keepdims=True, initial=-np.inf))
        exact /= exact.sum(1, keepdims=True)
        np.testing.assert_allclose(module["main"](x, *parameters), exact, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("element", ["f32", "f64", "f16", "i32", "i8"])
def test_products_in_batches_with_an_epilogue(element: str) -> None:
    module, _, rules = built(BATCHED.replace("TYPE", element), "gpu", 2)
    assert rules == ["products"]
    dtype = {"f32": "float32", "f64": "float64", "f16": "float16", "i32": "int32", "i8": "int8"}
    for m, k, n in ((3, 5, 7), (65, 17, 33), (1, 16, 64), (0, 3, 4), (2, 0, 5)):
        x, w, r = (np.round(4 * normal(*shape)).astype(dtype[element])
                   for shape in ((2, m, k), (2, n, k), (2, m, n)))  # fmt: skip
        exact = r.astype(np.int64) - x.astype(np.int64) @ w.astype(np.int64).transpose(0, 2, 1)
        got = module["main"](x, w, r)
        if element == "f16":
            np.testing.assert_allclose(got, exact, rtol=1e-3)
        else:
            np.testing.assert_array_equal(got, exact.astype(got.dtype))


BEGUN = """
!x = tensor<?x?xTYPE, #graph.shape<["m", "k"]>>
!w = tensor<?x?xTYPE, #graph.shape<["k", "n"]>>
!y = tensor<?x?xf32, #graph.shape<["m", "n"]>>
func.func private @begun(%x: !x, %w: !w, %y: !y) -> !y
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %a = tensor.cast %x : !x to tensor<?x?xTYPE>
  %b = tensor.cast %w : !w to tensor<?x?xTYPE>
  %c = tensor.cast %y : !y to tensor<?x?xf32>
  %start = arith.constant 5.0 : f32
  %s = linalg.fill ins(%start : f32) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<?x?xTYPE>, tensor<?x?xTYPE>)
      outs(%s : tensor<?x?xf32>) -> tensor<?x?xf32>
  %1 = tensor.cast %0 : tensor<?x?xf32> to !y
  return %1 : !y
}
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = "graph.call_tir"(%x, %w) {callee = @begun, sym_args = #graph.shape<[]>,
      operandSegmentSizes = array<i32: 1, 1, ZEROS>, resultSegmentSizes = array<i32: 1, NONE>}
      : (!x, !w) -> !y
  return %0 : !y
}
""".replace("ZEROS", ", ".join(["0"] * 30)).replace("NONE", ", ".join(["0"] * 7))


@pytest.mark.parametrize(
    ("target", "element", "rule"),
    [
        ("gpu", "f32", "products"),
        ("cuda:sm_80", "f16", "tensor_cores"),
        ("cuda:sm_90a", "f16", "tensor_cores"),
    ],
)
def test_sums_that_begin_with_something(target: str, element: str, rule: str) -> None:
    """It is added once, whichever threads and groups share a sum."""
    module, _, rules = built(BEGUN.replace("TYPE", element), target, 2)
    assert rules == [rule]
    dtype = {"f32": "float32", "f16": "float16"}[element]
    for m, k, n in ((1, 70, 5), (3, 33, 20), (6, 0, 3), (6, 600, 9), (66, 20, 66)):
        x, w = (np.round(2 * normal(*shape)).astype(dtype) for shape in ((m, k), (k, n)))
        exact = 5 + x.astype(np.float64) @ w.astype(np.float64)
        np.testing.assert_array_equal(module["main"](x, w), exact.astype(np.float32))


SCALARS = """
#id = affine_map<(i) -> (i)>
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func private @shifted(%x: !x, %at: tensor<2xf32>, %y: !x) -> !x
    attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %in = tensor.cast %x : !x to tensor<?xf32>
  %out = tensor.cast %y : !x to tensor<?xf32>
  %a = tensor.extract %at[%c0] : tensor<2xf32>
  %b = tensor.extract %at[%c1] : tensor<2xf32>
  %sum = arith.addf %a, %b : f32
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%in : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%e: f32, %o: f32):
    %1 = arith.addf %e, %sum : f32
    linalg.yield %1 : f32
  } -> tensor<?xf32>
  %first = tensor.extract %0[%c0] : tensor<?xf32>
  %2 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%0 : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%e: f32, %o: f32):
    %3 = arith.mulf %e, %first : f32
    linalg.yield %3 : f32
  } -> tensor<?xf32>
  %4 = tensor.cast %2 : tensor<?xf32> to !x
  return %4 : !x
}
func.func @main(%x: !x, %at: tensor<2xf32>) -> !x {
  %0 = "graph.call_tir"(%x, %at) {callee = @shifted, sym_args = #graph.shape<[]>,
      operandSegmentSizes = array<i32: 1, 1, ZEROS>, resultSegmentSizes = array<i32: 1, NONE>}
      : (!x, tensor<2xf32>) -> !x
  return %0 : !x
}
""".replace("ZEROS", ", ".join(["0"] * 30)).replace("NONE", ", ".join(["0"] * 7))


def test_scalars_of_tensors_are_loaded_on_the_device() -> None:
    """Those of arguments in each launch; what a launch overwrites is copied before."""
    module, kernels, rules = built(SCALARS, "gpu", 0)
    assert rules == ["nests"]
    assert len(kernels) == 3
    for n in (1, 5, 300):
        x, at = normal(n), np.array([2, 3], np.float32)
        shifted = x + 5
        np.testing.assert_allclose(module["main"](x, at), shifted * shifted[0], rtol=1e-6)


ROWS = """
!x = tensor<DIMSxf32>
func.func @main(%x: !x) -> (tensor<1x1xf32>, tensor<1xAxi64>, !x, !x) {
  %0 = "graph.mean"(%x) {axes = array<i64: 0, 1>, keepdims = true} : (!x) -> tensor<1x1xf32>
  %1 = "graph.argmax"(%x) {axis = 0 : i64, keepdims = true} : (!x) -> tensor<1xAxi64>
  %2 = "graph.nn_softmax"(%x) {axis = 0 : i64} : (!x) -> !x
  %3 = "graph.nn_softmax"(%x) {axis = 1 : i64} : (!x) -> !x
  return %0, %1, %2, %3 : tensor<1x1xf32>, tensor<1xAxi64>, !x, !x
}
"""


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 1031), (1031, 3), (64, 129), (33, 31), (1100, 2)])
@pytest.mark.parametrize("level", [0, 2])
def test_rows_of_one_thread_and_of_many(m: int, n: int, level: int) -> None:
    text = ROWS.replace("DIMS", f"{m}x{n}").replace("xAx", f"x{n}x")
    module, kernels, _ = built(text, "gpu", level)
    x = np.round(8 * normal(m, n)) / 8
    mean, best, columns, rows = module["main"](x)
    double = x.astype(np.float64)
    np.testing.assert_allclose(mean, double.mean(keepdims=True), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(best, x.argmax(0)[None])
    for axis, got in ((0, columns), (1, rows)):
        exact = np.exp(double - double.max(axis, keepdims=True))
        exact /= exact.sum(axis, keepdims=True)
        np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-9)
    sizes = {kernel.name: kernel.block[0] for kernel in kernels}
    of_all = next(size for name, size in sizes.items() if name.startswith("mean"))
    assert of_all == (1 if m * n < 32 else 256), sizes


def test_what_printers_of_code_take() -> None:
    _, kernels, _ = built(MLP, "gpu", 2)
    softmax = next(kernel for kernel in kernels if kernel.name.startswith("softmax"))
    buffers = [i for i, kind in enumerate(softmax.arguments) if isinstance(kind, ir.MemRefType)]
    assert len(buffers) == 2
    assert softmax.written == {buffers[1]}
    assert [op.operation.name for op in softmax.module.body.operations] == ["gpu.module"]
    products = [kernel for kernel in kernels if kernel.name.startswith("fused_matmul")]
    shapes = [(kernel.block[0], kernel.workgroup_bytes) for kernel in products]
    assert shapes[:3] == [(128, 512), (128, 2048), (256, 4 * 16 * (64 + 64))]


def built_for(device: Device, text: str) -> tuple[Any, list[str]]:
    """A module whose kernels are of a device that has no name, and the rules that made them."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        Pipeline.parse("builtin.module(relax-legalize-ops)").run(module)
        kernels = [op for op in module.body.operations if "tir.prim_func" in op.attributes]
        rules = [schedule(PrimFunc(kernel), DeviceBackend(device)) for kernel in kernels]
        Pipeline.parse("builtin.module(relax-lower-calls,relax-outline-launches)").run(module)
        return relax_mlir.interpret(module)["main"], rules


def test_more_groups_than_an_axis_of_a_grid_has() -> None:
    """Groups are counted through all axes; here at most two a dim."""
    x = 'tensor<?xf32, #graph.shape<["n"]>>'
    text = f"""
    func.func @main(%x: {x}) -> {x} {{
      %0 = "graph.negative"(%x) : ({x}) -> {x}
      return %0 : {x}
    }}
    """
    negative, _ = built_for(replace(Device.parse("gpu"), grid=2), text)
    for n in (1, 256, 257, 513, 1025, 2047):  # one to eight groups of 256
        x = normal(n)
        np.testing.assert_array_equal(negative(x), -x)


@pytest.mark.parametrize(
    ("warp", "shared_bytes", "rules"),
    [
        (32, 16384, ["products", "nests"]),
        (32, 8192, ["products", "nests"]),
        (32, 2048, ["products", "nests"]),
        (32, 2047, ["nests", "nests"]),
        (32, 16, ["nests", "nests"]),
        (32, 15, ["nests", "serial"]),
        (1, 256, ["nests", "nests"]),
        (1, 255, ["nests", "serial"]),
    ],
)
def test_groups_of_little_memory(warp: int, shared_bytes: int, rules: list[str]) -> None:
    """Tiles and trees that do not fit the memory of a group are refused, and computed otherwise."""
    text = """
    func.func @main(%x: tensor<33x40xf32>, %y: tensor<40x50xf32>) -> tensor<33xf32> {
      %0 = "graph.matmul"(%x, %y)
          : (tensor<33x40xf32>, tensor<40x50xf32>) -> tensor<33x50xf32>
      %1 = "graph.max"(%0) {axes = array<i64: 1>, keepdims = false}
          : (tensor<33x50xf32>) -> tensor<33xf32>
      return %1 : tensor<33xf32>
    }
    """
    device = replace(Device.parse("gpu"), subgroup=warp, shared_bytes=shared_bytes)
    greatest, made = built_for(device, text)
    assert sorted(made) == sorted(rules)
    x, y = normal(33, 40), normal(40, 50)
    exact = (x.astype(np.float64) @ y).max(1)
    np.testing.assert_allclose(greatest(x, y), exact, rtol=1e-5)


@pytest.mark.parametrize(("n", "k"), [(64, 64), (65, 65), (65, 3), (1024, 600)])
def test_memory_that_a_condition_chooses(n: int, k: int) -> None:
    """The first elements of a line of one block end in one of two buffers.

    So CPUs run the program, and devices that do not know that it sorts.
    """
    text = f"""
    func.func @main(%x: tensor<{n}xui32>) -> (tensor<{k}xui32>, tensor<{k}xi64>) {{
      %0:2 = "graph.topk"(%x) {{axis = -1 : i64, k = #graph.shape<[{k}]>, largest = false}}
          : (tensor<{n}xui32>) -> (tensor<{k}xui32>, tensor<{k}xi64>)
      return %0#0, %0#1 : tensor<{k}xui32>, tensor<{k}xi64>
    }}
    """
    with make_context(), ir.Location.unknown():
        legalized = ir.Module.parse(text)
        Pipeline.parse("relax-legalize-ops").run(legalized, verify=True)
        (kernel,) = prim_funcs(legalized.operation)
        del kernel.op.attributes[SORT]
        text = str(legalized)
    module, _, rules = built(text, "gpu", 1)
    assert rules == ["serial"]
    x = np.random.default_rng(n).integers(0, n // 2, n).astype(np.uint32)
    order = np.argsort(x, kind="stable")[:k]
    values, indices = module["main"](x)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, x[order])
