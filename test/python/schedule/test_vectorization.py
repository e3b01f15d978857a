"""The check that kernels do not access contiguous memory by scalars, on text and on all rules."""

import pytest
from scheduled import built_from_graph
from test_attention_schedule import graph

from relax_mlir.analysis.vectorization import assert_no_scalar_inner_loop, scalar_inner_loops
from relax_mlir.bindings import ir
from relax_mlir.errors import CompileError

KERNEL = """func.func private @copy(%a: memref<?xf32>, %b: memref<?xf32>, %n: index)
    attributes {{tir.scheduled}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %n step %c1 {{
    scf.for %j = %c0 to %n step {step} {{
      {body}
    }}
  }}
  return
}}"""


def loops(body, step="%c1"):
    with ir.Context():
        module = ir.Module.parse(KERNEL.format(body=body, step=step))
        return scalar_inner_loops(module.operation)


def test_neighbours_one_by_one_are_found():
    problems = loops("%x = memref.load %a[%j] : memref<?xf32>")
    assert str(problems[0]) == (
        "kernel 'copy' has an innermost loop that walks neighbouring elements by scalar "
        "'memref.load'"
    )
    store = """%x = arith.constant 1.0 : f32
      %k = arith.muli %i, %n : index
      %m = arith.subi %k, %j : index
      memref.store %x, %a[%m] : memref<?xf32>"""
    assert [loop.access for loop in loops(store)] == ["memref.store"]


@pytest.mark.parametrize(
    "body",
    [
        "%k = arith.muli %j, %c2 : index\n %x = memref.load %a[%k] : memref<?xf32>",
        "%k = arith.muli %j, %n : index\n %x = memref.load %a[%k] : memref<?xf32>",
        "%x = memref.load %a[%i] : memref<?xf32>",
        """%x = memref.load %a[%j] : memref<?xf32>
        %v = vector.broadcast %x : f32 to vector<4xf32>
        vector.store %v, %b[%i] : memref<?xf32>, vector<4xf32>""",
    ],
)
def test_strides_invariants_and_operands_of_vectors_are_not(body):
    assert loops(body) == []


def test_each_operand_is_followed_once():
    """An index of 64 sums of a value with itself has 2^64 paths to the loop variable."""
    sums = [f"%k{n + 1} = arith.addi %k{n}, %k{n} : index" for n in range(64)]
    body = ["%k0 = arith.addi %j, %j : index", *sums, "%x = memref.load %a[%k64] : memref<?xf32>"]
    assert loops("\n".join(body)) == []


def test_steps_count():
    assert loops("%x = memref.load %a[%j] : memref<?xf32>", "%c2") == []


def test_the_assertion_names_the_location():
    text = KERNEL.format(body="%x = memref.load %a[%j] : memref<?xf32>", step="%c1")
    with ir.Context():
        module = ir.Module.parse(text)
        with pytest.raises(CompileError, match=r":8:\d+: error: kernel 'copy'"):
            assert_no_scalar_inner_loop(module.operation)


@pytest.mark.parametrize("fuse", [True, False])
def test_attention_has_none(fuse):
    kernel = built_from_graph(graph("f32", 6, 2, 64, True), fuse)
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        assert_no_scalar_inner_loop(ir.Module.parse(kernel.text).operation)
