"""Regions of images."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import astype, concat, element_of, expand_dims
from relax_mlir.errors import ModelError

from ..node import Node
from ..registry import operator


@operator("RoiAlign")
def roi_align(node: Node) -> ir.Value:
    """Means of points in the parts of regions, or the greatest of their weighted neighbours."""
    x, regions, batch = (node.tensor(i) for i in range(3))
    aligned = node.attribute("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    samples = node.attribute("sampling_ratio", 0)
    mode = {"max": "max_weighted"}.get(*[node.attribute("mode", "avg")] * 2)
    if samples < 1:
        raise ModelError("has as many samples as regions are large, which is not supported")
    column = expand_dims(astype(batch, element_of(regions)), [1])
    return d.roi_align(
        x,
        concat([column, regions], 1),
        [node.attribute("output_height", 1), node.attribute("output_width", 1)],
        scale=node.attribute("spatial_scale", 1.0),
        samples=samples,
        aligned=aligned if node.version >= 16 else False,
        mode=mode,
    )


@operator("MaxRoiPool")
def max_roi_pool(node: Node) -> ir.Value:
    """The greatest elements of the parts of regions."""
    size, scale = node.required("pooled_shape"), node.attribute("spatial_scale", 1.0)
    return d.roi_pool(node.tensor(0), node.tensor(1), size, scale=scale)
