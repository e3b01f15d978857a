"""The symbols that compiled modules export."""

from relax_mlir.bindings import func, ir, llvm

from .library import slot_name

HOST_PREFIX = "rx_"
LIBRARY_PREFIX = slot_name("")


def exported_symbols(module: ir.Module) -> list[str]:
    """The host functions, and the slots for addresses of library functions."""
    prefixes = {func.FuncOp: HOST_PREFIX, llvm.GlobalOp: LIBRARY_PREFIX}
    symbols = [
        (ir.StringAttr(op.attributes["sym_name"]).value, prefixes[type(op)])
        for op in module.body.operations
        if type(op) in prefixes
    ]
    return [name for name, prefix in symbols if name.startswith(prefix)]
