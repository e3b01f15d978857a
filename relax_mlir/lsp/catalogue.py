"""What there is to write: operators and passes, with their documentation as Markdown."""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from relax_mlir import dialects
from relax_mlir.bindings import ext
from relax_mlir.passes import Pass, describe, loaded_passes, own_passes
from relax_mlir.passes.upstream import UPSTREAM_PASSES

_LABEL = re.compile(r"^C(\d+)\s+", re.MULTILINE)
_KINDS = {
    "ArrayAttr": ("an array", "[$]"),
    "FlagAttr": ("true or false", "${false}"),
    "FlatSymbolRefAttr": ("a function", "@$"),
    "FloatAttr": ("an f64", "${0.0} : f64"),
    "IntegerAttr": ("an i64", "${0} : i64"),
    "IntsAttr": ("an array of i64", "array<i64: ${0}>"),
    "ShapeAttr": ("dims", "#graph.shape<[$]>"),
    "StringAttr": ("a text", '"$"'),
    "TypeAttr": ("a type", "${f32}"),
}
"""What each class of attributes holds, and a text of it; `$` and `${...}` are to be filled in."""


@dataclass(frozen=True)
class Operator:
    """An operator: the names of operands and results, and the attributes with their kinds.

    `optional` has how many operands and results may be absent; then two attributes say which are
    there.
    """

    name: str
    documentation: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: dict[str, str]
    optional: tuple[int, int]

    @property
    def segments(self) -> dict[str, str]:
        """The attributes that say which operands and results are there: only the first optional."""
        sizes = {}
        names = ("operandSegmentSizes", self.operands), ("resultSegmentSizes", self.results)
        for (name, declared), optional in zip(names, self.optional):
            if optional:
                needed = len(declared) - optional
                there = max(needed, 1)
                bits = [1] * there + [0] * (len(declared) - there)
                sizes[name] = f"array<i32: {', '.join(map(str, bits))}>"
        return sizes

    def needed(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The operands and results that are there according to `segments`."""
        operands, results = self.optional
        return (
            self.operands[: max(len(self.operands) - operands, 1)] if operands else self.operands,
            self.results[: max(len(self.results) - results, 1)] if results else self.results,
        )

    @property
    def signature(self) -> str:
        """The op with the names of its operands, attributes and results."""
        attributes = ", ".join(f"{name} = {kind_text(c)}" for name, c in self.attributes.items())
        results = shown(self.results)
        return (
            f'"{self.name}"({shown(self.operands)})'
            + (f" {{{attributes}}}" if attributes else "")
            + (f" -> {results}" if results else "")
        )


def shown(names: tuple[str, ...]) -> str:
    """The names of operands; of many, which are numbered, the first and the last."""
    return ", ".join(names) if len(names) <= 8 else f"{names[0]}, ..., {names[-1]}"


def kind_text(kind: str) -> str:
    """What an attribute of a class holds, in words."""
    return _KINDS.get(kind, ("an attribute", ""))[0]


def sample(kind: str) -> str:
    """A text of an attribute, with `$` and `${...}` to be filled in."""
    return _KINDS.get(kind, ("", "$"))[1]


@cache
def namespaces() -> frozenset[str]:
    """The names of our dialects."""
    return frozenset(dialect.DIALECT_NAMESPACE for dialect in dialects.ALL)


@cache
def operators() -> dict[str, Operator]:
    """The operators of the dialects, by name."""
    ops = (op for dialect in dialects.ALL for op in dialect.operations)
    return {op.OPERATION_NAME: _operator(op) for op in ops}


def _operator(op: type[ext.Operation]) -> Operator:
    operands = [field for field in op._fields if isinstance(field, ext.OperandDef)]
    results = [field for field in op._fields if isinstance(field, ext.ResultDef)]
    attributes = [field for field in op._fields if isinstance(field, ext.AttributeDef)]
    single = ext.Variadicity.single
    return Operator(
        op.OPERATION_NAME,
        markdown(inspect.getdoc(op) or ""),
        tuple(field.name for field in operands),
        tuple(field.name for field in results),
        {field.name: field.constraint.__name__ for field in attributes},
        (
            sum(field.variadicity != single for field in operands),
            sum(field.variadicity != single for field in results),
        ),
    )


def markdown(documentation: str) -> str:
    """A docstring as Markdown: its constraints become a list."""
    return _LABEL.sub(r"- **C\1** ", documentation)


@dataclass(frozen=True)
class PassEntry:
    """A pass: its documentation, and each option with its type and default."""

    name: str
    documentation: str
    options: tuple[str, ...]

    def option_names(self) -> Iterator[tuple[str, str]]:
        """The options: name, and type with default."""
        for option in self.options:
            name, _, kind = option.partition(": ")
            yield name, kind


@cache
def passes() -> dict[str, PassEntry]:
    """All passes that a pipeline may have, by name; those that are loaded and our own first."""
    own = {name: _loaded(name, cls) for name, cls in loaded_passes().items()}
    own |= {name: _pass(name, file) for name, file in own_passes().items()}
    return own | {name: PassEntry(name, "A pass of MLIR.", ()) for name in UPSTREAM_PASSES}


def _loaded(name: str, cls: type[Pass]) -> PassEntry:
    options = [
        f"{each.name.replace('_', '-')}: {inspect.formatannotation(each.type)}"
        for each in fields(cls)
    ]
    return PassEntry(name, inspect.getdoc(cls) or "", tuple(options))


def _pass(name: str, file: Path) -> PassEntry:
    _, options = describe(file)
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return PassEntry(name, text, tuple(options))
