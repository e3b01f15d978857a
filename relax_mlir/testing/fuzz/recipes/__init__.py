"""How a random program uses each op of the graph dialect: one recipe per op, by family.

A recipe takes a `Builder` and the op's class, and adds the op with operands that it finds or makes.
"""

from importlib import import_module
from pkgutil import iter_modules

from relax_mlir.dialects.graph import (
    AllocStorageOp,
    AllocTensorOp,
    CallDpsOp,
    CopyOp,
    GraphOp,
    IsPresentOp,
    KeepOp,
    StoreOp,
    ViewOp,
)

from .table import FAMILIES, Recipe

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["FAMILIES", "NOT_WRITTEN", "Recipe", "operators"]

NOT_WRITTEN = {
    AllocStorageOp: "relax-plan-memory makes it",
    AllocTensorOp: "relax-lower-calls makes it",
    CallDpsOp: "relax-lower-calls makes it",
    CopyOp: "relax-lower-calls makes it",
    IsPresentOp: "callers of random programs pass every argument",
    KeepOp: "relax-lower-calls makes it",
    StoreOp: "relax-lower-calls makes it",
    ViewOp: "relax-lower-calls makes it",
}
"""The ops without a recipe, and why."""


def operators() -> dict[str, type[GraphOp]]:
    """Every op that the dialect registers, by its name without the dialect's."""
    found: dict[str, type[GraphOp]] = {}
    classes: list[type[GraphOp]] = [GraphOp]
    while classes:
        cls = classes.pop()
        classes += cls.__subclasses__()
        name = getattr(cls, "OPERATION_NAME", None)
        if name is not None:
            found[name.partition(".")[2]] = cls
    return dict(sorted(found.items()))
