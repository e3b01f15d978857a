"""Exchanges between the threads of a warp."""

import numpy as np

from relax_mlir.interpreter.ptx.kinds import KINDS, PtxFault
from relax_mlir.interpreter.ptx.program import Instruction
from relax_mlir.interpreter.ptx.threads import WARP, Operands, Step, Threads

from .common import Decoder


def _shuffle(instruction: Instruction, operands: Operands) -> Step:
    """Each thread reads the register of another one of its warp, which has to run too."""
    (mode,) = (m for m in instruction.modifiers if m in ("bfly", "up", "down", "idx"))
    targets, source, by, clamp, members = instruction.operands
    target, _, inside = targets.partition("|")
    word = KINDS["b32"]
    value, lane_by, mask, named = (
        operands.bits_reader(text, word) for text in (source, by, clamp, members)
    )
    write, write_inside = (
        operands.writer(target, word),
        operands.writer(inside or "_", KINDS["pred"]),
    )

    def step(threads: Threads) -> None:
        index = np.arange(len(threads.group))[threads.on]
        lane = threads.thread[threads.on] % WARP
        count = len(index)
        delta = np.broadcast_to(lane_by(threads), (count,)).astype(np.int64)
        control = np.broadcast_to(mask(threads), (count,)).astype(np.int64)
        last, segment = control & 31, control >> 8 & 31
        highest = (lane & segment) | (last & ~segment)
        lowest = lane & segment
        other, is_inside = _source(mode, lane, delta, segment, lowest, highest)
        other = np.where(is_inside, other, lane)
        _require_members(np.broadcast_to(named(threads), (count,)), lane, index)
        everyone = np.full(len(threads.group), -1)
        everyone[index] = np.arange(count)
        from_ = everyone[index - lane + other]
        if (from_ < 0).any():
            raise PtxFault("reads the register of a thread that does not run")
        write(threads, np.broadcast_to(value(threads), (count,))[from_])
        write_inside(threads, is_inside)

    return step


def _source(mode, lane, delta, segment, lowest, highest) -> tuple[np.ndarray, np.ndarray]:
    """The lane that each thread reads, and whether that is in its segment."""
    if mode == "up":
        other = lane - delta
        return other, other >= highest
    if mode == "down":
        other = lane + delta
    elif mode == "bfly":
        other = lane ^ delta
    else:
        other = lowest | (delta & ~segment)
    return other, other <= highest


def _require_members(named: np.ndarray, lane: np.ndarray, index: np.ndarray) -> None:
    """Raises PtxFault if threads take part that are not named, or named ones do not."""
    warp = index - lane
    for first in np.unique(warp):
        own = warp == first
        there = int(np.bitwise_or.reduce(np.uint32(1) << lane[own].astype(np.uint32)))
        if (named[own] != there).any():
            raise PtxFault(f"names threads {int(named[own][0]):#x} of a warp, but {there:#x} run")


DECODERS: dict[str, Decoder] = {"shfl": _shuffle}
