"""How annotations bind symbols, and how each symbol is computed from a call's extents.

A dim `n` binds n; `2*n + 1` binds it by exact division, once no other symbol of it is left. So does
`m*n` where m is bound, at calls where m is not 0; nothing else tells n from a dim of 0. Several
dims bind together what is linear in symbols: `m + n` and `n - m` bind both.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from relax_mlir.dialects.graph import Annotation, Dim, ShapeValueType, TensorType, shape_value_dims
from relax_mlir.symbolic import Expr, JointSolution, solve, solve_by_symbols, solve_jointly


@dataclass(frozen=True)
class Binding:
    """A symbol is `(extent - offset) / factor`, the extent being dim `axis` of value `index`."""

    index: int
    axis: int
    factor: int
    offset: Expr


def dims_of(annotation: Annotation) -> tuple[Dim, ...]:
    """The dims of a tensor or shape value; nothing for other annotations."""
    if isinstance(annotation, TensorType):
        return annotation.dims or ()
    return shape_value_dims(annotation) if isinstance(annotation, ShapeValueType) else ()


def symbols_of(annotations: Iterable[Annotation]) -> list[str]:
    """Symbols that occur in annotations, in order of first occurrence."""
    dims = [dim for annotation in annotations for dim in dims_of(annotation)]
    names = [name for dim in dims if dim is not None for name in sorted(dim.symbols)]
    return list(dict.fromkeys(names))


def bindings(annotations: Sequence[Annotation], bound: Iterable[str] = ()) -> dict[str, Binding]:
    """How to compute each symbol from the extents of values with these annotations.

    Prefers a dim that is the plain symbol. Symbols in `bound` are left out, and those that only the
    product with another symbol tells.
    """
    result: dict[str, Binding] = {}
    for name, index, axis, (factor, offset) in _solutions(annotations, set(bound), solve):
        assert factor.value is not None, factor
        result[name] = Binding(index, axis, factor.value, offset)
    return result


def bound_symbols(
    annotations: Sequence[Annotation], bound: Iterable[str] = (), products: bool = True
) -> frozenset[str]:
    """The symbols that a call or a cast finds, without those in `bound`.

    Without `products`, those that it finds even if other symbols are 0.
    """
    known = set(bound)
    joint_bindings(annotations, known, products)
    return frozenset(known.difference(bound))


@dataclass(frozen=True)
class JointBinding:
    """A symbol that dims tell together: `dims` has the value and axis of each equation."""

    solution: JointSolution
    dims: tuple[tuple[int, int], ...]


def joint_bindings(
    annotations: Sequence[Annotation], known: set[str], products: bool = True
) -> list[JointBinding]:
    """How to compute symbols that no dim tells alone; adds them, and what they tell, to `known`.

    Products with other symbols come last, or not at all: those that are 0 tell nothing.
    """
    result: list[JointBinding] = []
    while True:
        for solver in (solve, solve_by_symbols) if products else (solve,):
            for _ in _solutions(annotations, known, solver):
                pass
            if told := _told_jointly(annotations, known):
                break
        if not told:
            return result
        known.update(each.solution.symbol for each in told)
        result += told


def _told_jointly(annotations: Sequence[Annotation], known: Container[str]) -> list[JointBinding]:
    """The symbols that dims with unknown ones determine together."""
    dims = [dim for dim in _dims(annotations) if any(name not in known for name in dim[2].symbols)]
    axes = [(index, axis) for index, axis, _ in dims]
    return [
        JointBinding(solution, tuple(axes[index] for index, _ in solution.weights))
        for solution in solve_jointly([dim for *_, dim in dims], known)
    ]


def _dims(annotations: Sequence[Annotation]) -> list[tuple[int, int, Expr]]:
    """The dims with symbols, each with its value and axis, plain symbols first."""
    dims = [
        (index, axis, dim)
        for index, annotation in enumerate(annotations)
        for axis, dim in enumerate(dims_of(annotation))
        if dim is not None and dim.symbols
    ]
    dims.sort(key=lambda dim: str(dim[2]) not in dim[2].symbols)
    return dims


def _solutions(
    annotations: Sequence[Annotation],
    known: set[str],
    solver: Callable[[Expr, str], tuple[Expr, Expr] | None],
) -> Iterator[tuple[str, int, int, tuple[Expr, Expr]]]:
    """Each symbol with the value and axis of a dim that tells it, and what it is by that.

    Adds the symbols to `known`.
    """
    dims = _dims(annotations)
    changed = True
    while changed:
        changed = False
        for index, axis, dim in dims:
            name = unbound_symbol(dim, known)
            solution = solver(dim, name) if name is not None else None
            if name is not None and solution is not None:
                known.add(name)
                changed = True
                yield name, index, axis, solution


def unbound_symbol(dim: Expr, bound: Container[str]) -> str | None:
    """The one symbol of an expression that is not bound, or None if there is not exactly one."""
    free = [name for name in dim.symbols if name not in bound]
    return free[0] if len(free) == 1 else None
