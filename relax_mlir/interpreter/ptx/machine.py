"""Runs a kernel: which threads run next, and barriers."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from textwrap import shorten

import numpy as np

from relax_mlir.interpreter.simt.meetings import Meetings
from relax_mlir.interpreter.simt.tensor_maps import TensorMap

from .instructions import step_of
from .kinds import KINDS, PtxFault
from .memory import Buffer, GlobalMemory, GroupMemory
from .program import MAP, Block, Instruction, Kernel, Program
from .threads import PARAMETER_BYTES, WARP, Operands, Reader, Step, Threads

_TEXT = 100
"""Characters of an instruction that a message has."""
THREADS = 1 << 15
"""Threads that run at once."""


def run(
    program: Program,
    name: str,
    grid: Sequence[int],
    size: Sequence[int],
    arguments: Sequence[int | float | TensorMap],
    buffers: Sequence[Buffer],
    shared_bytes: int = 0,
) -> None:
    """Runs a kernel of a program on a grid of groups of a size.

    Arguments are integers, bits of floats as integers, or tensor maps; addresses are those of
    `buffers`. Raises PtxFault at what a device would refuse, or might.
    """
    kernel = program.kernels.get(name)
    if kernel is None:
        raise PtxFault(f"no kernel '{name}'; there are {', '.join(program.kernels) or 'none'}")
    if min(*grid, *size) <= 0:
        raise PtxFault(f"no threads: grid {list(grid)}, groups {list(size)}")
    if kernel.most_threads is not None and prod(size) > kernel.most_threads:
        raise PtxFault(f"groups of {prod(size)} threads, but .maxntid says {kernel.most_threads}")
    if len(arguments) != len(kernel.parameters):
        raise PtxFault(f"{len(arguments)} arguments for {len(kernel.parameters)} parameters")
    tables = [Buffer.of(np.frombuffer(t.values, np.uint8), False) for t in program.tables.values()]
    addresses = {name: table.address for name, table in zip(program.tables, tables, strict=True)}
    code = _decoded(kernel, addresses)
    units = {space: _unit(kernel, space) for space in ("global", "shared")}
    memory = GlobalMemory([*buffers, *tables], units["global"])
    maps = _maps(kernel, arguments)
    values = (0 if isinstance(x, TensorMap) else int(x) % (1 << 64) for x in arguments)
    parameters = np.array([*values], np.uint64)
    uses_warpgroups = any(i.name == "wgmma" for b in kernel.blocks for i in b.instructions)
    groups, per_group = prod(grid), prod(size)
    at_once = max(1, THREADS // per_group)
    for first in range(0, groups, at_once):
        count = min(groups - first, at_once)
        shared = GroupMemory(
            first, count, kernel.shared_bytes + shared_bytes, units["shared"],
            per_group,
        )  # fmt: skip
        index = np.arange(count * per_group)
        if uses_warpgroups:
            shared.track()
        threads = Threads(
            grid, size, first + index // per_group, index % per_group, parameters, memory, shared,
            Meetings(first, count, per_group, shared.barriers), maps,
        )  # fmt: skip
        with np.errstate(all="ignore"):
            _Run(code, threads, per_group).run()
            if shared.barriers.are_pending:
                raise PtxFault("a group ends while a copy to its memory is on its way")


def _maps(kernel: Kernel, arguments: Sequence[int | float | TensorMap]) -> dict[int, TensorMap]:
    """The tensor maps among arguments, by the addresses of parameters."""
    maps = {}
    for i, (x, (name, kind)) in enumerate(zip(arguments, kernel.parameters, strict=True)):
        if isinstance(x, TensorMap) != (kind == MAP):
            raise PtxFault(f"'{x}' is passed for {name}")
        if isinstance(x, TensorMap):
            maps[PARAMETER_BYTES * i] = x
    return maps


def _unit(kernel: Kernel, space: str) -> int:
    """The bytes of the smallest access to a space."""
    sizes = [
        KINDS[i.kinds[-1]].bits.itemsize
        for block in kernel.blocks
        for i in block.instructions
        if i.name in ("ld", "st", "atom", "red") and space in i.modifiers
    ]
    return min(sizes, default=1)


def _is_of_warps(code: "_Code") -> bool:
    """Whether the barrier that ends a block is of warps: threads of others see nothing by it."""
    return code.texts[-1].split()[0].endswith("bar.warp.sync")


@dataclass
class _Code:
    """A block: its steps, and the jump that ends it."""

    steps: list[Step]
    texts: list[str]
    jump: str = ""
    target: int = -1
    guard: Reader | None = None
    part: tuple[int, int] | None = None
    """The name of a barrier of some threads, and how many of them a group has; of all if None."""
    waits: bool = False
    """Whether the last step is a wait, after which those that it was not for yet look again."""


def _decoded(kernel: Kernel, addresses: dict[str, int]) -> list[_Code]:
    operands = Operands(kernel, addresses)
    return [_decode(kernel, operands, block) for block in kernel.blocks]


def _decode(kernel: Kernel, operands: Operands, block: Block) -> _Code:
    code = _Code([], [])
    for instruction in block.instructions:
        guard = None
        if instruction.guard is not None:
            read, wanted = operands.reader(instruction.guard, KINDS["pred"]), instruction.wanted
            guard = read if wanted else _negated(read)
        if instruction.name in ("bra", "ret", "exit", "bar", "barrier"):
            code.jump, code.guard = instruction.name, guard
            code.texts.append(instruction.text)
            if instruction.name == "bra":
                code.target = kernel.labels[instruction.operands[-1]]
            elif instruction.name in ("bar", "barrier"):
                code.part = _part_of(instruction)
            continue
        step = step_of(instruction, operands)
        code.steps.append(step if guard is None else _guarded(step, guard))
        code.texts.append(instruction.text)
        code.waits = instruction.waits
    return code


def _part_of(instruction: Instruction) -> tuple[int, int] | None:
    """The name and the count of threads of a barrier, of what is not all of a group or a warp."""
    words = instruction.operands
    if "warp" in instruction.modifiers or words == ("0",):
        return None
    if instruction.modifiers[0] != "sync" or len(words) != 2 or not all(map(str.isdecimal, words)):
        raise PtxFault(f"a barrier is not known: {instruction.text}")
    if int(words[1]) % WARP:
        raise PtxFault(f"a barrier is of no whole warps: {instruction.text}")
    return int(words[0]), int(words[1])


def _negated(read: Reader) -> Reader:
    return lambda threads: ~read(threads)


def _guarded(step: Step, guard: Reader) -> Step:
    def run(threads: Threads) -> None:
        before = threads.on
        index = np.arange(len(threads.group))[before]
        threads.on = index[guard(threads)]
        if len(threads.on):
            step(threads)
        threads.on = before

    return run


@dataclass
class _Run:
    """Threads on their way through a kernel: those that reached a block run with the first one."""

    code: list[_Code]
    threads: Threads
    per_group: int
    reached: dict[int, list[np.ndarray]] = field(default_factory=dict)
    waiting: dict[int, np.ndarray] = field(default_factory=dict)
    _order: list[int] = field(default_factory=list)
    _too_early: list[tuple[int, np.ndarray]] = field(default_factory=list)
    _changes: int = -1

    def run(self) -> None:
        """Runs until all threads have returned."""
        self._go(0, np.arange(len(self.threads.group)))
        while self._order or self._pass_warps() or self._look_again():
            block = heapq.heappop(self._order)
            parts = self.reached.pop(block)
            index = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
            everyone = len(index) == len(self.threads.group)
            self.threads.on = slice(None) if everyone else index
            self._run_block(block, index)
        if self.waiting:
            block, index = next(iter(self.waiting.items()))
            of_warps = _is_of_warps(self.code[block])
            units, sizes = self._units(self.code[block])
            counts = np.bincount(units[index], minlength=len(sizes))
            missing, unit = int((sizes - counts)[counts != 0].max()), ("group", "warp")[of_warps]
            text = self.code[block].texts[-1]
            raise PtxFault(f"'{text}': a barrier that {missing} threads of a {unit} do not reach")

    def _look_again(self) -> bool:
        """Has threads go on that have to look at a barrier again, when no others can run.

        Raises PtxFault if no phase of a barrier was complete since they did that the last time.
        """
        away, self._too_early = self._too_early, []
        barriers = self.threads.shared.barriers
        if away:
            barriers.complete_copies()
        changes = barriers.changes
        if away and changes == self._changes:
            count = sum(len(index) for _, index in away)
            raise PtxFault(f"{count} threads wait for a phase of a barrier that is never complete")
        self._changes = changes
        for block, index in away:
            self._go(block, index)
        return bool(self._order)

    def _units(self, code: _Code) -> tuple[np.ndarray, np.ndarray]:
        """The group or warp of each thread, counted from 0, and how many of them meet."""
        units = self.threads.group - self.threads.group[0]
        if _is_of_warps(code):
            per_group = -(-self.per_group // WARP)
            units = units * per_group + self.threads.thread // WARP
        sizes = np.bincount(units)
        return units, sizes if code.part is None else np.full_like(sizes, code.part[1])

    def _go(self, block: int, index: np.ndarray) -> None:
        if not len(index):
            return
        if block not in self.reached:
            self.reached[block] = []
            heapq.heappush(self._order, block)
        self.reached[block].append(index)

    def _run_block(self, block: int, index: np.ndarray) -> None:
        code, threads = self.code[block], self.threads
        for step, text in zip(code.steps, code.texts, strict=False):
            try:
                step(threads)
            except ValueError as fault:
                raise PtxFault(f"'{shorten(text, _TEXT)}': {fault}") from None
        if code.waits:
            away = threads.too_early
            if len(away):
                self._too_early.append((block + 1, away))
            index = np.setdiff1d(index, away, assume_unique=True)
        if not code.jump:
            if block + 1 < len(self.code):
                self._go(block + 1, index)
            return
        rest = index[:0]
        if code.guard is not None:
            taken = np.broadcast_to(code.guard(threads), index.shape)
            index, rest = index[taken], index[~taken]
            self._go(block + 1, rest)
        if code.jump == "bra":
            self._go(code.target, index)
        elif code.jump in ("bar", "barrier"):
            self._wait(block, index)

    def _wait(self, block: int, index: np.ndarray) -> None:
        """Has threads wait; those of groups of which all do go on."""
        if block in self.waiting:
            index = np.sort(np.concatenate([self.waiting[block], index]))
        self.waiting[block] = index
        code, meetings = self.code[block], self.threads.meetings
        if not _is_of_warps(code):
            ready = self._pass(block)
            if code.part is None:
                meetings.meet(ready)
                return
            try:
                meetings.meet_part(ready, code.part[0])
            except ValueError as fault:
                raise PtxFault(f"'{code.texts[-1]}': {fault}") from None

    def _pass_warps(self) -> bool:
        """Has whole warps go on that wait; they do so late, together with others of warpgroups."""
        blocks = [block for block in self.waiting if _is_of_warps(self.code[block])]
        return any([self._pass(block).size for block in blocks])

    def _pass(self, block: int) -> np.ndarray:
        """Has threads go on that wait at the end of a block with all who are to meet there."""
        index = self.waiting.pop(block)
        units, sizes = self._units(self.code[block])
        complete = np.bincount(units[index], minlength=len(sizes)) == sizes
        ready = complete[units[index]]
        self._go(block + 1, index[ready])
        if not ready.all():
            self.waiting[block] = index[~ready]
        return index[ready]
