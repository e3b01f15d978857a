"""Barriers in memory of a group, and copies of boxes of tensors that they count."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from relax_mlir.interpreter.ptx.kinds import KINDS, PtxFault
from relax_mlir.interpreter.ptx.program import Instruction, split
from relax_mlir.interpreter.ptx.threads import Operands, Step, Threads
from relax_mlir.interpreter.simt.shadow import Access
from relax_mlir.interpreter.simt.tensor_maps import UNIT_BYTES, TensorMap

from .common import Decoder
from .moves import parts_of

_WORD, _ELEMENT, _I32 = KINDS["b64"], KINDS["b16"], KINDS["s32"]
_COPY = ("shared::cluster", "global", "tile", "mbarrier::complete_tx::bytes")


def _barrier(instruction: Instruction, operands: Operands) -> Step:
    *what, space, kind = instruction.modifiers
    if space not in ("shared", "shared::cta") or kind != "b64":
        raise PtxFault(f"a barrier is not known: {instruction.text}")
    if what == ["init"]:
        return _make(instruction, operands)
    if what == ["arrive", "expect_tx"]:
        return _arrive(instruction, operands)
    if what == ["arrive"] and len(instruction.operands) == 2:
        return _arrive_alone(instruction, operands)
    if what == ["try_wait", "parity"]:
        return _wait(instruction, operands)
    raise PtxFault(f"an instruction of a barrier is not known: {instruction.text}")


def _make(instruction: Instruction, operands: Operands) -> Step:
    address, count = instruction.operands
    at, most = operands.address(address), operands.reader(count, KINDS["u32"])

    def step(threads: Threads) -> None:
        for by, where, arrivals in _each(threads, at(threads), most(threads)):
            threads.shared.reserve(where, by)
            threads.shared.barriers.make(where, arrivals, by)

    return step


def _arrive(instruction: Instruction, operands: Operands) -> Step:
    _, address, size = instruction.operands
    at, total = operands.address(address), operands.reader(size, KINDS["u32"])

    def step(threads: Threads) -> None:
        for by, where, count in _each(threads, at(threads), total(threads)):
            threads.shared.barriers.arrive(where, count, by)

    return step


def _arrive_alone(instruction: Instruction, operands: Operands) -> Step:
    at = operands.address(instruction.operands[1])

    def step(threads: Threads) -> None:
        for by, where in _each(threads, at(threads)):
            threads.shared.barriers.arrive(where, 0, by)

    return step


def _wait(instruction: Instruction, operands: Operands) -> Step:
    """Threads are told whether a phase is complete; those that it is not for may look again."""
    target, address, parity = instruction.operands
    at, phase = operands.address(address), operands.reader(parity, KINDS["u32"])
    write = operands.writer(target, KINDS["pred"])

    def step(threads: Threads) -> None:
        by, shape = threads.access, (threads.count,)
        where, wanted = (np.broadcast_to(read(threads), shape) for read in (at, phase))
        if (wanted > 1).any():
            raise PtxFault(f"waits for the parity {wanted.max()} of a phase")
        keys = np.stack([by.group, where, wanted.astype(np.int64)], 1)
        chosen, which = np.unique(keys, axis=0, return_inverse=True)
        done = np.zeros(shape, bool)
        for i, (_, one, bit) in enumerate(chosen.tolist()):
            own = which.reshape(-1) == i
            done[own] = threads.shared.barriers.is_complete(one, bit, by.some(own))
        write(threads, done)
        threads.too_early = threads.index[~done]

    return step


def copy_box(instruction: Instruction, operands: Operands) -> Step:
    """Decodes a copy of a box of a tensor: to memory, from a map at coordinates, with a barrier."""
    _, _, _, rank, *rest = instruction.modifiers
    if tuple(rest) != _COPY or len(instruction.operands) != 3:
        raise PtxFault(f"a copy is not known: {instruction.text}")
    target, source, barrier = instruction.operands
    base, inner = split(source[1:-1])
    to, map_at, counter = map(operands.address, (target, f"[{base}]", barrier))
    coordinates = [operands.reader(text, _I32) for text in reversed(parts_of(inner))]
    if f"{len(coordinates)}d" != rank:
        raise PtxFault(f"a copy has other coordinates than dims: {instruction.text}")

    def step(threads: Threads) -> None:
        begins = [read(threads) for read in coordinates]
        addresses = to(threads), map_at(threads), counter(threads)
        for by, where, key, own, *begin in _each(threads, *addresses, *begins):
            made = threads.maps.get(key)
            if made is None:
                raise PtxFault("copies a box by what is no tensor map")
            _begin(threads, made, begin, where, own, by)

    return step


def _begin(
    threads: Threads, made: TensorMap, begin: list[int], to: int, barrier: int, by: Access
) -> None:
    """Begins to copy a box, of which elements beyond the tensor are zero."""
    offsets, inside = made.offsets(begin)
    data = np.zeros(len(offsets), _ELEMENT.bits)
    chosen = made.address + offsets[inside]
    if len(chosen):
        data[inside] = threads.memory.load_constant(chosen, _ELEMENT, by.repeated(len(chosen)))
    units = made.units(to)
    access = by.repeated(len(units))
    threads.shared.begin(units, UNIT_BYTES, access)
    words = data.reshape(len(units), -1).view(_WORD.bits)
    end = partial(threads.shared.deliver, units, words, by=access)
    threads.shared.barriers.begin(barrier, made.box_bytes, by, end)


def _each(threads: Threads, *values: Any) -> Iterator[Any]:
    """Each running thread, with its own values."""
    by, shape = threads.access, (threads.count,)
    columns = [np.broadcast_to(x, shape).tolist() for x in values]
    for i, row in enumerate(zip(*columns, strict=True)):
        yield (by.some(np.array([i])), *row)


DECODERS: dict[str, Decoder] = {"mbarrier": _barrier}
