"""Loads, stores, atomic updates, and fences."""

from collections.abc import Callable

import numpy as np

from relax_mlir.interpreter.ptx.kinds import KINDS, PtxFault
from relax_mlir.interpreter.ptx.program import Instruction
from relax_mlir.interpreter.ptx.threads import PARAMETER_BYTES, Operands, Step, Threads

from .common import Decoder, kind_of
from .moves import parts_of, unsigned


def _memory(instruction: Instruction) -> Callable:
    """A function that returns the memory that an instruction accesses."""
    for name in instruction.modifiers:
        if name == "global":
            return lambda threads: threads.memory
        if name.startswith("shared"):
            return lambda threads: threads.shared
    raise PtxFault(f"a space of memory is not known: {instruction.text}")


def _load(instruction: Instruction, operands: Operands) -> Step:
    kind = kind_of(instruction)
    target, source = instruction.operands
    parts = parts_of(target)
    writers = [operands.writer(part, kind) for part in parts]
    if "param" in instruction.modifiers:
        return _load_parameter(operands.address(source), kind, writers)
    address, memory, size = operands.address(source), _memory(instruction), kind.bits.itemsize
    is_constant = "nc" in instruction.modifiers
    # LLVM loads what is between words that it needs, too, whatever is there.
    is_needed = [len(parts) == 1 or operands.is_used_again(part) for part in parts]

    def step(threads: Threads) -> None:
        at, by, own = address(threads), threads.access, memory(threads)
        load = own.load_constant if is_constant else own.load
        reads = [load if needed else own.peek for needed in is_needed]
        loaded = [read(at + size * i, kind, by) for i, read in enumerate(reads)]
        for write, bits in zip(writers, loaded, strict=True):
            write(threads, kind.values(bits))

    return _aligned(step, address, size * len(writers))


def _aligned(step: Step, address: Callable, size: int) -> Step:
    """A step that first checks the alignment of several words, which are accessed at once."""

    def checked(threads: Threads) -> None:
        if np.any(address(threads) % size):
            raise PtxFault(f"an address is no multiple of {size}")
        step(threads)

    return checked


def _load_parameter(address: Callable, kind, writers) -> Step:
    """Threads may choose a parameter by its address."""
    (write,) = writers

    def step(threads: Threads) -> None:
        at, values = address(threads), threads.parameters
        if np.any((at < 0) | (at >= PARAMETER_BYTES * len(values)) | (at % PARAMETER_BYTES != 0)):
            raise PtxFault("an address is none of a parameter")
        write(threads, kind.values(values[at // PARAMETER_BYTES].astype(kind.bits)))

    return step


def _store(instruction: Instruction, operands: Operands) -> Step:
    kind = KINDS[unsigned(kind_of(instruction).bits.itemsize)]
    target, source = instruction.operands
    readers = [operands.bits_reader(part, kind, True) for part in parts_of(source)]
    address, memory, size = operands.address(target), _memory(instruction), kind.bits.itemsize

    def step(threads: Threads) -> None:
        at, by = address(threads), threads.access
        for i, read in enumerate(readers):
            memory(threads).store(at + size * i, read(threads), kind, by)

    return _aligned(step, address, size * len(readers))


_COMBINE = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}
"""Updates of integers whose order does not matter."""


def _update(instruction: Instruction, operands: Operands) -> Step:
    """An atomic update of memory of the device; what was there depends on the order."""
    kind, (space, name, _) = kind_of(instruction), instruction.modifiers[-3:]
    if space != "global" or name not in _COMBINE or kind.is_float:
        raise PtxFault(f"an update is not known: {instruction.text}")
    target, location, source = instruction.operands
    if target != "_" and operands.is_used_again(target):
        raise PtxFault(f"the result of an update depends on the order: {instruction.text}")
    address, read = operands.address(location), operands.reader(source, kind)

    def step(threads: Threads) -> None:
        combine, values = _COMBINE[name], read(threads)
        threads.memory.update(address(threads), combine, values, kind, threads.access)

    return step


def _fence(instruction: Instruction, operands: Operands) -> Step:
    """Has others see what threads stored: warpgroups; for all else memory is up to date here."""
    if instruction.modifiers == ("proxy", "async", "shared::cta"):
        return lambda threads: threads.shared.publish(threads.access)
    if instruction.modifiers == ("mbarrier_init", "release", "cluster"):
        return lambda threads: threads.shared.barriers.publish(threads.access)
    return lambda threads: None


DECODERS: dict[str, Decoder] = {
    "ld": _load,
    "st": _store,
    "atom": _update,
    "membar": _fence,
    "fence": _fence,
}
