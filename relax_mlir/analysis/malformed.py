"""Finds dims, facts and argument attributes that cannot be parsed.

MLIR checks that `#graph.shape` holds an array; its entries are plain text to it. All passes read
such text, so it is checked once, before the first of them.
"""

from collections.abc import Iterator
from math import prod

from relax_mlir.analysis.malformed_attributes import Malformed, check_attributes, text_of
from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import Diagnostic
from relax_mlir.dialects.graph import (
    ShapeAttr,
    ShapeError,
    ShapeValueType,
    TensorType,
    elements_of,
    leaf_types,
)
from relax_mlir.symbolic import SymbolicError, parse

UNKNOWN = "?"
MAX_BYTES = 2**63 - 1
WIDEST_ELEMENT = 8
MAX_ELEMENTS = 1 << 14
"""Limit on the elements of a tuple, those of tuples in it included."""
MAX_DEPTH = 100
"""Limit on the nesting depth of ops with regions."""
SIGNED = ("bounds", "low", "high")
"""Attributes whose expressions may be negative."""


def malformed(root: ir.Operation, types: bool = True) -> list[Diagnostic]:
    """Finds the ops below `root` with an attribute, or with `types` a type, that cannot be read.

    Dims must be non-negative integers, expressions or "?", as many as the rank, and agree with the
    static extents; facts must be relations.
    """
    if (deep := _deepest(root)) is not None:
        message = f"'{deep.name}' op has more than {MAX_DEPTH} ops around it"
        return [Diagnostic.at(deep.location, "error", message)]
    diagnostics: list[Diagnostic] = []
    known: set[ir.Type] = set()
    counts: dict[ir.Type, int] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        try:
            check_attributes(op)
            for type_ in _types(op) if types else ():
                if type_ not in known:
                    _check_tuple(type_, counts)
                    for leaf in dict.fromkeys(leaf_types(type_)):
                        _check_type(leaf)
                    known.add(type_)
            for name, attribute in op.attributes.items():
                if isinstance(attribute, ShapeAttr):
                    least = None if name in SIGNED else 0
                    _check_dims(ShapeAttr(attribute).dims, f"'{name}' that is {attribute}", least)
        except (Malformed, SymbolicError, ShapeError) as error:
            has = "" if isinstance(error, ShapeError) else "has "
            message = f"'{op.name}' op {has}{error}"
            diagnostics.append(Diagnostic.at(op.location, "error", message))
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return diagnostics


def _deepest(root: ir.Operation) -> ir.Operation | None:
    """An op that is nested deeper than recursive passes can follow."""
    level = [root]
    for _ in range(MAX_DEPTH):
        level = [
            child.operation
            for op in level
            for region in op.regions
            for block in region.blocks
            for child in block.operations
            if len(child.operation.regions)
        ]
        if not level:
            return None
    return level[0]


def _types(op: ir.Operation) -> Iterator[ir.Type]:
    yield from (result.type for result in op.results)
    if isinstance(op.opview, func.FuncOp):
        type_ = op.opview.type
        yield from (*type_.inputs, *type_.results)
        return
    for region in op.regions:
        for block in region.blocks:
            yield from (argument.type for argument in block.arguments)


def _check_tuple(type_: ir.Type, counts: dict[ir.Type, int], depth: int = 0) -> int:
    """Counts the elements of a tuple and of those in it; refuses more than can be listed."""
    if type_ not in counts:
        elements = elements_of(type_)
        if depth > MAX_DEPTH:
            raise Malformed(f"a tuple in more than {MAX_DEPTH} tuples")
        inner = [_check_tuple(each, counts, depth + 1) for each in elements or ()]
        counts[type_] = 1 if elements is None else 1 + sum(inner)
    if counts[type_] > MAX_ELEMENTS:
        raise Malformed(f"a tuple of more than {MAX_ELEMENTS} elements")
    return counts[type_]


def _check_type(type_: ir.Type) -> None:
    if isinstance(type_, ShapeValueType):
        _check_dims(ShapeValueType(type_).dims, f"the type '{type_}'")
    elif isinstance(type_, ir.RankedTensorType):
        if isinstance(type_.encoding, ShapeAttr):
            _check_annotation(type_)
        static = prod(dim for axis, dim in enumerate(type_.shape) if not type_.is_dynamic_dim(axis))
        if static * WIDEST_ELEMENT > MAX_BYTES:
            raise Malformed(f"the type '{type_}', which no memory can hold")


def _check_annotation(type_: ir.RankedTensorType) -> None:
    encoding = ShapeAttr(type_.encoding)
    _check_dims(encoding.dims, f"the type '{type_}'")
    names = len(ir.ArrayAttr(encoding.dims))
    if names != type_.rank:
        raise Malformed(f"the type '{type_}', which names {names} dims of rank {type_.rank}")
    for axis, dim in enumerate(TensorType.of(type_).dims or ()):
        if type_.is_dynamic_dim(axis) or dim is None:
            continue
        if dim.value != type_.shape[axis]:
            raise Malformed(f"the type '{type_}', whose extent {type_.shape[axis]} is named {dim}")


def _check_dims(dims: ir.Attribute, owner: str, least: int | None = 0) -> None:
    for dim in ir.ArrayAttr(dims):
        if isinstance(dim, ir.IntegerAttr) and (least is None or dim.value >= least):
            continue
        if not isinstance(dim, ir.StringAttr):
            raise Malformed(f"{owner}: {dim} is no dim; expects an integer >= 0 or an expression")
        if (text := text_of(dim, owner)) != UNKNOWN:
            _parsed(text, owner)


def _parsed(text: str, owner: str) -> None:
    try:
        parse(text)
    except SymbolicError as error:
        raise Malformed(f"{owner}: {error}") from None
