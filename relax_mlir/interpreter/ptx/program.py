"""Reads PTX text: kernels as blocks of instructions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .kinds import KINDS, PtxFault

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(r"\.entry\s+([\w$.]+)\s*\(([^)]*)\)([^{]*)\{", re.DOTALL)
_VARIABLE = re.compile(
    r"\.(global|shared|const)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$.]+)(?:\[(\d*)\])?"
    r"(?:\s*=\s*\{?([^;}]*)\}?)?;"
)
_LOCAL = re.compile(r"\.reg\s+\.(\w+)\s+([A-Za-z]+);")
"""What MLIR (a predicate) and LLVM (half a word) declare around an instruction, again each time."""
_STATEMENT = re.compile(
    r"\s*(?:([$\w.]+):(?!:)|(\{)(?=\s)|(\})|((?:[^;{}]|\{[^{}]*\})*);)", re.DOTALL
)
_INSTRUCTION = re.compile(r"(?:@(!?)(%[\w$]+)\s+)?([\w.:]+)\s*(.*)", re.DOTALL)
JUMPS = ("bra", "ret", "exit", "bar", "barrier")
"""Instructions that end a block, as those do that wait."""
MAP = "map"
"""The type of a parameter that is a tensor map."""
_MAP_BYTES = "[128]"


@dataclass(frozen=True)
class Instruction:
    """An instruction: `name` and what follows it after dots, operands, and its guard.

    It runs on the threads where the predicate `guard` is `wanted`.
    """

    text: str
    name: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str | None = None
    wanted: bool = True

    @property
    def kinds(self) -> list[str]:
        """The types that it names, in order."""
        return [name for name in self.modifiers if name in KINDS]

    @property
    def waits(self) -> bool:
        """Whether threads may have to wait, which are told so."""
        return self.name == "mbarrier" and self.modifiers[0] == "try_wait"


@dataclass
class Block:
    """Instructions that run one after another; the last one may jump."""

    instructions: list[Instruction] = field(default_factory=list)


@dataclass(frozen=True)
class Table:
    """A variable of the module, by what it begins with."""

    space: str
    values: bytes


@dataclass
class Kernel:
    """A kernel: its parameters as (name, type), blocks, and the block of each label.

    `registers` are the types of registers by the letters that their names begin with, `shared` the
    variables of a group by their first bytes.
    """

    name: str
    parameters: list[tuple[str, str]]
    most_threads: int | None
    blocks: list[Block] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    shared_bytes: int = 0


@dataclass
class Program:
    """A module of PTX: kernels by name, tables by name."""

    version: str
    target: str
    kernels: dict[str, Kernel] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)


def parse(text: str) -> Program:
    """Reads a module; raises PtxFault at what is not known."""
    text = _COMMENT.sub("", text)
    version, target = (re.search(rf"\.{name}\s+([\w.]+)", text) for name in ("version", "target"))
    if version is None or target is None:
        raise PtxFault("no .version and .target, so it is no PTX")
    program = Program(version[1], target[1])
    ends = 0
    outside = []
    for entry in _ENTRY.finditer(text):
        outside.append(text[ends : entry.start()])
        ends = _closing(text, entry.end())
        program.kernels[entry[1]] = _kernel(entry, text[entry.end() : ends - 1])
    for variable in _variables("".join([*outside, text[ends:]])):
        if variable[0] == "shared":
            for kernel in program.kernels.values():
                _share(kernel, variable)
        else:
            program.tables[variable[3]] = _table(variable)
    return program


def _closing(text: str, start: int) -> int:
    """The position after the brace that closes what was opened before `start`."""
    depth, at = 1, start
    while depth:
        if at == len(text):
            raise PtxFault("a kernel does not end")
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at


def _variables(text: str) -> Iterator[tuple[str, ...]]:
    return (match.groups() for match in _VARIABLE.finditer(text))


def _table(variable: Sequence[str]) -> Table:
    space, _, kind, _, count, values = variable
    dtype = KINDS[kind].bits
    elements = [int(x, 0) for x in values.split(",")] if values else []
    size = dtype.itemsize
    data = b"".join((x % (1 << 8 * size)).to_bytes(size, "little") for x in elements)
    return Table(space, data.ljust(int(count or 1) * size, b"\0"))


def _share(kernel: Kernel, variable: Sequence[str]) -> None:
    """Gives a variable of a group its memory; without brackets it has one element."""
    _, alignment, kind, name, count, _ = variable
    elements = 1 if count is None else int(count or 0)
    by = int(alignment or 1)
    first = -(-kernel.shared_bytes // by) * by
    kernel.shared[name] = first
    kernel.shared_bytes = first + elements * KINDS[kind].bits.itemsize


def _kernel(entry: re.Match[str], body: str) -> Kernel:
    parameters = []
    for parameter in filter(str.strip, entry[2].split(",")):
        *kinds, name = parameter.split()
        kind = next(k[1:] for k in kinds if k[1:] in KINDS)
        if name.endswith(_MAP_BYTES):
            name, kind = name.removesuffix(_MAP_BYTES), MAP
        parameters.append((name, kind))
    most = re.search(r"\.maxntid\s+([\d,\s]+)", entry[3])
    threads = None
    if most is not None:
        threads = 1
        for extent in most[1].split(","):
            threads *= int(extent)
    kernel = Kernel(entry[1], parameters, threads)
    for kind, prefix in re.findall(r"\.reg\s+\.(\w+)\s+(%[A-Za-z_]+)<\d+>;", body):
        kernel.registers[prefix] = kind
    for kind, name in dict.fromkeys(_LOCAL.findall(body)):
        body = _with_local(kernel, body, kind, name)
    for variable in _variables(body):
        _share(kernel, variable)
    _read_blocks(kernel, body)
    return kernel


def _with_local(kernel: Kernel, body: str, kind: str, name: str) -> str:
    """Has a register of inner braces be one of the kernel, which each of them writes first."""
    prefix = f"%local_{name}_"
    if kernel.registers.setdefault(prefix, kind) != kind:
        raise PtxFault(f"'{name}' is declared as .{kind} and as .{kernel.registers[prefix]}")
    return re.sub(rf"(?<![\w%$.]){name}(?=\s*[,;}}])", f"{prefix}0", body)


def _read_blocks(kernel: Kernel, body: str) -> None:
    blocks, at = kernel.blocks, 0
    blocks.append(Block())
    while statement := _STATEMENT.match(body, at):
        at = statement.end()
        if statement[1]:
            if blocks[-1].instructions:
                blocks.append(Block())
            kernel.labels[statement[1]] = len(blocks) - 1
        elif statement[4] and not statement[4].strip().startswith("."):
            instruction = _instruction(" ".join(statement[4].split()))
            blocks[-1].instructions.append(instruction)
            if instruction.name in JUMPS or instruction.waits:
                blocks.append(Block())
    if body[at:].strip():
        raise PtxFault(f"cannot read '{body[at:].strip()[:60]}'")


def _instruction(text: str) -> Instruction:
    match = _INSTRUCTION.fullmatch(text)
    if match is None:
        raise PtxFault(f"cannot read '{text}'")
    negated, guard, name, rest = match.groups()
    first, *modifiers = name.split(".")
    return Instruction(text, first, tuple(modifiers), tuple(split(rest)), guard, not negated)


def split(text: str) -> list[str]:
    """Parts between the commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "[{(") - (c in "]})")
        if c == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]
