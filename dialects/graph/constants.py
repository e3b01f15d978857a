"""Constants of tensors, of which MLIR has signless ones only.

%0 = arith.constant dense<-1> : tensor<4xi8>
%1 = "graph.bitcast"(%0) {dtype = ui8} : (tensor<4xi8>) -> tensor<4xui8>       255
"""

from relax_mlir.bindings import arith, ir
from relax_mlir.data import attribute_of, elements_of

from .bits import BitcastOp
from .types import storage_element


def constant(value: ir.Attribute, element: ir.Type | None = None) -> ir.Value:
    """A tensor with the elements of an attribute, at the insertion point.

    They are stored ones of the type `element`, or of their own type if there is none.
    """
    element = element or ir.ShapedType(value.type).element_type
    stored = signless(value)
    made = arith.ConstantOp(stored.type, stored).result  # type: ignore[attr-defined]
    is_same = made.type.element_type == element
    return made if is_same else BitcastOp.build(made, dtype=element).result


def stored_integer(element: ir.IntegerType, value: int) -> ir.IntegerAttr:
    """What an integer is stored as: of an unsigned type, the signed one of the same bits."""
    if element.is_unsigned:
        half = 1 << (element.width - 1)
        value = (value + half) % (2 * half) - half
    return ir.IntegerAttr.get(storage_element(element), value)


def signless(value: ir.Attribute) -> ir.Attribute:
    """The elements of an attribute as what tensor programs have for them."""
    type_ = ir.RankedTensorType(value.type)
    element = storage_element(type_.element_type)
    if element == type_.element_type:
        return value
    kind = ir.RankedTensorType.get(type_.shape, element, type_.encoding)
    return attribute_of(kind, elements_of(value))
