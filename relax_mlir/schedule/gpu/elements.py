"""Refuses programs of elements that a device does not store."""

from collections.abc import Iterable, Sequence

from relax_mlir.bindings import ir
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import walk_ops
from relax_mlir.target import Device


def require_elements(prim_func: PrimFunc, device: Device) -> None:
    """Raises PassFailure at the first op with values of a type that a device does not store.

    Indices and truth values are always known.
    """
    known = {"index", "i1", *device.elements}

    def require(op: ir.OpView, values: Iterable[ir.Value], computed: Sequence[str]) -> None:
        for value in values:
            type_ = value.type
            element = str(type_.element_type if isinstance(type_, ir.ShapedType) else type_)
            if element not in known and element not in computed:
                accepted = ", ".join(device.elements)
                text = f"has values of {element}, which '{device}' does not store; "
                raise PassFailure(op, f"{text}accepted are {accepted}, i1 and indices")

    require(prim_func.op, prim_func.op.arguments, ())
    for op in walk_ops(prim_func.op):
        require(op, op.operation.results, device.computed)
