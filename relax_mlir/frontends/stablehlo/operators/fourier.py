"""Fourier transforms, of one to three axes."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ...complex import split
from ..node import Node
from ..registry import Value, operator


@operator("fft", takes_pairs=True)
def fft(node: Node) -> Value:
    """The transform along the last axes, its inverse, or either of real elements."""
    lengths = node.integers("fft_length")
    kind, rank = node.keyword("fft_type"), node.rank()
    axes = list(range(rank - len(lengths), rank))
    if not axes:
        return node.value(0)
    dims = [dim.value for dim in node.dims()[-len(lengths) :]]
    if kind == "IRFFT":
        dims[-1] = lengths[-1] if dims[-1] == lengths[-1] // 2 + 1 else dims[-1]
    if dims != lengths:
        raise ModelError(f"has lengths {lengths} for dims {dims}")
    if kind == "RFFT":
        pairs = d.rfft(node.tensor(0), axis=axes[-1])
        return split(_transformed(pairs, axes[:-1], inverse=False))
    pairs = node.importer.joined(node.pair(0))
    if kind == "IRFFT":
        return d.irfft(_transformed(pairs, axes[:-1], inverse=True), lengths[-1], axis=axes[-1])
    return split(_transformed(pairs, axes, inverse=kind == "IFFT"))


def _transformed(pairs: ir.Value, axes: list[int], inverse: bool) -> ir.Value:
    for axis in axes:
        pairs = d.fft(pairs, axis=axis, inverse=inverse)
    assert graph.TensorType.of(pairs).is_exact
    return pairs
