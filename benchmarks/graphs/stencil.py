"""A step of a 7-point stencil in three dims; borders are repeated."""

from relax_mlir.dataflow import Instance, Port, Scalar, Tensor, graph, leaf, whole


@leaf(x="f32[d, h, w]")
def point(at: Instance, x: Tensor) -> Scalar:
    """A point and its six neighbours."""
    k, j, i = at.ids(3)
    around = x[k - 1, j, i] + x[k + 1, j, i] + x[k, j - 1, i] + x[k, j + 1, i]
    return 0.4 * x[k, j, i] + 0.1 * (around + x[k, j, i - 1] + x[k, j, i + 1])


@graph(x="f32[d, h, w]")
def stencil(x: Port) -> object:
    """The field after a step."""
    return point.over("d", "h", "w")(whole(x))
