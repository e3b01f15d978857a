"""Random graphs of calls, and an interpreter of them that really updates in place.

Every tensor has the dims [n, WIDTH]; what a kernel computes is told by its name, so that a wrong
order of reads and updates gives wrong numbers.
"""

import random

import numpy as np

from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import CallOp, CallTirInplaceOp, CallTirOp

WIDTH = 4
TYPE = f'tensor<?x{WIDTH}xf32, #graph.shape<["n", {WIDTH}]>>'
WEIGHT = np.arange(WIDTH * WIDTH).reshape(WIDTH, WIDTH) % 5 / 4 - 0.5

PATTERNS = {
    "halve": ("element_wise", 1),
    "add": ("element_wise", 2),
    "mean": ("broadcast", 2),
    "roll": ("injective", 1),
    "centre": ("reduction", 1),
    "product": ("out_fusible", 1),
    "running": ("opaque", 1),
    "update": ("injective", 1),
}
"""Kernel to its pattern and its number of inputs; `update` adds its input to an operand."""


def compute(name: str, *x: np.ndarray) -> np.ndarray:
    """What a kernel other than `update` computes."""
    return {
        "halve": lambda: x[0] / 2,
        "add": lambda: x[0] + x[1],
        "mean": lambda: (x[0] + x[1][:1]) / 2,
        "roll": lambda: np.roll(x[0], 1, axis=0),
        "centre": lambda: x[0] - x[0].mean(axis=1, keepdims=True),
        "product": lambda: x[0] @ WEIGHT,
        "running": lambda: np.cumsum(x[0], axis=0),
    }[name]()


def random_module(seed: int, size: int) -> str:
    """A function `main` of two arguments and `size` random calls, with its kernels."""
    rng = random.Random(seed)
    values, dead, lines = ["%x", "%y"], set(), []
    for number in range(size):
        name = rng.choice(list(PATTERNS))
        live = [value for value in values[-6:] if value not in dead]
        if name == "update" and len(live) > 1:
            old, new = rng.sample(live, 2)
            dead.add(old)
            lines.append(_call(f"%{number}", name, [new, old], 1))
        else:
            name = "halve" if name == "update" else name
            ins = [rng.choice(live) for _ in range(PATTERNS[name][1])]
            lines.append(_call(f"%{number}", name, ins, None))
        values.append(f"%{number}")
    live = [value for value in values if value not in dead]
    returned = list(dict.fromkeys([values[-1], *rng.sample(live, min(2, len(live)))]))
    types = ", ".join([TYPE] * len(returned))
    return "\n".join(
        [
            *(_kernel(name) for name in PATTERNS),
            f"func.func @main(%x: {TYPE}, %y: {TYPE}) -> ({types}) {{",
            *lines,
            f"  return {', '.join(returned)} : {types}",
            "}",
        ]
    )


def _kernel(name: str) -> str:
    pattern, count = PATTERNS[name]
    ins = "".join(f"%a{i}: {TYPE}, " for i in range(count))
    return (
        f"func.func private @{name}({ins}%out: {TYPE}) -> {TYPE} attributes {{tir.prim_func, "
        f'tir.num_outs = 1 : i64, tir.pattern = #tir.pattern<"{pattern}">}} {{\n'
        f"  return %out : {TYPE}\n}}"
    )


def _call(result: str, name: str, ins: list[str], inplace: int | None) -> str:
    segments = [1] * len(ins) + [0] * (32 - len(ins))
    extra = "" if inplace is None else f"inplace_indices = array<i64: {inplace}>, "
    op = "call_tir" if inplace is None else "call_tir_inplace"
    return (
        f'  {result} = "graph.{op}"({", ".join(ins)}) {{callee = @{name}, {extra}'
        f"sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: {str(segments)[1:-1]}>, "
        "resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : "
        f"({', '.join([TYPE] * len(ins))}) -> {TYPE}"
    )


def evaluate(module: ir.Module, *arguments: np.ndarray) -> tuple[list[np.ndarray], int]:
    """Runs `main` on copies; returns its results and the number of kernels that ran."""
    functions = {op.name.value: op for op in module.body.operations}
    count = 0

    def run(function: func.FuncOp, values: list[np.ndarray]) -> list[np.ndarray]:
        nonlocal count
        known = dict(zip(function.arguments, values))
        for op in function.entry_block.operations:
            if isinstance(op, CallTirOp):
                count += 1
                known[op.outs[0]] = compute(op.callee_name, *(known[v] for v in op.ins))
            elif isinstance(op, CallTirInplaceOp):
                count += 1
                new, old = (known[value] for value in op.ins)
                old += new
                known[op.outs[0]] = old
            elif isinstance(op, CallOp):
                results = run(functions[op.callee_name], [known[v] for v in op.ins])
                known.update(zip(op.outs, results))
            else:
                return [known[value] for value in op.operands]
        raise AssertionError("a function ends in a return")

    results = run(functions["main"], [argument.copy() for argument in arguments])
    return [result.copy() for result in results], count
