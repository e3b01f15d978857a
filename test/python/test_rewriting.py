"""Helpers for passes that rewrite by hand."""

import pytest

from relax_mlir.bindings import arith, func, ir, scf
from relax_mlir.dialects import make_context
from relax_mlir.rewriting import (
    is_unused,
    replace,
    rewrite_greedily,
    rewrite_walk,
    safe_erase,
    values_of,
    walk,
    walk_ops,
)

MODULE = """
func.func @f(%x: i32, %c: i1) -> i32 {
  %0 = arith.addi %x, %x : i32
  %1 = scf.if %c -> i32 {
    %2 = arith.addi %0, %0 : i32
    scf.yield %2 : i32
  } else {
    scf.yield %0 : i32
  }
  return %1 : i32
}
"""


@pytest.fixture
def module():
    with make_context(), ir.Location.unknown():
        yield ir.Module.parse(MODULE)


def names(ops):
    return [op.operation.name for op in ops]


def test_walk_ops_is_in_order_with_inner_ops_first(module):
    every = ["arith.addi", "arith.addi", "scf.yield", "scf.yield", "scf.if", "func.return"]
    assert names(walk_ops(module)) == [*every, "func.func", "builtin.module"]
    assert names(walk(module)) == names(walk_ops(module))
    assert names(walk_ops(module, scf.IfOp, func.ReturnOp)) == ["scf.if", "func.return"]
    assert all(type(op) is arith.AddIOp for op in walk_ops(module, arith.AddIOp))
    assert walk_ops(module, arith.MulIOp) == []


def test_safe_erase_refuses_a_used_op(module):
    first, second = walk_ops(module, arith.AddIOp)
    assert not is_unused(first)
    with pytest.raises(ValueError, match=r"cannot erase 'arith.addi': its results are still used"):
        safe_erase(first)
    second.result.replace_all_uses_with(first.result)
    assert is_unused(second)
    safe_erase(second)
    assert module.operation.verify()
    assert len(walk_ops(module, arith.AddIOp)) == 1


def test_replace_counts_values(module):
    first, second = walk_ops(module, arith.AddIOp)
    with pytest.raises(ValueError, match=r"cannot replace the 1 results of .* by 2 values"):
        replace(second, [first.result, first.result])
    replace(second, first)
    assert module.operation.verify()
    assert values_of(first) == values_of(first.result) == values_of([first.result])


def double(op: arith.AddIOp) -> ir.Value | None:
    """Turns `x + x` into `x * x`."""
    return arith.MulIOp(op.lhs, op.rhs).result if op.lhs == op.rhs else None


def split(op: arith.MulIOp) -> ir.Value | None:
    """Turns `x * x` into `x * (x - x)`, which it does not match again."""
    if op.lhs != op.rhs:
        return None
    return arith.MulIOp(op.lhs, arith.SubIOp(op.lhs, op.rhs).result).result


def test_walk_driver_leaves_new_ops_alone(module):
    assert rewrite_walk(module, double, split) == 2
    assert module.operation.verify()
    assert walk_ops(module, arith.AddIOp, arith.SubIOp) == []


def test_greedy_driver_rewrites_new_ops_too(module):
    assert rewrite_greedily(module, double, split) == 4
    assert module.operation.verify()
    assert len(walk_ops(module, arith.SubIOp)) == 2


def test_new_ops_take_the_location_of_the_old(module):
    with module.context:
        module = ir.Module.parse(MODULE)
    lines = [str(op.location) for op in walk_ops(module, arith.AddIOp)]
    rewrite_walk(module, double)
    assert [str(op.location) for op in walk_ops(module, arith.MulIOp)] == lines


def test_pattern_that_never_ends_is_stopped(module):
    def swap(op: arith.AddIOp) -> ir.Value:
        return arith.AddIOp(op.rhs, op.lhs).result

    with pytest.raises(RuntimeError, match="the patterns swap did not converge"):
        rewrite_greedily(module, swap)
