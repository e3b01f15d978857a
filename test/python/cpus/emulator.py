"""Runs compiled modules for AArch64, instruction by instruction, on a machine of any kind.

    machine = Machine(data, "max")
    machine.call("rx_get_threads")

The shared object is loaded as the system's loader would: segments at a base, relocations applied,
imports bound to functions of Python (`emulated_libc.py`). Every array lies at the end of pages of
its own, so that an access behind it, to memory that was freed, or to code, ends the run.

Source: System V ABI, chapter 5; Procedure Call Standard for the Arm 64-bit Architecture, section 6.
"""

import struct

import unicorn
from emulated_libc import FUNCTIONS
from unicorn import arm64_const as arm

PAGE = 0x1000
BASE, IMPORTS, HEAP, STACK = 0x55_0000_0000, 0x60_0000_0000, 0x70_0000_0000, 0x7F_0000_0000
STACK_BYTES = 1 << 20
RETURN = bytes.fromhex("c0035fd6")
# Armv8.0 without extensions, and all that the emulator knows (8.2 with dot products among it).
CPUS = {"base": arm.UC_CPU_ARM64_A72, "max": arm.UC_CPU_ARM64_MAX}
ABSOLUTE, SLOT, RELATIVE = 257, 1025, 1027
GARBAGE = b"\xa5"


class Fault(Exception):
    """Emulated code did what ends a process."""


class Machine:
    """A CPU, its memory and one shared object in it."""

    word = 8

    def __init__(self, data: bytes, cpu: str) -> None:
        self.uc = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        self.uc.ctl_set_cpu_model(CPUS[cpu])
        self.uc.mem_map(STACK - STACK_BYTES, STACK_BYTES)
        self.symbols: dict[str, int] = {}
        self.memory = 1 << 30  # bytes that can be allocated
        self.jumps: dict[int, list[int]] = {}
        self._blocks: dict[int, tuple[int, int, int]] = {}  # address -> start, length, bytes
        self._next = HEAP
        self._imports: list[str] = []
        self._failure: Exception | None = None
        self.uc.mem_map(IMPORTS, PAGE, unicorn.UC_PROT_READ | unicorn.UC_PROT_EXEC)
        self.uc.hook_add(
            unicorn.UC_HOOK_CODE, self._import_called, begin=IMPORTS, end=IMPORTS + PAGE
        )
        self._load(data)

    # Memory

    def read(self, address: int, count: int) -> bytes:
        """Bytes of memory."""
        return bytes(self.uc.mem_read(address, count)) if count else b""

    def write(self, address: int, data: bytes) -> None:
        """Stores bytes."""
        if data:
            self.uc.mem_write(address, data)

    def text(self, address: int) -> str:
        """The string of C at an address."""
        found = b""
        while not found.endswith(b"\0"):
            found += self.read(address + len(found), 1)
        return found[:-1].decode()

    def allocate(self, count: int, alignment: int = 16) -> int:
        """The address of that much new memory; it ends where its pages do, if aligned so.

        0 if it is more than there is.
        """
        if sum(self.allocated) + count > self.memory:
            return 0
        length = -(-max(count, 1) // PAGE) * PAGE
        start = -(-self._next // max(alignment, PAGE)) * max(alignment, PAGE)
        self._next = start + length + PAGE  # and a page that is not there
        self.uc.mem_map(start, length, unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
        address = (start + length - max(count, 1)) // alignment * alignment
        self._blocks[address] = start, length, count
        self.write(start, GARBAGE * length)
        return address

    def release(self, address: int) -> None:
        """Takes allocated memory away; Fault if what lies around it on its pages was written to."""
        if address not in self._blocks:
            raise Fault(f"free of {address:#x}, which is not allocated")
        start, length, count = self._blocks.pop(address)
        end = start + length
        around = self.read(start, address - start) + self.read(
            address + count, end - address - count
        )
        self.uc.mem_unmap(start, length)
        if around != GARBAGE * len(around):
            raise Fault(f"memory around {count} allocated bytes was written to")

    @property
    def allocated(self) -> list[int]:
        """The sizes of what is allocated."""
        return [count for _, _, count in self._blocks.values()]

    # Calls

    def call(self, name: str, *arguments: int) -> int:
        """Calls a function with integers and addresses; the integer it returns."""
        return self.run(self.symbols[name], *arguments)

    def run(self, address: int, *arguments: int) -> int:
        """The same for an address."""
        registers = [arm.UC_ARM64_REG_X0 + i for i in range(8)]
        top = STACK - 64
        for register, value in zip(registers, arguments, strict=False):
            self.uc.reg_write(register, value & (1 << 64) - 1)
        rest = arguments[8:]
        top -= -(-8 * len(rest) // 16) * 16
        self.write(top, struct.pack(f"<{len(rest)}q", *rest))
        self.uc.reg_write(arm.UC_ARM64_REG_SP, top)
        self.uc.reg_write(arm.UC_ARM64_REG_LR, IMPORTS + PAGE - 4)
        kept = self.registers()
        try:
            self.uc.emu_start(address, IMPORTS + PAGE - 4)
        except unicorn.UcError as error:
            at = self.uc.reg_read(arm.UC_ARM64_REG_PC) - BASE
            raise self._failure or Fault(f"{error} at {at:#x} of the module") from None
        if self._failure:
            raise self._failure
        if self.registers()[:-1] != kept[:-1]:
            raise Fault("a register or the stack was not restored")
        return self.uc.reg_read(arm.UC_ARM64_REG_X0)

    def registers(self) -> list[int]:
        """The registers that a function gives back as they were, and where it returns to."""
        return [self.uc.reg_read(register) for register in _KEPT]

    def set_registers(self, values: list[int]) -> None:
        """Sets those registers."""
        for register, value in zip(_KEPT, values, strict=True):
            self.uc.reg_write(register, value)

    def _import_called(self, uc: unicorn.Uc, address: int, size: int, data: object) -> None:
        name = self._imports[(address - IMPORTS) // 4]
        arguments = [uc.reg_read(arm.UC_ARM64_REG_X0 + i) for i in range(6)]
        try:
            if name not in FUNCTIONS:
                raise Fault(f"call of '{name}', which is not emulated")
            uc.reg_write(arm.UC_ARM64_REG_X0, FUNCTIONS[name](self, *arguments) & (1 << 64) - 1)
        except Exception as error:
            self._failure = error  # must not pass through the emulator, which is C
            uc.emu_stop()

    # Loading

    def _load(self, data: bytes) -> None:
        kind, machine = struct.unpack_from("<HH", data, 16)
        assert data[:4] == b"\x7fELF", "no ELF file"
        assert (kind, machine) == (3, 183), "no shared object for AArch64"
        (at,), (count,) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<H", data, 56)
        headers = [struct.unpack_from("<IIQQQQQQ", data, at + 56 * i) for i in range(count)]
        for type, _, offset, address, _, in_file, in_memory, align in headers:
            if type == 1:
                assert offset % align == address % align, "a segment is not where its pages are"
                start, end = _pages(address, in_memory)
                self.uc.mem_map(start, end - start)
                self.write(BASE + address, data[offset : offset + in_file])
        tags: dict[int, int] = {}
        for type, _, offset, _, _, in_file, _, _ in headers:
            if type == 2:
                tags = dict(struct.iter_unpack("<QQ", data[offset : offset + in_file]))
        self._relocate(data, tags)
        for wanted in (1, 0x6474E552):  # what is read-only after relocation comes last
            for type, flags, _, address, _, _, in_memory, _ in headers:
                if type == wanted:
                    start, end = _pages(address, in_memory)
                    self.uc.mem_protect(start, end - start, _protection(flags))

    def _relocate(self, data: bytes, tags: dict[int, int]) -> None:
        symbols = [("", 0)]
        (_, rows) = struct.unpack_from("<II", data, tags[4])
        for row in range(1, rows):
            name, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, tags[6] + 24 * row)
            end = data.index(b"\0", tags[5] + name)
            symbols.append((data[tags[5] + name : end].decode(), BASE + value if section else 0))
        self.symbols = {name: value for name, value in symbols if value}
        for place, info, addend in struct.iter_unpack(
            "<QQq", data[tags.get(7, 0) : tags.get(7, 0) + tags.get(8, 0)]
        ):
            name, value = symbols[info >> 32]
            if info & 0xFFFFFFFF == RELATIVE:
                value = BASE
            elif info & 0xFFFFFFFF not in (ABSOLUTE, SLOT):
                raise Fault(f"relocation {info & 0xFFFFFFFF} of '{name}'")
            elif not value:
                value = self._import(name)
            self.write(BASE + place, struct.pack("<Q", value + addend))
        for tag, size in ((25, 27),):  # initialisers
            for (function,) in struct.iter_unpack(
                "<Q", self.read(BASE + tags.get(tag, 0), tags.get(size, 0))
            ):
                self.run(function)

    def _import(self, name: str) -> int:
        address = IMPORTS + 4 * len(self._imports)
        self._imports.append(name)
        self.uc.mem_write(address, RETURN)
        return address


# X19 to X29, the stack, the low halves of V8 to V15, and the link register.
_KEPT = (
    *range(arm.UC_ARM64_REG_X19, arm.UC_ARM64_REG_X19 + 10),
    arm.UC_ARM64_REG_X29,
    arm.UC_ARM64_REG_SP,
    *range(arm.UC_ARM64_REG_D8, arm.UC_ARM64_REG_D8 + 8),
    arm.UC_ARM64_REG_LR,
)


def _pages(address: int, size: int) -> tuple[int, int]:
    """The first and the end of the pages that hold that memory of the module."""
    start, end = BASE + address, BASE + address + size
    return start // PAGE * PAGE, -(-end // PAGE) * PAGE


def _protection(flags: int) -> int:
    named = ((4, unicorn.UC_PROT_READ), (2, unicorn.UC_PROT_WRITE), (1, unicorn.UC_PROT_EXEC))
    return sum(protection for flag, protection in named if flags & flag)
