"""Recipes of dataflow nodes: leaves of scalars, leaves that update rows, and nodes in nodes."""

from collections.abc import Callable, Sequence
from typing import Any

from relax_mlir.bindings import func, ir
from relax_mlir.dataflow.scalars import Instance, Scalar, Tensor, values_of, where
from relax_mlir.dialects import graph
from relax_mlir.dialects.tir import ACCESS, INOUT, LEAF
from relax_mlir.symbolic import as_expr

from ..builder import Builder, Value
from .table import recipe

_ELEMENTS = ("f32", "f64", "i8", "i32", "i64")
Body = Callable[..., Scalar | Tensor]


@recipe("call", graph.NodeOp)
def node(b: Builder, op: Any) -> None:
    """Over the leading dims of a tensor, or over all of them, and elements of another one."""
    value = b.take(lambda v: v.element in _ELEMENTS and 1 <= v.rank <= 3, [1, 2, 2, 3], "f32")
    table = b.pick(lambda v: v.element == value.element and v.rank > 0) or value
    width = value.dims[-1].value
    if value.rank > 1 and width and width <= 64 and b.chance(0.4):
        _update_rows(b, op, value, table, width)
    elif value.rank > 1 and b.chance(0.4):
        _nested(b, op, value, table)
    else:
        leaf = _function(b, _types(value, table, 0), _picks(b, value.rank, table.rank))
        _build(b, op, leaf, value, table, value.rank)


def _picks(b: Builder, rank: int, table_rank: int) -> Callable[..., Scalar]:
    """The instance's own element, or one of the table, at an index that may be outside."""
    stride, offset = b.random.choice([1, 1, 2, -1]), b.random.choice([0, 0, 1, -1, 5])

    def body(at: Instance, x: Scalar, table: Tensor) -> Scalar:
        own = at.id(rank - 1)
        picked = table[tuple(own * stride + offset + axis for axis in range(table_rank))]
        return where(at.id() + own < at.size(rank - 1), x, picked)

    return body


def _update_rows(b: Builder, op: Any, value: Value, table: Value, width: int) -> None:
    """Each instance stores to its row, maybe outside of it."""
    offset, rounds = b.random.choice([0, 1, -2, width]), b.random.choice([1, 3])

    def body(at: Instance, row: Tensor, read: Tensor) -> Tensor:
        def store(i: Scalar, made: Tensor) -> Tensor:
            return made.set(i + at.id() + offset, read[(at.id() + i,) * table.rank])

        return at.loop(rounds, row, store)

    leaf = _function(b, _types(value, table, 1), body, is_updating=True)
    _build(b, op, leaf, value, table, value.rank - 1)


def _nested(b: Builder, op: Any, value: Value, table: Value) -> None:
    """An internal node over the first dim, of leaves over the others."""
    picks = _picks(b, value.rank - 1, table.rank)

    def body(at: Instance, x: Scalar, table: Tensor) -> Scalar:
        return where(at.id(level=1) < at.size(level=1) - 1, picks(at, x, table), x)

    leaf = _function(b, _types(value, table, 0), body)
    types = _types(value, table, value.rank - 1)
    part = graph.annotation_of(types[0])
    assert isinstance(part, graph.TensorType)
    grid = graph.exact_dims(part.dims)
    with ir.InsertionPoint(b.module.body):
        function = func.FuncOp(_name(b, "inner"), (types, [types[0]]), visibility="private")
        function.attributes[graph.INTERNAL] = ir.UnitAttr.get()
        block = function.add_entry_block()
        with ir.InsertionPoint(block):
            kinds = [graph.ONE_TO_ONE, graph.ALL_TO_ALL]
            made = op.build(leaf, list(block.arguments), kinds, grid, [part])
            func.ReturnOp(list(made.outs))
    _build(b, op, function.name.value, value, table, 1)


def _types(value: Value, table: Value, rank: int) -> list[ir.Type]:
    """What an instance gets: a scalar or the last dims of a tensor, and all of a table.

    Dims of rows that a leaf gets are static, others are symbols.
    """
    last = value.dims[value.rank - rank :]
    is_row = rank == 1 and last[0].value is not None
    dims = last if is_row else [as_expr(f"d0_{axis}") for axis in range(rank)]
    element = value.annotation.element
    own = graph.to_mlir(graph.TensorType(tuple(dims), element)) if rank else element
    symbols = tuple(as_expr(f"d1_{axis}") for axis in range(table.rank))
    return [own, graph.to_mlir(graph.TensorType(symbols, element))]


def _name(b: Builder, what: str) -> str:
    return f"{b.name}_{what}_{len(b.used)}"


def _function(b: Builder, types: Sequence[ir.Type], body: Body, is_updating: bool = False) -> str:
    """The name of a new leaf, which returns what its first parameter is."""
    with ir.InsertionPoint(b.module.body):
        function = func.FuncOp(_name(b, "leaf"), (types, [types[0]]), visibility="private")
        function.attributes[LEAF] = ir.UnitAttr.get()
        block = function.add_entry_block()
        if is_updating:
            mark = ir.DictAttr.get({ACCESS: ir.StringAttr.get(INOUT)})
            function.arg_attrs = ir.ArrayAttr.get([mark, ir.DictAttr.get({})])
        own, table = block.arguments
        with ir.InsertionPoint(block):
            first = Tensor(own) if isinstance(own.type, ir.RankedTensorType) else Scalar(own)
            func.ReturnOp(values_of(body(Instance(), first, Tensor(table))))
    return function.name.value


def _build(b: Builder, op: Any, callee: str, value: Value, table: Value, rank: int) -> None:
    kinds = [graph.ONE_TO_ONE, graph.ALL_TO_ALL]
    ins = [value.ir, table.ir]
    built = op.build(callee, ins, kinds, value.dims[:rank], [value.annotation])
    b.results_of(built, value.exact and table.exact, max(value.bound, table.bound))
