"""Moves between registers, and parts of registers."""

import numpy as np

from relax_mlir.interpreter.ptx.kinds import KINDS
from relax_mlir.interpreter.ptx.program import Instruction, split
from relax_mlir.interpreter.ptx.threads import Operands, Step, Threads

from .common import Decoder, kind_of


def parts_of(text: str) -> list[str]:
    """The operands in braces; a single one if there are none."""
    return split(text[1:-1]) if text.startswith("{") else [text]


def unsigned(size: int) -> str:
    """The name of the type of `size` bytes of bits."""
    return f"b{8 * size}"


def _move(instruction: Instruction, operands: Operands) -> Step:
    kind = kind_of(instruction)
    target, source = instruction.operands
    plain = KINDS["pred"] if kind.name == "pred" else KINDS[unsigned(kind.bits.itemsize)]
    if target.startswith("{"):
        return _unpack(parts_of(target), operands.bits_reader(source, plain), plain, operands)
    write = operands.writer(target, plain)
    if source.startswith("{"):
        return _pack(parts_of(source), write, plain, operands)
    read = operands.bits_reader(source, plain)
    return lambda threads: write(threads, read(threads))


def _unpack(targets, read, kind, operands: Operands) -> Step:
    part = KINDS[unsigned(kind.bits.itemsize // len(targets))]
    width = 8 * part.bits.itemsize
    writers = [operands.writer(target, part) for target in targets]

    def step(threads: Threads) -> None:
        bits = read(threads)
        for i, write in enumerate(writers):
            write(threads, (bits >> kind.bits.type(width * i)).astype(part.bits))

    return step


def _pack(sources, write, kind, operands: Operands) -> Step:
    part = KINDS[unsigned(kind.bits.itemsize // len(sources))]
    width = 8 * part.bits.itemsize
    readers = [operands.bits_reader(source, part) for source in sources]

    def step(threads: Threads) -> None:
        total = kind.bits.type(0)
        for i, read in enumerate(readers):
            total = total | (read(threads).astype(kind.bits) << kind.bits.type(width * i))
        write(threads, total)

    return step


def _same_address(instruction: Instruction, operands: Operands) -> Step:
    """Addresses of memory of the device are the same without a space."""
    target, source = instruction.operands
    read, write = operands.bits_reader(source, KINDS["b64"]), operands.writer(target, KINDS["b64"])
    return lambda threads: write(threads, np.asarray(read(threads)))


DECODERS: dict[str, Decoder] = {"mov": _move, "cvta": _same_address}
