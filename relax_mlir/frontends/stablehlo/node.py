"""An op of a module of StableHLO, as the functions that import operators see it."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import element_of
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import TensorType
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, const

from ..complex import Pair
from ..elements import mlir_element
from ..known import Known
from .registry import Value
from .types import Declared, declared

if TYPE_CHECKING:
    from .importer import Importer, Scope

_LIST = re.compile(r"(\w+) = \[([^\]]*)\]")
_INTEGER = re.compile(r"(\w+) = (-?\d+)")
_KEYWORD = re.compile(r"#(?:stablehlo|chlo)<\w+ (\w+)>")


class Node:
    """An op with its operands as values; methods raise ModelError for what they cannot be.

    `part` is 0 or 1 where the op is imported for the real or the imaginary parts of its operands.
    """

    def __init__(
        self,
        scope: "Scope",
        op: ir.Operation,
        operands: Sequence[Value],
        part: int | None = None,
        alias: str = "",
    ) -> None:
        self.scope = scope
        self.importer: Importer = scope.importer
        self.op = op
        self.operands = list(operands)
        self.part = part
        self.alias = alias
        self.attributes: ir.DictAttr | ir.OpAttributeMap = op.attributes
        if alias and "composite_attributes" in op.attributes:
            self.attributes = ir.DictAttr(op.attributes["composite_attributes"])

    def for_part(self, part: int) -> "Node":
        """The op on real or imaginary parts alone."""
        return Node(self.scope, self.op, self.operands, part, self.alias)

    def standing_for(self, name: str) -> "Node":
        """The op as one of another name, which a composite stands for."""
        return Node(self.scope, self.op, self.operands, self.part, name)

    def of_values(self, operands: Sequence[Value], elements: Sequence[str]) -> "Node":
        """The op on other values, with results of these elements."""
        node = Node(self.scope, self.op, operands, self.part, self.alias)
        pairs = zip(self.results, elements, strict=True)
        node.results = [Declared(kind.dims, element) for kind, element in pairs]
        return node

    @property
    def name(self) -> str:
        """The name without the dialect."""
        return (self.alias or self.op.name).partition(".")[2]

    # Operands.

    def value(self, index: int) -> Value:
        """An operand."""
        value = self.operands[index]
        return (
            value.parts[self.part] if isinstance(value, Pair) and self.part is not None else value
        )

    def tensor(self, index: int) -> ir.Value:
        """An operand as a tensor."""
        return self.importer.tensor(self.value(index))

    def tensors(self, start: int = 0, end: int | None = None) -> list[ir.Value]:
        """Operands as tensors."""
        return [self.tensor(i) for i in range(len(self.operands))[start:end]]

    def pair(self, index: int) -> Pair:
        """An operand as a complex tensor; what is real has imaginary parts of 0."""
        return self.importer.pair(self.value(index))

    def known(self, index: int) -> Known | None:
        """An operand that is known during import; None where it is computed."""
        value = self.value(index)
        return value if isinstance(value, Known) else None

    def exprs(self, index: int, what: str) -> list[Expr]:
        """An operand as expressions: known ones, or symbols of what run time computes."""
        value = self.value(index)
        if isinstance(value, Known):
            return value.exprs
        return self.importer.read_integers(self.tensor(index), what)

    def constants(self, index: int, what: str) -> list[int]:
        """An operand that has to be integers that are known."""
        value = self.value(index)
        if not isinstance(value, Known) or any(each.value is None for each in value.exprs):
            raise ModelError(f"has {what} that run time computes, which is not supported")
        return [each.value for each in value.exprs if each.value is not None]

    def rank(self, index: int = 0) -> int:
        """The rank of an operand."""
        value = self.value(index)
        if isinstance(value, Pair):
            value = value.real
        if isinstance(value, Known):
            return value.array.ndim
        return len(self.dims(index))

    def dims(self, index: int = 0) -> list[Expr]:
        """The dims of an operand."""
        value = self.value(index)
        if isinstance(value, Pair):
            value = value.real
        if isinstance(value, Known):
            return [const(extent) for extent in value.array.shape]
        dims = graph.known_dims(TensorType.of(self.importer.tensor(value)).dims)
        assert dims is not None, self.op.name  # the importer names all dims of results
        return list(dims)

    def element(self, index: int = 0) -> str:
        """The name of the element type of an operand."""
        value = self.value(index)
        if isinstance(value, Known):
            return value.element
        if isinstance(value, Pair):
            return f"complex<{element_of(value.real)}>"
        return str(element_of(self.tensor(index)))

    @property
    def operand_kinds(self) -> list[Declared]:
        """The types of the operands, as the source has them."""
        return [declared(operand.type) for operand in self.op.operands]

    # Results.

    @cached_property
    def results(self) -> list[Declared]:
        """The types of the results, as the source has them."""
        return [declared(result.type) for result in self.op.results]

    @property
    def result(self) -> Declared:
        """The type of the first result."""
        return self.results[0]

    @property
    def result_element(self) -> ir.Type:
        """The elements of the first result, of one part if they are complex."""
        return mlir_element(self.result.part)

    def static_dims(self) -> list[int]:
        """The dims of the first result, which have to be constants."""
        return self.result.shape

    # Attributes.

    def has(self, name: str) -> bool:
        """Whether an attribute is given."""
        return name in self.attributes

    def attribute(self, name: str) -> ir.Attribute:
        """An attribute that has to be there."""
        if name not in self.attributes:
            raise ModelError(f"has no attribute '{name}'")
        return self.attributes[name]

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """An attribute that is a list of integers."""
        if default is not None and not self.has(name):
            return list(default)
        attribute = self.attribute(name)
        return [int(each) for each in attribute]  # type: ignore[attr-defined]

    def flags(self, name: str, default: Sequence[bool]) -> list[bool]:
        """An attribute that is a list of truth values."""
        if not self.has(name):
            return list(default)
        return [bool(each) for each in self.attribute(name)]  # type: ignore[attr-defined]

    def pairs(self, name: str, count: int) -> list[tuple[int, int]]:
        """An attribute that is a matrix of two columns, as of padding; zeros without it."""
        if not self.has(name):
            return [(0, 0)] * count
        flat = [int(each) for each in self.attribute(name)]  # type: ignore[attr-defined]
        if len(flat) == 1:
            flat = flat * (2 * count)
        return list(zip(flat[::2], flat[1::2], strict=True))

    def integer(self, name: str, default: int | None = None) -> int:
        """An attribute that is an integer."""
        if default is not None and not self.has(name):
            return default
        return int(ir.IntegerAttr(self.attribute(name)).value)

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is a truth value."""
        return bool(ir.BoolAttr(self.attribute(name)).value) if self.has(name) else default

    def text(self, name: str, default: str = "") -> str:
        """An attribute that is a string."""
        return ir.StringAttr(self.attribute(name)).value if self.has(name) else default

    def keyword(self, name: str, default: str = "") -> str:
        """An attribute of a list of words that StableHLO has, such as a direction."""
        if not self.has(name):
            return default
        match = _KEYWORD.fullmatch(str(self.attribute(name)))
        return match[1] if match else str(self.attribute(name))

    def axes_of(self, kind: str) -> "Axes":
        """The attribute of an op that assigns roles to axes: dot, conv, gather or scatter."""
        for name in self.op.attributes:
            text = str(self.op.attributes[name])
            if text.startswith(f"#stablehlo.{kind}<"):
                return Axes(text)
        raise ModelError(f"has no attribute of kind '{kind}'")

    @property
    def regions(self) -> list[ir.Block]:
        """The one block of each region."""
        return [region.blocks[0] for region in self.op.regions]


class Axes:
    """An attribute that assigns roles to axes, by the text in which StableHLO writes it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lists = {name: _integers(values) for name, values in _LIST.findall(text)}
        self._integers = {name: int(value) for name, value in _INTEGER.findall(text)}

    def list(self, name: str) -> list[int]:
        """Axes of a role; none if it is not written."""
        return self._lists.get(name, [])

    def integer(self, name: str) -> int:
        """An axis of a role; 0 if it is not written."""
        return self._integers.get(name, 0)


def _integers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")] if text.strip() else []
