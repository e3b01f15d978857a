"""Passes values to calls and loops, which declare annotations, by casts checked at run time.

    %y = "graph.call"(%a, %b)                       @f(%x: tensor<m + n>, %y: tensor<n - m>)
      ->
    %s = "graph.make_shape"() {dims = ["a", "b"]}
    %t = "graph.match_cast"(%s) : ... -> !graph.shape_value<["m + n", "-m + n"]>
    %x = "graph.match_cast"(%a) : ... -> tensor<m + n>
    %y = "graph.match_cast"(%b) : ... -> tensor<n - m>

Each cast binds symbols by dims of its own value. Those that only dims of several values tell are
bound by a cast of all these dims before.
"""

from collections.abc import Callable, Iterable, Sequence

from relax_mlir.analysis.signatures import substitute
from relax_mlir.analysis.symbols import bound_symbols, dims_of, symbols_of
from relax_mlir.bindings import ir, scf
from relax_mlir.dialects.graph import (
    Annotation,
    CallableType,
    Dim,
    MakeShapeOp,
    MatchCastOp,
    ObjectType,
    RequireOp,
    ShapeValueType,
    TensorType,
    annotation_of,
    compatible,
    dims_equal,
    is_open,
    join,
    shape_value_type,
    substitute_dims,
    to_mlir,
)
from relax_mlir.symbolic import Expr, Fact, at_most

Casts = Callable[[MatchCastOp], None]


def passed(value: ir.Value, annotation: Annotation) -> ir.Value:
    """The value cast to the parameter's annotation; checked at run time if that is more precise."""
    own = annotation_of(value)
    if is_open(own) and own != annotation and not isinstance(annotation, ObjectType):
        return MatchCastOp.build(value, to_mlir(annotation)).result
    if not isinstance(annotation, TensorType) or not isinstance(own, TensorType):
        return value
    if annotation.dims is None or own == annotation:
        return value
    if own.dims is not None:
        pairs = list(zip(own.dims, annotation.dims))
        if all(want is None or dims_equal(got, want) for got, want in pairs):
            return value
        dims = tuple(got if want is None else want for got, want in pairs)
        annotation = TensorType(dims, annotation.element)
    return MatchCastOp.build(value, to_mlir(annotation)).result


def bind_together(
    values: Sequence[ir.Value],
    annotations: Sequence[Annotation],
    new: Iterable[str],
    fresh: Callable[[str], Expr],
    entered: Casts = lambda cast: None,
) -> list[ir.Value]:
    """The values, once symbols are bound that no cast of a single one of them binds.

    `new` are the symbols of the annotations that are not bound yet, of which only casts of values
    in this order bind some. `entered` is told each cast that is made.
    """
    new = set(new)
    if not new or _binds_in_order(annotations, new):
        return list(values)
    values = [
        _with_known_dims(value, annotation, fresh, entered)
        for value, annotation in zip(values, annotations, strict=True)
    ]
    pairs = [
        (have, want)
        for value, annotation in zip(values, annotations)
        for have, want in zip(dims_of(annotation_of(value)), dims_of(annotation))
        if have is not None and want is not None and want.symbols & new
    ]
    shape = MakeShapeOp.build(dims=[have for have, _ in pairs]).result
    entered(MatchCastOp.build(shape, shape_value_type([want for _, want in pairs])))
    return values


def _binds_in_order(annotations: Sequence[Annotation], new: set[str]) -> bool:
    """Whether casts to the annotations, one after the other, bind all that one of all binds."""
    known = set(symbols_of(annotations)) - new
    certain = bound_symbols(annotations, known, products=False)
    for annotation in annotations:
        known |= bound_symbols([annotation], known, products=False)
        by_product = bound_symbols([annotation], known)
        if by_product & certain:  # which is not found where the product is 0
            return False
        known |= by_product
        if not known.issuperset(symbols_of([annotation])):
            return False
    return True


def _with_known_dims(
    value: ir.Value, annotation: Annotation, fresh: Callable[[str], Expr], entered: Casts
) -> ir.Value:
    """The value cast so that its dims have names, if it has dims by its annotation."""
    own = annotation_of(value)
    if None not in dims_of(annotation_of(value)) and len(dims_of(own)) == len(dims_of(annotation)):
        return value
    known: Sequence[Dim] = dims_of(own) or [None] * len(dims_of(annotation))
    names = iter([dim or fresh("d") for dim in known])
    cast = MatchCastOp.build(value, to_mlir(substitute(annotation, lambda _: next(names))))
    entered(cast)
    return cast.result


def require_natural(values: Iterable[Expr], by: str) -> None:
    """Checks at run time what the symbols of a callee are, where that may be negative."""
    for value in dict.fromkeys(values):
        if not at_most(0, value).proved:
            RequireOp.build([Fact(value, ">=", Expr())], by)


def require_shape(value: ir.Value, annotation: Annotation, by: str) -> None:
    """Checks at run time that a shape agrees with the parameter, where that is not proved."""
    if not isinstance(annotation, ShapeValueType):
        return
    for got, want in zip(dims_of(annotation_of(value)), dims_of(annotation)):
        if got is not None and want is not None and not dims_equal(got, want):
            RequireOp.build([Fact(got, "==", want)], by)


def without_dims(annotation: Annotation) -> Annotation:
    """The annotation without dims, of tuples that of their elements: symbols may be local."""
    return substitute_dims(annotation, lambda _: None)


def terminators(op: ir.OpView) -> list[ir.OpView]:
    """What ends the blocks of an op by yielding values."""
    blocks = [block for region in op.operation.regions for block in region.blocks]
    ends = [block.operations[len(block.operations) - 1] for block in blocks]
    return [end for end in ends if isinstance(end, scf.YieldOp)]


def coerce_carried(loop: scf.ForOp | scf.WhileOp) -> None:
    """Casts the initial values of a loop to the types that it carries."""
    carried = list(loop.operation.regions[0].blocks[0].arguments)
    count = len(loop.operands) - len(loop.results) if isinstance(loop, scf.ForOp) else 0
    if isinstance(loop, scf.ForOp):
        carried = carried[1:]  # the induction variable
        give_kinds(list(loop.operands)[count:], list(loop.results))
    give_kinds(list(loop.operands)[count:], carried)
    coerce(loop, [argument.type for argument in carried], count)


def handed(block: ir.Block) -> list[ir.Value]:
    """What the condition of a loop hands on; nothing in another block."""
    end = block.operations[len(block.operations) - 1]
    return list(end.operands)[1:] if isinstance(end, scf.ConditionOp) else []


def give_kinds(values: Sequence[ir.Value], carriers: Sequence[ir.Value]) -> None:
    """Gives what carries values the rank of theirs, or their kind, where its own is unknown.

    Compiled code holds values of one kind, so that a loop which changes it is refused anyway.
    """
    for value, carrier in zip(values, carriers):
        kind, own = annotation_of(value), annotation_of(carrier)
        if isinstance(kind, ir.FunctionType):  # the next round may have another one
            kind = CallableType.get()
        is_of_any_rank = isinstance(own, TensorType) and own.dims is None
        if (is_open(own) or is_of_any_rank) and compatible(own, kind):
            carrier.set_type(to_mlir(join(own, without_dims(kind))))


def coerce_ends(loop: scf.ForOp | scf.WhileOp) -> None:
    """Casts the values that a loop's body yields to the types that the loop carries."""
    regions = loop.operation.regions
    carried = [argument.type for argument in regions[0].blocks[0].arguments]
    if isinstance(loop, scf.ForOp):
        carried = carried[1:]
    else:
        condition = regions[0].blocks[0].operations
        coerce(condition[len(condition) - 1], [result.type for result in loop.results], 1)
    for end in terminators(loop):
        coerce(end, carried)


def coerce(op: ir.OpView, types: Sequence[ir.Type], first: int = 0) -> None:
    """Casts the operands from index `first` on to the given types, where they differ."""
    for index, (value, type_) in enumerate(zip(list(op.operands)[first:], types), first):
        if value.type != type_:
            with ir.InsertionPoint(op), op.location:
                op.operation.operands[index] = MatchCastOp.build(value, type_).result
