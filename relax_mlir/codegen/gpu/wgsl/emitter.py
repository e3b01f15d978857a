"""Emits the body of a kernel: lines of WGSL, and the names of the values that they compute."""

import keyword
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu.index_bounds import IndexBounds
from relax_mlir.passes import PassFailure

from .kinds import Kind, kind_of


@dataclass
class Emitter:
    """The text of a kernel so far.

    `buffers` are the accesses to memory by its value, `builtins` the inputs of the entry point,
    `declarations` what is declared at module scope, `shared_bytes` the memory of a group.
    """

    bounds: IndexBounds
    names: dict[ir.Value, str] = field(default_factory=dict)
    buffers: dict[ir.Value, "Buffer"] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    declarations: list[str] = field(default_factory=list)
    builtins: dict[str, None] = field(default_factory=dict)
    shared_bytes: int = 0
    _count: int = 0
    _depth: int = 1

    def name(self, x: ir.Value) -> str:
        """The expression that a value is: a name or a literal."""
        return self.names[x]

    def operands(self, op: ir.Operation) -> list[str]:
        """The expressions of all operands."""
        return [self.names[x] for x in op.operands]

    def fresh(self, prefix: str = "v") -> str:
        """A name that is not used yet."""
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, text: str) -> None:
        """Adds a line."""
        self.lines.append("  " * self._depth + text)

    def let(self, result: ir.Value, expression: str) -> None:
        """Names the value of an expression."""
        self.names[result] = self.fresh()
        self.line(f"let {self.names[result]} = {expression};")

    def kind(self, x: ir.Value) -> Kind:
        """The representation of a value; raises PassFailure if it has none."""
        kind = kind_of(x.type)
        if kind is None:
            text = f"has a value of '{x.type}', which WGSL has no representation of"
            owner = x.owner.owner if isinstance(x.owner, ir.Block) else x.owner
            raise PassFailure(owner, text)
        return kind

    @contextmanager
    def nested(self, head: str, end: str = "}") -> Iterator[None]:
        """Lines within braces."""
        self.line(f"{head} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line(end)

    @contextmanager
    def continued(self) -> Iterator[None]:
        """Lines within braces that the line before opened."""
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    def block(self, block: ir.Block) -> list[str]:
        """Emits the ops of a block; returns what its terminator yields."""
        *ops, terminator = block.operations
        for op in ops:
            self.emit(op.operation)
        return self.operands(terminator.operation)

    def emit(self, op: ir.Operation) -> None:
        """Emits an op; raises PassFailure if WGSL cannot express it."""
        from .dialects import find

        dialect, _, name = op.name.partition(".")
        function = find(dialect, f"{name}_" if keyword.iskeyword(name) else name)
        if function is None:
            raise PassFailure(op, f"'{op.name}' has no translation to WGSL")
        function(self, op)

    def assign(self, targets: Sequence[str], values: Sequence[str]) -> None:
        """Assigns all at once: values may be targets."""
        if any(value in targets for value in values):
            copies = [self.fresh("t") for _ in values]
            for copy, value in zip(copies, values, strict=True):
                self.line(f"let {copy} = {value};")
            values = copies
        for target, value in zip(targets, values, strict=True):
            self.line(f"{target} = {value};")


@dataclass(frozen=True)
class Buffer:
    """How memory is accessed: expressions of an element and statements that store one."""

    kind: Kind
    load: str
    store: str

    def loaded(self, index: str) -> str:
        """An element, as a value."""
        return self.load.replace("INDEX", index)

    def stored(self, index: str, value: str) -> str:
        """A statement that stores an element."""
        return self.store.replace("INDEX", index).replace("VALUE", value)
