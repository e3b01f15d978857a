"""Products of matrices that four warps compute while they go on.

A product is computed when its threads have waited for it, at the last moment that is permitted:
until then its sums are none, and what it reads must not change.
"""

from dataclasses import dataclass, field

import numpy as np

from relax_mlir.interpreter.ptx.kinds import KINDS, Kind, PtxFault
from relax_mlir.interpreter.ptx.program import Instruction
from relax_mlir.interpreter.ptx.threads import WARP, Operands, Step, Threads
from relax_mlir.interpreter.simt.fragments import are_whole
from relax_mlir.interpreter.simt.shadow import Access
from relax_mlir.interpreter.simt.warpgroups import WARPGROUP, WarpgroupProduct

from .common import Decoder
from .moves import parts_of

_SHAPES = {"m64n128k16": 128, "m64n256k16": 256}
"""Columns of products, by what instructions call their shape."""
_NONE = np.uint32(0x7FC0DEAD)
"""What sums are while they are computed: NaN."""


@dataclass(frozen=True)
class Product:
    """A product of a warpgroup that is not complete: its threads, and the words that name sides."""

    threads: np.ndarray
    registers: tuple[str, ...]
    totals: np.ndarray
    named: tuple[int, int]
    kind: Kind
    product: WarpgroupProduct
    group: int


@dataclass
class Queue:
    """The products of a warpgroup that are not complete, and how many groups of them there were."""

    products: list[Product] = field(default_factory=list)
    committed: int = 0
    is_fenced: bool = False


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
    columns = _SHAPES.get(shape, 0)
    known = (sync, total) == (["sync", "aligned"], "f32") and left == right
    known = known and 2 * len(parts_of(target)) == columns
    if not known or left not in ("f16", "bf16") or signs[:2] != ["1", "1"]:
        raise PtxFault(f"a product of matrices is not known: {instruction.text}")
    registers = tuple(parts_of(target))
    word = KINDS["b32"]
    readers = [operands.bits_reader(text, word) for text in registers]
    writers = [operands.writer(text, word) for text in registers]
    named = [operands.bits_reader(text, KINDS["b64"]) for text in (a, b)]
    adds = operands.reader(scale, KINDS["pred"])
    product = WarpgroupProduct(columns, (signs[2] == "1", signs[3] == "1"))
    narrow = KINDS[left]

    def step(threads: Threads) -> None:
        queues = _queues(threads)
        if not np.all(adds(threads)):
            raise PtxFault("a product that does not add to its sums is not known")
        if any(not queue.products and not queue.is_fenced for queue in queues):
            raise PtxFault("sums are accessed without wgmma.fence before")
        words = np.stack([np.broadcast_to(x(threads), (threads.count,)) for x in named])
        per_warpgroup = words.reshape(2, -1, WARPGROUP)
        if (per_warpgroup != per_warpgroup[:, :, :1]).any():
            raise PtxFault("threads of a warpgroup name different matrices")
        # Of a product that is not complete, these are none yet.
        totals = np.stack([np.broadcast_to(x(threads), (threads.count,)) for x in readers], 1)
        index, pairs = threads.index, per_warpgroup[:, :, 0].T.tolist()
        for i, (queue, pair) in enumerate(zip(queues, pairs, strict=True)):
            own = slice(WARPGROUP * i, WARPGROUP * (i + 1))
            made = Product(
                index[own], registers, totals[own].view(np.float32), tuple(pair), narrow, product,
                queue.committed,
            )  # fmt: skip
            queue.products.append(made)
            _hold(threads, made, 1)
        for write in writers:
            write(threads, np.full(threads.count, _NONE))

    return step


def _fence(threads: Threads) -> None:
    for queue in _queues(threads):
        queue.is_fenced = True


def _commit(threads: Threads) -> None:
    for queue in _queues(threads):
        queue.committed += 1


def _waiting(most: int) -> Step:
    """Waits until at most so many groups of products are not complete."""

    def step(threads: Threads) -> None:
        ready: dict[tuple[str, ...], list[Product]] = {}
        for queue in _queues(threads):
            left = queue.products
            while left and left[0].group < queue.committed - most:
                each = left.pop(0)
                each.totals[:] = _computed(threads, each)
                after = next((x for x in left if x.registers == each.registers), None)
                if after is not None:  # whose sums these are
                    after.totals[:] = each.totals
                else:
                    ready.setdefault(each.registers, []).append(each)
            queue.is_fenced = bool(left)
        for registers, products in ready.items():
            index = np.concatenate([each.threads for each in products])
            totals = np.concatenate([each.totals for each in products]).view(np.uint32)
            for i, name in enumerate(registers):
                threads.registers[name][index] = totals[:, i]

    return step


def _queues(threads: Threads) -> list[Queue]:
    """Those of the warpgroups that run; raises PtxFault if threads of one do not."""
    _require_warpgroups(threads)
    return [threads.products.setdefault(i, Queue()) for i in threads.index[::WARPGROUP].tolist()]


def _hold(threads: Threads, each: Product, count: int) -> None:
    """Counts products that still read memory, which may not change before."""
    size = each.kind.bits.itemsize
    for addresses in each.product.addresses(each.named):
        flat = addresses.reshape(-1)
        if count > 0:
            threads.shared.require_arrived(flat, size, threads.access_of(each.threads))
        else:  # the first thread of each warp stands for all of them, who wait at once
            threads.shared.note_reads(flat, size, threads.access_of(each.threads[::WARP]))
        threads.shared.hold(flat, size, _by(threads, each, flat.size), count)


def _computed(threads: Threads, each: Product) -> np.ndarray:
    """The sums of all threads of a product."""
    _hold(threads, each, -1)

    def load(addresses: np.ndarray) -> np.ndarray:
        bits, by = KINDS[f"b{8 * each.kind.bits.itemsize}"], _by(threads, each, addresses.size)
        loaded = threads.shared.load_published(addresses.reshape(-1), bits, by)
        return each.kind.values(loaded).reshape(addresses.shape)

    return each.product.compute(each.named, load, each.totals)


def _by(threads: Threads, each: Product, count: int) -> Access:
    """The first thread of a warpgroup, as it accesses so many addresses."""
    return threads.access_of(each.threads[:1]).repeated(count)


def _require_warpgroups(threads: Threads) -> None:
    """Raises PtxFault unless all threads of each warpgroup that runs do."""
    if not are_whole(threads.thread[threads.on], WARPGROUP):
        raise PtxFault("threads of a warpgroup do not run")


DECODERS: dict[str, Decoder] = {"wgmma": _decode}
