"""Cases of TVM's tests on fusion by patterns and captured regions (rows 23 and 28 of the list)."""

from reference_modules import after, find, of, operations, tensor

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import TensorType
from relax_mlir.rewriting import walk_ops

BY_PATTERN = "relax-fuse-ops-by-pattern{match='%s'}"


def primitives(module: ir.Module, attribute: str) -> list[func.FuncOp]:
    """The functions with an attribute."""
    return [f for f in walk_ops(module.operation, func.FuncOp) if attribute in f.attributes]


def test_cyclic_dependency() -> None:
    # The logarithm needs what a fused function would return, and makes what it would take.
    x = tensor("n")
    text = f"""func.func @main(%x: {x}) -> {x} {{
      %0 = "graph.exp"(%x) : ({x}) -> {x}
      %1 = "graph.log"(%0) : ({x}) -> {x}
      %2 = "graph.subtract"(%0, %1) : ({x}, {x}) -> {x}
      return %2 : {x}
    }}"""
    with after(text, BY_PATTERN % "own.difference = subtract(exp(_), _)") as module:
        assert operations(find(module, "main")) == ["exp", "log", "subtract"]


def test_matmul_symbolic_var() -> None:
    x, w, out = tensor("batch", 4), tensor(4, "width"), tensor("batch", "width")
    y, v, last = tensor("batch", "width"), tensor("width", 8), tensor("batch", 8)
    text = f"""func.func @main(%x: {x}, %w: {w}, %v: {v}) -> {last} {{
      %0 = "graph.matmul"(%x, %w) : ({x}, {w}) -> {out}
      %1 = "graph.matmul"(%0, %v) : ({y}, {v}) -> {last}
      return %1 : {last}
    }}"""
    with after(text, BY_PATTERN % "blas.product = matmul(%a, %b)") as module:
        assert operations(find(module, "main")) == ["call", "call"]
        made = primitives(module, "graph.composite")
        kinds = [[TensorType.of(argument) for argument in f.arguments] for f in made]
        assert len(kinds) == 2
        assert [of("batch", 4), of(4, "width")] in kinds
        assert [of("batch", "width"), of("width", 8)] in kinds


M, W = tensor("m", 4), tensor(4, 4)
CAPTURED = f"""func.func @main(%x: {M}, %w: {W}) -> ({M}, {W})
    attributes {{graph.facts = ["m <= 16"], graph.num_inputs = 1 : i64}} {{
  %0 = "graph.matmul"(%x, %w) : ({M}, {W}) -> {M}
  %1 = "graph.exp"(%0) : ({M}) -> {M}
  %2 = "graph.exp"(%1) : ({M}) -> {M}
  %3 = "graph.exp"(%w) : ({W}) -> {W}
  %4 = "graph.log"(%3) : ({W}) -> {W}
  return %2, %4 : {M}, {W}
}}"""


def test_dynamic_capture() -> None:
    # Everything is one region for each m, which has its own storage.
    passes = "relax-legalize-ops", "relax-capture-static{symbols=m}", "relax-lower-calls"
    with after(CAPTURED, *passes, "relax-plan-memory", "relax-check-memory-plan") as module:
        (region,) = primitives(module, "graph.captured")
        assert str(region.attributes["graph.captured"]) == '["m"]'
        assert operations(region)[0] == "alloc_storage"
        assert "call_tir" not in operations(find(module, "main"))


def test_static_input_with_symbolic_shape() -> None:
    # Without a symbol, what depends on m stays outside; what weights alone give is captured.
    with after(CAPTURED, "relax-legalize-ops", "relax-capture-static") as module:
        main = find(module, "main")
        assert operations(main) == ["call_tir"] * 3 + ["call"]
        (region,) = primitives(module, "graph.captured")
        assert str(region.attributes["graph.captured"]) == "[]"
        assert [TensorType.of(a) for a in region.arguments] == [of(4, 4)]
