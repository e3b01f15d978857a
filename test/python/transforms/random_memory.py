"""Random graph functions that make planning hard: casts, views, updates, branches, loops, calls.

Tensors have the dims [s, 4] or [4*s] of a symbol s, or [4, 4]. What a tensor program computes is
told by its name (`KERNELS`); all numbers are small integers, so order does not change them.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from memory_machine import Kernel

_ROWS: dict[str, Kernel] = {
    "twice": lambda x: [x % 64 * 2],
    "roll": lambda x: [np.roll(x, 1, axis=0) + 1],
    "add": lambda x, y: [(x + 3 * y) % 256],
    "fit": lambda x, y: [(y + np.resize(np.append(x, 5), y.shape)) % 256],
    "both": lambda x, y: [(x + y) % 256, x - y],
    "update": lambda x, old: [(old * 3 + x) % 128],
    "increase": lambda old: [old + 1],
    "exchange": lambda old, other: [other + 1, old],
    "split": lambda x, old: [(old - x) % 128, x % 16],
}
KERNELS = _ROWS | {f"{name}_flat": kernel for name, kernel in _ROWS.items()}
SIZES = ((3, 2), (1, 0), (0, 5), (5, 5))
"""Values of n and m."""


@dataclass(frozen=True)
class Value:
    """A tensor's name, its symbol or "" for 4, and whether it has one dim instead of two."""

    name: str
    symbol: str
    flat: bool = False

    @property
    def type(self) -> str:
        if not self.symbol:
            return "tensor<16xf32>" if self.flat else "tensor<4x4xf32>"
        dims = f'"4*{self.symbol}"' if self.flat else f'"{self.symbol}", 4'
        return f"tensor<{'?' if self.flat else '?x4'}xf32, #graph.shape<[{dims}]>>"


ARGUMENTS = (Value("%x", "n"), Value("%y", "m"), Value("%z", "n"), Value("%w", ""))


@dataclass
class RandomProgram:
    """A function `main` of `ARGUMENTS`, a condition and a number of rounds, and its kernels."""

    parameters: ClassVar[tuple[Value, ...]] = ARGUMENTS
    head: ClassVar[tuple[str, ...]] = (
        "%zero = arith.constant 0 : index",
        "%one = arith.constant 1 : index",
    )

    advance: ClassVar[str] = "{new} = arith.addi {old}, %one : index"

    seed: int
    size: int = 12
    lines: list[str] = field(default_factory=list)
    inout: dict[int, int] = field(default_factory=dict)
    number: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        values = list(self.parameters)
        self.block(values, self.size, 0)
        returned = [self.pick(values) for _ in range(self.random.randint(1, 3))]
        for index, argument in enumerate(self.parameters):
            if self.random.random() < 0.5:
                self.inout[index] = len(returned)
                returned.append(self.pick(values, argument.type))
        self.returned = returned

    @property
    def text(self) -> str:
        """The module."""
        names, types = _listed(self.returned)
        return "\n".join(
            [
                *_kernels(),
                f"func.func @main({self.signature}, %c: i1, %rounds: index) -> ({types}) {{",
                *self.head,
                *self.lines,
                f"  return {names} : {types}",
                "}",
            ]
        )

    @property
    def signature(self) -> str:
        """The tensors that `main` takes, and which results they are the updated values of."""
        return ", ".join(
            f"{a.name}: {a.type}"
            + (f" {{graph.inout = {self.inout[i]} : i64}}" if i in self.inout else "")
            for i, a in enumerate(self.parameters)
        )

    def arguments(self, n: int, m: int, condition: bool, rounds: int) -> list:
        """Arguments of the given sizes."""
        generator = np.random.default_rng(self.seed)
        shapes = [({"n": n, "m": m, "": 4}[a.symbol], 4) for a in ARGUMENTS]
        arrays = [generator.integers(0, 100, shape).astype(np.float32) for shape in shapes]
        return [*arrays, condition, rounds]

    def block(self, values: list[Value], size: int, depth: int) -> None:
        """Adds statements, whose results join the values."""
        makers: list[Callable[[list[Value], int], None]] = [self.call] * 6 + [self.update] * 4
        makers += [self.reshape, self.reshape, self.cast, self.cast, self.constant, self.helper]
        makers += [self.branch, self.count, self.repeat] if depth < 2 else []
        for _ in range(size):
            self.random.choice(makers)(values, depth)

    def fresh(self) -> str:
        self.number += 1
        return f"%v{self.number}"

    def new(self, symbol: str, flat: bool = False) -> Value:
        return replace(self.parameters[0], name=self.fresh(), symbol=symbol, flat=flat)

    def pick(self, values: Sequence[Value], type_: str | None = None) -> Value:
        """A value, of a type if that is given; late ones rather than early ones."""
        found = [value for value in values if type_ in (None, value.type)]
        return self.random.choice(found[-6:] if self.random.random() < 0.7 else found)

    def emit(
        self, name: str, ins: Sequence[Value], outs: Sequence[Value], inplace: Sequence[int] = ()
    ) -> None:
        name += "_flat" if ins[-1].flat and "flatten" not in name else ""
        extra = f"inplace_indices = array<i64: {str(list(inplace))[1:-1]}>, " if inplace else ""
        op = "call_tir_inplace" if inplace else "call_tir"
        self.add(_call(op, name, f"{extra}sym_args = #graph.shape<[]>, ", ins, outs))

    def call(self, values: list[Value], depth: int) -> None:
        name = self.random.choice(["twice", "roll", "add", "fit", "both"])
        rows = [value for value in values if name != "fit" or not value.flat]
        first = self.pick(rows)
        second = self.pick(rows, None if name == "fit" else first.type)
        ins = [first] if name in ("twice", "roll") else [first, second]
        self.emit(name, ins, self.like([ins[-1]] * (2 if name == "both" else 1), values))

    def update(self, values: list[Value], depth: int) -> None:
        name = self.random.choice(["update", "increase", "exchange", "split"])
        old = self.pick(values)
        other = self.pick(values, old.type)
        ins = {"increase": [old], "exchange": [old, other]}.get(name, [other, old])
        inplace = {"increase": [0], "exchange": [0, 1], "update": [1], "split": [1, -1]}[name]
        self.emit(name, ins, self.like([old] * len(inplace), values), inplace)

    def reshape(self, values: list[Value], depth: int) -> None:
        old = self.pick(values)
        values.append(self.new(old.symbol, not old.flat))
        self.emit("unflatten" if old.flat else "flatten", [old], [values[-1]])

    def cast(self, values: list[Value], depth: int) -> None:
        """Binds a symbol; one that is bound already would assert that they are equal."""
        old = self.pick(values)
        symbol = f"k{self.random.randint(0, 5)}"
        is_new = old.symbol and symbol not in {value.symbol for value in values}
        new = self.new(symbol if is_new else old.symbol, old.flat)
        self.add(f'{new.name} = "graph.match_cast"({old.name}) : ({old.type}) -> {new.type}')
        values.append(new)

    def constant(self, values: list[Value], depth: int) -> None:
        values.append(self.new(""))
        number = self.number % 7
        self.add(f"{values[-1].name} = arith.constant dense<{number}.0> : {values[-1].type}")

    def helper(self, values: list[Value], depth: int) -> None:
        first = self.pick([value for value in values if not value.flat])
        ins = [first, self.pick(values, first.type)]
        self.add(_call("call", "helper", "", ins, self.like(ins, values)))

    def branch(self, values: list[Value], depth: int) -> None:
        like = [self.pick(values) for _ in range(self.random.randint(1, 2))]
        outer = list(values)
        names, types = _listed(self.like(like, values))
        self.add(f"{names} = scf.if %c -> ({types}) {{")
        for end in ("} else {", "}"):
            inner = self.nested(outer, depth)
            yielded, _ = _listed([self.pick(inner, value.type) for value in like])
            self.add(f"scf.yield {yielded} : {types}", end)

    def count(self, values: list[Value], depth: int) -> None:
        entering, outer = self.carried(values), list(values)
        names, types = _listed(self.like(entering, values))
        arguments: list[Value] = []
        self.like(entering, arguments)
        pairs = _pairs(arguments, entering)
        loop = f"scf.for {self.fresh()} = %zero to %rounds step %one iter_args({pairs})"
        self.add(f"{names} = {loop} -> ({types}) {{")
        inner = self.nested([*outer, *arguments], depth)
        yielded, _ = _listed([self.pick(inner, value.type) for value in entering])
        self.add(f"scf.yield {yielded} : {types}", "}")

    def repeat(self, values: list[Value], depth: int) -> None:
        """A loop both parts of which may hold statements."""
        entering, outer = self.carried(values), list(values)
        names, types = _listed(self.like(entering, values))
        before: list[Value] = []
        after: list[Value] = []
        self.like(entering, before)
        self.like(entering, after)
        i, j, end, more, following = (self.fresh() for _ in range(5))
        pairs = _pairs(before, entering)
        types += ", index"
        self.add(f"{names}, {end} = scf.while ({pairs}, {i} = %zero) : ({types}) -> ({types}) {{")
        inner = self.nested([*outer, *before], depth)
        forwarded, _ = _listed([self.pick(inner, value.type) for value in entering])
        self.add(
            f"{more} = arith.cmpi slt, {i}, %rounds : index",
            f"scf.condition({more}) {forwarded}, {i} : {types}",
            "} do {",
            f"^bb0({', '.join(f'{v.name}: {v.type}' for v in after)}, {j}: index):",
        )
        inner = self.nested([*outer, *after], depth)
        yielded, _ = _listed([self.pick(inner, value.type) for value in entering])
        self.add(
            self.advance.format(new=following, old=j),
            f"scf.yield {yielded}, {following} : {types}",
            "}",
        )

    def carried(self, values: list[Value]) -> list[Value]:
        return [self.pick(values) for _ in range(self.random.randint(1, 2))]

    def nested(self, outer: Sequence[Value], depth: int) -> list[Value]:
        """Statements that see the outer values; returns what is known behind them."""
        inner = list(outer)
        self.block(inner, self.random.randint(0, 3), depth + 1)
        return inner

    def like(self, models: Sequence[Value], values: list[Value]) -> list[Value]:
        """New values with the types of others, which join the values."""
        new = [self.new(model.symbol, model.flat) for model in models]
        values += new
        return new

    def add(self, *lines: str) -> None:
        self.lines += lines


def _listed(values: Sequence[Value]) -> tuple[str, str]:
    """The names and the types of some values."""
    return ", ".join(v.name for v in values), ", ".join(v.type for v in values)


def _pairs(arguments: Sequence[Value], entering: Sequence[Value]) -> str:
    return ", ".join(f"{a.name} = {b.name}" for a, b in zip(arguments, entering, strict=True))


def _call(op: str, callee: str, more: str, ins: Sequence[Value], outs: Sequence[Value]) -> str:
    (names, in_types), (results, out_types) = _listed(ins), _listed(outs)
    segments = [str([1] * len(v) + [0] * (n - len(v)))[1:-1] for v, n in ((ins, 32), (outs, 8))]
    return (
        f'{results} = "graph.{op}"({names}) {{callee = @{callee}, {more}operandSegmentSizes = '
        f"array<i32: {segments[0]}>, resultSegmentSizes = array<i32: {segments[1]}>}} : "
        f"({in_types}) -> ({out_types})"
    )


def _kernel(name: str, ins: Sequence[Value], outs: Sequence[Value], extra: str = "") -> str:
    parameters = ", ".join(f"{value.name}: {value.type}" for value in (*ins, *outs))
    names, types = _listed(outs)
    return (
        f"func.func private @{name}({parameters}) -> ({types}) attributes "
        f"{{tir.prim_func, tir.num_outs = {len(outs)} : i64{extra}}} {{ return {names} : {types} }}"
    )


def _kernels() -> list[str]:
    a, b, c, d = (Value(name, "p") for name in ("%a", "%b", "%c", "%d"))
    rows, flat, other = Value("%r", "p"), Value("%f", "p", flat=True), Value("%e", "q")
    helper = [
        _call("call_tir", "roll", "sym_args = #graph.shape<[]>, ", [a], [c]),
        _call(
            "call_tir_inplace",
            "update",
            "inplace_indices = array<i64: 1>, sym_args = #graph.shape<[]>, ",
            [c, a],
            [d],
        ),
    ]
    found = [_kernel("fit", [other, b], [c])]
    for suffix in ("", "_flat"):
        a, b, c, d = (Value(name, "p", bool(suffix)) for name in ("%a", "%b", "%c", "%d"))
        found += [
            _kernel(f"twice{suffix}", [a], [b]),
            _kernel(f"roll{suffix}", [a], [b]),
            _kernel(f"add{suffix}", [a, b], [c]),
            _kernel(f"both{suffix}", [a, b], [c, d]),
            _kernel(f"update{suffix}", [a], [b]),
            _kernel(f"increase{suffix}", [], [a]),
            _kernel(f"exchange{suffix}", [], [a, b]),
            _kernel(f"split{suffix}", [a], [b, c]),
        ]
    return [
        *found,
        _kernel("flatten", [rows], [flat], ", tir.reshape"),
        _kernel("unflatten", [flat], [rows], ", tir.reshape"),
        f"func.func private @helper(%a: {rows.type} {{graph.inout = 0 : i64}}, %b: {rows.type})",
        f"    -> ({rows.type}, {rows.type}) {{",
        *helper,
        f"  return %d, %a : {rows.type}, {rows.type}",
        "}",
    ]
