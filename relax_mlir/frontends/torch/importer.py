"""Imports an exported program, node by node, into a function of the graph dialect."""

import operator as python
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

from relax_mlir.bindings import func, ir
from relax_mlir.decompositions.emit import MAX_CONSTANT, reshape, scalar, symbol
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, TensorType
from relax_mlir.errors import CompileError, ModelError
from relax_mlir.source import Imported
from relax_mlir.symbolic import Expr, Facts, sym

from ..complex import Pair, joined, split
from ..elements import mlir_element
from ..known import Known
from .call import Call, astype_of
from .registry import Function, find
from .signature import Entry, signature_of
from .sizes import INTEGERS, computed, fraction, guard, truth
from .symbols import Symbols
from .types import as_array, element_name, is_complex

MOST = 10
"""Operators that an error lists."""

MALFORMED = (
    *(TypeError, ValueError, LookupError, ArithmeticError, AttributeError),
    ir.MLIRError,
)


class Importer:
    """The import of one program; `operators` are functions for operators, before the table's."""

    def __init__(
        self,
        program: torch.export.ExportedProgram,
        symbols: Mapping[str, str],
        operators: Mapping[str, Function],
    ) -> None:
        self.program = program
        self.dims = Symbols(symbols, self._computed)
        self.operators = operators
        self.values: dict[torch.fx.Node, Any] = {}
        self.facts = Facts()

    def run(self, facts: Sequence[str]) -> Imported:
        """Imports the program into a module, in the current context."""
        nodes = list(self.program.graph.nodes)
        self._check(nodes)
        signature = signature_of(self.program)
        entries = signature.entries
        module = ir.Module.create()
        types = [self._type(entry) for entry in entries]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", (types, []))
        block = main.add_entry_block()
        self._constants(nodes)
        for argument, entry in zip(block.arguments, entries, strict=True):
            if isinstance(argument.type, ir.ShapedType):
                self.values[entry.node] = argument
        with ir.InsertionPoint(block):
            for entry in entries:
                if is_complex(entry.node.meta["val"]):
                    self.values[entry.node] = split(self.values[entry.node])
            texts = [*facts, *self._ranges(), *self._guards()]
            self.facts = Facts.parse(texts)
            self.nodes(nodes)
            results = [self._result(node) for node in signature.results]
            func.ReturnOp(results)
        type_ = ir.FunctionType.get(types, [result.type for result in results])
        main.attributes["function_type"] = ir.TypeAttr.get(type_)
        updated = {name: index for index, name in signature.updates.items()}
        main.arg_attrs = [_entry(entry.name, updated.get(entry.name)) for entry in entries]
        if texts:
            own = [ir.StringAttr.get(text) for text in dict.fromkeys(texts)]
            main.attributes["graph.facts"] = ir.ArrayAttr.get(own)
        inputs = [entry.name for entry in entries if not signature.is_parameter(entry)]
        outputs = [signature.updates.get(i, n.name) for i, n in enumerate(signature.results)]
        state = signature.state
        return Imported(module, signature.parameters, tuple(inputs), tuple(outputs), state)

    def _constants(self, nodes: Sequence[torch.fx.Node]) -> None:
        """The values of arguments that are no tensors: sizes and constants."""
        specs = iter(self.program.graph_signature.input_specs)
        for node in nodes:
            if node.op == "placeholder":
                actual, own = node.meta.get("val"), getattr(next(specs).arg, "value", None)
                self.values[node] = self.dims.expr(actual) if _is_symbolic(actual) else own

    def _type(self, entry: Entry) -> ir.Type:
        """The type of an argument, of both parts along a last dim if it is complex."""
        value = entry.node.meta["val"]
        if isinstance(value, torch.Tensor):
            own = self.annotation(value)
            assert own.dims is not None
            return (own.with_dims([*own.dims, 2]) if value.is_complex() else own).to_mlir()
        if not _is_count(value):
            return ir.RankedTensorType.get([], ir.IntegerType.get_signless(64))
        return graph.to_mlir(graph.shape_value_type([self.dims.expr(value)]))

    def _result(self, node: torch.fx.Node) -> ir.Value:
        """A tensor that is returned; a size becomes one."""
        value, actual = self.values[node], node.meta["val"]
        if isinstance(actual, torch.Tensor) and not isinstance(value, Pair):
            return Call(self, actual).tensor(value)
        return self.tensor(value)

    def tensor(self, value: Any) -> ir.Value:
        """A value as a tensor: sizes are of i64, conditions of i1, complex ones have both parts."""
        if isinstance(value, ir.Value):
            return value
        if isinstance(value, Pair):
            return joined(value)
        i64, f64 = ir.IntegerType.get_signless(64), ir.F64Type.get()
        if isinstance(value, bool | torch.SymBool):
            return truth(self.dims, value)
        if isinstance(value, float):
            return scalar(value, f64)
        return reshape(symbol(self.dims.expr(value), i64), [])

    def find(self, name: str, is_complex: bool) -> Function | None:
        """The function for an operator, of complex tensors or of others."""
        return self.operators.get(name) or find(name, is_complex)

    def _check(self, nodes: Sequence[torch.fx.Node]) -> None:
        """Raises ModelError for operators that are not supported, all at once."""
        unknown = list(dict.fromkeys(self._unknown(nodes)))
        if unknown:
            more = f", and {len(unknown) - MOST} more" if len(unknown) > MOST else ""
            names = ", ".join(unknown[:MOST])
            raise ModelError(f"has operators that are not supported: {names}{more}")

    def _unknown(self, nodes: Sequence[torch.fx.Node]) -> Iterator[str]:
        for node in nodes:
            if node.op == "get_attr":
                own = getattr(node.graph.owning_module, str(node.target), None)
                if isinstance(own, torch.fx.GraphModule):
                    yield from self._unknown(list(own.graph.nodes))
            elif node.op in ("placeholder", "output") or node.target is python.getitem:
                continue
            elif not (
                node.op == "call_function"
                and (_is_size(node.meta.get("val")) or self.find(name_of(node), _has_complex(node)))
            ):
                known = find(name_of(node)) is not None
                what = " of complex tensors" if known and _has_complex(node) else ""
                yield f"{name_of(node)}{what} (node '{node.name}')"

    def annotation(self, value: torch.Tensor) -> TensorType:
        """The type of a tensor, or of a part of a complex one, as PyTorch describes it."""
        dims = [self.dims.expr(size) for size in value.shape]
        return TensorType.make(dims, mlir_element(element_name(value.dtype)))

    def _ranges(self) -> list[str]:
        """Facts of the ranges of symbols, where they say anything.

        Exported programs may be called with dims of 1, though PyTorch traces them as if they were 2
        at least: it does not check that bound either.
        """
        facts = []
        is_exported = isinstance(self.program, torch.export.ExportedProgram)
        for each, bounds in self.program.range_constraints.items():
            name = self.dims.known.get(str(each))
            if name is None or str(each).startswith("u"):
                continue
            least = int(bounds.lower) if bounds.lower.is_Integer else 0
            least = 1 if is_exported and least == 2 else least
            if least > 0:
                facts.append(f"{least} <= {name}")
            if bounds.upper.is_Integer and int(bounds.upper) < 1 << 62:
                facts.append(f"{name} <= {int(bounds.upper)}")
        return facts

    def _guards(self) -> Iterator[str]:
        """Facts of the conditions under which PyTorch exported the program.

        Those of graphs that Dynamo captures it checks itself.
        """
        if not isinstance(self.program, torch.export.ExportedProgram):
            return
        tensors = (node.meta.get("val") for node in self.program.graph.nodes)
        sizes = (size for x in tensors if isinstance(x, torch.Tensor) for size in x.shape)
        size = next((each for each in sizes if isinstance(each, torch.SymInt)), None)
        for each in () if size is None else size.node.shape_env.guards:
            yield from guard(self.dims, each.expr)

    # Nodes.

    def nodes(self, nodes: Sequence[torch.fx.Node]) -> None:
        """Imports what nodes compute."""
        for node in nodes:
            if node.op == "call_function":
                self._call(node)
            elif node.op == "get_attr":
                self.values[node] = self._attribute(node)

    def graph(self, module: torch.fx.GraphModule, operands: Sequence[Any]) -> list[Any]:
        """What a graph within the program makes of operands."""
        nodes = list(module.graph.nodes)
        placeholders = [node for node in nodes if node.op == "placeholder"]
        with self.dims.scope():
            for node, value in zip(placeholders, operands, strict=True):
                actual = node.meta.get("val")
                if isinstance(actual, torch.SymInt) and isinstance(value, ir.Value):
                    value = self.integer(value, actual)
                elif isinstance(actual, torch.SymInt) and self.dims.expr(actual) != value:
                    value = self.bind(self.tensor(value), actual)
                elif is_complex(actual) and isinstance(value, ir.Value):
                    value = split(value)
                self.values[node] = value
            self.nodes(nodes)
            (returned,) = nodes[-1].args
            results = returned if isinstance(returned, tuple | list) else [returned]
            values = [
                self.values[each] if isinstance(each, torch.fx.Node) else each for each in results
            ]
            return [self.tensor(v) if isinstance(v, _SIZES) else v for v in values]

    def _attribute(self, node: torch.fx.Node) -> Any:
        """A graph or a tensor that a module holds, by its name."""
        value: Any = node.graph.owning_module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            return value
        if value.numel() > MAX_CONSTANT:
            raise ModelError(f"{label_of(node)}: a constant of {value.numel()} elements")
        array, element = as_array(value), element_name(value.dtype)
        if value.is_complex():
            return Pair(*(Known(array[..., part], element).emit() for part in (0, 1)))
        return Known(array, element).emit()

    def _call(self, node: torch.fx.Node) -> None:
        try:
            with ir.Location.name(node.name, ir.Location.current):
                self.values[node] = self._value(node)
        except (ShapeError, ModelError) as error:
            text = str(error)
            raise ModelError(
                text if text.startswith("node ") else f"{label_of(node)}: {text}"
            ) from None
        except MALFORMED as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise ModelError(f"{label_of(node)}: cannot be imported: {reason}") from error

    def _value(self, node: torch.fx.Node) -> Any:
        actual = node.meta.get("val")
        if node.target is python.getitem:
            return self.values[node.args[0]][node.args[1]]
        if _is_size(actual):
            return self._size(node, actual)
        name = name_of(node)
        args = torch.fx.node.map_arg(node.args, self.values.__getitem__)
        options = torch.fx.node.map_arg(node.kwargs, self.values.__getitem__)
        build = self.find(name, _has_complex(node))
        assert build is not None, name
        result = build(Call(self, actual, node.args), *args, **options)
        if isinstance(result, tuple | list):
            return [self._as(value, its) for value, its in zip(result, actual)]
        return self._as(result, actual)

    def _size(self, node: torch.fx.Node, actual: Any) -> Any:
        """A size; one that PyTorch knows as an expression, or that an element says."""
        if isinstance(actual, bool | int | float):
            return actual
        if _is_item(node):
            return self._element(self.values[node.args[0]], actual)
        operands = [self.values[x] if isinstance(x, torch.fx.Node) else x for x in node.args]
        if isinstance(actual, torch.SymFloat):
            return fraction(node, [self.tensor(each) for each in operands])
        if any(isinstance(each, ir.Value) for each in operands) and node.target in INTEGERS:
            return INTEGERS[node.target](*(self.tensor(each) for each in operands))
        if isinstance(actual, torch.SymBool):
            return actual
        if name_of(node) == "aten::sym_storage_offset":
            symbols = map(str, actual.node.expr.free_symbols)
            self.dims.offsets.update(each for each in symbols if each not in self.dims.known)
            return actual
        return self.dims.expr(actual)

    def _element(self, tensor: ir.Value, actual: Any) -> Any:
        """An element: an integer is a symbol, which run time binds."""
        if isinstance(actual, torch.SymInt):
            return self.integer(tensor, actual)
        if isinstance(actual, torch.SymBool) and actual.node.expr.args:
            self.bind(tensor, actual.node.expr.args[0])  # the condition is that it is 1
        return reshape(tensor, [])

    def _computed(self, expr: Any) -> str:
        """A symbol for a size that run time computes."""
        vector = reshape(astype_of(computed(self.dims, expr), ir.IntegerType.get_signless(64)), [1])
        name = self.dims.fresh("c")
        shape = graph.TensorToShapeOp.build(vector).result
        graph.MatchCastOp.build(shape, graph.shape_value_type([sym(name)]))
        return name

    def integer(self, tensor: ir.Value, size: torch.SymInt) -> Any:
        """An element as the symbol of a size, or as it is where it may be negative."""
        if _is_count(size):
            return self.bind(tensor, size)
        return reshape(astype_of(tensor, ir.IntegerType.get_signless(64)), [])

    def bind(self, tensor: ir.Value, size: Any) -> Expr:
        """An element as the symbol of a size."""
        i64 = ir.IntegerType.get_signless(64)
        vector = reshape(astype_of(tensor, i64), [1])
        shape = graph.TensorToShapeOp.build(vector).result
        expr = self.dims.expr(size)
        graph.MatchCastOp.build(shape, graph.shape_value_type([expr]))
        return expr

    def _as(self, value: Any, actual: Any) -> Any:
        """A result with the dims that PyTorch inferred, where ours are unknown."""
        if not isinstance(value, ir.Value | Pair) or not isinstance(actual, torch.Tensor):
            return value
        if actual.is_complex() and isinstance(value, ir.Value):
            value = split(value)
        if isinstance(value, Pair):
            return value.map(lambda part: self._with_dims(part, actual))
        return self._with_dims(value, actual)

    def _with_dims(self, value: ir.Value, actual: torch.Tensor) -> ir.Value:
        own = TensorType.of(value)
        if own.dims is not None and all(dim is not None for dim in own.dims):
            return value
        return graph.MatchCastOp.build(value, self.annotation(actual)).result


_SIZES = (Expr, int, float, torch.SymBool)


def _is_count(size: torch.SymInt) -> bool:
    """Whether a size is a symbol that is known not to be negative."""
    symbol = size.node.expr
    bounds = size.node.shape_env.var_to_range.get(symbol) if symbol.is_Symbol else None
    return bounds is not None and bool(bounds.lower >= 0)


def _has_complex(node: torch.fx.Node) -> bool:
    """Whether an operand or a result of a node is a complex tensor."""
    return any(is_complex(each.meta.get("val")) for each in (node, *node.all_input_nodes))


def _is_item(node: torch.fx.Node) -> bool:
    return name_of(node) in ("aten::_local_scalar_dense", "aten::item")


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, torch.SymInt)


def _is_size(value: Any) -> bool:
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool | int | float)


def name_of(node: torch.fx.Node) -> str:
    """The name of what a node calls, such as `aten::add.Tensor`."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return target.name().removesuffix(".default")
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order::{target.name()}"
    return getattr(target, "__name__", str(target))


def label_of(node: torch.fx.Node) -> str:
    """How messages name a node: with the line of the model that it comes from."""
    lines = [line.strip() for line in (node.stack_trace or "").splitlines()]
    own = [x for x in lines if x.startswith("File ") and "relax_mlir" not in x]
    where = f", {own[-1].removeprefix('File ')}" if own else ""
    return f"node '{node.name}' ({name_of(node)}{where})"


def _entry(name: str, updated: int | None) -> ir.DictAttr:
    own: dict[str, ir.Attribute] = {"graph.name": ir.StringAttr.get(name)}
    if updated is not None:
        own["graph.inout"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), updated)
    return ir.DictAttr.get(own)


def import_program(
    program: torch.export.ExportedProgram,
    symbols: Mapping[str, str],
    facts: Sequence[str],
    operators: Mapping[str, Function] = MappingProxyType({}),
) -> Imported:
    """Imports a program that was decomposed; raises ModelError."""
    try:
        return Importer(program, symbols, operators).run(facts)
    except CompileError as error:
        raise ModelError(str(error)) from None
