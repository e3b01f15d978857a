"""Symbols of whole functions: finds, creates and substitutes them."""

import re
from collections.abc import Iterator, Mapping

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import (
    Annotation,
    RequireOp,
    ShapeAttr,
    annotation_of,
    dims_of_attr,
    elements_of,
    leaf_types,
    shape_attr,
    substitute_dims,
    to_mlir,
    tuple_type,
)
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Expr, Facts, sym

from .functions import FACTS
from .symbols import symbols_of

FUNCTION_TYPE = "function_type"


def used_symbols(root: ir.Operation | ir.OpView) -> set[str]:
    """Symbols in annotations, shapes and facts of an op and all ops nested in it."""
    ops: list[ir.OpView] = walk_ops(root)
    known: dict[ir.Type, frozenset[str]] = {}
    return set().union(*(own_symbols(op, known) for op in ops))


class FreshSymbols:
    """Symbols that a function does not use yet."""

    def __init__(self, function: ir.Operation | ir.OpView) -> None:
        self._function = function
        self._taken: set[str] | None = None

    def __call__(self, base: str) -> Expr:
        """A symbol of that name, with a numeric suffix if it is used; used from then on."""
        if self._taken is None:
            self._taken = used_symbols(self._function)
        base = re.sub(r"[^A-Za-z0-9_]", "_", base)
        name, count = base, 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return sym(name)


def own_symbols(op: ir.OpView, known: dict[ir.Type, frozenset[str]] | None = None) -> set[str]:
    """Symbols in annotations, shapes and facts of an op, its blocks' arguments included.

    `known` caches the symbols of types.
    """
    symbols: set[str] = set()
    known = {} if known is None else known
    for value in _values(op):
        type_ = value.type
        if type_ not in known:
            known[type_] = frozenset(symbols_of(map(annotation_of, leaf_types(type_))))
        symbols |= known[type_]
    for _, attribute in _shapes(op):
        symbols.update(*(dim.symbols for dim in dims_of_attr(attribute.dims) if dim is not None))
    for _, facts in _facts(op):
        symbols |= facts.symbols
    return symbols


def rename_symbols(root: ir.Operation | ir.OpView, values: Mapping[str, Expr]) -> None:
    """Replaces symbols by expressions in an op and all ops nested in it, simultaneously."""
    known: dict[ir.Type, ir.Type] = {}
    ops: list[ir.OpView] = walk_ops(root)
    for op in ops:
        rename_own_symbols(op, values, known)


def rename_own_symbols(
    op: ir.OpView, values: Mapping[str, Expr], known: dict[ir.Type, ir.Type] | None = None
) -> None:
    """Replaces symbols in an op itself, its blocks' arguments included.

    `known` caches types; use one for each `values`.
    """
    known = {} if known is None else known

    def change(type_: ir.Type) -> ir.Type:
        if type_ not in known:
            if isinstance(type_, ir.FunctionType):
                inputs, results = (list(map(change, ts)) for ts in (type_.inputs, type_.results))
                known[type_] = ir.FunctionType.get(inputs, results)
            elif (elements := elements_of(type_)) is not None:
                known[type_] = tuple_type(list(map(change, elements)))
            else:
                known[type_] = to_mlir(_substituted(annotation_of(type_), values))
        return known[type_]

    for value in _values(op):
        new = change(value.type)
        if new != value.type:
            value.set_type(new)
    for name, attribute in list(_shapes(op)):
        dims = [d if d is None else d.substitute(values) for d in dims_of_attr(attribute.dims)]
        op.attributes[name] = shape_attr(dims)
    for name, facts in list(_facts(op)):
        texts = [ir.StringAttr.get(str(fact)) for fact in facts.substitute(values)]
        op.attributes[name] = ir.ArrayAttr.get(texts)
    if isinstance(op, func.FuncOp):
        op.attributes[FUNCTION_TYPE] = ir.TypeAttr.get(change(op.type))


def _substituted(annotation: Annotation, values: Mapping[str, Expr]) -> Annotation:
    return substitute_dims(annotation, lambda dim: dim and dim.substitute(values))


def _values(op: ir.OpView) -> Iterator[ir.Value]:
    yield from op.results
    for region in op.operation.regions:
        for block in region.blocks:
            yield from block.arguments


def _shapes(op: ir.OpView) -> Iterator[tuple[str, ShapeAttr]]:
    for name in op.attributes:
        attribute = op.attributes[name]
        if isinstance(attribute, ShapeAttr):
            yield name, ShapeAttr(attribute)


def _facts(op: ir.OpView) -> Iterator[tuple[str, Facts]]:
    """The attributes of an op that state facts."""
    name = {func.FuncOp: FACTS, RequireOp: "any_of"}.get(type(op))
    if name is not None and name in op.attributes:
        yield name, Facts.parse([text.value for text in ir.ArrayAttr(op.attributes[name])])
