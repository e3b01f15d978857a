"""Broadcasting of dims, decided here or at run time.

Dims whose relation is unknown, n and k, reach `max(n, k)*min(n, k, 1)`: n where k is 1, k where n
is 1, both where they are equal; anything else is an error at run time. What is reached by dims
that broadcast already is written by the same parts, so that sums of many operands stay short.
n and min(n, 512), the rows of a table that a slice has, reach n, where n is at most 512: the
slice has one row only where n is 1.
"""

from collections.abc import Sequence

from relax_mlir.symbolic import Expr, const, maximum, minimum

from .assumed import assume, assume_broadcast
from .types import Dim, ShapeError, dims_differ, dims_equal, known_dims, proved_different

ONE = const(1)
MAX_PARTS = 8
MAX_TEXT = 1000
"""Characters of a dim; it doubles with each operand where its parts cannot be told any more."""


def broadcast(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """Broadcasts shapes as NumPy does, aligned at the last dim.

    Where it cannot be told which of two dims is 1, or whether they are equal, the dim is an
    expression that is right in each case. A static dim other than 1 decides: the others have to
    be equal to it. Raises ShapeError if two dims are proved different and neither can be 1.
    """
    rank = max(map(len, shapes))
    aligned = [(ONE,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(map(_broadcast_dims, zip(*aligned, strict=True)))


def broadcasts_to(dim: Dim, target: Dim) -> bool:
    """Whether a dim may be repeated to reach a target: False if it is proved that it cannot."""
    if dim is None or target is None or dim == ONE or dims_equal(dim, target):
        return True
    if proved_different(dim, ONE):
        return not dims_differ(dim, target)
    assume_broadcast((dim,), target, (dim,))
    return True


def _broadcast_dims(dims: Sequence[Dim]) -> Dim:
    distinct: list[Dim] = []
    for dim in dims:
        if dim == ONE or any(dim == other or dims_equal(dim, other) for other in distinct):
            continue
        for other in distinct:
            if all(proved_different(*pair) for pair in ((other, dim), (other, ONE), (dim, ONE))):
                raise ShapeError(f"cannot broadcast dim {other} with dim {dim}")
        distinct.append(dim)
    if len(distinct) < 2:
        return distinct[0] if distinct else ONE
    static = next((dim for dim in distinct if dim is not None and dim.value is not None), None)
    if static is not None:
        for dim in distinct:
            assume(dim, "==", static)
        return static
    known = known_dims(distinct)
    if known is None:
        return None
    whole = next((dim for dim in known if all(_bounds(x, dim) is not None for x in known)), None)
    return _undecided(known) if whole is None else _uncut(known, whole)


def _bounds(dim: Expr, whole: Expr) -> list[int] | None:
    """The constants above 1 whose minimum with another dim this dim is; None if it is not."""
    if dim == whole:
        return []
    match dim.terms:
        case [([atom], 1)] if atom.kind == "min" and whole in atom.operands:
            values = [each.value for each in atom.operands if each != whole]
            bounds = [value for value in values if value is not None and value > 1]
            return bounds if len(bounds) == len(values) else None
    return None


def _uncut(dims: Sequence[Expr], whole: Expr) -> Expr:
    """What dims reach that are minima of one dim and constants: that dim, within all constants."""
    for dim in dims:
        for bound in _bounds(dim, whole) or ():
            assume(whole, "<=", const(bound))
    return whole


def _undecided(dims: Sequence[Expr]) -> Expr:
    """What dims reach that may be equal, or 1."""
    parts = tuple(dict.fromkeys(part for dim in dims for part in _parts(dim)))
    if len(parts) > MAX_PARTS:
        parts = tuple(dims)
    extent = _extent(parts)
    if len(str(extent)) > MAX_TEXT:
        raise ShapeError(
            f"broadcasts dims of which nothing is known, beyond what can be written: "
            f"'{str(extent)[:60]}...'; name one with graph.match_cast"
        )
    assume_broadcast(dims, extent, parts)
    return extent


def _extent(parts: Sequence[Expr]) -> Expr:
    return maximum(*parts) * minimum(*parts, 1)


def _parts(dim: Expr) -> tuple[Expr, ...]:
    """The dims that reach this one by broadcasting; itself if it was not made so."""
    atoms = dim.terms[0][0] if dim.terms else ()
    for atom in atoms:
        if atom.kind == "max" and _extent(atom.operands) == dim:
            return atom.operands
    return (dim,)
