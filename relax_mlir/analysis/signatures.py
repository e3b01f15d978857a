"""Unifies calls with signatures: arguments bind the symbols of parameters.

    signature  (tensor<2*n x m>, tensor<n>) -> tensor<m + 1>
    arguments   tensor<8*k x 5>, tensor<?>           n = 4*k, m = 5, result tensor<6>

Source: paper §4.1, Figure 7.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    Annotation,
    Dim,
    ObjectType,
    ShapeValueType,
    TensorType,
    annotation_of,
    compatible,
    dims_differ,
    dims_equal,
    elements_of,
    is_open,
    shape_value_type,
    to_mlir,
)
from relax_mlir.symbolic import Expr, const, solve, solve_jointly

from .symbols import dims_of, unbound_symbol


@dataclass(frozen=True)
class Conflict:
    """Dim `axis` of argument `index` is `got` where the signature has `want`."""

    index: int
    axis: int
    got: Expr
    want: Expr


@dataclass
class Unification:
    """The symbols of a signature as the caller sees them, and the dims that conflict."""

    values: dict[str, Expr] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)

    def dim(self, dim: Dim) -> Dim:
        """A dim of the signature as the caller sees it; None if one of its symbols is not bound."""
        if dim is None or not dim.symbols <= self.values.keys():
            return None
        return dim.substitute(self.values)

    def annotation(self, annotation: Annotation) -> Annotation:
        """An annotation of the signature as the caller sees it."""
        return substitute(annotation, self.dim)


def substitute(annotation: Annotation, change: Callable[[Dim], Dim]) -> Annotation:
    """The annotation with each of its dims changed."""
    return substitute_axes(annotation, lambda _, dim: change(dim))


def substitute_axes(annotation: Annotation, change: Callable[[int, Dim], Dim]) -> Annotation:
    """The annotation with each of its dims changed; `change` takes the axis too."""
    dims = [change(axis, dim) for axis, dim in enumerate(dims_of(annotation))]
    if isinstance(annotation, TensorType):
        return annotation if annotation.dims is None else annotation.with_dims(dims)
    return shape_value_type(dims) if isinstance(annotation, ShapeValueType) else annotation


def unify(parameters: Sequence[Annotation], arguments: Sequence[Annotation]) -> Unification:
    """Binds the parameters' symbols; dims of unknown extent bind nothing."""
    result = Unification()
    dims = [
        (index, axis, want, got)
        for index, (parameter, argument) in enumerate(zip(parameters, arguments))
        for axis, (want, got) in enumerate(zip(dims_of(parameter), dims_of(argument)))
        if want is not None and got is not None
    ]
    # Plain symbols first, so that sums and products have as few unknowns as possible.
    dims.sort(key=lambda dim: str(dim[2]) not in dim[2].symbols)
    changed = True
    while changed:
        changed = False
        for _, _, want, got in dims:
            name = unbound_symbol(want, result.values)
            value = _solve(want, got, name, result.values) if name is not None else None
            if name is not None and value is not None:
                result.values[name] = value
                changed = True
        if not changed:
            changed = _solve_jointly([(want, got) for *_, want, got in dims], result.values)
    for index, axis, want, got in dims:
        expected = result.dim(want)
        if expected is not None and dims_differ(expected, got):
            result.conflicts.append(Conflict(index, axis, got, expected))
    return result


def _solve(want: Expr, got: Expr, name: str, values: Mapping[str, Expr]) -> Expr | None:
    """The value of the one unbound symbol of `want`, if `want = got` determines it."""
    solution = solve(want.substitute(values), name)
    if solution is None:
        return None
    factor, offset = solution
    value = (got - offset) // factor
    return value if dims_equal(value * factor + offset, got) else None


def _solve_jointly(dims: Sequence[tuple[Expr, Expr]], values: dict[str, Expr]) -> bool:
    """Adds the values of symbols that several dims determine together; whether there are any."""
    open_ = [(want, got) for want, got in dims if not want.symbols <= values.keys()]
    before = len(values)
    for solution in solve_jointly([want for want, _ in open_], values.keys()):
        total = sum((open_[index][1] * weight for index, weight in solution.weights), const(0))
        total -= solution.offset.substitute(values)
        value = total // solution.divisor
        if dims_equal(value * solution.divisor, total):
            values[solution.symbol] = value
    return len(values) > before


def parameter_types(function: func.FuncOp) -> list[Annotation]:
    """Annotations of a function's parameters, declared functions included."""
    return [annotation_of(type_) for type_ in function.type.inputs]


def result_types(function: func.FuncOp) -> list[Annotation]:
    """Annotations of a function's results."""
    return [annotation_of(type_) for type_ in function.type.results]


def update_results(function: func.FuncOp) -> None:
    """Sets the result types of a function to those that its body returns.

    A body of several blocks, which `relax-verify` refuses, is left unchanged.
    """
    if len(function.body.blocks) > 1:
        return
    operations = function.entry_block.operations
    types = [value.type for value in operations[len(operations) - 1].operands]
    new = ir.FunctionType.get(function.type.inputs, types)
    function.attributes["function_type"] = ir.TypeAttr.get(new)


def kind_conflict(parameter: Annotation, argument: Annotation) -> str | None:
    """Why the argument can never be passed for the parameter, whatever its dims; None if it can.

    An object is any value: what it is turns out where the call is inlined, or at run time.
    """
    if isinstance(parameter, ObjectType) or isinstance(argument, ObjectType):
        return None
    if isinstance(parameter, TensorType) and isinstance(argument, TensorType):
        is_either = parameter.is_of_any_element or argument.is_of_any_element
        if parameter.element != argument.element and not is_either:
            return f"has elements of {argument.element} instead of {parameter.element}"
        ranks = (parameter.rank, argument.rank)
        if None not in ranks and ranks[0] != ranks[1]:
            return f"has rank {argument.rank} instead of {parameter.rank}"
        return None
    if isinstance(parameter, ShapeValueType) and isinstance(argument, ShapeValueType):
        counts = (len(dims_of(parameter)), len(dims_of(argument)))
        return None if counts[0] == counts[1] else f"has {counts[1]} dims instead of {counts[0]}"
    if isinstance(parameter, ir.FunctionType) and isinstance(argument, ir.FunctionType):
        return _function_conflict(parameter, argument)
    ours, theirs = elements_of(parameter), elements_of(argument)
    if ours is not None and theirs is not None and len(ours) == len(theirs):
        for index, (want, got) in enumerate(zip(ours, theirs)):
            if conflict := kind_conflict(annotation_of(want), annotation_of(got)):
                return f"has element {index}, which {conflict}"
        return None
    if (is_open(parameter) or is_open(argument)) and compatible(parameter, argument):
        return None
    if to_mlir(parameter) == to_mlir(argument):
        return None
    return f"is '{to_mlir(argument)}' instead of '{to_mlir(parameter)}'"


def _function_conflict(parameter: ir.FunctionType, argument: ir.FunctionType) -> str | None:
    """As `kind_conflict`, of function values; symbols in their types are their own."""
    for what in ("inputs", "results"):
        wanted, given = getattr(parameter, what), getattr(argument, what)
        if len(wanted) != len(given):
            return f"is a function of {len(given)} {what} instead of {len(wanted)}"
        for index, (want, got) in enumerate(zip(wanted, given)):
            if conflict := kind_conflict(annotation_of(want), annotation_of(got)):
                return f"is a function whose {what} differ: {index} {conflict}"
    return None


def functions_by_name(module: ir.Operation | ir.OpView) -> dict[str, func.FuncOp]:
    """The functions of a module, tensor programs included, by symbol name."""
    operations = module.regions[0].blocks[0].operations
    return {op.name.value: op for op in operations if isinstance(op, func.FuncOp)}
