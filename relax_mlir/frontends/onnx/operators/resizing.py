"""Images of other sizes, and elements at coordinates."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, const

from ...known import Known
from ..node import Node, normalized
from ..registry import operator


@operator("Resize", since=11)
def resize(node: Node) -> ir.Value:
    """Other sizes, by sizes or scales."""
    rank = node.rank()
    axes = [normalized(a, rank) for a in node.attribute("axes", list(range(rank)))]
    sizes, scales = _wanted(node, axes)
    return _resize(node, axes, sizes, scales)


def _wanted(node: Node, axes: list[int]) -> tuple[list[Expr] | None, list[float] | None]:
    if _is_given(node, 3):
        sizes = node.exprs(3, "sizes")
        policy = node.attribute("keep_aspect_ratio_policy", "stretch")
        return (sizes if policy == "stretch" else _retained(node, axes, sizes, policy)), None
    if not _is_given(node, 2):
        raise ModelError("has neither sizes nor scales")
    given = node.known(2)
    if given is not None and given.is_symbolic:
        raise ModelError("has scales that depend on dims, which is not supported")
    return None, [float(each) for each in node.array(2, "scales").reshape(-1).tolist()]


def _is_given(node: Node, index: int) -> bool:
    value = node.value(index)
    return value is not None and not (isinstance(value, Known) and value.array.size == 0)


def _retained(node: Node, axes: list[int], sizes: list[Expr], policy: str) -> list[Expr]:
    """Sizes of one scale for all axes, which is the least or the greatest of theirs."""
    dims = [node.dims(0)[axis].value for axis in axes]
    wanted = [size.value for size in sizes]
    known = [(w, dim) for w, dim in zip(wanted, dims) if w is not None and dim]
    if len(known) != len(dims):
        raise ModelError(f"has policy '{policy}' for sizes of symbols, which is not supported")
    scales = [w / dim for w, dim in known]
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [const(int(scale * dim + 0.5)) for _, dim in known]


def _resize(
    node: Node, axes: list[int], sizes: list[Expr] | None, scales: list[float] | None
) -> ir.Value:
    dims = node.dims(0)
    coordinates = node.attribute("coordinate_transformation_mode", "half_pixel")
    resized = [
        i
        for i, axis in enumerate(axes)
        if (sizes[i] != dims[axis] if sizes else scales is not None and scales[i] != 1)
        or coordinates == "tf_crop_and_resize"
    ]
    if not resized:
        return node.tensor(0)
    region = None
    if coordinates == "tf_crop_and_resize":
        bounds = node.array(1, "a region").reshape(-1).tolist()
        region = [(bounds[i], bounds[len(axes) + i]) for i in resized]
    return d.resize(
        node.tensor(0),
        [axes[i] for i in resized],
        sizes=[sizes[i] for i in resized] if sizes else None,
        scales=[scales[i] for i in resized] if scales else None,
        mode=node.attribute("mode", "nearest"),
        coordinates=coordinates,
        nearest=node.attribute("nearest_mode", "round_prefer_floor"),
        cubic=node.attribute("cubic_coeff_a", -0.75),
        exclude_outside=node.flag("exclude_outside"),
        region=region,
        extrapolation=node.attribute("extrapolation_value", 0.0),
        antialias=node.flag("antialias"),
    )


@operator("Upsample", since=7, until=9)
@operator("Resize", since=10, until=10)
def upsample(node: Node) -> ir.Value:
    """Larger, by scales."""
    if node.op == "Upsample" and node.version < 9:
        scales = node.required("scales")
    else:
        scales = [float(each) for each in node.array(1, "scales").reshape(-1).tolist()]
    resized = [i for i, scale in enumerate(scales) if scale != 1]
    if not resized:
        return node.tensor(0)
    mode = node.attribute("mode", "nearest")
    return d.resize(
        node.tensor(0),
        resized,
        scales=[scales[i] for i in resized],
        mode="linear" if mode in ("linear", "bilinear") else mode,
        coordinates="asymmetric",
        nearest="floor",
    )


@operator("GridSample")
def grid_sample(node: Node) -> ir.Value:
    """Elements at coordinates."""
    modes = {"bilinear": "linear", "bicubic": "cubic"}
    mode = node.attribute("mode", "linear")
    return d.grid_sample(
        node.tensor(0),
        node.tensor(1),
        mode=modes.get(mode, mode),
        padding=node.attribute("padding_mode", "zeros"),
        align_corners=node.flag("align_corners"),
    )


@operator("AffineGrid")
def affine_grid(node: Node) -> ir.Value:
    """Coordinates of an affine transformation."""
    sizes, aligned = node.exprs(1, "sizes"), node.flag("align_corners")
    return d.affine_grid(node.tensor(0), sizes[2:], align_corners=aligned)
