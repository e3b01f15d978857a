"""Elements that lie apart in a line, as vectors: whole loads and shuffles in place of gathers."""

from collections.abc import Sequence

from relax_mlir.bindings import ir, vector

from .loops import Index, add, load


def load_strided(line: ir.Value, at: Index, step: int, lanes: int) -> ir.Value:
    """The elements `at`, `at + step`, .. of a buffer; `step * lanes` are read from `at` on."""
    return every([load(line, add(at, i * lanes), lanes) for i in range(step)])


def every(vectors: Sequence[ir.Value]) -> ir.Value:
    """Of vectors that follow one another, every element that is as far on as there are vectors."""
    step, lanes = len(vectors), ir.VectorType(vectors[0].type).shape[0]
    found = vectors[0]
    # Lane i is element i * step: each shuffle adds those that the next vector has.
    places = [i * step for i in range(lanes)]
    for number in range(1, step):
        taken = number * lanes
        lanes_of = [
            (i if number > 1 else place) if place < taken
            else (lanes + place - taken if place < taken + lanes else 0)
            for i, place in enumerate(places)
        ]  # fmt: skip
        found = vector.shuffle(found, vectors[number], lanes_of)
    return found
