"""Strided loads as contiguous loads and deinterleaving shuffles, instead of gathers."""

from collections.abc import Sequence

from relax_mlir.bindings import ir, vector

from .loops import Index, add, load


def load_strided(line: ir.Value, at: Index, step: int, lanes: int) -> ir.Value:
    """The elements `at`, `at + step`, .. of a buffer; `step * lanes` are read from `at` on."""
    return deinterleave([load(line, add(at, i * lanes), lanes) for i in range(step)])


def deinterleave(vectors: Sequence[ir.Value]) -> ir.Value:
    """Every n-th element of the concatenation of n vectors, from the first one on."""
    step, lanes = len(vectors), ir.VectorType(vectors[0].type).shape[0]
    result = vectors[0]
    # Lane i is element i * step: each shuffle adds those of the next vector.
    positions = [i * step for i in range(lanes)]
    for index in range(1, step):
        begin = index * lanes
        lanes_of = [
            (i if index > 1 else position) if position < begin
            else (lanes + position - begin if position < begin + lanes else 0)
            for i, position in enumerate(positions)
        ]  # fmt: skip
        result = vector.shuffle(result, vectors[index], lanes_of)
    return result
