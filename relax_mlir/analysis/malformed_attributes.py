"""Finds attributes of a kind that their readers do not expect.

An op declares a class for each attribute, and IRDL checks less than that: an array of any
integers, a reference with any path. MLIR checks nothing of discardable attributes. Names may be
bytes that are not UTF-8.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from relax_mlir.analysis.functions import (
    CAPTURED,
    CODEGEN,
    COMPOSITE,
    FACTS,
    HOST_OBJECT_RESULTS,
    INOUT,
    MADE_BY,
    MADE_FROM,
    NAME,
    NUM_INPUTS,
)
from relax_mlir.analysis.trees import ARGUMENT_TREE, RESULT_TREE, leaves_of, read_trees
from relax_mlir.bindings import arities, ext, func, ir
from relax_mlir.dialects.graph import GraphOp, RequireOp, ShapeAttr, ShapeError
from relax_mlir.dialects.graph.op import FlagAttr, IntsAttr
from relax_mlir.dialects.lib import HOST_OPERANDS, HOST_RESULTS, FunctionOp, check_declaration
from relax_mlir.dialects.tir import FUNCTION, NUM_OUTS, PATTERNS, SORT
from relax_mlir.dialects.tir.prim_func import PATTERN, SCHEDULE_HINT, SYMBOL
from relax_mlir.symbolic import Facts, SymbolicError, parse

Kind = tuple[type[Any], str]
STRING, INTEGER = (ir.StringAttr, "a string"), (ir.IntegerAttr, "an integer")
ARGUMENT_ATTRIBUTES: dict[str, Kind] = {
    NAME: STRING,
    INOUT: INTEGER,
    MADE_BY: STRING,
    MADE_FROM: (ir.DenseI64ArrayAttr, "an array of integers"),
    SYMBOL: STRING,
}
OP_ATTRIBUTES: dict[str, Kind] = {
    CAPTURED: (ir.ArrayAttr, "an array"),
    CODEGEN: STRING,
    COMPOSITE: STRING,
    HOST_OBJECT_RESULTS: (ir.DenseI64ArrayAttr, "an array of integers"),
    HOST_OPERANDS: (ir.DenseI64ArrayAttr, "an array of integers"),
    HOST_RESULTS: (ir.DenseI64ArrayAttr, "an array of integers"),
    NUM_INPUTS: INTEGER,
    NUM_OUTS: INTEGER,
    SCHEDULE_HINT: STRING,
    FUNCTION: STRING,
    "tir.grain": INTEGER,
    "tir.unit": STRING,
    "tir.schedule": STRING,
    "tir.tiles": (ir.DenseI64ArrayAttr, "an array of integers"),
}
"""The kinds of discardable attributes on ops."""
_FLOAT: Kind = (ir.FloatAttr, "a float")
_FLAG: Kind = (ir.BoolAttr, "true or false")
_SETTINGS: dict[str, dict[str, Kind]] = {
    "tir.attention": {"causal": _FLAG, "scale": _FLOAT},
    "tir.paged_attention": {"scale": _FLOAT, "window": INTEGER, "cap": _FLOAT},
    SORT: {"axis": INTEGER, "descending": _FLAG, "unsigned": _FLAG},
}
"""The entries of dictionaries that schedules read."""
_KINDS: dict[type[Any], Kind] = {
    IntsAttr: (ir.DenseI64ArrayAttr, "an array of i64"),
    FlagAttr: _FLAG,
    ShapeAttr: (ShapeAttr, "dims"),
    ir.ArrayAttr: (ir.ArrayAttr, "an array"),
    ir.FlatSymbolRefAttr: (ir.FlatSymbolRefAttr, "the name of a symbol"),
    ir.FloatAttr: _FLOAT,
    ir.IntegerAttr: INTEGER,
    ir.StringAttr: STRING,
    ir.TypeAttr: (ir.TypeAttr, "a type"),
}
"""The kinds that the attribute classes of op declarations stand for."""
_BYTES = ("llvm.mlir.global", "llvm.func")
"""Ops whose strings may be arbitrary bytes: constants, and options for LLVM."""


class Malformed(Exception):
    """What is wrong with a part of an op; the message continues "has "."""


def check_attributes(op: ir.Operation) -> None:
    """Raises Malformed if an attribute of the op is not of the expected kind.

    Raises ShapeError if the op declares the attribute.
    """
    attributes = _entries(op.attributes)
    for name, attribute in attributes.items():
        if name != "value" or op.name not in _BYTES:
            _check_text(attribute, f"'{name}'")
        if name in OP_ATTRIBUTES:
            _check_kind(f"'{name}'", attribute, OP_ATTRIBUTES[name])
    view = op.opview
    if isinstance(view, GraphOp | FunctionOp):
        _check_declared(view, attributes)
    if isinstance(view, FunctionOp):
        check_declaration(view)
    if isinstance(view, func.FuncOp):
        _check_function(attributes)
    if isinstance(view, RequireOp):
        _check_facts("any_of", attributes["any_of"])


def _check_kind(name: str, attribute: ir.Attribute, kind: Kind) -> None:
    if not isinstance(attribute, kind[0]):
        raise Malformed(f"{name} that is {attribute}; expects {kind[1]}")


def text_of(string: ir.StringAttr, owner: str) -> str:
    """The text of a string; raises Malformed if it is not UTF-8."""
    try:
        return string.value_bytes.decode()
    except UnicodeDecodeError:
        raise Malformed(f"{owner} with {string}, which is not UTF-8 text") from None


def _check_text(attribute: ir.Attribute, owner: str) -> None:
    """Checks all strings in an attribute."""
    if isinstance(attribute, ir.StringAttr):
        text_of(attribute, owner)
    elif isinstance(attribute, ir.ArrayAttr):
        for item in _items(attribute, owner):
            _check_text(item, owner)
    elif isinstance(attribute, ir.DictAttr | ir.SymbolRefAttr) and "\\" in (text := str(attribute)):
        # The bindings abort the process when they read the parts of such an attribute.
        bare = text.replace('"', "")
        text_of(ir.StringAttr(ir.Attribute.parse(f'"{bare}"')), owner)


def _items(array: ir.ArrayAttr, owner: str) -> list[ir.Attribute]:
    try:
        return list(array)
    except TypeError as error:
        raise Malformed(f"{owner} with an element that cannot be read: {error}") from None


def _entries(attributes: ir.OpAttributeMap) -> dict[str, ir.Attribute]:
    try:
        return dict(attributes.items())
    except RuntimeError:
        raise Malformed("an attribute whose name is not UTF-8 text") from None
    except TypeError as error:  # of a kind that the bindings have no class for
        raise Malformed(f"an attribute that cannot be read: {error}") from None


def _check_declared(op: ir.OpView, attributes: dict[str, ir.Attribute]) -> None:
    fields = (field for field in op._fields if isinstance(field, ext.AttributeDef))
    for field in fields:
        attribute, kind = attributes[field.name], field.constraint
        actual, expected = _KINDS.get(kind, (kind, f"{kind.__name__}"))
        if not isinstance(attribute, actual):
            raise ShapeError(f"expects '{field.name}' to be {expected}, but got {attribute}")
    if arities.has_own_arity(op.operation):
        return
    operands = [field for field in op._fields if isinstance(field, ext.OperandDef)]
    results = [field for field in op._fields if isinstance(field, ext.ResultDef)]
    if len(operands) > 1 and op._ODS_OPERAND_SEGMENTS:
        if "operandSegmentSizes" not in attributes:  # optional to MLIR, but accessors need it
            raise Malformed("no 'operandSegmentSizes', but optional operands")
    if op._ODS_OPERAND_SEGMENTS:
        _check_segments("operandSegmentSizes", attributes, operands, len(op.operands))
    if op._ODS_RESULT_SEGMENTS:
        _check_segments("resultSegmentSizes", attributes, results, len(op.results))


def _check_segments(
    name: str, attributes: dict[str, ir.Attribute], fields: list[Any], count: int
) -> None:
    """MLIR checks the sizes only where the operand count leaves a choice."""
    if name not in attributes:
        return
    attribute = attributes[name]
    sizes = list(attribute) if isinstance(attribute, ir.DenseI32ArrayAttr) else []
    kinds = [field.variadicity for field in fields]
    least = [int(kind == ext.Variadicity.single) for kind in kinds]
    most = [count if kind == ext.Variadicity.variadic else 1 for kind in kinds]
    fits = len(sizes) == len(fields) and all(a <= b <= c for a, b, c in zip(least, sizes, most))
    if not fits or sum(sizes) != count:
        raise Malformed(f"'{name}' that is {attribute}, for {count} of {len(fields)}")


def _check_settings(name: str, attribute: ir.Attribute, kinds: Mapping[str, Kind]) -> None:
    _check_kind(f"'{name}'", attribute, (ir.DictAttr, "a dictionary"))
    settings = ir.DictAttr(attribute)
    for key, kind in kinds.items():
        value = settings[key] if key in settings else ir.UnitAttr.get()
        _check_kind(f"'{name}' with '{key}'", value, kind)


def _check_function(attributes: dict[str, ir.Attribute]) -> None:
    if FACTS in attributes:
        _check_facts(FACTS, attributes[FACTS])
    if PATTERN in attributes:
        _check_pattern(attributes[PATTERN])
    _check_trees(attributes)
    for name in ("tir.flops", "tir.bytes"):
        if name in attributes:
            _check_kind(f"'{name}'", attributes[name], STRING)
            _check_expression(ir.StringAttr(attributes[name]).value, f"'{name}'")
    for name, kinds in _SETTINGS.items():
        if name in attributes:
            _check_settings(name, attributes[name], kinds)
    entries: Iterable[Any] = (
        ir.ArrayAttr(attributes["arg_attrs"]) if "arg_attrs" in attributes else ()
    )
    for index, entry in enumerate(entries):
        for name, kind in ARGUMENT_ATTRIBUTES.items():
            if name in entry:
                _check_kind(f"argument {index} with '{name}'", entry[name], kind)


def _check_trees(attributes: dict[str, ir.Attribute]) -> None:
    """Each tree has one leaf for each argument or result."""
    type_ = ir.FunctionType(ir.TypeAttr(attributes["function_type"]).value)
    for name, values in ((ARGUMENT_TREE, type_.inputs), (RESULT_TREE, type_.results)):
        if name not in attributes:
            continue
        try:
            leaves = list(leaves_of(read_trees(attributes[name])))
        except ValueError:
            leaves = []
        if leaves != list(range(len(values))):
            text = f"'{name}' that is {attributes[name]}"
            raise Malformed(f"{text}; expects nested arrays of 0 to {len(values) - 1} in order")


def _check_pattern(attribute: ir.Attribute) -> None:
    if str(attribute) not in {f'#tir.pattern<"{kind}">' for kind in PATTERNS}:
        known = ", ".join(PATTERNS)
        raise Malformed(f"'{PATTERN}' that is {attribute}; expects #tir.pattern<...> of {known}")


def _check_expression(text: str, owner: str) -> None:
    _checked(lambda: parse(text), owner)


def _check_facts(name: str, attribute: ir.Attribute) -> None:
    texts: list[Any] = list(attribute) if isinstance(attribute, ir.ArrayAttr) else [None]
    if not all(isinstance(text, ir.StringAttr) for text in texts):
        raise Malformed(f"'{name}' that is {attribute}; expects an array of strings")
    _checked(lambda: Facts.parse([text.value for text in texts]), f"a malformed '{name}'")


def _checked(read: Callable[[], object], owner: str) -> None:
    try:
        read()
    except SymbolicError as error:
        raise Malformed(f"{owner}: {error}") from None
