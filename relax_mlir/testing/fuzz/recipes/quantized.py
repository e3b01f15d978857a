"""Recipes of quantised tensors."""

from typing import Any

from relax_mlir.dialects import graph
from relax_mlir.dialects.graph.quantized import PARTS, ROUNDED, SCHEMES
from relax_mlir.symbolic import Expr, const

from ..builder import Builder, Value
from .table import recipe


def _parts(b: Builder, scheme: str, panels: Expr, blocks: int) -> list[Value | None]:
    found = SCHEMES[scheme].parts(panels, blocks)
    given = {name: b.argument(list(dims), kind) for name, (kind, dims) in found.items()}
    return [given.get(name) for name in PARTS]


@recipe("quantised", graph.DequantizeOp)
def dequantize(b: Builder, op: Any) -> None:
    """A matrix, often the right side of a product."""
    scheme, blocks = b.few("schemes", list(SCHEMES), 2), 8
    if not SCHEMES[scheme].is_nested:
        blocks = SCHEMES[scheme].shared * b.random.choice([1, 2])
    panels = b.few("panels", [1, 2, 3], 1)
    dims = const(panels)
    matrix = b.emit(op, _parts(b, scheme, dims, blocks), False, 999, scheme=scheme)
    if b.chance(0.7):
        turned = b.emit(graph.PermuteDimsOp, [matrix], axes=[1, 0])
        x = b.argument([b.pick_dim(), const(32 * blocks)], "f32")
        b.emit(graph.MatmulOp, [x, turned], False, 1e4)


@recipe("quantised", graph.DequantizeRowsOp)
def dequantize_rows(b: Builder, op: Any) -> None:
    """Rows by clamped indices."""
    scheme = b.few("schemes", list(SCHEMES), 2)
    indices = b.argument([b.pick_dim()], b.random.choice(["i32", "i64"]))
    parts = _parts(b, scheme, const(b.random.choice([1, 3])), 8)
    b.emit(op, [indices, *parts], False, 1e4, scheme=scheme)


@recipe("quantised", graph.QuantizeOp)
def quantize(b: Builder, op: Any) -> None:
    """A matrix that is an argument, since rounding jumps."""
    scheme = b.few("rounded", list(ROUNDED), 2)
    shape = [b.pick_dim(), const(SCHEMES[scheme].group * b.random.choice([1, 2]))]
    axis = b.random.choice([0, 1])
    matrix = b.argument(shape if axis == 1 else shape[::-1], "f32")
    parts = b.emit_many(op, [matrix], True, 50, scheme=scheme, axis=axis)
    if b.chance(0.5):
        names = list(SCHEMES[scheme].parts(1, 1))
        given = dict(zip(names, parts))
        operands = [given.get(name) for name in PARTS]
        b.emit(graph.DequantizeOp, operands, False, 100, scheme=scheme)


@recipe("quantised", graph.QuantizeBlocksOp)
def quantize_blocks(b: Builder, op: Any) -> None:
    """Rows of 32 or 64, and back."""
    x = b.argument([b.pick_dim(), const(b.few("blocks", [32, 64, 160], 1))], "f32")
    if b.chance(0.2):
        _quantize_huge(b, op, x)
        return
    parts = b.emit_many(op, [x], True, 128, symmetric=b.chance(0.5))
    if b.chance(0.5):
        b.emit(graph.DequantizeBlocksOp, parts, False, 100)


def _quantize_huge(b: Builder, op: Any, x: Value) -> None:
    """Blocks whose range may be beyond f32, and factors that are brought back."""
    huge = graph.MultiplyOp.build(x.ir, b.number(2.0**125, "f32").ir).result
    values, *factors = op.build(huge, symmetric=b.chance(0.2)).operation.results
    b.used += ["quantize_blocks", *["multiply"] * (1 + len(factors))]
    b.add(values, exact=True, bound=128)
    for factor in factors:
        back = graph.MultiplyOp.build(factor, b.number(2.0**-125, "f32").ir).result
        b.add(back, exact=True, bound=10)


@recipe("quantised", graph.DequantizeBlocksOp)
def dequantize_blocks(b: Builder, op: Any) -> None:
    """Numbers and factors that are arguments."""
    rows, blocks = b.pick_dim(), b.few("blocks of", [1, 2, 5], 1)
    values = b.argument([rows, const(32 * blocks)], "i8")
    factors = [b.argument([rows, const(blocks)], "f32") for _ in range(b.random.choice([1, 2]))]
    b.emit(op, [values, *factors], False, 1e3)
