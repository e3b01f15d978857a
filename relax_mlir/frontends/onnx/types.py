"""Types of ONNX, and dims as expressions."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import onnx

from relax_mlir.dialects.graph import TensorType
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, SymbolicError, const, parse, sym

from ..elements import mlir_element

if TYPE_CHECKING:
    from .importer import Importer

ELEMENTS = {
    1: "f32",
    2: "ui8",
    3: "i8",
    4: "ui16",
    5: "i16",
    6: "i32",
    7: "i64",
    9: "i1",
    10: "f16",
    11: "f64",
    12: "ui32",
    13: "ui64",
    16: "bf16",
    17: "f8E4M3FN",
    18: "f8E4M3FNUZ",
    19: "f8E5M2",
    20: "f8E5M2FNUZ",
}
"""Names of MLIR's types by the values of ONNX's."""

_WORD = re.compile(r"[A-Za-z_]\w*")


def element_name(value: int) -> str:
    """MLIR's name of an element type; raises ModelError for one that has none."""
    if value not in ELEMENTS:
        known = onnx.TensorProto.DataType.keys()[value] if 0 <= value <= 26 else value
        raise ModelError(f"elements of {str(known).lower()} are not supported")
    return ELEMENTS[value]


def element_code(name: str) -> int:
    """ONNX's value of an element type."""
    return next(value for value, own in ELEMENTS.items() if own == name)


class Dims:
    """Dims of inputs as expressions: names of the model are symbols, of which `chosen` are others.

    A name that is no word is made one; a dim without a name is a symbol of its own. `positions`
    are the input and axis of symbols. Raises ModelError for a value below 0, SymbolicError for text
    that is no expression.
    """

    def __init__(self, chosen: Mapping[str, int | str]) -> None:
        self.chosen = {name: parse(str(value)) for name, value in chosen.items()}
        for name, expr in self.chosen.items():
            if expr.value is not None and expr.value < 0:
                raise ModelError(f"dim '{name}' is to be {expr}, but no dim is below 0")
        self.names: dict[str, str] = {}
        self.used: set[str] = {s for expr in self.chosen.values() for s in expr.symbols}
        self.unused = set(self.chosen)
        self.positions: dict[str, tuple[str, int]] = {}

    def of(self, dim: "onnx.TensorShapeProto.Dimension", name: str, axis: int) -> Expr:
        """The expression of a dim of an input; a symbol like its name if it has none."""
        expr = self._of(dim, f"{name}_{axis}")
        if expr.value is None and len(expr.symbols) == 1:
            self.positions.setdefault(next(iter(expr.symbols)), (name, axis))
        return expr

    def _of(self, dim: "onnx.TensorShapeProto.Dimension", wanted: str) -> Expr:
        if dim.HasField("dim_value"):
            if dim.dim_value < 0:
                return sym(self.fresh(wanted))
            return const(dim.dim_value)
        has_name = _WORD.search(dim.dim_param) is not None
        return self.named(dim.dim_param) if has_name else sym(self.fresh(wanted))

    def named(self, text: str) -> Expr:
        """The expression of a name, which may be arithmetic of names."""
        if text in self.chosen:
            self.unused.discard(text)
            return self.chosen[text]
        try:
            expr = parse(text)
        except (SymbolicError, ValueError):
            return sym(self._word(text))
        return expr.substitute({symbol: self._symbol(symbol) for symbol in expr.symbols})

    def _symbol(self, name: str) -> Expr:
        if name in self.chosen:
            self.unused.discard(name)
            return self.chosen[name]
        return sym(self._word(name))

    def _word(self, text: str) -> str:
        if text not in self.names:
            word = text if _WORD.fullmatch(text) else "_".join(_WORD.findall(text)) or "d"
            self.names[text] = self.fresh(word)
        return self.names[text]

    def fresh(self, wanted: str) -> str:
        """A symbol that is not used yet, as `wanted` if that is free."""
        name = next(each for each in _candidates(wanted) if each not in self.used)
        self.used.add(name)
        return name


def _candidates(wanted: str) -> Iterator[str]:
    word = wanted if _WORD.fullmatch(wanted) else "d"
    yield word
    index = 1
    while True:
        yield f"{word}_{index}"
        index += 1


def tensor_type(importer: "Importer", name: str, proto: "onnx.TypeProto") -> TensorType:
    """The type of an input; raises ModelError for what is no tensor."""
    if proto.WhichOneof("value") == "optional_type":
        proto = proto.optional_type.elem_type
    kind = proto.WhichOneof("value")
    if kind != "tensor_type":
        what = (kind or "unknown").removesuffix("_type").replace("_", " ")
        raise ModelError(f"input '{name}' is a value of type {what}, which is not supported")
    tensor = proto.tensor_type
    element = mlir_element(element_name(tensor.elem_type))
    if not tensor.HasField("shape"):
        return TensorType(None, element)
    dims = [importer.dims.of(dim, name, i) for i, dim in enumerate(tensor.shape.dim)]
    return TensorType.make(dims, element)
