"""The threads of some groups that run at once: registers, and what operands name."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relax_mlir.interpreter.simt.meetings import Meetings
from relax_mlir.interpreter.simt.pending import Pending
from relax_mlir.interpreter.simt.shadow import Access
from relax_mlir.interpreter.simt.tensor_maps import TensorMap

from .kinds import KINDS, Kind, PtxFault
from .memory import GlobalMemory, GroupMemory
from .program import Kernel

Reader = Callable[["Threads"], Any]
Writer = Callable[["Threads", Any], None]
Step = Callable[["Threads"], None]
WARP = 32
PARAMETER_BYTES = 8
"""Between the addresses of parameters, the first of which is at 0."""
_REGISTER = re.compile(r"%[A-Za-z_]+\d+")
_INTEGER = re.compile(r"-?(0x[0-9a-fA-F]+|\d+)U?")
_ADDRESS = re.compile(r"\[([%\w$.]+)(?:([+-]+)(\d+))?\]")
_SPECIAL = re.compile(r"%(tid|ctaid|ntid|nctaid|laneid|warpid)(?:\.([xyz]))?")


@dataclass
class Threads:
    """Threads with their registers; `on` are the indices of those that run.

    `thread` and `group` are the indices of all of them in their group and in the grid, `parameters`
    the bits of what the kernel takes, `maps` the tensor maps by the addresses of parameters.
    """

    grid: Sequence[int]
    size: Sequence[int]
    group: np.ndarray
    thread: np.ndarray
    parameters: np.ndarray
    memory: GlobalMemory
    shared: GroupMemory
    meetings: Meetings
    maps: dict[int, TensorMap] = field(default_factory=dict)
    on: Any = field(default_factory=lambda: slice(None))
    registers: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pending = Pending.of(len(self.group))
        """Copies that threads began."""
        self.products: dict[int, Any] = {}
        """Of each warpgroup, by its first thread, products that are not complete."""
        self.too_early = np.zeros(0, np.int64)
        """The threads that the last wait was not for yet."""

    @property
    def index(self) -> np.ndarray:
        """The indices of the threads that run."""
        return np.arange(len(self.group))[self.on]

    @property
    def count(self) -> int:
        """How many threads run."""
        return len(self.group[self.on])

    @property
    def access(self) -> Access:
        """The threads that run, as they access memory."""
        return self.access_of(self.on)

    def access_of(self, some: Any) -> Access:
        """Some threads, by their indices here, as they access memory."""
        return self.meetings.access(np.arange(len(self.group))[some])

    def special(self, name: str, axis: int) -> np.ndarray:
        """A register of the machine."""
        if name in ("ntid", "nctaid"):
            return np.uint32((self.size if name == "ntid" else self.grid)[axis])
        if name in ("laneid", "warpid"):
            of = self.thread[self.on]
            return (of % WARP if name == "laneid" else of // WARP).astype(np.uint32)
        index, extents = (self.thread, self.size) if name == "tid" else (self.group, self.grid)
        before = int(np.prod(extents[:axis], dtype=np.int64))
        return (index[self.on] // before % extents[axis]).astype(np.uint32)


class Operands:
    """Readers and writers of the operands of a kernel's instructions."""

    def __init__(self, kernel: Kernel, addresses: dict[str, int]) -> None:
        """`addresses` are those of the tables of the module."""
        self._kernel = kernel
        parameters = {x: PARAMETER_BYTES * i for i, (x, _) in enumerate(kernel.parameters)}
        self._symbols = {**addresses, **kernel.shared, **parameters}
        texts = (text for block in kernel.blocks for i in block.instructions for text in i.operands)
        self._uses = Counter(name for text in texts for name in _REGISTER.findall(text))

    def is_used_again(self, register: str) -> bool:
        """Whether a register is an operand more than once."""
        return self._uses[register] > 1

    def reader(self, text: str, kind: Kind, may_be_larger: bool = False) -> Reader:
        """A function that reads an operand as values of a type."""
        bits = self.bits_reader(text, kind, may_be_larger)
        return lambda threads: kind.values(bits(threads))

    def bits_reader(self, text: str, kind: Kind, may_be_larger: bool = False) -> Reader:
        """A function that reads the bits of an operand, of the size of a type.

        Stores and conversions take larger registers, of which they read the low bits.
        """
        if _REGISTER.fullmatch(text):
            return _register_reader(text, self._declared(text), kind, may_be_larger)
        if special := _SPECIAL.fullmatch(text):
            name, axis = special[1], "xyz".index(special[2] or "x")
            return lambda threads: threads.special(name, axis).astype(kind.bits)
        constant = np.array(self._constant(text) % (1 << 8 * kind.bits.itemsize), np.uint64)
        constant = constant.astype(kind.bits)
        return lambda threads: constant

    def writer(self, text: str, kind: Kind) -> Writer:
        """A function that writes values of a type to a register."""
        if text == "_":
            return lambda threads, values: None
        declared = self._declared(text)
        whole, own = declared.bits, kind.bits
        if whole.itemsize < own.itemsize:
            raise PtxFault(f"{text} has no room for {kind.name}")
        signed = np.dtype(f"int{8 * whole.itemsize}") if kind.is_signed else whole

        def write(threads: Threads, values: Any) -> None:
            registers = threads.registers
            bits = kind.encoded(values)
            if whole != own:
                bits = (
                    (bits.view(kind.dtype) if kind.is_signed else bits).astype(signed).view(whole)
                )
            if text not in registers:
                registers[text] = np.zeros(len(threads.group), whole)
            registers[text][threads.on] = bits

        return write

    def address(self, text: str) -> Reader:
        """A function that reads the address in brackets."""
        match = _ADDRESS.fullmatch(text)
        if match is None:
            raise PtxFault(f"an address is not known: {text}")
        base, sign, offset = match.groups()
        shift = int(offset or 0) * (-1 if sign and "-" in sign else 1)
        is_word = base.startswith("%") and self._declared(base).bits.itemsize == 4
        read = self.bits_reader(base, KINDS["b32" if is_word else "b64"])
        return lambda threads: read(threads).astype(np.int64) + shift

    def _declared(self, register: str) -> Kind:
        return KINDS[self._kernel.registers[register.rstrip("0123456789")]]

    def _constant(self, text: str) -> int:
        if text.startswith(("0f", "0d", "0F", "0D")):
            return int(text[2:], 16)
        if _INTEGER.fullmatch(text):
            return int(text.rstrip("U"), 0)
        if text in self._symbols:
            return self._symbols[text]
        raise PtxFault(f"an operand is not known: {text}")


def _register_reader(text: str, declared: Kind, kind: Kind, may_be_larger: bool) -> Reader:
    whole, own = declared.bits, kind.bits
    fits = may_be_larger and whole.itemsize > own.itemsize
    if (own.kind == "b") != (whole.kind == "b") or not (fits or own.itemsize == whole.itemsize):
        raise PtxFault(f"{text} of {declared.name} is read as {kind.name}")

    def read(threads: Threads) -> np.ndarray:
        if text not in threads.registers:
            raise PtxFault(f"{text} is read before it is written")
        bits = threads.registers[text][threads.on]
        return bits if whole == own else bits.astype(own)

    return read
