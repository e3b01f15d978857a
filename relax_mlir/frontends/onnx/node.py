"""A node of a model, as the functions that import operators see it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import TensorType
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, const

from ..known import Known
from .registry import Value

if TYPE_CHECKING:
    from .importer import Importer, Scope


class Node:
    """A node with its inputs as values; methods raise ModelError for what they cannot be."""

    def __init__(self, scope: "Scope", proto: "onnx.NodeProto", inputs: Sequence[Value]) -> None:
        self.scope = scope
        self.importer: Importer = scope.importer
        self.proto = proto
        self.inputs = list(inputs)
        self.version = scope.version(proto.domain)
        self._attributes = {each.name: each for each in proto.attribute}

    @property
    def op(self) -> str:
        """The name of the operator."""
        return self.proto.op_type

    @property
    def num_outputs(self) -> int:
        """How many outputs there are, up to the last that has a name."""
        return max((i + 1 for i, name in enumerate(self.proto.output) if name), default=0)

    def wants(self, index: int) -> bool:
        """Whether an output has a name."""
        return index < len(self.proto.output) and bool(self.proto.output[index])

    # Attributes.

    def has(self, name: str) -> bool:
        """Whether an attribute is given."""
        return name in self._attributes

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute as a Python value: values, text, lists of them, `GraphProto`, arrays."""
        if name not in self._attributes:
            return default
        value = onnx.helper.get_attribute_value(self._attributes[name])
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, onnx.TensorProto):
            return self.importer.array(value)
        return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is 0 or 1: of any other, runtimes make what they like."""
        value = self.attribute(name, int(default))
        if value not in (0, 1):
            raise ModelError(f"has {name} {value}, where 0 or 1 is expected")
        return bool(value)

    def required(self, name: str) -> Any:
        """An attribute that has to be there."""
        if name not in self._attributes:
            raise ModelError(f"has no attribute '{name}'")
        return self.attribute(name)

    # Inputs.

    def value(self, index: int) -> Value:
        """An input; None where it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def tensor(self, index: int) -> ir.Value:
        """An input as a tensor."""
        value = self.value(index)
        if value is None:
            raise ModelError(f"has no input {index}")
        return self.importer.tensor(value)

    def optional(self, index: int) -> ir.Value | None:
        """An input as a tensor; None where it is absent."""
        return None if self.value(index) is None else self.tensor(index)

    def tensors(self, start: int = 0) -> list[ir.Value]:
        """All inputs from one on as tensors."""
        return [self.tensor(i) for i in range(start, len(self.inputs))]

    def known(self, index: int) -> Known | None:
        """An input that is known during import; None where it is absent or computed."""
        value = self.value(index)
        return value if isinstance(value, Known) else None

    def array(self, index: int, what: str) -> np.ndarray:
        """An input that has to be known values."""
        value = self.known(index)
        if value is None and isinstance(self.value(index), ir.Value):
            self.importer.want(self.tensor(index))
        if value is None or value.is_symbolic:
            raise ModelError(f"has {what} that are computed at run time, which is not supported")
        return value.array

    def integers(self, index: int, what: str) -> list[int]:
        """An input that has to be known integers, in order."""
        return [int(each) for each in self.array(index, what).reshape(-1).tolist()]

    def constant(self, index: int, what: str, default: float = 0) -> float:
        """An input that has to be one known value; `default` where it is absent."""
        if self.value(index) is None:
            return default
        array = self.array(index, what)
        if array.size != 1:
            raise ModelError(f"has {what} of {array.size} elements, where one is expected")
        return array.reshape(-1)[0].item()

    def exprs(self, index: int, what: str = "dims") -> list[Expr]:
        """An input as expressions: known ones, or symbols of what a tensor holds at run time."""
        value = self.value(index)
        if isinstance(value, Known):
            return value.exprs
        return self.importer.read_integers(self.tensor(index), what)

    # Types.

    def type(self, index: int) -> TensorType:
        """The annotation of an input."""
        return TensorType.of(self.tensor(index))

    def rank(self, index: int = 0) -> int:
        """The rank of an input."""
        value = self.value(index)
        if isinstance(value, Known):
            return value.array.ndim
        dims = self.type(index).dims
        if dims is None:
            raise ModelError(f"has input {index} of unknown rank, which is not supported")
        return len(dims)

    def declared_rank(self) -> int | None:
        """The rank that the model states for the first output; None if it does not."""
        graph_ = self.importer.model.graph
        for each in (*graph_.value_info, *graph_.output):
            if each.name == self.proto.output[0] and each.type.tensor_type.HasField("shape"):
                return len(each.type.tensor_type.shape.dim)
        return None

    def dims(self, index: int = 0) -> list[Expr]:
        """The dims of an input, with symbols for those that are unknown."""
        value = self.value(index)
        if isinstance(value, Known):
            return [const(extent) for extent in value.array.shape]
        tensor = self.importer.with_known_dims(self.tensor(index))
        self.inputs[index] = tensor
        dims = graph.known_dims(TensorType.of(tensor).dims)
        assert dims is not None
        return list(dims)

    def element(self, index: int = 0) -> str:
        """The name of the element type of an input."""
        value = self.value(index)
        if isinstance(value, Known):
            return value.element
        return str(self.type(index).element)

    @property
    def elements(self) -> list[str | None]:
        """The names of the element types of inputs that are tensors."""
        return [
            self.element(i) if isinstance(value, ir.Value | Known) else None
            for i, value in enumerate(self.inputs)
        ]

    def axis(self, default: int | None = None, name: str = "axis", rank: int | None = None) -> int:
        """An attribute that is an axis of the first input, from the front."""
        axis = self.attribute(name, default)
        if axis is None:
            raise ModelError(f"has no attribute '{name}'")
        return normalized(axis, self.rank() if rank is None else rank)


def normalized(axis: int, rank: int) -> int:
    """An axis from the front; raises ModelError if there is none."""
    if not -rank <= axis < rank:
        raise ModelError(f"has axis {axis} for a tensor of rank {rank}")
    return axis % rank


def label_of(proto: "onnx.NodeProto", index: int) -> str:
    """How messages name a node."""
    name = f"'{proto.name}'" if proto.name else f"{index}"
    return f"node {name} ({proto.op_type})"


def nodes_of(nodes: "Iterable[onnx.NodeProto]") -> "Iterator[tuple[int, onnx.NodeProto]]":
    """Nodes and their positions, also of the graphs of nodes."""
    for index, node in enumerate(nodes):
        yield index, node
        for attribute in node.attribute:
            graphs = list(attribute.graphs)
            if attribute.HasField("g"):
                graphs.append(attribute.g)
            for inner in graphs:
                yield from nodes_of(inner.node)
