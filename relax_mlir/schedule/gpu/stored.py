"""Values in memory of a group: predicates are bytes, indices those of the device."""

from relax_mlir.bindings import arith, ir
from relax_mlir.schedule.build.memory import storage_type
from relax_mlir.target import Device


def stored_type(element: ir.Type, device: Device) -> ir.Type:
    """The type of a value in memory of a group."""
    if isinstance(element, ir.IndexType):
        return ir.IntegerType.get_signless(device.index_bits)
    return storage_type(element)


def converted(x: ir.Value, wanted: ir.Type) -> ir.Value:
    """A value as it is stored, or back."""
    if x.type == wanted:
        return x
    if any(isinstance(type_, ir.IndexType) for type_ in (x.type, wanted)):
        return arith.index_cast(wanted, x)
    is_predicate = ir.IntegerType(x.type).width == 1
    return (arith.extui if is_predicate else arith.trunci)(wanted, x)
