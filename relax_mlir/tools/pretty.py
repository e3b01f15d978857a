"""Prints a short form of modules, for people; it cannot be parsed.

    func @main(%x: tensor<n x 4 x f32>) -> tensor<n x 2 x f32>  facts n <= 2048 {
      %0 = constant dense<1.0> : tensor<4 x 2 x f32>
      %1 = graph.matmul(%x, %0) : tensor<n x 2 x f32>
      return %1
    }

Symbolic dims are inline in types; constants and long attributes are truncated.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from relax_mlir.analysis.malformed import malformed
from relax_mlir.bindings import arities, ir
from relax_mlir.diagnostics import compile_error
from relax_mlir.dialects.graph import (
    ShapeAttr,
    ShapeError,
    ShapeValueType,
    TensorType,
    dims_of_attr,
    shape_value_dims,
)
from relax_mlir.symbolic import SymbolicError

HIDDEN = {"operandSegmentSizes", "resultSegmentSizes", "sym_name", "function_type"}
MAX_ATTRIBUTE = 60


def pretty(root: ir.Operation) -> str:
    """The short form of an op, usually a module.

    Raises CompileError at malformed attributes; malformed types are printed unchanged.
    """
    if diagnostics := malformed(root, types=False):
        raise compile_error(diagnostics)
    return "\n".join(_Printer().op(root)) + "\n"


@dataclass
class _Printer:
    """Prints ops as lines; values are numbered from 0 in each function."""

    names: dict[ir.Value, str] = field(default_factory=dict)
    numbered: int = 0

    def op(self, op: ir.Operation) -> Iterator[str]:
        if op.name == "builtin.module":
            yield from self._module(op)
        elif op.name == "func.func":
            yield from _Printer()._function(op)
        else:
            yield from self._plain(op)

    def _module(self, op: ir.Operation) -> Iterator[str]:
        attributes = self._attributes(op, HIDDEN)
        if attributes or "sym_name" in op.attributes:
            yield "module" + self._symbol(op) + attributes
        for child in op.regions[0].blocks[0].operations:
            yield from self.op(child.operation)
            yield ""

    def _function(self, op: ir.Operation) -> Iterator[str]:
        type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        results = ", ".join(map(show_type, type_.results))
        hidden = HIDDEN | {"arg_attrs", "res_attrs", "sym_visibility", "graph.facts"}
        facts = ""
        if "graph.facts" in op.attributes:
            values = ir.ArrayAttr(op.attributes["graph.facts"])
            facts = "  facts " + ", ".join(ir.StringAttr(fact).value for fact in values)
        private = "private " if "sym_visibility" in op.attributes else ""
        arguments: Iterable[str] = map(show_type, type_.inputs)
        blocks = list(op.regions[0].blocks)
        if blocks:
            arguments = (
                f"{self._name(argument, f'%arg{index}')}: {show_type(argument.type)}"
                for index, argument in enumerate(blocks[0].arguments)
            )
        head = f"func {private}{self._symbol(op).strip()}({', '.join(arguments)})"
        head += (f" -> {results}" if results else "") + self._attributes(op, hidden) + facts
        if not blocks:
            yield head
            return
        yield head + " {"
        yield from self._blocks(blocks, labelled=len(blocks) > 1)
        yield "}"

    def _blocks(self, blocks: Sequence[ir.Block], labelled: bool) -> Iterator[str]:
        for index, block in enumerate(blocks):
            shown = [
                f"{self._name(argument)}: {show_type(argument.type)}"
                for argument in block.arguments
                if argument not in self.names
            ]
            if shown or labelled:
                yield f"^{index}({', '.join(shown)}):"
            for child in block.operations:
                yield from ("  " + line for line in self.op(child.operation))

    def _plain(self, op: ir.Operation) -> Iterator[str]:
        operands = ", ".join(self._name(operand) for operand in op.operands)
        names = ", ".join(self._name(result) for result in op.results)
        types = ", ".join(show_type(result.type) for result in op.results)
        symbol = self._symbol(op)
        attributes = self._attributes(op, _hidden(op))
        if op.name == "arith.constant":
            body = f"constant {_short(op.attributes['value'])}{attributes}"
        elif op.name == "func.return":
            body = f"return {operands}".rstrip()
        elif op.name == "graph.require":
            body = _requirement(op)
        else:
            body = f"{arities.plain_name(op)}{symbol}({operands}{_shape_arguments(op)}){attributes}"
        line = (f"{names} = " if names else "") + body + (f" : {types}" if types else "")
        regions = [region for region in op.regions if len(region.blocks)]
        if not regions:
            yield line
            return
        yield line + " {"
        for index, region in enumerate(regions):
            if index:
                yield "} {"
            blocks = list(region.blocks)
            yield from self._blocks(blocks, labelled=len(blocks) > 1)
        yield "}"

    def _name(self, value: ir.Value, name: str = "") -> str:
        if value not in self.names:
            self.names[value] = name or f"%{self.numbered}"
            self.numbered += not name
        return self.names[value]

    def _symbol(self, op: ir.Operation) -> str:
        for key in ("sym_name", "callee"):
            if key in op.attributes:
                attribute = op.attributes[key]
                text = attribute.value if hasattr(attribute, "value") else str(attribute)
                return " @" + str(text).removeprefix("@")
        return ""

    def _attributes(self, op: ir.Operation, hidden: set[str]) -> str:
        shown = [
            key if isinstance(value, ir.UnitAttr) else f"{key}={_short(value)}"
            for key, value in op.attributes.items()
            if key not in hidden
        ]
        return " {" + ", ".join(shown) + "}" if shown else ""


def _hidden(op: ir.Operation) -> set[str]:
    """The attributes that are printed elsewhere, or are redundant."""
    hidden = HIDDEN | {"callee", "sym_args"}
    if op.name == "arith.constant":
        hidden.add("value")
    if "updates" in op.attributes and not len(ir.DenseI64ArrayAttr(op.attributes["updates"])):
        hidden.add("updates")
    return hidden


def _requirement(op: ir.Operation) -> str:
    facts = " or ".join(fact.value for fact in ir.ArrayAttr(op.attributes["any_of"]))
    return f"graph.require {facts}  by {op.attributes['by'].value}"


def show_type(type_: ir.Type) -> str:
    """A type with its symbolic dims inline: `tensor<n x 4 x f32>`, `shape<n, 4>`.

    A shape with too many dims, or one that cannot be parsed, is printed unchanged.
    """
    try:
        if isinstance(type_, ir.RankedTensorType | ir.UnrankedTensorType):
            return str(TensorType.of(type_))
        if isinstance(type_, ShapeValueType):
            dims = ("?" if dim is None else str(dim) for dim in shape_value_dims(type_))
            return f"shape<{', '.join(dims)}>"
        return str(type_)
    except (ShapeError, SymbolicError, RuntimeError):  # the latter if it is not UTF-8 text
        return str(type_)


def _shape_arguments(op: ir.Operation) -> str:
    """The integers that a call passes after its tensors, as `; n, 2*m`."""
    if "sym_args" not in op.attributes:
        return ""
    dims = dims_of_attr(ShapeAttr(op.attributes["sym_args"]).dims)
    return "; " + ", ".join(map(str, dims)) if dims else ""


def _short(attribute: ir.Attribute) -> str:
    text = str(attribute).partition(" : tensor<")[0]
    return text if len(text) <= MAX_ATTRIBUTE else text[:MAX_ATTRIBUTE] + "..."
