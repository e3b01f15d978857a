"""Passes that no default pipeline runs, at random places of one where what they need holds."""

from random import Random

BEFORE_KERNELS, AFTER_KERNELS, SCHEDULED = (
    "relax-externalize-constants",
    "symbol-dce",
    "relax-lower-calls",
)
"""The passes in front of which others are put."""
ON_OPERATORS = (
    "relax-adjust-matmul-order",
    "relax-canonicalize-bindings",
    "relax-combine-parallel-matmul",
    "relax-convert-to-dataflow",
    "relax-dead-code-elimination",
    "relax-eliminate-common-subexpr",
    "relax-expand-matmul-of-sum",
    "relax-fold-batch-norm",
    "relax-fuse-attention",
    "relax-infer-shapes",
    "relax-inline-functions",
    "relax-remove-redundant-reshape",
    "relax-remove-unused-parameters",
    "relax-remove-unused-results",
    "relax-reorder-permute-dims-after-concat",
    "relax-reorder-take-after-matmul",
    "relax-sink-permute-dims",
    "relax-to-non-dataflow",
    "relax-topological-sort",
)
ON_KERNELS = (
    "relax-capture-static{min-size=1 symbols=n,m,k}",
    "relax-capture-static",
    "relax-use-inplace-calls",
    "relax-topological-sort",
    "relax-eliminate-common-subexpr",
)
ON_SCHEDULES = "relax-lift-workspace{min-bytes=1}"
UNARY = ("exp", "negative", "tanh", "astype", "reshape", "permute_dims", "sum", "square", "_")
BINARY = ("add", "multiply", "maximum", "matmul", "subtract")


def with_more(steps: str, seed: int) -> str:
    """The pipeline with other passes, which do not change what a program means."""
    chance = Random(f"{seed} order")
    more = [_on_operators(chance) for _ in range(chance.randint(1, 4))]
    steps = _before(steps, BEFORE_KERNELS, more)
    if chance.random() < 0.5:
        steps = _before(steps, AFTER_KERNELS, [chance.choice(ON_KERNELS)])
    if chance.random() < 0.5 and "relax-schedule" in steps:
        steps = _before(steps, SCHEDULED, [ON_SCHEDULES])
    return steps


def _on_operators(chance: Random) -> str:
    if chance.random() > 0.25:
        return chance.choice(ON_OPERATORS)
    grouping = f"relax-fuse-ops-by-pattern{{match='own.group = {_pattern(chance)}'}}"
    after = ["", ",relax-merge-composite-functions", ",relax-inline-functions"]
    return grouping + chance.choice(after)


def _pattern(chance: Random) -> str:
    """A pattern of a few operators, and of any operands."""

    def operand(name: str) -> str:
        op = chance.choice(UNARY)
        return f"%{name}" if op == "_" else f"{op}(%{name})"

    if chance.random() < 0.4:
        return f"{chance.choice(UNARY[:-1])}({operand('x')})"
    return f"{chance.choice(BINARY)}({operand('x')}, {operand('y')})"


def _before(steps: str, name: str, more: list[str]) -> str:
    return steps.replace(f",{name}", "".join(f",{each}" for each in more) + f",{name}", 1)
