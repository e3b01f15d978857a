"""Products of matrices that warps compute, and loads of their parts from memory of a group."""

import numpy as np

from relax_mlir.interpreter.ptx.kinds import KINDS, PtxFault
from relax_mlir.interpreter.ptx.program import Instruction
from relax_mlir.interpreter.ptx.threads import WARP, Operands, Step, Threads
from relax_mlir.interpreter.simt.fragments import Product, are_whole, spread

from .common import Decoder
from .moves import parts_of

_DEPTHS: dict[tuple[str, ...], int] = {
    ("m16n8k16", "f32", "f16", "f16", "f32"): 16,
    ("m16n8k16", "f32", "bf16", "bf16", "f32"): 16,
    ("m16n8k32", "s32", "s8", "s8", "s32"): 32,
}
"""Elements along k, by the shape and the types of D, A, B and C."""
_ROW_BYTES = 16
"""Bytes of a row of a matrix of 8 x 8 elements of 16 bits."""


def _multiply(instruction: Instruction, operands: Operands) -> Step:
    """D = A * B + C of each warp."""
    sync, aligned, shape, left, right, *kinds = instruction.modifiers
    depth = _DEPTHS.get((shape, *kinds))
    if (sync, aligned, left, right) != ("sync", "aligned", "row", "col") or depth is None:
        raise PtxFault(f"a product of matrices is not known: {instruction.text}")
    total, narrow = KINDS[kinds[0]], KINDS[kinds[1]]
    targets, *sources = map(parts_of, instruction.operands)
    writers = [operands.writer(text, total) for text in targets]
    readers = [[operands.bits_reader(text, KINDS["b32"]) for text in texts] for texts in sources]
    product = Product(depth, 4 // narrow.bits.itemsize)

    def step(threads: Threads) -> None:
        _require_warps(threads)
        values = []
        for words, kind in zip(readers, (narrow, narrow, total), strict=True):
            bits = [np.broadcast_to(read(threads), (threads.count,)) for read in words]
            values.append(kind.values(np.ascontiguousarray(np.stack(bits, 1)).view(kind.bits)))
        result = product.compute(*values)
        for i, write in enumerate(writers):
            write(threads, result[:, i])

    return step


def _load(instruction: Instruction, operands: Operands) -> Step:
    """Loads matrices, of which each lane names a row; a lane gets two elements of each."""
    sync, aligned, shape, count, *rest = instruction.modifiers
    known = (sync, aligned, shape) == ("sync", "aligned", "m8n8") and rest[-1] == "b16"
    if not known or count not in ("x1", "x2", "x4") or not rest[-2].startswith("shared"):
        raise PtxFault(f"a load of matrices is not known: {instruction.text}")
    target, source = instruction.operands
    writers = [operands.writer(text, KINDS["b32"]) for text in parts_of(target)]
    address, transposes, tiles = operands.address(source), "trans" in rest, int(count[1])

    def step(threads: Threads) -> None:
        _require_warps(threads)
        at = np.broadcast_to(address(threads), (threads.count,))
        names = np.tile(np.arange(WARP) < 8 * tiles, len(at) // WARP)
        if (at[names] % _ROW_BYTES).any():
            raise PtxFault(f"an address is no multiple of {_ROW_BYTES}")
        by, word = threads.access.some(names), KINDS["b64"]
        halves = [threads.shared.load(at[names] + i, word, by) for i in (0, word.bits.itemsize)]
        rows = np.stack(halves, 1).view(np.uint16).reshape(-1, tiles, 8, 8)
        words = np.ascontiguousarray(spread(rows, transposes)).view(np.uint32)[..., 0]
        for i, write in enumerate(writers):
            write(threads, words[:, i])

    return step


def _require_warps(threads: Threads) -> None:
    """Raises PtxFault unless all threads of each warp that runs do, as `.aligned` says."""
    if not are_whole(threads.thread[threads.on]):
        raise PtxFault("threads of a warp do not run")


DECODERS: dict[str, Decoder] = {"mma": _multiply, "ldmatrix": _load}
