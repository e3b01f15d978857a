"""Copies from memory of the device to that of a group, which go on while threads do."""

import numpy as np

from relax_mlir.interpreter.ptx.kinds import KINDS, PtxFault
from relax_mlir.interpreter.ptx.program import Instruction
from relax_mlir.interpreter.ptx.threads import Operands, Step, Threads

from .bulk import copy_box
from .common import Decoder

_BYTES = 16
_WORD, _PART = KINDS["b64"], KINDS["b16"]
"""Types of 8 bytes, and of what sources end after a multiple of."""


def _copy(instruction: Instruction, operands: Operands) -> Step:
    modifiers = instruction.modifiers
    if modifiers[:3] == ("async", "bulk", "tensor"):
        return copy_box(instruction, operands)
    if modifiers == ("async", "commit_group"):
        return _commit
    if modifiers == ("async", "wait_group"):
        return _waiting(int(instruction.operands[0]))
    if modifiers[:2] != ("async", "cg") or modifiers[2:] != ("shared", "global"):
        raise PtxFault(f"a copy is not known: {instruction.text}")
    target, source, size, *rest = instruction.operands
    if int(size) != _BYTES:
        raise PtxFault(f"a copy has {size} bytes, not {_BYTES}: {instruction.text}")
    to, from_ = operands.address(target), operands.address(source)
    length = operands.reader(rest[0], KINDS["u32"]) if rest else lambda threads: np.uint32(_BYTES)

    def step(threads: Threads) -> None:
        shape, by = (threads.count,), threads.access
        at, begin = (np.broadcast_to(read(threads), shape) for read in (to, from_))
        bytes_ = np.broadcast_to(length(threads), shape)
        if (at % _BYTES).any() or (begin % _BYTES).any():
            raise PtxFault(f"an address is no multiple of {_BYTES}")
        if (bytes_ > _BYTES).any() or (bytes_ % _PART.bits.itemsize).any():
            raise PtxFault(f"copies {bytes_.max()} of {_BYTES} bytes")
        data = np.zeros((*shape, _BYTES // _PART.bits.itemsize), _PART.bits)
        for i in range(data.shape[1]):
            chosen = bytes_ > i * _PART.bits.itemsize
            if chosen.any():
                part = begin[chosen] + i * _PART.bits.itemsize
                data[chosen, i] = threads.memory.load(part, _PART, by.some(chosen))
        threads.shared.begin(at, _BYTES, by)
        threads.pending.add(threads.shared, threads.index, at, data)

    return step


def _commit(threads: Threads) -> None:
    threads.pending.commit(threads.index)


def _waiting(most: int) -> Step:
    """Waits until at most so many groups of copies of each thread are not complete."""

    def step(threads: Threads) -> None:
        for copy in threads.pending.wait(threads.index, most):
            by = threads.access_of(copy.threads)
            threads.shared.complete(copy.offsets, _BYTES, by)
            words = np.ascontiguousarray(copy.data).view(_WORD.bits)
            for i in range(words.shape[1]):
                at = copy.offsets + i * _WORD.bits.itemsize
                threads.shared.store(at, words[:, i], _WORD, by)

    return step


DECODERS: dict[str, Decoder] = {"cp": _copy}
