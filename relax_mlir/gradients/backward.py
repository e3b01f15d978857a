"""Gradients of single operators by name, which other standards have an operator for.

    seed : the gradient of the operator's result    result : the gradient of its first operand

Built at the insertion point, by the rules of `operators/`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.decompositions import avg_pool, max_pool, nll_loss
from relax_mlir.decompositions.emit import dims_of, emit, rank_of, reshape, with_dims
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, TensorType, dims_differ
from relax_mlir.rewriting import captured_values, is_unused, safe_erase
from relax_mlir.symbolic import product

from .reverse import Context, Reverse, is_differentiable, vary
from .shapes import zeros_like


def gradient_of(seed: ir.Value, x: ir.Value, build: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """The gradient of x, of what operators `build` makes of it: those that are not needed go."""
    if not is_differentiable(x):
        raise ShapeError(f"has no gradient by '{TensorType.of(x)}', which is not of floats")
    result = build(x)
    wanted, given = TensorType.of(result), TensorType.of(seed)
    dims = dims_of(result)
    if rank_of(seed) != len(dims) or any(map(dims_differ, dims_of(seed), dims)):
        raise ShapeError(f"expects a gradient '{wanted}', but got '{given}'")
    if wanted.element != given.element:
        raise ShapeError(f"expects a gradient of {wanted.element}, but got {given.element}")
    ops = list(_built(result, {x}))
    varied = {x}
    vary(ops, varied)
    reverse = Reverse(varied, Context(_no_calls, _no_calls, _no_calls))
    reverse.add(result, with_dims(seed, dims))
    reverse.run(ops)
    gradient = reverse.of(x)
    for op in reversed(ops):
        if is_unused(op):
            safe_erase(op)
    return zeros_like(x) if gradient is None else gradient


def _built(value: ir.Value, seen: set[ir.Value]) -> Iterator[ir.OpView]:
    """The ops that a value is made by from what has been seen, each after its operands."""
    if value in seen or isinstance(value.owner, ir.Block):
        return
    op = value.owner.opview
    seen.update(op.operation.results)
    for operand in (*op.operation.operands, *captured_values(op)):
        yield from _built(operand, seen)
    yield op


def _no_calls(*_: Any) -> Any:
    raise ShapeError("has loops or calls of functions; differentiate a function of it")


def avg_pool_backward(
    seed: ir.Value, x: ir.Value, window: Sequence[int], **settings: Any
) -> ir.Value:
    """Each average's gradient, divided among the elements of its window.

    Settings are those of `decompositions.avg_pool`. Source: TVM `relax.grad.avg_pool2d_backward`;
    ATen `avg_pool2d_backward`.
    """
    return gradient_of(seed, x, lambda value: avg_pool(value, window, **settings))


def max_pool_backward(
    seed: ir.Value, x: ir.Value, window: Sequence[int], **settings: Any
) -> ir.Value:
    """Each maximum's gradient, at the first of the greatest elements of its window.

    Settings are those of `decompositions.max_pool`. Source: TVM `relax.grad.max_pool2d_backward`;
    ATen `max_pool2d_with_indices_backward`.
    """
    return gradient_of(seed, x, lambda value: max_pool(value, window, **settings))


def nll_loss_backward(
    seed: ir.Value,
    log_probabilities: ir.Value,
    target: ir.Value,
    weight: ir.Value | None = None,
    **settings: Any,
) -> ir.Value:
    """The loss's gradient times minus the weight, at each target class.

    Settings are those of `decompositions.nll_loss`. Source: TVM `relax.grad.nll_loss_backward`;
    ATen `nll_loss_backward`.
    """
    return gradient_of(
        seed, log_probabilities, lambda value: nll_loss(value, target, weight, **settings)
    )


def take_backward(
    seed: ir.Value, x: ir.Value, indices: ir.Value, axis: int | None = None
) -> ir.Value:
    """Each slice's gradient, added to the slice that it was; without `axis`, of all elements of x.

    Source: TVM `relax.grad.take_backward`; ATen `embedding_dense_backward`.
    """

    def build(value: ir.Value) -> ir.Value:
        flat = reshape(value, [product(dims_of(value))]) if axis is None else value
        return emit(graph.TakeOp, flat, indices, axis=0 if axis is None else axis)

    return gradient_of(seed, x, build)
