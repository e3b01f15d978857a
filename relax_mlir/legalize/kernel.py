"""Builds tensor programs: functions in destination-passing style with linalg bodies."""

from collections.abc import Callable, Sequence

from relax_mlir.bindings import arith, func, ir, linalg, tensor
from relax_mlir.dialects.graph import TensorType, stored_integer
from relax_mlir.symbolic import Expr, as_expr

from .signs import erase_signs

PARALLEL, REDUCTION = "parallel", "reduction"


class KernelBuilder:
    """One tensor program under construction.

    `ins` and `outs` are plain tensors (no encodings) in the body. `symbol` adds index arguments on
    demand. `finish` completes the function; until then, values have the signs of graph values.
    """

    def __init__(
        self,
        name: str,
        in_types: Sequence[TensorType],
        out_types: Sequence[TensorType],
        block: ir.Block,
    ) -> None:
        """Starts the function at the end of `block`, the body of a module."""
        self.in_types, self.out_types = tuple(in_types), tuple(out_types)
        self._arguments = [type_.to_mlir() for type_ in (*in_types, *out_types)]
        self._results = self._arguments[len(in_types) :]
        with ir.InsertionPoint(block):
            self.function = func.FuncOp(name, (self._arguments, self._results))
        self.function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        self._block = self.function.add_entry_block()
        self._symbols: dict[Expr, ir.Value] = {}
        self.insertion_point = ir.InsertionPoint(self._block)
        with self.insertion_point:
            plain = [_plain(argument) for argument in self._block.arguments]
        self.ins = plain[: len(in_types)]
        self.outs = plain[len(in_types) :]

    @property
    def keeps_elements(self) -> bool:
        """Whether the first result has elements of the first input's memory format."""
        return self.in_types[0].storage.element == self.out_types[0].storage.element

    @property
    def sym_args(self) -> tuple[Expr, ...]:
        """The expressions that calls must pass as index arguments, in order."""
        return tuple(self._symbols)

    def symbol(self, expr: Expr | int | str) -> ir.Value:
        """The value of an expression as an index: a constant, or an index argument."""
        expr = as_expr(expr)
        if expr.value is not None:
            return index(expr.value)
        if expr not in self._symbols:
            location = ir.Location.unknown()
            argument = self._block.add_argument(ir.IndexType.get(), location)
            self._symbols[expr] = argument
        return self._symbols[expr]

    def attribute(self, name: str, value: ir.Attribute) -> None:
        """Sets an attribute of the function."""
        self.function.attributes[name] = value

    def finish(self, *results: ir.Value) -> func.FuncOp:
        """Returns the filled outputs and completes the signature."""
        types = [argument.type for argument in self._block.arguments]
        typed = [
            value if value.type == type_ else tensor.CastOp(type_, value).result
            for value, type_ in zip(results, self._results)
        ]
        func.ReturnOp(typed)
        attributes = self.function.attributes
        attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, self._results))
        attributes["tir.prim_func"] = ir.UnitAttr.get()
        i64 = ir.IntegerType.get_signless(64)
        attributes["tir.num_outs"] = ir.IntegerAttr.get(i64, len(self._results))
        if self._symbols:
            named = [{"tir.sym": ir.StringAttr.get(str(expr))} for expr in self._symbols]
            empty: list[dict] = [{}] * len(self._arguments)
            self.function.arg_attrs = [ir.DictAttr.get(entry) for entry in empty + named]
        erase_signs(self.function)
        return self.function


def _plain(value: ir.Value) -> ir.Value:
    type_ = ir.RankedTensorType(value.type)
    if type_.encoding is None:
        return value
    return tensor.CastOp(ir.RankedTensorType.get(type_.shape, type_.element_type), value).result


def index(value: int) -> ir.Value:
    """An index constant."""
    return arith.ConstantOp(ir.IndexType.get(), value).result


def scalar(element: ir.Type, value: float) -> ir.Value:
    """A constant of an element type; integers and `i1` take the integer part.

    Of unsigned ones the attribute is signless, as all of the program when it is complete.
    """
    if isinstance(element, ir.IntegerType) and element.is_unsigned:
        stored = stored_integer(element, int(value))
        constant = arith.ConstantOp(stored.type, stored).result
        constant.set_type(element)
        return constant
    if isinstance(element, ir.IntegerType):
        return arith.ConstantOp(element, ir.IntegerAttr.get(element, int(value))).result
    return arith.ConstantOp(element, ir.FloatAttr.get(element, float(value))).result


def sizes(value: ir.Value) -> list[ir.Value]:
    """The dynamic extents of a tensor, in order, as `tensor.empty` takes them."""
    type_ = ir.RankedTensorType(value.type)
    return [dim(value, axis) for axis in range(type_.rank) if type_.is_dynamic_dim(axis)]


def dim(value: ir.Value, axis: int) -> ir.Value:
    """One extent of a tensor."""
    return tensor.DimOp(value, index(axis)).result


def empty(shape: Sequence[int | ir.Value], element: ir.Type) -> ir.Value:
    """A tensor of unspecified contents; extents are ints or index values."""
    return tensor.EmptyOp(list(shape), element).result


def empty_like(value: ir.Value, element: ir.Type | None = None) -> ir.Value:
    """A tensor of unspecified contents with the extents of another."""
    type_ = ir.RankedTensorType(value.type)
    shape = [
        dim(value, axis) if type_.is_dynamic_dim(axis) else type_.get_dim_size(axis)
        for axis in range(type_.rank)
    ]
    return empty(shape, element or type_.element_type)


def fill(value: ir.Value, out: ir.Value) -> ir.Value:
    """`out` with every element set to a scalar."""
    with_fill = linalg.FillOp([out.type], [value], [out])
    block = with_fill.regions[0].blocks.append(value.type, value.type)
    with ir.InsertionPoint(block):
        linalg.YieldOp([block.arguments[0]])
    return with_fill.results[0]


def affine_map(num_dims: int, results: Sequence[ir.AffineExpr | int]) -> ir.AffineMap:
    """A map over loop dims; an int n stands for loop dim n."""
    exprs = [ir.AffineExpr.get_dim(r) if isinstance(r, int) else r for r in results]
    return ir.AffineMap.get(num_dims, 0, exprs)


def generic(
    ins: Sequence[ir.Value],
    outs: Sequence[ir.Value],
    maps: Sequence[ir.AffineMap],
    iterators: Sequence[str],
    body: Callable[..., ir.Value | Sequence[ir.Value]],
) -> list[ir.Value]:
    """A `linalg.generic`; `body` takes one scalar per operand and returns one per output."""
    op = linalg.GenericOp(
        [out.type for out in outs],
        list(ins),
        list(outs),
        ir.ArrayAttr.get([ir.AffineMapAttr.get(map_) for map_ in maps]),
        ir.ArrayAttr.get(
            [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in iterators]
        ),
    )
    elements = [ir.ShapedType(value.type).element_type for value in (*ins, *outs)]
    block = op.regions[0].blocks.append(*elements)
    with ir.InsertionPoint(block):
        result = body(*block.arguments)
        linalg.YieldOp([result] if isinstance(result, ir.Value) else list(result))
    return list(op.results)


def elementwise(ins: Sequence[ir.Value], out: ir.Value, body: Callable[..., ir.Value]) -> ir.Value:
    """Combines tensors into `out`, each broadcast to its dims as in NumPy.

    A dim of static extent 1 is read at 0, missing leading dims are skipped. `body` takes one
    scalar per input.
    """
    rank = ir.RankedTensorType(out.type).rank
    maps = [_broadcast_map(value, out) for value in ins]
    maps.append(affine_map(rank, list(range(rank))))
    return generic(ins, [out], maps, [PARALLEL] * rank, lambda *xs: body(*xs[:-1]))[0]


def _broadcast_map(value: ir.Value, out: ir.Value) -> ir.AffineMap:
    type_, out_type = ir.RankedTensorType(value.type), ir.RankedTensorType(out.type)
    lead = out_type.rank - type_.rank
    results: list[ir.AffineExpr | int] = []
    for axis, extent in enumerate(type_.shape):
        broadcast = extent == 1 and out_type.shape[lead + axis] != 1
        results.append(ir.AffineExpr.get_constant(0) if broadcast else lead + axis)
    return affine_map(out_type.rank, results)
