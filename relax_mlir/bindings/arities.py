"""Ops with more operands or results than their declaration has: each arity is an op of its own.

Ops that take values of different types are declared with a number of optional ones. Where an op
has more, it is `graph.concat_100to1`: of the class of `graph.concat`, with 100 operands and one
result, and no segment sizes. Such ops are declared to a context as soon as one is made, or before
text with one is parsed. Which ops there are is a registry that their base class fills.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import ext, irdl

LIMIT = 1 << 16
"""Operands or results of an op; a bound on what text can ask for."""
_NAME = r"([a-z][a-z0-9_]*)_([0-9]{1,6})to([0-9]{1,6})"
_IN_TEXT = re.compile(rf'"([a-z]+)\.{_NAME}"')
_IN_BYTECODE = re.compile(rf"()\b{_NAME}\b".encode())
_WHOLE = re.compile(rf"([a-z]+)\.{_NAME}")
_OPEN: dict[str, tuple[type[Any], tuple[int, int]]] = {}


def register(op: type[Any], slots: tuple[int, int]) -> None:
    """Lets ops of a class have more operands and results than it declares, which are `slots`."""
    _OPEN[op.OPERATION_NAME] = (op, slots)


def plain_name(op: ir.Operation) -> str:
    """The name of an op as its class declares it, whatever its arity."""
    name = op.name
    match = _WHOLE.fullmatch(name)
    plain = f"{match[1]}.{match[2]}" if match else name
    return plain if plain in _OPEN else name


def has_own_arity(op: ir.Operation) -> bool:
    """Whether the op is one of its arity alone, without slots."""
    return plain_name(op) != op.name


def declare(op: type[Any], ins: int, outs: int) -> str:
    """Declares the op of an arity to the current context; returns its name."""
    name = f"{op.OPERATION_NAME}_{ins}to{outs}"
    if not ir.Context.current.is_registered_operation(name):
        dialect, _, own = name.partition(".")
        text = f"irdl.dialect @{dialect} {{ {_operation(op, own, ins, outs)} }}"
        irdl.load_dialects(ir.Module.parse(text))
        for trait in op._traits:
            trait.attach(name)
        ext._cext.globals._register_operation_impl(name, op, replace=True)
    return name


def declare_used(source: str | bytes) -> None:
    """Declares the ops of arities that text or bytecode may have to the current context.

    What is declared is no more than the source can use: each operand takes a character at least.
    """
    left = len(source)
    for op, ins, outs in _used(source):
        left -= ins + outs
        if left < 0:
            return
        declare(op, ins, outs)


def with_used(dialects: str, source: str) -> str:
    """The declarations of dialects, as IRDL, with the ops of arities that text may have."""
    for op, ins, outs in _used(source):
        dialect, _, name = op.OPERATION_NAME.partition(".")
        head = f"irdl.dialect @{dialect} {{"
        own = _operation(op, f"{name}_{ins}to{outs}", ins, outs)
        dialects = dialects.replace(head, f"{head}\n{own}", 1)
    return dialects


def _used(source: str | bytes) -> Iterator[tuple[type[Any], int, int]]:
    """The ops of arities beyond the slots whose names are in a source."""
    if isinstance(source, str):
        found: Sequence[tuple[str, ...]] = _IN_TEXT.findall(source)
    else:
        found = [tuple(map(bytes.decode, each)) for each in _IN_BYTECODE.findall(source)]
    namespaces = sorted({name.partition(".")[0] for name in _OPEN})
    for namespace, name, ins, outs in dict.fromkeys(found):
        for each in [namespace] if namespace else namespaces:
            op, slots = _OPEN.get(f"{each}.{name}", (None, (0, 0)))
            counts = int(ins), int(outs)
            is_canonical = (str(counts[0]), str(counts[1])) == (ins, outs)
            beyond = any(count > most for count, most in zip(counts, slots))
            if op is not None and is_canonical and beyond and max(counts) <= LIMIT:
                yield op, *counts


def _operation(op: type[Any], name: str, ins: int, outs: int) -> str:
    """The declaration as IRDL: each operand and result may have a type of its own."""
    operands, results = [f"in{i}" for i in range(ins)], [f"out{i}" for i in range(outs)]
    attributes = [field for field in op._fields if isinstance(field, ext.AttributeDef)]
    lines = [f"%{each} = irdl.any" for each in (*operands, *results)]
    lines += [f'%{each.name}_ = irdl.base "#{each.constraint.attr_name}"' for each in attributes]
    for kind, names in (("operands", operands), ("results", results)):
        lines += [f"irdl.{kind}({', '.join(f'{each}: %{each}' for each in names)})"] * bool(names)
    named = ", ".join(f'"{each.name}" = %{each.name}_' for each in attributes)
    lines += [f"irdl.attributes {{ {named} }}"] * bool(named)
    body = "\n".join(lines)
    return f"irdl.operation @{name} {{\n{body}\n}}"
