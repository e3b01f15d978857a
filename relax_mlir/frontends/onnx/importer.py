"""Imports the graph of a model, node by node, into a function of the graph dialect."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from relax_mlir.bindings import func, ir
from relax_mlir.decompositions.emit import emit
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, TensorType
from relax_mlir.errors import CompileError, ModelError
from relax_mlir.source import Imported
from relax_mlir.symbolic import Expr, Fact, sym

from ..elements import SMALL_FLOATS, mlir_element, name_of
from ..known import Known
from . import folding
from .node import Node, label_of, nodes_of
from .registry import Value, find
from .schemas import check_elements, check_node
from .types import Dims, element_code, element_name, tensor_type
from .weights import Files

LARGE = 16
"""Elements above which a constant is a parameter, and not written into the module."""

MORE, TIMES = 20_000, 20
"""Nodes that are imported at most: so many, and so often each node that the model has.

Bodies of loops, and functions, are imported again wherever they are, also in one another.
"""


@dataclass
class Wanted:
    """Inputs whose values would have to be known, and dims of inputs: an import in vain says so.

    Dims are pairs of an input and an axis.
    """

    values: dict[str, None] = field(default_factory=dict)
    dims: dict[tuple[str, int], None] = field(default_factory=dict)


MALFORMED = (
    *(TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RuntimeError),
    ir.MLIRError,
)


class Importer:
    """The import of one model.

    `parameters` are the constants that are arguments of the function, by name; `given` the values
    of inputs that are known; `wanted` collects names of inputs that would have to be.
    """

    def __init__(
        self,
        model: "onnx.ModelProto",
        dims: Mapping[str, int | str],
        values: Mapping[str, Any],
        wanted: Wanted,
        files: Files,
    ) -> None:
        self.model = model
        self.files = files
        self.given = values
        self.wanted = wanted
        self.versions = {each.domain: each.version for each in model.opset_import}
        self.functions = {(each.domain, each.name): each for each in model.functions}
        self.dims = Dims(dims)
        self.parameters: dict[str, np.ndarray] = {}
        self._arguments: dict[int, tuple[Known, ir.Value]] = {}
        self._inputs: dict[ir.Value, str] = {}
        self.entry: ir.Block | None = None
        self.entries: list[ir.DictAttr] = []
        self.calls: list[tuple[str, str]] = []
        self._left = self._most = MORE + TIMES * sum(
            1 for one in (model.graph, *model.functions) for _ in nodes_of(one.node)
        )

    def run(self, facts: Sequence[str]) -> Imported:
        """Imports the model into a module, in the current context."""
        proto = self.model.graph
        own = {each.name for each in proto.initializer} | {
            each.values.name for each in proto.sparse_initializer
        }
        unknown = sorted(set(self.given) - {each.name for each in proto.input})
        if unknown:
            raise ModelError(f"has no input '{unknown[0]}', of which a value is given")
        names = Counter(each.name for each in proto.input)
        twice = next((name for name, count in names.items() if count > 1), None)
        if twice is not None:
            raise ModelError(f"has input '{twice}' twice")
        inputs = [each for each in proto.input if each.name not in own and not self._is_known(each)]
        types = [self._type(each) for each in inputs]
        self._check_chosen()
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", (types, []))
        self.entry = main.add_entry_block()
        self.entries = [_named(each.name) for each in inputs]
        with ir.InsertionPoint(self.entry):
            scope = Scope(self, None, self.versions)
            for name, value in self.given.items():
                if not isinstance(value, list):
                    scope.values[name] = None if value is None else Known(*_given(name, value))
            for each, argument in zip(inputs, main.arguments, strict=True):
                scope.values[each.name] = self._argument(each.name, argument)
            results = [self._result(value) for value in scope.run(proto)]
            func.ReturnOp(results)
        kinds = [argument.type for argument in self.entry.arguments]
        type_ = ir.FunctionType.get(kinds, [result.type for result in results])
        main.attributes["function_type"] = ir.TypeAttr.get(type_)
        main.arg_attrs = self.entries
        names_of = [_named(each.name) for each in proto.output]
        main.attributes["res_attrs"] = ir.ArrayAttr.get(names_of)
        if facts:
            texts = [ir.StringAttr.get(str(Fact.parse(fact))) for fact in facts]
            main.attributes["graph.facts"] = ir.ArrayAttr.get(texts)
        return Imported(
            module,
            self.parameters,
            tuple(e.name for e in inputs),
            tuple(o.name for o in proto.output),
        )

    def _is_known(self, proto: "onnx.ValueInfoProto") -> bool:
        return proto.name in self.given and not isinstance(self.given[proto.name], list)

    def _type(self, proto: "onnx.ValueInfoProto") -> ir.Type:
        """The type of an argument; of a sequence, whose tensors are given, a tuple."""
        if proto.name not in self.given:
            return tensor_type(self, proto.name, proto.type).to_mlir()
        if proto.type.HasField("tensor_type"):
            raise ModelError(f"input '{proto.name}' is a tensor, but given as a list")
        return graph.tuple_type([self._like(proto.name, each) for each in self.given[proto.name]])

    def _like(self, name: str, value: Any) -> ir.Type:
        array, element = _given(name, value)
        dims = [sym(self.dims.fresh(f"{name}_{i}")) for i in range(array.ndim)]
        return TensorType.make(dims, mlir_element(element)).to_mlir()

    def _argument(self, name: str, argument: ir.Value) -> Value:
        if name in self.given:
            count = len(self.given[name])
            return [graph.TupleGetOp.build(argument, i).result for i in range(count)]
        self._inputs[argument] = name
        return argument

    def _result(self, value: Value) -> ir.Value:
        if isinstance(value, list):
            return graph.TupleOp.build(*map(self._result, value)).result
        return self.tensor(value)

    def want(self, tensor: ir.Value) -> None:
        """Notes that a value would have to be known, if it is an input."""
        if tensor in self._inputs:
            self.wanted.values[self._inputs[tensor]] = None

    def want_dims(self, values: Sequence[Value]) -> None:
        """Notes that dims would have to be known: of all values but the first, or of that."""
        for group in (values[1:], values[:1]):
            tensors = [each for each in group if isinstance(each, ir.Value)]
            symbols = {
                symbol
                for each in tensors
                for dim in TensorType.of(each).dims or ()
                for symbol in (dim.symbols if dim is not None else ())
            }
            matches = [self.dims.positions[s] for s in sorted(symbols) if s in self.dims.positions]
            if matches:
                self.wanted.dims.update(dict.fromkeys(matches))
                return

    def _check_chosen(self) -> None:
        if self.dims.unused:
            unused, known = sorted(self.dims.unused)[0], sorted(self.dims.names)
            there = ", ".join(map(repr, known)) or "none"
            raise ModelError(f"no dim of an input is called '{unused}'; there are {there}")

    def spend(self) -> None:
        """Counts a node that is imported. Raises ModelError for too many."""
        self._left -= 1
        if self._left < 0:
            raise ModelError(f"is one of over {self._most} nodes, with those of calls and loops")

    # Values.

    def tensor(self, value: Value) -> ir.Value:
        """A value as a tensor; a large array is an argument of the function."""
        if isinstance(value, ir.Value):
            return value
        if not isinstance(value, Known):
            raise ModelError("has a sequence or nothing where a tensor is expected")
        if value.is_symbolic or (value.array.size <= LARGE and value.element not in SMALL_FLOATS):
            return value.emit()
        key = id(value.array)
        if key not in self._arguments:
            self._arguments[key] = value, self._parameter(value)
        return self._arguments[key][1]

    def _parameter(self, value: Known) -> ir.Value:
        assert self.entry is not None
        name = f"constant_{len(self.parameters)}"
        kind = ir.RankedTensorType.get(list(value.array.shape), mlir_element(value.element))
        self.parameters[name] = value.array
        self.entries.append(_named(name))
        return self.entry.add_argument(kind, ir.Location.unknown())

    def array(self, proto: "onnx.TensorProto") -> Known:
        """The elements of a constant."""
        element = element_name(proto.data_type)
        try:
            if proto.data_location == onnx.TensorProto.EXTERNAL:
                return Known(self.files.array(proto), element)
            array = onnx.numpy_helper.to_array(proto)
        except (ValueError, TypeError, OSError, onnx.checker.ValidationError) as error:
            raise ModelError(f"constant '{proto.name}' cannot be read: {error}") from None
        return Known(np.ascontiguousarray(array).reshape(array.shape), element)

    def read_integers(self, tensor: ir.Value, what: str) -> list[Expr]:
        """The elements of a vector, or a value, as symbols that run time binds."""
        self.want(tensor)
        i64 = ir.IntegerType.get_signless(64)
        annotation = TensorType.of(tensor)
        if annotation.dims is None or len(annotation.dims) > 1:
            raise ModelError(f"has {what} of type '{annotation}', where a vector is expected")
        if annotation.element != i64:
            tensor = emit(graph.AstypeOp, tensor, dtype=i64)
        if not annotation.dims:
            tensor = emit(graph.ReshapeOp, tensor, shape=[1])
        (count,) = TensorType.of(tensor).dims or ()
        if count is None or count.value is None:
            raise ModelError(f"has {what} of unknown count, which is not supported")
        shape = graph.TensorToShapeOp.build(tensor).result
        names = [self.dims.fresh("k") for _ in range(count.value)]
        graph.MatchCastOp.build(shape, graph.shape_value_type([sym(name) for name in names]))
        return [sym(name) for name in names]

    def with_known_dims(self, tensor: ir.Value) -> ir.Value:
        """A tensor whose unknown dims are symbols that run time binds."""
        annotation = TensorType.of(tensor)
        if annotation.dims is None:
            raise ModelError("has an input of unknown rank, which is not supported")
        if all(dim is not None for dim in annotation.dims):
            return tensor
        dims = [sym(self.dims.fresh("d")) if dim is None else dim for dim in annotation.dims]
        return graph.MatchCastOp.build(tensor, annotation.with_dims(dims)).result


class Scope:
    """The names of a graph, in which those of the graph around it are seen."""

    def __init__(
        self, importer: Importer, outer: "Scope | None", versions: Mapping[str, int]
    ) -> None:
        self.importer = importer
        self.outer = outer
        self.versions = versions
        self.values: dict[str, Value] = {}

    def inner(self) -> "Scope":
        """A scope of a graph of a node, which sees the names of this one."""
        return Scope(self.importer, self, self.versions)

    def version(self, domain: str) -> int:
        """The version of the opset of a domain."""
        names = ("", "ai.onnx") if domain in ("", "ai.onnx") else (domain,)
        return next((self.versions[name] for name in names if name in self.versions), 1)

    def find(self, name: str) -> Value:
        """A value by name; raises ModelError if there is none."""
        if not name:
            return None
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise ModelError(f"uses '{name}', which is not computed before it")

    def run(self, proto: "onnx.GraphProto") -> list[Value]:
        """Imports the nodes of a graph; returns its outputs."""
        for each in proto.initializer:
            if each.name not in self.values:  # of an input, it is what that is unless it is given
                self.values[each.name] = self.importer.array(each)
        for each in proto.sparse_initializer:
            raise ModelError(f"constant '{each.values.name}' is sparse, which is not supported")
        self.run_nodes(proto.node)
        try:
            return [self.find(each.name) for each in proto.output]
        except ModelError as error:
            raise ModelError(f"the output of graph '{proto.name}' {error}") from None

    def run_nodes(self, nodes: "Sequence[onnx.NodeProto]") -> None:
        """Imports nodes in their order."""
        for index, proto in enumerate(nodes):
            label = label_of(proto, index)
            try:
                with ir.Location.name(label, ir.Location.current):
                    outputs = self._node(proto)
            except (ShapeError, ModelError) as error:
                text = str(error)
                is_located = isinstance(error, ModelError) and text.startswith("node ")
                raise ModelError(text if is_located else f"{label}: {text}") from None
            except MALFORMED as error:  # attributes and types that no model should have
                reason = next(iter(str(error).splitlines()), type(error).__name__)
                raise ModelError(f"{label}: is malformed: {reason}") from error
            for name, value in zip(proto.output, outputs):
                if name in self.values:
                    raise ModelError(f"{label}: computes '{name}', which there is already")
                if name:
                    self.values[name] = value

    def _node(self, proto: "onnx.NodeProto") -> Sequence[Value]:
        self.importer.spend()
        node = Node(self, proto, [self.find(name) for name in proto.input])
        function = self.importer.functions.get((proto.domain, proto.op_type))
        if function is not None:
            return call_function(node, function)
        check_node(proto, node.version)
        check_elements(proto, node.version, node.elements)
        folded = folding.evaluate(node)
        if folded is not None:
            return folded
        build = find(proto.domain, proto.op_type, node.version)
        if build is None:
            return call_function(node, definition_of(node))
        try:
            result = build(node)
        except (ShapeError, ModelError):
            self.importer.want_dims(node.inputs)
            raise
        return result if isinstance(result, tuple) else (result,)


def call_function(node: Node, function: "onnx.FunctionProto") -> list[Value]:
    """Imports the nodes of a function of the model where a node is."""
    key, calls = (function.domain, function.name), node.importer.calls
    if key in calls:
        raise ModelError(f"calls function '{function.name}' from within itself")
    if len(node.inputs) > len(function.input):
        raise ModelError(f"has {len(node.inputs)} inputs, but its function {len(function.input)}")
    versions = {**node.scope.versions, **{e.domain: e.version for e in function.opset_import}}
    scope = Scope(node.importer, None, versions)
    for index, name in enumerate(function.input):
        scope.values[name] = node.value(index)
    given = {each.name: each for each in node.proto.attribute}
    given = {**{each.name: each for each in function.attribute_proto}, **given}
    calls.append(key)
    scope.run_nodes([_with_attributes(each, given) for each in function.node])
    calls.pop()
    return [scope.find(name) for name in function.output]


def definition_of(node: Node) -> "onnx.FunctionProto":
    """The function by which the standard defines an operator."""
    schema = onnx.defs.get_schema(node.op, node.version, node.proto.domain)
    if schema.has_function:
        return schema.function_body
    types = [_type_proto(node, i).SerializeToString() for i in range(len(node.inputs))]
    text = schema.get_context_dependent_function(node.proto.SerializeToString(), types)
    return onnx.FunctionProto.FromString(text)


def _type_proto(node: Node, index: int) -> "onnx.TypeProto":
    if node.value(index) is None:
        return onnx.TypeProto()
    dims = [dim.value for dim in node.dims(index)]
    return onnx.helper.make_tensor_type_proto(element_code(node.element(index)), dims)


def _with_attributes(
    proto: "onnx.NodeProto", given: "Mapping[str, onnx.AttributeProto]"
) -> "onnx.NodeProto":
    """A node of a function, whose attributes that refer to those of the function have values."""
    result = onnx.NodeProto()
    result.CopyFrom(proto)
    del result.attribute[:]
    for each in proto.attribute:
        if not each.ref_attr_name:
            own = result.attribute.add()
            own.CopyFrom(each)
            _fill_graphs(own, given)
        elif each.ref_attr_name in given:
            own = result.attribute.add()
            own.CopyFrom(given[each.ref_attr_name])
            own.name = each.name
    return result


def _fill_graphs(
    attribute: "onnx.AttributeProto", given: "Mapping[str, onnx.AttributeProto]"
) -> None:
    for inner in [attribute.g, *attribute.graphs] if attribute.HasField("g") else attribute.graphs:
        nodes = [_with_attributes(each, given) for each in inner.node]
        del inner.node[:]
        inner.node.extend(nodes)


def _named(name: str) -> ir.DictAttr:
    return ir.DictAttr.get({"graph.name": ir.StringAttr.get(name)})


def _given(name: str, value: Any) -> tuple[np.ndarray, str]:
    """A value of an input, and the name of its element type; raises ModelError without one."""
    array = np.asarray(value)
    try:
        return array, name_of(array.dtype)
    except KeyError:
        raise ModelError(
            f"input '{name}' is given as {array.dtype}, which is not supported"
        ) from None


def import_model(
    model: "onnx.ModelProto",
    dims: Mapping[str, Any],
    facts: Sequence[str],
    values: Mapping[str, Any],
    wanted: Wanted,
    files: Files,
) -> Imported:
    """Imports a model that was checked; raises ModelError.

    `wanted` gets the inputs whose values would have to be known, or would give dims; `files` has
    the constants that are not in the message.
    """
    try:
        return Importer(model, dims, values, wanted, files).run(facts)
    except CompileError as error:
        raise ModelError(str(error)) from None
