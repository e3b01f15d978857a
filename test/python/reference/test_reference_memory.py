"""Cases of TVM's tests on memory plans (rows 25 and 26): one storage with offsets."""

import pytest
from reference_modules import after, find, tensor

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import AllocStorageOp, AllocTensorOp
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Expr, Facts, at_most, parse

N, FLAT, PADDED = tensor(2, "n"), tensor("2*n"), tensor("2*n + 2")
CHAIN = f"""func.func @main(%x: {N}) -> {PADDED} attributes {{graph.facts = [FACTS]}} {{
  %0 = "graph.exp"(%x) : ({N}) -> {N}
  %1 = "graph.reshape"(%0) {{shape = #graph.shape<["2*n"]>}} : ({N}) -> {FLAT}
  %2 = "graph.nn_relu"(%1) : ({FLAT}) -> {FLAT}
  %3 = "graph.add"(%2, %2) : ({FLAT}, {FLAT}) -> {FLAT}
  %zero = arith.constant dense<0.0> : tensor<f32>
  %4 = "graph.pad"(%3, %zero) {{low = #graph.shape<[1]>, high = #graph.shape<[1]>,
      interior = array<i64: 0>, mode = "constant",
      operandSegmentSizes = array<i32: 1, 1>}} : ({FLAT}, tensor<f32>) -> {PADDED}
  %5 = "graph.log"(%4) : ({PADDED}) -> {PADDED}
  return %5 : {PADDED}
}}"""


def planned(facts: str, options: str = "") -> tuple[Expr, list[str], int]:
    """Size of the storage, offsets of what is in it, and the count of what is not planned."""
    text = CHAIN.replace("FACTS", facts)
    passes = "relax-legalize-ops", "relax-lower-calls", f"relax-plan-memory{options}"
    with after(text, *passes, "relax-check-memory-plan") as module:
        main = find(module, "main")
        (storage,) = walk_ops(main, AllocStorageOp)
        tensors = list(walk_ops(main, AllocTensorOp))
        inside = [str(ir.Attribute(op.attributes["offset"])) for op in tensors if len(op.operands)]
        return parse(str(storage.bytes)), inside, len(tensors) - len(inside)


def test_tir_var_upper_bound() -> None:
    size, offsets, separate = planned('"n <= 4"', "{static=true}")
    # 32 and 40 bytes, each rounded up to a cache line.
    assert size.value == 128
    assert len(offsets) == 4
    assert len(set(offsets)) == 2
    assert separate == 1  # what is returned


@pytest.mark.parametrize("facts", ['"2 <= n"', ""])
def test_symbolic_shape_without_upper_bound(facts: str) -> None:
    size, offsets, separate = planned(facts)
    assert size.symbols == {"n"}
    assert len(offsets) == 4
    assert separate == 1
    # TVM takes a third storage for 2*n + 2: here it is proved to hold 2*n, and grows.
    small, large = parse("(8*n + 63) floordiv 64 * 64"), parse("(8*n + 71) floordiv 64 * 64")
    assert at_most(size, small + large, Facts()).proved
