"""The same programs as in `random_memory`, of operators that the compiler knows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from random_memory import RandomProgram, Value, _call, _listed

VECTOR = 'tensor<?xf32, #graph.shape<["t"]>>'


HELPER = """
!p = tensor<1x?x4xf32, #graph.shape<[1, "p", 4]>>
!q = tensor<?x1x4xf32, #graph.shape<["p", 1, 4]>>
func.func private @helper(%a: !p {graph.inout = 0 : i64}, %b: !p) -> (!p, !p)
    attributes {graph.noinline} {
  %0 = "graph.reshape"(%b) {shape = #graph.shape<["p", 1, 4]>} : (!p) -> !q
  %1:2 = "graph.nn_kv_append"(%a, %b, %0, %0) {position = #graph.shape<[0]>}
    : (!p, !p, !q, !q) -> (!p, !p)
  return %1#0, %a : !p, !p
}
"""
"""Updates its first argument, and returns the old contents as well."""


@dataclass(frozen=True)
class Cache(Value):
    """A tensor of the dims [1, s, 4], or [s, 1, 4] if it is flat: keys for such a cache."""

    @property
    def type(self) -> str:
        symbol, dim = (f'"{self.symbol}"', "?") if self.symbol else ("3", "3")
        dims = f"{symbol}, 1, 4" if self.flat else f"1, {symbol}, 4"
        shape = f"{dim}x1x4" if self.flat else f"1x{dim}x4"
        return f"tensor<{shape}xf32" + (f", #graph.shape<[{dims}]>>" if self.symbol else ">")

    @property
    def dims(self) -> str:
        symbol = f'"{self.symbol}"' if self.symbol else "3"
        return f"{symbol}, 1, 4" if self.flat else f"1, {symbol}, 4"


@dataclass
class GraphProgram(RandomProgram):
    """A function `main` of caches, and of a vector whose extent says how often loops go round."""

    parameters: ClassVar[tuple[Value, ...]] = (
        Cache("%x", "n"),
        Cache("%y", "m"),
        Cache("%z", "n"),
        Cache("%w", ""),
    )
    head: ClassVar[tuple[str, ...]] = (
        "%zero = arith.constant 0 : index",
        "%one = arith.constant 1 : index",
        f"%rounds = tensor.dim %turns, %zero : {VECTOR}",
        "%c = arith.cmpi eq, %rounds, %one : index",
    )

    # Host code has no sums of indices: such a loop goes round once, or not at all.
    advance: ClassVar[str] = "{new} = tensor.dim %turns, %zero : " + VECTOR

    @property
    def text(self) -> str:
        """The module."""
        names, types = _listed(self.returned)
        lines = (*self.head, *self.lines, f"return {names} : {types}")
        body = "\n".join(f"  {line}" for line in lines)
        return (
            HELPER
            + f"func.func @main({self.signature}, %turns: {VECTOR}) -> ({types}) {{\n{body}\n}}"
        )

    def arrays(self, n: int, m: int, rounds: int) -> list[np.ndarray]:
        """Arguments of the given sizes."""
        generator = np.random.default_rng(self.seed)
        shapes = [(1, {"n": n, "m": m, "": 3}[a.symbol], 4) for a in self.parameters]
        arrays = [generator.integers(-50, 50, shape).astype(np.float32) for shape in shapes]
        return [*arrays, np.zeros(rounds, np.float32)]

    def call(self, values: list[Value], depth: int) -> None:
        first = self.pick(values)
        name, count = self.random.choice(
            [("negative", 1), ("abs", 1), ("maximum", 2), ("minimum", 2), ("subtract", 2)]
        )
        ins = [first, self.pick(values, first.type)][:count]
        self.operator(name, ins, self.like([first], values))

    def update(self, values: list[Value], depth: int) -> None:
        """Appends to two caches, which may be one."""
        caches = [value for value in values if not value.flat]
        first = self.pick(caches)
        key = self.pick(values, first.type) if self.random.random() < 0.5 else first
        (keys,) = self.like([Cache("", first.symbol, True)], values)
        self.operator("reshape", [key], [keys], f"shape = #graph.shape<[{keys.dims}]>")
        ins = [first, self.pick(caches, first.type), keys, self.pick(values, keys.type)]
        outs = self.like([first, first], values)
        self.operator("nn_kv_append", ins, outs, "position = #graph.shape<[0]>")

    def reshape(self, values: list[Value], depth: int) -> None:
        old = self.pick(values)
        (new,) = self.like([Cache("", old.symbol, not old.flat)], values)
        self.operator("reshape", [old], [new], f"shape = #graph.shape<[{new.dims}]>")

    def helper(self, values: list[Value], depth: int) -> None:
        """Calls a function, or normalises rows, which is not fused with everything."""
        old = self.pick(values)
        if old.flat or self.random.random() < 0.5:
            self.operator("nn_softmax", [old], self.like([old], values), "axis = 2 : i64")
        else:
            ins = [old, self.pick(values, old.type)]
            self.add(_call("call", "helper", "", ins, self.like(ins, values)))

    def operator(
        self, name: str, ins: list[Value], outs: list[Value], attributes: str = ""
    ) -> None:
        (names, in_types), (results, out_types) = _listed(ins), _listed(outs)
        self.add(
            f'{results} = "graph.{name}"({names}) {{{attributes}}} : ({in_types}) -> ({out_types})'
        )
