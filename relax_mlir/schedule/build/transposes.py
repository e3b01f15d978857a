"""Transposes squares of vectors in registers, by shuffles of pairs."""

from relax_mlir.bindings import ir, vector

_BLOCK = 4
"""32-bit elements that shuffles of 512-bit vectors move as one."""


def transpose(rows: list[ir.Value]) -> list[ir.Value]:
    """The transpose of a square of vectors, by swapping ever smaller off-diagonal blocks."""
    lanes = len(rows)
    if lanes % _BLOCK == 0 and ir.VectorType(rows[0].type).element_type.width == 32:
        return _transpose_blocks(rows)
    distance = lanes // 2
    while distance:
        low = [j if not j & distance else j - distance + lanes for j in range(lanes)]
        high = [j + distance if not j & distance else j + lanes for j in range(lanes)]
        swapped = list(rows)
        for i in range(lanes):
            if not i & distance:
                pair = rows[i], rows[i + distance]
                swapped[i] = vector.shuffle(*pair, low)
                swapped[i + distance] = vector.shuffle(*pair, high)
        rows = swapped
        distance //= 2
    return rows


def _transpose_blocks(rows: list[ir.Value]) -> list[ir.Value]:
    """The same for vectors of blocks of four: blocks first, then elements within blocks.

    Shuffles of 16-byte blocks, and of elements within them, need no index vectors.
    """
    columns = zip(*(_exchange(rows[i::_BLOCK]) for i in range(_BLOCK)), strict=True)
    result = []
    for a, b, c, d in columns:
        for half in range(2):
            pair = _alternate(a, b, 1, half), _alternate(c, d, 1, half)
            result += [_alternate(*pair, 2, part) for part in range(2)]
    return result


def _exchange(rows: list[ir.Value]) -> list[ir.Value]:
    """The transpose of a square of blocks: row j has block j of each."""
    if len(rows) == 1:
        return rows
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    even, odd = (_exchange([_every_second(*p, _BLOCK, part) for p in pairs]) for part in range(2))
    return [x for pair in zip(even, odd, strict=True) for x in pair]


def _every_second(a: ir.Value, b: ir.Value, size: int, odd: int) -> ir.Value:
    """Every second run of `size` elements of the concatenation of two vectors."""
    count = 2 * ir.VectorType(a.type).shape[0]
    return vector.shuffle(a, b, [i for i in range(count) if i // size % 2 == odd])


def _alternate(a: ir.Value, b: ir.Value, size: int, half: int) -> ir.Value:
    """Alternating runs of `size` elements of a and b, from one half of each of their blocks."""
    lanes = ir.VectorType(a.type).shape[0]
    indices = [i for i in range(lanes) if i % _BLOCK // (_BLOCK // 2) == half]
    runs = [indices[i : i + size] for i in range(0, len(indices), size)]
    return vector.shuffle(a, b, [i + j for run in runs for j in (0, lanes) for i in run])
