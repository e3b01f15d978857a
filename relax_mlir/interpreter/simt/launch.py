"""Runs a launch: its grid in parts of whole groups, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.interpreter.elements import stored_dtype
from relax_mlir.interpreter.frame import Frame

from .buffers import ALIGNMENT, DeviceMemory, GroupBuffer
from .dialects.gpu import index_along
from .lookup import find
from .threads import Threads, Values

THREADS = 1 << 16
"""Threads that run at once."""


def run_launch(
    frame: Frame,
    body: ir.Block,
    grid: Sequence[int],
    size: Sequence[int],
    arguments: Sequence[Any],
    shared: int,
) -> None:
    """Runs a block on all threads of a grid of groups of a size.

    `arguments` are the first ones of the block, arrays being buffers; the last `shared` ones are
    memory of each group. Raises ValueError for an empty grid, and where a thread is refused.
    """
    if min(*grid, *size) <= 0:
        raise ValueError(f"has no threads: grid {list(grid)}, groups {list(size)}")
    per_group, groups = prod(size), prod(grid)
    code = frame.code.for_threads(find)
    passed: dict[ir.Value, Any] = dict(
        zip(list(body.arguments)[: len(arguments)], arguments, strict=True)
    )
    known = {**frame.values, **passed}
    written = [known[x] for x in code.stored(body) if x in known]
    memory, at_once = DeviceMemory(written), max(1, THREADS // per_group)
    own = [memory.buffer(x) if isinstance(x, np.ndarray) and x.ndim else x for x in arguments]
    count = len(body.arguments) - shared
    kinds = [ir.MemRefType(x.type) for x in list(body.arguments)[count:]]
    for first in range(0, groups, at_once):
        last = min(groups, first + at_once)
        running = np.arange(first * per_group, last * per_group)
        threads = Threads(
            code, frame.signature, Values(frame.values, running, memory), grid=grid, size=size,
            first=first, last=last,
        )  # fmt: skip
        buffers: list[GroupBuffer] = []
        for kind in kinds:
            dtype, address = stored_dtype(kind.element_type), 0
            if buffers:
                end = buffers[-1].address + buffers[-1].words[0].nbytes
                address = -(-end // ALIGNMENT) * ALIGNMENT
            own_memory = first, last, kind.shape, dtype, address
            buffers.append(GroupBuffer.of(*own_memory, threads.barriers))
        threads.shared = buffers
        indices = _indices(threads) if count > len(own) else []
        threads.run(body, [*indices, *own, *buffers])
        if threads.barriers.are_pending:
            raise ValueError("a group ends while a copy to its memory is on its way")


def _indices(threads: Threads) -> list[Any]:
    """The indices and extents that the region of a launch takes."""
    group = threads.running // threads.per_group
    thread = threads.running % threads.per_group
    return [
        *(index_along(group, threads.grid, axis) for axis in range(3)),
        *(index_along(thread, threads.size, axis) for axis in range(3)),
        *threads.grid,
        *threads.size,
    ]
