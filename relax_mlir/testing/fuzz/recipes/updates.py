"""Recipes of decompositions that choose, count and update: of what frontends ask of training."""

from typing import Any

from relax_mlir import decompositions
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import vector
from relax_mlir.symbolic import const

from ..builder import FLOATS, Builder
from .table import recipe


@recipe("decomposed", "momentum", "adagrad", "adam")
def update(b: Builder, op: Any) -> None:
    """Of a tensor, its gradient and a state above 0, by a rate and a step of one element each."""
    x = b.floats()
    gradient = b.pick(lambda v: v.ir.type == x.ir.type) or b.argument(x.dims, x.element)
    rate = b.clamp(b.argument([1], x.element), 0.0625, 0.5)
    step = b.clamp(b.argument([1], "i64"), 0, 4)
    state = [b.clamp(b.argument(x.dims, x.element), 0.25, 4)] * (1 + (op == "adam"))
    settings = {"alpha": 0.5, "beta": 2.0} if op == "momentum" else {"epsilon": 0.25}
    operands = rate, step, x, gradient, *state
    built = getattr(decompositions, op)(*(value.ir for value in operands), **settings)
    b.used.append(op)
    for value in built:
        b.clamp(b.add(value, False, 4 * x.bound + gradient.bound**2 + 16), -8, 8)


@recipe("decomposed", "fmod", "truncated_divide")
def quotient(b: Builder, op: Any) -> None:
    """Of integers, zeros among the divisors."""
    x = b.take(lambda v: v.element in ("i8", "i32", "i64"), [1, 2], "i32")
    y = b.pick(lambda v: v.ir.type == x.ir.type) or b.argument(x.dims, x.element)
    b.used.append(op)
    b.add(getattr(decompositions, op)(x.ir, y.ir), True, max(x.bound, y.bound))


@recipe("decomposed", "grouped_mm")
def grouped_mm(b: Builder, op: Any) -> None:
    """Of rows after the last group too, or of no rows in a group."""
    element = b.element if b.element in FLOATS else "f32"
    depth, width = (b.few(name, [1, 3, 8, 17], 2) for name in ("depths", "widths"))
    x = b.argument([b.pick_dim() + 3, depth], element)
    weights = b.argument([3, depth, width], element)
    ends = vector(sorted(b.random.choices(range(4), k=3)), ir.IntegerType.get_signless(64))
    b.used.append(op)
    b.add(decompositions.grouped_mm(x.ir, weights.ir, ends), False, 25 * depth)


@recipe("decomposed", "reduce_window")
def reduce_window(b: Builder, op: Any) -> None:
    """Of any axes, with elements between others."""
    x = b.argument([b.pick_dim() + 3, const(b.few("image sizes", [5, 7, 8, 9], 2))])
    settings: dict[str, Any] = {
        "strides": [b.random.choice([1, 2]) for _ in range(2)],
        "dilation": [b.random.choice([1, 1, 2]) for _ in range(2)],
        "base_dilation": [b.random.choice([1, 1, 2]) for _ in range(2)],
        "padding": [(b.random.randint(0, 1), b.random.randint(0, 1)) for _ in range(2)],
    }
    kind = b.random.choice(["add", "minimum", "maximum"])
    b.used.append(op)
    built = decompositions.reduce_window(x.ir, kind, [2, b.few("windows", [1, 3], 1)], **settings)
    b.clamp(b.add(built, x.exact and kind != "add", 6 * x.bound), -8, 8)
