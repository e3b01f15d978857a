"""Gives each symbol a name of its own: two regions may each bind a `k`.

A pass that substitutes a symbol in a whole function, or combines symbols of several regions, needs
unique names.
"""

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import MatchCastOp
from relax_mlir.symbolic import Expr

from .rename import FreshSymbols, rename_own_symbols
from .scopes import bound_by, runs_once, scoped_ops


def make_symbols_unique(function: func.FuncOp) -> None:
    """Renames symbols so that each is bound once; those of the entry block keep their names."""
    binders: dict[str, list[tuple[bool, ir.Operation]]] = {}
    for op, scope in scoped_ops(function):
        if isinstance(op, MatchCastOp):
            inner = scope.block != function.entry_block
            for name in bound_by(op, scope.symbols):
                binders.setdefault(name, []).append((inner, op.operation))
    renamed: dict[ir.Operation, dict[str, Expr]] = {}
    fresh = FreshSymbols(function)
    for name, casts in binders.items():
        for _, cast in sorted(casts, key=lambda binder: binder[0])[1:]:
            renamed.setdefault(cast, {})[name] = fresh(name)
    if renamed:
        _rename(function.entry_block, {}, renamed)


def _rename(
    block: ir.Block, values: dict[str, Expr], renamed: dict[ir.Operation, dict[str, Expr]]
) -> None:
    """Renames symbols in a block and its nested regions; adds what casts bind to `values`."""
    for op in block.operations:
        values.update(renamed.get(op.operation, {}))
        once = runs_once(op)
        if values and not once:
            rename_own_symbols(op, values)
        for region in op.operation.regions:
            for inner in region.blocks:
                _rename(inner, values if once else dict(values), renamed)
        if values and once:
            rename_own_symbols(op, values)
