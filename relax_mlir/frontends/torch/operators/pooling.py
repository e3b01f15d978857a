"""Poolings."""

from collections.abc import Callable, Sequence
from typing import Any

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    astype,
    broadcast_to,
    dims_of,
    element_of,
    emit,
    expand_dims,
    reshape,
    scalar,
)
from relax_mlir.dialects import graph
from relax_mlir.symbolic import Expr, product

from ..call import Call
from ..registry import operator
from .neural import spread


def _batched(call: Call, x: ir.Value, count: int, pool: Callable[[ir.Value], Any]) -> Any:
    """What a pooling makes of a tensor, which may be one image."""
    if call.rank(x) == count + 2:
        return pool(x)
    result = pool(expand_dims(x, [0]))
    results = result if isinstance(result, tuple) else (result,)
    squeezed = tuple(
        each if each is None else emit(graph.SqueezeOp, each, axes=[0]) for each in results
    )
    return squeezed if isinstance(result, tuple) else squeezed[0]


def _windows(
    call: Call, count: int, size: Any, stride: Any, padding: Any, ceil_mode: bool
) -> tuple[list[int], dict[str, Any]]:
    window = call.integers(spread(size, count), "windows")
    pads = call.integers(spread(padding, count), "padding")
    strides = call.integers(spread(stride, count), "strides") if stride else window
    return window, {"strides": strides, "padding": [*pads, *pads], "ceil_mode": ceil_mode}


def _max(count: int, indices: bool) -> Callable[..., Any]:
    def build(
        call: Call,
        x: ir.Value,
        size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        window, settings = _windows(call, count, size, stride, padding, ceil_mode)
        settings["dilation"] = call.integers(spread(dilation, count), "dilation")

        def pool(batch: ir.Value) -> Any:
            if not indices:
                return d.max_pool(batch, window, **settings)
            values, positions = d.max_pool_with_indices(batch, window, **settings)
            return values, astype(positions, ir.IntegerType.get_signless(64))

        return _batched(call, x, count, pool)

    return build


def _average(count: int) -> Callable[..., Any]:
    def build(
        call: Call,
        x: ir.Value,
        size: Any,
        stride: Any = (),
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        window, settings = _windows(call, count, size, stride, padding, ceil_mode)
        settings |= {"count_include_pad": count_include_pad, "divisor": divisor_override}
        return _batched(call, x, count, lambda batch: d.avg_pool(batch, window, **settings))

    return build


def _adaptive(
    count: int, pool: Callable[[ir.Value, Sequence[Expr | None]], Any]
) -> Callable[..., Any]:
    def build(call: Call, x: ir.Value, sizes: Any) -> Any:
        given = dims_of(x)[-count:]
        wanted = [
            None if size is None or call.expr(size) == dim else call.expr(size)
            for size, dim in zip(spread(sizes, count), given, strict=True)
        ]
        return _batched(call, x, count, lambda batch: pool(batch, wanted))

    return build


for _count in (1, 2, 3):
    operator(f"max_pool{_count}d")(_max(_count, indices=False))
    operator(f"max_pool{_count}d_with_indices")(_max(_count, indices=True))
    operator(f"avg_pool{_count}d")(_average(_count))
    operator(f"adaptive_avg_pool{_count}d", f"_adaptive_avg_pool{_count}d")(
        _adaptive(_count, d.adaptive_avg_pool)
    )
    operator(f"adaptive_max_pool{_count}d")(_adaptive(_count, d.adaptive_max_pool_with_indices))


@operator("max_pool2d_with_indices_backward")
def max_pool_backward(
    call: Call, gradient: ir.Value, x: ir.Value, *window: Any, **options: Any
) -> ir.Value:
    """The gradient of each maximum, at the element that it is; the last operand says which."""
    indices = options.get("indices", window[-1])
    rows = dims_of(x)[:-2]
    zeros = broadcast_to(scalar(0, element_of(x)), [*rows, product(dims_of(x)[-2:])])
    own, at = (reshape(v, [*rows, product(dims_of(v)[-2:])]) for v in (gradient, indices))
    line = emit(graph.ScatterElementsOp, zeros, at, own, axis=len(rows), reduction="add")
    return reshape(line, dims_of(x))
