"""Products of matrices that four warps compute while they go on.

A product is computed when its threads have waited for it, at the last moment that is permitted:
until then its sums are none, and what it reads must not change.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from relax_mlir.interpreter.ptx.kinds import KINDS, Kind, PtxFault
from relax_mlir.interpreter.ptx.program import Instruction
from relax_mlir.interpreter.ptx.threads import Operands, Step, Threads
from relax_mlir.interpreter.simt.fragments import are_whole
from relax_mlir.interpreter.simt.shadow import Access
from relax_mlir.interpreter.simt.warpgroups import WARPGROUP, WarpgroupProduct

from .common import Decoder
from .moves import parts_of

_SHAPE = "m64n128k16"
_COLUMNS = 128
_NONE = np.uint32(0x7FC0DEAD)
"""What sums are while they are computed: NaN."""


@dataclass(frozen=True)
class Product:
    """A product that is not complete: its threads, and the words that name sides."""

    threads: np.ndarray
    registers: tuple[str, ...]
    totals: np.ndarray
    named: np.ndarray
    kind: Kind
    product: WarpgroupProduct
    group: int


def _decode(instruction: Instruction, operands: Operands) -> Step:
    name, *rest = instruction.modifiers
    if name == "mma_async":
        return _multiply(instruction, operands)
    if rest != ["sync", "aligned"] or name not in ("fence", "commit_group", "wait_group"):
        raise PtxFault(f"an instruction is not known: {instruction.text}")
    if name == "fence":
        return _fence
    return _commit if name == "commit_group" else _waiting(int(instruction.operands[0]))


def _multiply(instruction: Instruction, operands: Operands) -> Step:
    _, *sync, shape, total, left, right = instruction.modifiers
    target, a, b, scale, *signs = instruction.operands
    known = (sync, shape, total) == (["sync", "aligned"], _SHAPE, "f32") and left == right
    if not known or left not in ("f16", "bf16") or signs[:2] != ["1", "1"]:
        raise PtxFault(f"a product of matrices is not known: {instruction.text}")
    registers = tuple(parts_of(target))
    word = KINDS["b32"]
    readers = [operands.bits_reader(text, word) for text in registers]
    writers = [operands.writer(text, word) for text in registers]
    named = [operands.bits_reader(text, KINDS["b64"]) for text in (a, b)]
    adds = operands.reader(scale, KINDS["pred"])
    product = WarpgroupProduct(_COLUMNS, (signs[2] == "1", signs[3] == "1"))
    narrow = KINDS[left]

    def step(threads: Threads) -> None:
        _require_warpgroups(threads)
        if not np.all(adds(threads)):
            raise PtxFault("a product that does not add to its sums is not known")
        if not threads.products and not threads.is_fenced:
            raise PtxFault("sums are accessed without wgmma.fence before")
        words = np.stack([np.broadcast_to(x(threads), (threads.count,)) for x in named])
        per_warpgroup = words.reshape(2, -1, WARPGROUP)
        if (per_warpgroup != per_warpgroup[:, :, :1]).any():
            raise PtxFault("threads of a warpgroup name different matrices")
        totals = np.stack([np.broadcast_to(x(threads), (threads.count,)) for x in readers], 1)
        threads.products.append(
            Product(
                threads.index, registers, totals.view(np.float32), per_warpgroup[:, :, 0], narrow,
                product, threads.committed_products,
            )
        )  # fmt: skip
        for write in writers:
            write(threads, np.full(threads.count, _NONE))

    return step


def _fence(threads: Threads) -> None:
    _require_warpgroups(threads)
    threads.is_fenced = True


def _commit(threads: Threads) -> None:
    _require_warpgroups(threads)
    threads.committed_products += 1


def _waiting(most: int) -> Step:
    """Waits until at most so many groups of products are not complete."""

    def step(threads: Threads) -> None:
        _require_warpgroups(threads)
        known: dict[tuple[str, ...], np.ndarray] = {}
        left = []
        for each in threads.products:
            if each.group >= threads.committed_products - most:
                left.append(each)
                continue
            if not np.array_equal(each.threads, threads.index):
                raise PtxFault("other threads wait for a product than began it")
            totals = known.get(each.registers, each.totals)
            known[each.registers] = _computed(threads, each, totals)
        threads.products = left
        if not left:
            threads.is_fenced = False
        for registers, totals in known.items():
            for i, name in enumerate(registers):
                threads.registers[name][threads.on] = totals[:, i].view(np.uint32)

    return step


def _computed(threads: Threads, each: Product, totals: np.ndarray) -> np.ndarray:
    """The sums of all threads of a product."""
    results = np.empty_like(totals)
    for i in range(len(totals) // WARPGROUP):
        own = slice(i * WARPGROUP, (i + 1) * WARPGROUP)
        load = _loader(threads, each, each.threads[own][0])
        try:
            named = int(each.named[0, i]), int(each.named[1, i])
            results[own] = each.product.compute(named, load, totals[own])
        except PtxFault:
            raise
        except ValueError as error:
            raise PtxFault(str(error)) from None
    return results


def _loader(
    threads: Threads, each: Product, first: np.integer
) -> Callable[[np.ndarray], np.ndarray]:
    """What loads elements of memory of the group of a warpgroup, whose first thread is given."""
    by = threads.access_of(np.array([first]))

    def load(addresses: np.ndarray) -> np.ndarray:
        count = addresses.size
        access = Access(*(np.repeat(x, count) for x in (by.thread, by.group, by.epoch)))
        bits = KINDS[f"b{8 * each.kind.bits.itemsize}"]
        loaded = threads.shared.load_published(addresses.reshape(-1), bits, access)
        return each.kind.values(loaded).reshape(addresses.shape)

    return load


def _require_warpgroups(threads: Threads) -> None:
    """Raises PtxFault unless all threads of each warpgroup that runs do."""
    if not are_whole(threads.thread[threads.on], WARPGROUP):
        raise PtxFault("threads of a warpgroup do not run")


DECODERS: dict[str, Decoder] = {"wgmma": _decode}
