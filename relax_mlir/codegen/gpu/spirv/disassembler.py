"""SPIR-V modules as text for readers, an instruction a line, as `spirv-dis` prints them.

    %23 = OpIAdd %7 %21 %22

Knows the instructions that `assembler.py` writes.
"""

import struct
from collections.abc import Callable, Iterator, Sequence

from .assembler import CAPABILITIES, MAGIC
from .opcodes import Glsl, Op

_HEADER_WORDS = 5
_NO_RESULT = {
    *(Op.Extension, Op.MemoryModel, Op.EntryPoint, Op.ExecutionMode, Op.Capability),
    *(Op.Store, Op.FunctionEnd, Op.Decorate, Op.MemberDecorate, Op.ControlBarrier),
    *(Op.LoopMerge, Op.SelectionMerge, Op.Branch, Op.BranchConditional, Op.Return),
    Op.CooperativeMatrixStoreKHR,
}
_NO_TYPE = {Op.ExtInstImport, Op.Label}
"""Whose result has none, as results of `OpType..`."""
_LITERALS: dict[Op, slice] = {
    **dict.fromkeys((Op.TypeInt, Op.TypeFloat, Op.MemoryModel, Op.Constant), slice(0, None)),
    **dict.fromkeys((Op.ExecutionMode, Op.Decorate, Op.MemberDecorate), slice(1, None)),
    **dict.fromkeys((Op.TypePointer, Op.Variable, Op.Function), slice(0, 1)),
    **dict.fromkeys((Op.TypeVector, Op.SelectionMerge), slice(1, 2)),
    Op.LoopMerge: slice(2, 3),
    Op.Load: slice(1, None),
    Op.Store: slice(2, None),
    Op.CooperativeMatrixLoadKHR: slice(3, None),
    Op.CooperativeMatrixStoreKHR: slice(4, None),
    Op.CooperativeMatrixMulAddKHR: slice(3, None),
}
"""Which operands are literals, where not all are ids; a result and its type are no operands."""


def disassemble(code: bytes) -> str:
    """The text of a module; raises ValueError if it is none."""
    words = struct.unpack(f"<{len(code) // 4}I", code)
    if words[:1] != (MAGIC,):
        raise ValueError("not a module of SPIR-V in little-endian words")
    return "\n".join(_lines(words)) + "\n"


def _lines(words: Sequence[int]) -> Iterator[str]:
    at = _HEADER_WORDS
    while at < len(words):
        length, opcode = words[at] >> 16, Op(words[at] & 0xFFFF)
        yield _line(opcode, words[at + 1 : at + length])
        at += length


def _line(opcode: Op, words: Sequence[int]) -> str:
    name = f"Op{opcode.name}"
    if opcode in _NO_RESULT:
        return " ".join([name, *_operands(opcode, words)])
    if opcode in _NO_TYPE or opcode.name.startswith("Type"):
        return " ".join([f"%{words[0]} = {name}", *_operands(opcode, words[1:])])
    return " ".join([f"%{words[1]} = {name} %{words[0]}", *_operands(opcode, words[2:])])


def _operands(opcode: Op, words: Sequence[int]) -> list[str]:
    if opcode in _SPECIAL:
        return _SPECIAL[opcode](words)
    literals = range(len(words))[_LITERALS.get(opcode, slice(0))]
    return [str(word) if i in literals else f"%{word}" for i, word in enumerate(words)]


def _string(words: Sequence[int]) -> tuple[str, int]:
    """A string that words begin with, and how many it takes."""
    text, _, _ = struct.pack(f"<{len(words)}I", *words).partition(b"\0")
    return f'"{text.decode()}"', len(text) // 4 + 1


def _capability(words: Sequence[int]) -> list[str]:
    return [next(name for name, value in CAPABILITIES.items() if value == words[0])]


def _entry_point(words: Sequence[int]) -> list[str]:
    name, length = _string(words[2:])
    return [str(words[0]), f"%{words[1]}", name, *(f"%{word}" for word in words[2 + length :])]


def _function_of_glsl(words: Sequence[int]) -> list[str]:
    return [f"%{words[0]}", Glsl(words[1]).name, *(f"%{word}" for word in words[2:])]


_SPECIAL: dict[Op, Callable[[Sequence[int]], list[str]]] = {
    Op.Capability: _capability,
    Op.Extension: lambda words: [_string(words)[0]],
    Op.ExtInstImport: lambda words: [_string(words)[0]],
    Op.EntryPoint: _entry_point,
    Op.ExtInst: _function_of_glsl,
}
