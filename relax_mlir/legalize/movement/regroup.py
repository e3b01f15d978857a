"""Groups of dims: what collapsing and expanding them makes of static and dynamic extents."""

from collections.abc import Sequence

from relax_mlir.bindings import ir, tensor


def collapse(value: ir.Value, groups: Sequence[list[int]]) -> ir.Value:
    """Makes one dim of each group, dynamic if one of the group is."""
    type_ = ir.RankedTensorType(value.type)
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = []
    for group in groups:
        extents = [type_.shape[axis] for axis in group]
        extent = 1
        for size in extents:
            extent *= size
        shape.append(dynamic if any(size == dynamic for size in extents) else extent)
    result = ir.RankedTensorType.get(shape, type_.element_type)
    return tensor.CollapseShapeOp(result, value, list(groups)).result


def match_dynamic(
    value: ir.Value, out_type: ir.RankedTensorType, groups: Sequence[list[int]]
) -> ir.Value:
    """Casts dims so that each is dynamic exactly where its group is."""
    type_ = ir.RankedTensorType(value.type)
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = []
    for group, extent in zip(groups, type_.shape):
        product = 1
        for axis in group:
            size = out_type.shape[axis]
            product = dynamic if dynamic in (product, size) else product * size
        shape.append(product)
    return cast(value, ir.RankedTensorType.get(shape, type_.element_type))


def cast(value: ir.Value, type_: ir.RankedTensorType) -> ir.Value:
    """The value under a type of the same extents."""
    return value if value.type == type_ else tensor.CastOp(type_, value).result
