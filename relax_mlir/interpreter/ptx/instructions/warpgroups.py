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
        # Of a product that is not complete, these are none yet.
        totals = np.stack([np.broadcast_to(x(threads), (threads.count,)) for x in readers], 1)
        made = Product(
            threads.index, registers, totals.view(np.float32), per_warpgroup[:, :, 0], narrow,
            product, threads.committed_products,
        )  # fmt: skip
        threads.products.append(made)
        _hold(threads, made, 1)
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
        left: list[Product] = list(threads.products)
        while left and left[0].group < threads.committed_products - most:
            each = left.pop(0)
            if not np.array_equal(each.threads, threads.index):
                raise PtxFault("other threads wait for a product than began it")
            totals = _computed(threads, each)
            after = next((x for x in left if x.registers == each.registers), None)
            if after is not None:  # whose sums these are
                after.totals[:] = totals
                continue
            for i, name in enumerate(each.registers):
                threads.registers[name][threads.on] = totals[:, i].view(np.uint32)
        threads.products = left
        threads.is_fenced = bool(left)

    return step


def _hold(threads: Threads, each: Product, count: int) -> None:
    """Counts products that still read memory, which may not change before."""
    for i in range(each.named.shape[1]):
        for addresses in each.product.addresses(_named(each, i)):
            by = _by(threads, each, i, addresses.size)
            if count > 0:
                own = each.threads[WARPGROUP * i : WARPGROUP * (i + 1)]
                access = threads.access_of(own)
                threads.shared.require_arrived(
                    addresses.reshape(-1), each.kind.bits.itemsize, access
                )
            threads.shared.hold(addresses.reshape(-1), each.kind.bits.itemsize, by, count)


def _computed(threads: Threads, each: Product) -> np.ndarray:
    """The sums of all threads of a product."""
    results = np.empty_like(each.totals)
    _hold(threads, each, -1)
    for i in range(each.named.shape[1]):
        own = slice(i * WARPGROUP, (i + 1) * WARPGROUP)
        load = _loader(threads, each, i)
        results[own] = each.product.compute(_named(each, i), load, each.totals[own])
    return results


def _named(each: Product, warpgroup: int) -> tuple[int, int]:
    return int(each.named[0, warpgroup]), int(each.named[1, warpgroup])


def _by(threads: Threads, each: Product, warpgroup: int, count: int) -> Access:
    """The first thread of a warpgroup, as it accesses so many addresses."""
    by = threads.access_of(each.threads[WARPGROUP * warpgroup :][:1])
    return Access(*(np.repeat(x, count) for x in (by.thread, by.group, by.epoch)))


def _loader(threads: Threads, each: Product, i: int) -> Callable[[np.ndarray], np.ndarray]:
    """What loads elements of memory of the group of a warpgroup."""

    def load(addresses: np.ndarray) -> np.ndarray:
        access = _by(threads, each, i, addresses.size)
        bits = KINDS[f"b{8 * each.kind.bits.itemsize}"]
        loaded = threads.shared.load_published(addresses.reshape(-1), bits, access)
        return each.kind.values(loaded).reshape(addresses.shape)

    return load


def _require_warpgroups(threads: Threads) -> None:
    """Raises PtxFault unless all threads of each warpgroup that runs do."""
    if not are_whole(threads.thread[threads.on], WARPGROUP):
        raise PtxFault("threads of a warpgroup do not run")


DECODERS: dict[str, Decoder] = {"wgmma": _decode}
