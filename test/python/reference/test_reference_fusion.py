"""Cases of TVM's tests on fusion (rows 14 to 22 of the list)."""

from collections.abc import Sequence

import numpy as np
import pytest
from call_segments import segments
from reference_modules import after, find, of, operations, results, tensor

import relax_mlir
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import TensorType, annotation_of, shape_value_type
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import parse

FUSE = ("relax-legalize-ops", "relax-annotate-pattern", "relax-fuse-ops", "symbol-dce")
MERGE = (*FUSE, "relax-fuse-tir", "symbol-dce")
M, N = tensor("n", 8), tensor("n", "n")


def kernels(module: ir.Module) -> list[func.FuncOp]:
    """The tensor programs of a module."""
    return list(filter(PrimFunc.is_prim_func, walk_ops(module.operation, func.FuncOp)))


def assert_runs(text: str, passes: Sequence[str], *arrays: object) -> None:
    """The module means the same after the passes."""
    wanted = relax_mlir.interpret(text)["main"](*arrays)
    with after(text, *passes) as module:
        got = relax_mlir.interpret(str(module))["main"](*arrays)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def array(*dims: int) -> np.ndarray:
    return np.random.default_rng().standard_normal(dims).astype(np.float32)


@pytest.mark.parametrize(
    ("op", "operands", "attributes", "result", "pattern"),
    [
        ("add", [("n", 64), (64,)], "", ("n", 64), "element_wise"),
        ("add", [(1, 64, "n", "n"), (64, 1, 1)], "", (1, 64, "n", "n"), "element_wise"),
        ("exp", [("n", 8)], "", ("n", 8), "element_wise"),
        ("multiply", [("n", 1), (8,)], "", ("n", 8), "broadcast"),
        ("broadcast_to", [(8,)], "shape = #graph.shape<[3, 8]>", (3, 8), "broadcast"),
        ("permute_dims", [("n", 8)], "axes = array<i64: 1, 0>", (8, "n"), "injective"),
    ],
)
def test_annotate_op_pattern(op, operands, attributes, result, pattern) -> None:
    kinds = [tensor(*dims) for dims in operands]
    arguments = ", ".join(f"%x{i}: {kind}" for i, kind in enumerate(kinds))
    names = ", ".join(f"%x{i}" for i in range(len(kinds)))
    out = tensor(*result)
    text = f"""func.func @main({arguments}) -> {out} {{
      %0 = "graph.{op}"({names}) {{{attributes}}} : ({", ".join(kinds)}) -> {out}
      return %0 : {out}
    }}"""
    with after(text, "relax-legalize-ops", "relax-annotate-pattern") as module:
        (kernel,) = kernels(module)
        assert str(kernel.attributes["tir.pattern"]) == f'#tir.pattern<"{pattern}">'


def test_symbolic_shape_aware_fuse() -> None:
    x, flat = tensor("n", "m", 1), tensor("n", "m")
    text = f"""func.func @main(%x: {x}) -> {flat} {{
      %one = arith.constant dense<1.0> : tensor<f32>
      %0 = "graph.add"(%x, %one) : ({x}, tensor<f32>) -> {x}
      %1 = "graph.exp"(%0) : ({x}) -> {x}
      %2 = "graph.squeeze"(%1) {{axes = array<i64: 2>}} : ({x}) -> {flat}
      return %2 : {flat}
    }}"""
    with after(text, *MERGE) as module:
        main = find(module, "main")
        # The constant is in the kernel; what only renames dims is none, and becomes a view.
        assert operations(main) == ["call_tir", "call_tir"]
        assert results(main) == [of("n", "m")]
        fused = PrimFunc(find(module, "fused_add_exp"))
        assert [TensorType.of(value) for value in fused.arguments] == [of("n", "m", 1)] * 2
        assert "arith.constant 1.0" in str(fused.op)
    with after(text, *MERGE, "relax-lower-calls") as module:
        assert operations(find(module, "main"))[-1] == "view"
    assert_runs(text, MERGE, array(3, 5, 1))


def test_symbolic_shape_aware_fuse_2() -> None:
    out = tensor(1, 1, "n", "n")
    text = f"""func.func @main(%s: !graph.shape_value<["n"]>) -> {out} {{
      %v = arith.constant dense<2.0> : tensor<f32>
      %0 = "graph.full"(%v) {{shape = #graph.shape<["n", "n"]>}} : (tensor<f32>) -> {N}
      %1 = "graph.triu"(%0) {{k = 0 : i64}} : ({N}) -> {N}
      %2 = "graph.broadcast_to"(%1) {{shape = #graph.shape<[1, 1, "n", "n"]>}} : ({N}) -> {out}
      return %2 : {out}
    }}"""
    with after(text, *FUSE) as module:
        assert operations(find(module, "main"))[-1] == "call"
        (fused,) = (
            f for f in walk_ops(module.operation, func.FuncOp) if "graph.primitive" in f.attributes
        )
        shapes = [annotation_of(argument) for argument in fused.arguments]
        assert shape_value_type([parse("n")]) in shapes
    assert_runs(text, MERGE, [5])


def test_skipping_match_cast() -> None:
    five = tensor(5, 8)
    text = f"""func.func @main(%x: {M}) -> {five} {{
      %0 = "graph.exp"(%x) : ({M}) -> {M}
      %1 = "graph.match_cast"(%0) : ({M}) -> {five}
      %2 = "graph.exp"(%1) : ({five}) -> {five}
      return %2 : {five}
    }}"""
    with after(text, *FUSE) as module:
        assert operations(find(module, "main")) == ["call_tir", "match_cast", "call_tir"]


def test_dead_group() -> None:
    text = f"""func.func @main(%x: {M}) -> {M} {{
      %0 = "graph.exp"(%x) : ({M}) -> {M}
      %1 = "graph.negative"(%0) : ({M}) -> {M}
      %2 = "graph.cos"(%x) : ({M}) -> {M}
      %3 = "graph.negative"(%2) : ({M}) -> {M}
      return %1 : {M}
    }}"""
    with after(text, *FUSE) as module:
        main = find(module, "main")
        returned = main.entry_block.operations[len(operations(main))].operands[0].owner
        assert "fused_exp_negative" in str(returned)
    assert_runs(text, MERGE, array(3, 8))


def test_partially_used_tuple_param() -> None:
    fields = ", ".join([M] * 6)
    text = f"""func.func @main(%t: tuple<{fields}>) -> {M} {{
      %0 = "graph.tuple_get"(%t) {{index = 0 : i64}} : (tuple<{fields}>) -> {M}
      %1 = "graph.exp"(%0) : ({M}) -> {M}
      %2 = "graph.negative"(%1) : ({M}) -> {M}
      return %2 : {M}
    }}"""
    with after(text, "relax-flatten-tuples", *FUSE) as module:
        main = find(module, "main")
        (call,) = (op for op in main.entry_block.operations if op.operation.name == "graph.call")
        assert list(call.operands) == [main.arguments[0]]


def test_tir_expression_in_shape() -> None:
    first, rest, out = tensor(3, 4), tensor("n - 1", 4), tensor("n + 2", 4)
    text = f"""
    func.func @main(%x: {first}, %y: {rest}, %s: !graph.shape_value<["n"]>) -> {out} {{
      %0 = "graph.concat"(%x, %y) {{axis = 0 : i64, {segments(2)}}} : ({first}, {rest}) -> {out}
      %1 = "graph.exp"(%0) : ({out}) -> {out}
      return %1 : {out}
    }}"""
    with after(text, *MERGE) as module:
        (kernel,) = kernels(module)
        assert operations(find(module, "main")) == ["call_tir"]
        assert [TensorType.of(value) for value in PrimFunc(kernel).ins] == [
            of(3, 4),
            of("n - 1", 4),
        ]
    for n in (1, 2, 9):
        assert_runs(text, MERGE, array(3, 4), array(n - 1, 4), [n])


V = tensor("n")
MAP = "affine_map<(i) -> (i)>"
KERNEL = "attributes {tir.prim_func, tir.num_outs = 1 : i64}"
CALL = f"sym_args = #graph.shape<[]>, {segments(1)}}} : ({V}) -> {V}"
IN_PLACE = f"""
func.func private @double(%out: {V}) -> {V} {KERNEL} {{
  %p = tensor.cast %out : {V} to tensor<?xf32>
  %0 = linalg.generic {{indexing_maps = [{MAP}], iterator_types = ["parallel"]}}
      outs(%p : tensor<?xf32>) {{
  ^bb0(%a: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  }} -> tensor<?xf32>
  %r = tensor.cast %0 : tensor<?xf32> to {V}
  return %r : {V}
}}
func.func private @copy(%x: {V}, %out: {V}) -> {V} {KERNEL} {{
  %px = tensor.cast %x : {V} to tensor<?xf32>
  %p = tensor.cast %out : {V} to tensor<?xf32>
  %0 = linalg.generic {{indexing_maps = [{MAP}, {MAP}], iterator_types = ["parallel"]}}
      ins(%px : tensor<?xf32>) outs(%p : tensor<?xf32>) {{
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }} -> tensor<?xf32>
  %r = tensor.cast %0 : tensor<?xf32> to {V}
  return %r : {V}
}}
func.func private @fused(%x: {V}) -> {V} attributes {{graph.primitive}} {{
  %0 = "graph.call_tir"(%x) {{callee = @copy, {CALL}
  %1 = "graph.call_tir_inplace"(%0) {{callee = @double, inplace_indices = array<i64: 0>, {CALL}
  %2 = "graph.call_tir_inplace"(%1) {{callee = @double, inplace_indices = array<i64: 0>, {CALL}
  return %2 : {V}
}}
func.func @main(%x: {V}) -> {V} {{
  %0 = "graph.call"(%x) {{callee = @fused, {segments(1)}}} : ({V}) -> {V}
  return %0 : {V}
}}"""


def test_use_as_inplace_and_dps() -> None:
    with after(IN_PLACE, "relax-fuse-tir", "symbol-dce") as module:
        (kernel,) = kernels(module)
        assert "tensor.empty" not in str(kernel)
        assert len(PrimFunc(kernel).outs) == 1
    x = array(7)
    np.testing.assert_array_equal(relax_mlir.interpret(IN_PLACE)["main"](x), 4 * x)
    assert_runs(IN_PLACE, ["relax-fuse-tir"], x)
    np.testing.assert_array_equal(relax_mlir.compile(IN_PLACE)["main"](x), 4 * x)
