"""A histogram: tiles of elements count on their own, and bins add the counts of all tiles."""

from relax_mlir.dataflow import Instance, Port, Scalar, Tensor, graph, leaf, maximum, minimum, whole

TILES, BINS = 16, 256


@leaf(x="i32[n]")
def count(at: Instance, x: Tensor) -> Tensor:
    """The bins of a tile; elements outside of them count nowhere."""
    n = x.extent(0)
    size = (n + TILES - 1) // TILES
    first = minimum(at.id() * size, n)

    def one(p: Scalar, bins: Tensor) -> Tensor:
        return bins.set(x[p], bins[x[p]] + 1)

    end = minimum(first + size, n)
    return at.loop(end, at.filled(0, BINS, element="i32"), one, first=maximum(first, 0))


@leaf(bins=f"i32[{TILES}, {BINS}]")
def total(at: Instance, bins: Tensor) -> Scalar:
    """A bin of all tiles."""
    start = bins[0, at.id()]
    return at.loop(TILES - 1, start, lambda tile, sum_: sum_ + bins[tile + 1, at.id()])


@graph(x="i32[n]")
def histogram(x: Port) -> object:
    """How often each value from 0 to 255 occurs."""
    return total.over(BINS)(whole(count.over(TILES)(whole(x))))
