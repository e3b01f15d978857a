"""A product of matrices: an instance has an element, a sum over a row and a column."""

from relax_mlir.dataflow import Instance, Port, Scalar, Tensor, graph, leaf, whole


@leaf(a="f32[m, k]", b="f32[k, n]")
def element(at: Instance, a: Tensor, b: Tensor) -> Scalar:
    """One element of the product."""
    i, j = at.ids(2)
    return at.loop(a.extent(1), 0.0, lambda p, total: total + a[i, p] * b[p, j])


@graph(a="f32[m, k]", b="f32[k, n]")
def sgemm(a: Port, b: Port) -> object:
    """a times b."""
    return element.over("m", "n")(whole(a), whole(b))
