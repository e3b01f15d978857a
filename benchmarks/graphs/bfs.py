"""A level of a breadth-first search: instances without a level look for a neighbour of the last."""

from relax_mlir.dataflow import (
    Instance,
    Port,
    Scalar,
    Tensor,
    each,
    graph,
    leaf,
    maximum,
    minimum,
    where,
    whole,
)


@leaf(starts="i32[n + 1]", neighbours="i32[z]", levels="i32[n]", last="i32")
def vertex(
    at: Instance, starts: Tensor, neighbours: Tensor, levels: Tensor, last: Scalar
) -> Scalar:
    """The level of a vertex: -1 until it is reached."""
    v = at.id()
    own = levels[v]
    first = maximum(starts[v].astype("index"), 0)
    end = minimum(starts[v + 1].astype("index"), neighbours.extent(0))

    def look(p: Scalar, level: Scalar) -> Scalar:
        return where(levels[neighbours[p]] == last, last + 1, level)

    rest = where(own < 0, end, first)
    return at.loop(rest, own, look, first=first, until=lambda level: level >= 0)


@leaf(levels="i32[n]", last="i32")
def reached(at: Instance, levels: Tensor, last: Scalar) -> Scalar:
    """How many vertices have the new level."""

    def one(v: Scalar, total: Scalar) -> Scalar:
        return total + where(levels[v] > last, last * 0 + 1, 0)

    return at.loop(levels.extent(0), last * 0, one)


@graph(starts="i32[n + 1]", neighbours="i32[z]", levels="i32[n]", last="i32[]")
def bfs(starts: Port, neighbours: Port, levels: Port, last: Port) -> object:
    """All levels, and how many vertices a level more has reached."""
    new = vertex.over("n")(whole(starts), whole(neighbours), whole(levels), whole(last))
    return new, reached.over()(whole(new), each(last))
