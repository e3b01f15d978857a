"""Symbols that decompositions bind to what data say."""

from collections.abc import Iterator

from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import MatchCastOp, TensorType
from relax_mlir.symbolic import Expr, sym

from .emit import emit


def bind(sizes: ir.Value, symbols: list[Expr]) -> None:
    """Binds symbols to the elements of a tensor of i64, which are 0 or more."""
    shape = emit(graph.TensorToShapeOp, sizes)
    MatchCastOp.build(shape, graph.shape_value_type(symbols))


def fresh_symbols(*names: str) -> list[Expr]:
    """Symbols that the function around the insertion point does not use yet."""
    op = ir.InsertionPoint.current.block.owner
    while op is not None and not isinstance(op.opview, func.FuncOp):
        op = op.operation.parent
    taken: set[str] = set() if op is None else set(_used(op.opview))
    symbols = []
    for name in names:
        suffix = 0
        while (fresh := f"{name}_{suffix}") in taken:
            suffix += 1
        symbols.append(sym(fresh))
    return symbols


def _used(function: func.FuncOp) -> Iterator[str]:
    """Symbols that arguments or casts of a function bind."""
    values = list(function.arguments)

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, MatchCastOp):
            values.append(op.results[0])
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)
    for value in values:
        if isinstance(value.type, ir.RankedTensorType):
            dims = TensorType.of(value).dims or ()
        elif isinstance(value.type, graph.ShapeValueType):
            dims = graph.shape_value_dims(value.type) or ()
        else:
            continue
        for dim in dims:
            yield from () if dim is None else dim.symbols
