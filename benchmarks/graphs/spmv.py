"""A sparse matrix in CSR times a vector: an instance has a row."""

from relax_mlir.dataflow import (
    Instance,
    Port,
    Scalar,
    Tensor,
    graph,
    leaf,
    maximum,
    minimum,
    whole,
)


@leaf(starts="i32[n + 1]", columns="i32[z]", values="f32[z]", x="f32[m]")
def row(at: Instance, starts: Tensor, columns: Tensor, values: Tensor, x: Tensor) -> Scalar:
    """The sum of a row's elements times those of x at their columns."""
    i = at.id()
    first = maximum(starts[i].astype("index"), 0)
    end = minimum(starts[i + 1].astype("index"), values.extent(0))

    def add(p: Scalar, total: Scalar) -> Scalar:
        return total + values[p] * x[columns[p]]

    return at.loop(end, 0.0, add, first=first)


@graph(starts="i32[n + 1]", columns="i32[z]", values="f32[z]", x="f32[m]")
def spmv(starts: Port, columns: Port, values: Port, x: Port) -> object:
    """The matrix times x."""
    return row.over("n")(whole(starts), whole(columns), whole(values), whole(x))
