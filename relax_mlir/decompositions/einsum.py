"""Einstein summation, as contractions of two tensors at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, dims_differ

from .contraction import dot_general
from .emit import (
    dims_of,
    element_of,
    emit,
    expand_dims,
    multiply,
    permute,
    rank_of,
    reduce,
    scalar,
    where,
)


@dataclass(frozen=True)
class Term:
    """A tensor and a label for each of its dims."""

    value: ir.Value
    labels: tuple[str, ...]


def einsum(equation: str, *operands: ir.Value) -> ir.Value:
    """The sum of products over the labels that the result has not.

    Labels are letters, one for each dim; `...` stands for dims that broadcast. Without `->` the
    result has the dots, and the letters that occur once, in alphabetical order. A letter that
    occurs twice in a term is its diagonal. Source: NumPy `einsum`; ONNX `Einsum`.
    """
    terms, wanted = _parse(equation, operands)
    current = _diagonal(terms[0])
    for position, term in enumerate(terms[1:], 1):
        later = {label for other in terms[position + 1 :] for label in other.labels}
        current = _join(current, _diagonal(term), later | set(wanted))
    current = _sum(current, set(wanted))
    for label in wanted:
        if label not in current.labels:
            raise ShapeError(f"has label '{label}' in the result of '{equation}' alone")
    return permute(current.value, [current.labels.index(label) for label in wanted])


def _parse(equation: str, operands: Sequence[ir.Value]) -> tuple[list[Term], list[str]]:
    """Each operand with its labels, and those of the result."""
    text = equation.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    parts = inputs.split(",")
    if len(parts) != len(operands):
        raise ShapeError(f"has {len(parts)} terms in '{equation}', but {len(operands)} operands")
    terms = [Term(x, tuple(_labels(part, rank_of(x)))) for part, x in zip(parts, operands)]
    dots = max((sum(len(x) > 1 for x in term.labels) for term in terms), default=0)
    leading = [_dot(i) for i in range(dots)][::-1]
    if arrow:
        wanted = _labels(output, len(output.replace("...", "")) + dots * ("..." in output))
        if len(set(wanted)) != len(wanted):
            raise ShapeError(f"has a label twice in the result of '{equation}'")
        return terms, wanted
    letters = inputs.replace(",", "").replace(".", "")
    return terms, leading + sorted(x for x in set(letters) if letters.count(x) == 1)


def _dot(position: int) -> str:
    """The label of a dim of the dots, counted from the last one."""
    return f"...{position}"


def _labels(part: str, rank: int) -> list[str]:
    first, dots, last = part.partition("...")
    letters = first + last
    count = rank - len(letters)
    if not (letters.isalpha() or not letters) or count < 0 or (count and not dots):
        raise ShapeError(f"expects letters and dots for {rank} dims, but got '{part}'")
    return [*first, *(_dot(i) for i in reversed(range(count))), *last]


def _diagonal(term: Term) -> Term:
    """The term with each label once."""
    for label in term.labels:
        if term.labels.count(label) == 1:
            continue
        axes = [i for i, other in enumerate(term.labels) if other == label][:2]
        rest = [i for i in range(len(term.labels)) if i not in axes]
        square = permute(term.value, [*rest, *axes])
        extents = dims_of(square)[-2:]
        if dims_differ(*extents):
            raise ShapeError(f"takes the diagonal of dims {extents[0]} and {extents[1]}")
        dtype = ir.IntegerType.get_signless(1)
        eye = emit(graph.EyeOp, shape=[extents[0]] * 2, k=0, dtype=dtype)
        only = where(eye, square, scalar(0, element_of(square)))
        labels = (*(term.labels[i] for i in rest), label)
        return _diagonal(Term(reduce(graph.SumOp, only, [len(rest)]), labels))
    return term


def _sum(term: Term, needed: set[str]) -> Term:
    """The term without the labels that are not needed."""
    axes = [i for i, label in enumerate(term.labels) if label not in needed]
    labels = tuple(label for label in term.labels if label in needed)
    return Term(reduce(graph.SumOp, term.value, axes), labels)


def _join(a: Term, b: Term, needed: set[str]) -> Term:
    """The sum of products over the labels that both have and nobody needs."""
    a, b = _sum(a, needed | set(b.labels)), _sum(b, needed | set(a.labels))
    shared = [label for label in a.labels if label in b.labels]
    summed = [label for label in shared if label not in needed]
    if not summed:
        return _multiply(a, b)
    batch = [label for label in shared if label in needed]
    at = [{label: i for i, label in enumerate(x.labels)} for x in (a, b)]
    result = dot_general(
        a.value,
        b.value,
        batch=([at[0][i] for i in batch], [at[1][i] for i in batch]),
        contract=([at[0][i] for i in summed], [at[1][i] for i in summed]),
    )
    free = [[label for label in x.labels if label not in shared] for x in (a, b)]
    return Term(result, (*batch, *free[0], *free[1]))


def _multiply(a: Term, b: Term) -> Term:
    labels = (*a.labels, *(label for label in b.labels if label not in a.labels))
    parts = []
    for term in (a, b):
        order = [label for label in labels if label in term.labels]
        value = permute(term.value, [term.labels.index(label) for label in order])
        parts.append(
            expand_dims(value, [i for i, label in enumerate(labels) if label not in order])
        )
    return Term(multiply(*parts), labels)
