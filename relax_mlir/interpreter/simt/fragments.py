"""Products of matrices that warps compute: which thread has which elements.

Source: NVIDIA, PTX ISA 8.5, matrix fragments for mma.m16n8k16 and mma.m16n8k32, ldmatrix.
"""

from dataclasses import dataclass

import numpy as np

WARP = 32
ROWS, COLUMNS = 16, 8
"""Rows and columns of the result."""
_LANE = np.arange(WARP)[:, None]

Positions = tuple[np.ndarray, np.ndarray]
"""Rows and columns of elements, by lane and position."""


@dataclass(frozen=True)
class Product:
    """D = A * B + C of a warp, A being 16 x `depth`; a register has `per_word` elements of A or B.

    It is exact but for the last step: a device may round in between.
    """

    depth: int
    per_word: int

    def compute(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        """The elements of D of each thread, from those of A, B and C; integers wrap."""
        left = _matrices(a, self.a_positions, (ROWS, self.depth))
        right = _matrices(b, self.b_positions, (self.depth, COLUMNS))
        total = _matrices(c, C_POSITIONS, (ROWS, COLUMNS))
        if c.dtype.kind == "f":
            result = (left.astype(np.float64) @ right.astype(np.float64) + total).astype(c.dtype)
        else:
            exact = left.astype(np.int64) @ right.astype(np.int64) + total
            result = exact.astype(np.uint32).view(np.int32)
        return result[:, C_POSITIONS[0], C_POSITIONS[1]].reshape(c.shape)

    @property
    def a_positions(self) -> Positions:
        """Of A: four words, of the upper and the lower rows, first of the left half."""
        word, part = np.divmod(np.arange(4 * self.per_word), self.per_word)
        columns = self.per_word * (_LANE % 4) + part + self.depth // 2 * (word // 2)
        return _LANE // 4 + 8 * (word % 2), columns

    @property
    def b_positions(self) -> Positions:
        """Of B: two words, of the upper and the lower half."""
        word, part = np.divmod(np.arange(2 * self.per_word), self.per_word)
        rows = self.per_word * (_LANE % 4) + part + self.depth // 2 * word
        return rows, np.broadcast_to(_LANE // 4, rows.shape)


_PAIR, _PART = np.divmod(np.arange(4), 2)
C_POSITIONS: Positions = (_LANE // 4 + 8 * _PAIR, 2 * (_LANE % 4) + _PART)
"""Of C and D: two elements of a row, and those 8 rows below."""


def _matrices(values: np.ndarray, positions: Positions, shape: tuple[int, int]) -> np.ndarray:
    """The matrix of each warp, from the elements of its threads."""
    result = np.zeros((len(values) // WARP, *shape), values.dtype)
    result[:, positions[0], positions[1]] = values.reshape(-1, WARP, positions[0].shape[1])
    return result


def spread(rows: np.ndarray, transposes: bool) -> np.ndarray:
    """What threads get of matrices of 8 x 8, two elements each: [thread, matrix, 2].

    `rows` are the rows of the matrices of each warp: [warp, matrix, 8, 8].
    """
    matrices = rows.swapaxes(2, 3) if transposes else rows
    pairs = matrices.reshape(len(rows), rows.shape[1], WARP, 2)
    return pairs.swapaxes(1, 2).reshape(-1, rows.shape[1], 2)


def are_whole(threads: np.ndarray, size: int = WARP) -> bool:
    """Whether threads, by their indices in groups, are all of some warps, or of more threads.

    If `size` is less than a warp, they are the first ones of some warps.
    """
    if len(threads) % size:
        return False
    return bool((threads.reshape(-1, size) % max(size, WARP) == np.arange(size)).all())
