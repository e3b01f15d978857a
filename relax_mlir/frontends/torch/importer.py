"""Imports an exported program, node by node, into a function of the graph dialect."""

import operator as python
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import InputKind, OutputKind

from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, TensorType
from relax_mlir.errors import CompileError, ModelError
from relax_mlir.source import Imported
from relax_mlir.symbolic import Expr, maximum, minimum

from ..elements import mlir_element
from .call import Call
from .registry import find
from .symbols import Symbols
from .types import as_array, element_name

MOST = 10
"""Operators that an error lists."""

MALFORMED = (
    *(TypeError, ValueError, LookupError, ArithmeticError, AttributeError),
    ir.MLIRError,
)

ARITHMETIC: dict[Any, Callable[..., Any]] = {
    python.add: python.add,
    python.sub: python.sub,
    python.mul: python.mul,
    python.floordiv: python.floordiv,
    python.mod: python.mod,
    python.neg: lambda a: a * -1,
    torch.sym_max: maximum,
    torch.sym_min: minimum,
    torch.sym_int: lambda a: a,
    torch.sym_float: lambda a: a,
}
"""Functions of sizes."""

IGNORED = {
    "aten::_assert_scalar",
    "aten::_assert_tensor_metadata",
    "aten::sym_constrain_range",
    "aten::sym_constrain_range_for_size",
}
"""What PyTorch asserts of sizes; facts and casts say the same."""


class Importer:
    """The import of one program; `parameters` are arrays for arguments of the function."""

    def __init__(self, program: torch.export.ExportedProgram, symbols: Mapping[str, str]) -> None:
        self.program = program
        self.symbols = Symbols(symbols)
        self.parameters: dict[str, Any] = {}
        self.values: dict[torch.fx.Node, Any] = {}

    def run(self, facts: Sequence[str]) -> Imported:
        """Imports the program into a module, in the current context."""
        nodes = list(self.program.graph.nodes)
        _check(nodes)
        placeholders = [node for node in nodes if node.op == "placeholder"]
        specs = self.program.graph_signature.input_specs
        self._check_signature(specs)
        tensors = [
            (node, spec)
            for node, spec in zip(placeholders, specs, strict=True)
            if isinstance(node.meta.get("val"), torch.Tensor)
        ]
        module = ir.Module.create()
        types = [self.annotation(node.meta["val"]).to_mlir() for node, _ in tensors]
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", (types, []))
        block = main.add_entry_block()
        names = []
        for argument, (node, spec) in zip(block.arguments, tensors, strict=True):
            self.values[node] = argument
            names.append(self._named(node, spec))
        for node, spec in zip(placeholders, specs, strict=True):
            if node not in self.values:
                self.values[node] = getattr(spec.arg, "value", None)
        with ir.InsertionPoint(block):
            outputs = self._nodes(nodes)
            results = [Call(self, each.meta["val"]).tensor(self.values[each]) for each in outputs]
            func.ReturnOp(results)
        type_ = ir.FunctionType.get(types, [result.type for result in results])
        main.attributes["function_type"] = ir.TypeAttr.get(type_)
        main.arg_attrs = [_entry(name) for name in names]
        texts = [*facts, *self._ranges()]
        if texts:
            own = [ir.StringAttr.get(text) for text in dict.fromkeys(texts)]
            main.attributes["graph.facts"] = ir.ArrayAttr.get(own)
        inputs = tuple(name for name in names if name not in self.parameters)
        return Imported(module, self.parameters, inputs, tuple(each.name for each in outputs))

    def _check_signature(self, specs: Sequence[Any]) -> None:
        for spec in specs:
            if spec.kind == InputKind.CUSTOM_OBJ:
                raise ModelError(f"argument '{spec.arg.name}' is an object, which is not supported")
        for spec in self.program.graph_signature.output_specs:
            if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION):
                raise ModelError(f"changes '{spec.target}', which is not supported")

    def _named(self, node: torch.fx.Node, spec: Any) -> str:
        """The name of an argument, whose value is a parameter unless it is an input."""
        if spec.kind == InputKind.USER_INPUT:
            return node.name
        if spec.kind == InputKind.CONSTANT_TENSOR or spec.persistent is False:
            value = self.program.constants[spec.target]
        else:
            value = self.program.state_dict[spec.target]
        self.parameters[spec.target] = as_array(value)
        return spec.target

    def annotation(self, value: torch.Tensor) -> TensorType:
        """The type of a tensor, as PyTorch describes it."""
        dims = [self.symbols.expr(size) for size in value.shape]
        return TensorType.make(dims, mlir_element(element_name(value.dtype)))

    def _ranges(self) -> list[str]:
        """Facts of the ranges of symbols, where they say anything."""
        facts = []
        for symbol, bounds in self.program.range_constraints.items():
            name = self.symbols.chosen.get(str(symbol), str(symbol))
            if name not in self.symbols.used or str(symbol).startswith("u"):
                continue
            if bounds.lower.is_Integer and int(bounds.lower) > 0:
                facts.append(f"{int(bounds.lower)} <= {name}")
            if bounds.upper.is_Integer and int(bounds.upper) < 1 << 62:
                facts.append(f"{name} <= {int(bounds.upper)}")
        return facts

    # Nodes.

    def _nodes(self, nodes: Sequence[torch.fx.Node]) -> list[torch.fx.Node]:
        for node in nodes:
            if node.op == "output":
                return [each for each in node.args[0] if isinstance(each, torch.fx.Node)]
            if node.op == "call_function":
                self._call(node)
        raise ModelError("has no outputs")

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
        if name in IGNORED:
            return None
        args = torch.fx.node.map_arg(node.args, self.values.__getitem__)
        options = torch.fx.node.map_arg(node.kwargs, self.values.__getitem__)
        build = find(name)
        assert build is not None, name
        result = build(Call(self, actual), *args, **options)
        if isinstance(result, tuple | list):
            return [self._as(value, its) for value, its in zip(result, actual)]
        return self._as(result, actual)

    def _size(self, node: torch.fx.Node, actual: Any) -> Any:
        """A size; one that PyTorch knows as an expression, or that an element says."""
        if isinstance(actual, bool | int | float):
            return actual
        if isinstance(actual, torch.SymBool):
            return None  # only assertions take one
        if name_of(node) in ("aten::_local_scalar_dense", "aten::item"):
            return self._element(self.values[node.args[0]], actual)
        return self.symbols.expr(actual)

    def _element(self, tensor: ir.Value, actual: Any) -> Expr:
        """An element as a symbol, which run time binds."""
        i64 = ir.IntegerType.get_signless(64)
        if not isinstance(actual, torch.SymInt):
            raise ModelError("takes an element that is no integer for a size")
        call = Call(self, actual)
        vector = graph.ReshapeOp.build(call.tensor(tensor, i64), shape=[1]).operation.results[0]
        shape = graph.TensorToShapeOp.build(vector).result
        expr = self.symbols.expr(actual)
        graph.MatchCastOp.build(shape, graph.shape_value_type([expr]))
        return expr

    def _as(self, value: Any, actual: Any) -> Any:
        """A result with the dims that PyTorch inferred, where ours are unknown."""
        if not isinstance(value, ir.Value) or not isinstance(actual, torch.Tensor):
            return value
        own = TensorType.of(value)
        if own.dims is not None and all(dim is not None for dim in own.dims):
            return value
        return graph.MatchCastOp.build(value, self.annotation(actual)).result


def _is_size(value: Any) -> bool:
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool | int | float)


def name_of(node: torch.fx.Node) -> str:
    """The name of what a node calls, such as `aten::add.Tensor`."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        name = target.name()
        return name.removesuffix(".default")
    return getattr(target, "__name__", str(target))


def label_of(node: torch.fx.Node) -> str:
    """How messages name a node: with the line of the model that it comes from."""
    lines = [line.strip() for line in (node.stack_trace or "").splitlines()]
    own = [x for x in lines if x.startswith("File ") and "relax_mlir" not in x]
    where = f", {own[-1].removeprefix('File ')}" if own else ""
    return f"node '{node.name}' ({name_of(node)}{where})"


def _check(nodes: Sequence[torch.fx.Node]) -> None:
    """Raises ModelError for operators that are not supported, all at once."""
    unknown: dict[str, None] = {}
    for node in nodes:
        if node.op in ("placeholder", "output") or node.target is python.getitem:
            continue
        actual = node.meta.get("val")
        if node.op == "call_function" and (
            _is_size(actual) or name_of(node) in IGNORED or find(name_of(node))
        ):
            continue
        unknown[f"{name_of(node)} (node '{node.name}')"] = None
    if unknown:
        more = f", and {len(unknown) - MOST} more" if len(unknown) > MOST else ""
        names = ", ".join(list(unknown)[:MOST])
        raise ModelError(f"has operators that are not supported: {names}{more}")


def _entry(name: str) -> ir.DictAttr:
    return ir.DictAttr.get({"graph.name": ir.StringAttr.get(name)})


def import_program(
    program: torch.export.ExportedProgram, symbols: Mapping[str, str], facts: Sequence[str]
) -> Imported:
    """Imports a program that was decomposed; raises ModelError."""
    try:
        return Importer(program, symbols).run(facts)
    except CompileError as error:
        raise ModelError(str(error)) from None
