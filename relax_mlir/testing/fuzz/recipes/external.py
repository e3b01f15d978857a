"""Recipes of functions from outside, and of messages: what programs do besides their results."""

from typing import Any

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects import graph
from relax_mlir.dialects.lib import FunctionOp
from relax_mlir.symbolic import Expr, const, product

from ..builder import Builder, Value, size_of
from ..callees import PREFIX
from .scalars import condition, dim, element
from .table import recipe

_MOST = 64
"""Elements of a tensor that is printed, about."""


def _declared(b: Builder, function: str) -> str:
    """The name of a declaration in the module."""
    name = f"{b.name}_{function}"
    names = {ir.StringAttr(op.attributes["sym_name"]).value for op in b.module.body.operations}
    if name not in names:
        with ir.InsertionPoint(b.module.body):
            FunctionOp.build(name, PREFIX + function, "dlpack", ["python"])
    return name


def _passed(b: Builder, exact: bool = False) -> Value:
    """A tensor of a type that NumPy has."""

    def fits(v: Value) -> bool:
        return v.element != "bf16" and (v.exact or not exact)

    value = b.take(fits)
    return value if fits(value) else b.argument(value.dims, "f32")


def _alike(b: Builder, value: Value) -> Value:
    """A tensor of the same type."""
    same = b.pick(lambda v: v.ir.type == value.ir.type and v.ir != value.ir)
    return same or b.argument(value.dims, value.element)


def _workspaces(b: Builder, value: Value) -> list[Expr]:
    """Bytes for a tensor, and maybe some more; the sizes of further workspaces."""
    element = graph.element_bits(value.annotation.element) // 8
    size = product((const(element), *graph.exact_dims(value.annotation.dims)))
    more = [const(b.random.choice([0, 1, 63, 4096])) for _ in range(b.random.randint(0, 2))]
    return [size + b.random.choice([0, 0, 1, 100]), *more]


@recipe("external", graph.CallDpsLibraryOp)
def call_dps_library(b: Builder, op: Any) -> None:
    """A function without effects: of one tensor, or of two."""
    value = _passed(b)
    function = b.random.choice(["flipped", "filled", "both", "scratched"])
    operands = [value, _alike(b, value)] if function == "both" else [value]
    types = [value.annotation] * len(operands)
    built = op.build(_declared(b, function), [v.ir for v in operands], types)
    if function == "scratched":
        built.attributes[graph.WORKSPACE] = graph.shape_attr(_workspaces(b, value))
    b.results_of(built, all(v.exact for v in operands), max(v.bound for v in operands))


@recipe("external", graph.CallLibraryInplaceOp)
def call_library_inplace(b: Builder, op: Any) -> None:
    """A function that updates an operand, which may be needed later."""
    old = _passed(b)
    new = _alike(b, old)
    built = op.build(_declared(b, "updated"), [new.ir, old.ir], [1])
    b.results_of(built, new.exact and old.exact, max(new.bound, old.bound))


@recipe("external", graph.CallLibraryOp)
def call_library(b: Builder, op: Any) -> None:
    """A function that notes what it is called with; or two, that pass an object on."""
    value = _passed(b, exact=True)
    if b.chance(0.4):
        boxed = op.build(_declared(b, "boxed"), [value.ir], [graph.HostObjectType.get()])
        built = op.build(_declared(b, "unboxed"), boxed.outs, [value.annotation])
        b.results_of(built, value.exact, value.bound)
        return
    built = op.build(_declared(b, "noted"), [value.ir], [value.annotation])
    b.results_of(built, value.exact, value.bound)


def _shown(b: Builder) -> list[ir.Value]:
    """What may be printed: small exact tensors, dims and elements."""
    shown: list[ir.Value] = []
    for _ in range(b.random.randint(0, 2)):
        value = b.pick(lambda v: v.exact and size_of(v.dims) <= _MOST)
        shown.append(dim(b) if b.chance(0.4) else value.ir if value else element(b))
    return shown


@recipe("external", graph.PrintOp)
def print_(b: Builder, op: Any) -> None:
    """A line with values."""
    values = _shown(b)
    b.used.append("print")
    op.build(f"line {len(b.used)}" + ": {}" * len(values), values)


@recipe("external", graph.AssertOp)
def assert_(b: Builder, op: Any) -> None:
    """What mostly holds."""
    holds = condition(b)
    if b.chance(0.8):
        least = arith.constant(ir.IndexType.get(), 0)
        holds = arith.CmpIOp(arith.CmpIPredicate.sge, dim(b), least).result
    values = _shown(b)
    b.used.append("assert")
    op.build(holds, f"check {len(b.used)}" + ": {}" * len(values), values)
