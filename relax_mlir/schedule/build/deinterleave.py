"""Strided accesses and repeated loads as contiguous ones and shuffles; no gathers or scatters."""

from collections.abc import Sequence
from functools import reduce

from relax_mlir.bindings import arith, ir, memref, vector

from .lanes import iota
from .loops import (
    Index,
    add,
    broadcast,
    constant_mask,
    floor_div,
    load,
    minimum,
    sub,
    value,
)


def load_strided(line: ir.Value, at: Index, step: int, lanes: int) -> ir.Value:
    """The elements `at`, `at + step`, .. of a buffer; `step * lanes` are read from `at` on."""
    return deinterleave([load(line, add(at, i * lanes), lanes) for i in range(step)])


def load_every(
    line: ir.Value, at: Index, step: int, lanes: int, mask: ir.Value | None = None
) -> ir.Value:
    """The same, but nothing before the first of them or after the last one is read.

    Lanes outside of `mask` are zero, and not read.
    """
    begins = [min(i * lanes, (step - 1) * (lanes - 1)) for i in range(step)]
    owners = _owners(begins, step, lanes)
    parts = []
    for index, begin in enumerate(begins):
        keep = mask
        if mask is not None:
            # Of those that a vector reads, the lanes that it is the owner of.
            sources = [
                lane // step if lane % step == 0 and owners[lane // step] == index else lanes
                for lane in range(begin, begin + lanes)
            ]
            keep = vector.shuffle(mask, constant_mask(lanes, False), sources)
        parts.append(load(line, add(at, begin), lanes, keep))
    return deinterleave(parts, begins)


def load_repeated(
    line: ir.Value, at: Index, times: int, lanes: int, mask: ir.Value | None = None
) -> ir.Value:
    """The elements from `at` on, each in `times` lanes; those of no lane of `mask` are not read."""
    count, keep = lanes // times, mask
    if mask is not None:
        parts = [[i * times + j for i in range(count)] for j in range(times)]
        masks = [vector.shuffle(mask, mask, part) for part in parts]
        keep = reduce(arith.ori, masks)
    loaded = load(line, at, count, keep)
    return vector.shuffle(loaded, loaded, [i // times for i in range(lanes)])


def load_runs(line: ir.Value, at: Index, phase: ir.Value, length: int, lanes: int) -> ir.Value:
    """Lane i is the element `at + (phase + i) // length`; elements of no lane are not read."""
    narrow = ir.IntegerType.get_signless(32)
    last = floor_div(add(phase, lanes - 1), length)
    result = broadcast(memref.load(line, [value(at)]), lanes)
    for run in range(1, (length + lanes - 2) // length + 1):
        element = memref.load(line, [value(add(at, minimum(run, last)))])
        begin = arith.index_cast(narrow, sub(run * length, phase))
        own = arith.cmpi(arith.CmpIPredicate.sge, iota(lanes, narrow), broadcast(begin, lanes))
        result = arith.select(own, broadcast(element, lanes), result)
    return result


def deinterleave(vectors: Sequence[ir.Value], begins: Sequence[int] = ()) -> ir.Value:
    """Every n-th element of n vectors, from the first one on.

    They follow each other, or begin at `begins`, where later ones may overlap earlier ones.
    """
    step, lanes = len(vectors), ir.VectorType(vectors[0].type).shape[0]
    begins = begins or [i * lanes for i in range(step)]
    owners = _owners(begins, step, lanes)
    result = vectors[0]
    # Lane i is element i * step: each shuffle adds those of the next vector.
    for index in range(1, step):
        lanes_of = [
            (i if index > 1 else i * step) if owner < index
            else (lanes + i * step - begins[index] if owner == index else 0)
            for i, owner in enumerate(owners)
        ]  # fmt: skip
        result = vector.shuffle(result, vectors[index], lanes_of)
    return result


def interleave(vectors: Sequence[ir.Value]) -> list[ir.Value]:
    """The first elements of all vectors, a power of two, then the second ones, and so on."""
    if len(vectors) == 1:
        return list(vectors)
    lanes = ir.VectorType(vectors[0].type).shape[0]
    result = []
    for a, b in zip(interleave(vectors[::2]), interleave(vectors[1::2]), strict=True):
        for half in (0, lanes // 2):
            pairs = [half + i + at for i in range(lanes // 2) for at in (0, lanes)]
            result.append(vector.shuffle(a, b, pairs))
    return result


def _owners(begins: Sequence[int], step: int, lanes: int) -> list[int]:
    """Which vector each lane is taken from: the last one that begins at it or before."""
    return [max(j for j, begin in enumerate(begins) if begin <= i * step) for i in range(lanes)]
