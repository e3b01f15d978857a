"""What operators share that take tensors of indices."""

from collections.abc import Sequence

from relax_mlir.symbolic import const, minimum, product

from .assumed import assume
from .elementwise import is_integer
from .types import Dim, ShapeError, TensorType, dims_differ, join_dims, known_dims


def require_indices(*indices: TensorType) -> None:
    """Raises ShapeError unless the elements are integers."""
    for annotation in indices:
        if not is_integer(annotation.element):
            raise ShapeError(f"expects integer indices, but got {annotation.element}")


def require_elements(axis: int, extent: Dim, indices: Sequence[Dim]) -> None:
    """Refuses an axis without elements, which there is nothing to clamp an index to."""
    known = known_dims(indices)
    if extent is None or known is None:
        return
    count = product(known)
    if extent.value == 0 and count.value is not None and count.value > 0:
        raise ShapeError(f"picks {count} elements from axis {axis}, which has none")
    if extent.value is None or extent.value == 0:
        assume(minimum(const(1), count), "<=", extent)


def joint_dims(shapes: Sequence[Sequence[Dim]]) -> tuple[Dim, ...]:
    """The dims of indices that are used together, aligned at the last one.

    Those that are the number 1 repeat; others are equal. Raises ShapeError where they differ.
    """
    rank = max(map(len, shapes))
    one = const(1)
    found: list[Dim] = [one] * rank
    for shape in shapes:
        for place, dim in enumerate(shape, rank - len(shape)):
            if dim == one:
                continue
            if found[place] == one:
                found[place] = dim
            elif dims_differ(found[place], dim):
                raise ShapeError(f"has indices with dim {found[place]} beside dim {dim}")
            else:
                found[place] = join_dims(found[place], dim)
    return tuple(found)
