"""Programs that a pass makes of random ones: gradients, steps of training, half precision.

What the pass refuses, such as an op without a gradient, stays as it is.
"""

from collections.abc import Sequence
from random import Random

from relax_mlir.analysis.functions import NAME
from relax_mlir.analysis.trees import ARGUMENT_TREE, RESULT_TREE
from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph
from relax_mlir.errors import CompileError
from relax_mlir.passes import Pipeline

from .builder import FLOATS, Builder, Value

PREPARED = "relax-flatten-tuples,relax-resolve-closures,relax-infer-shapes,relax-inline-functions"
GRADIENT, TRAINING, HALF = "relax-gradient", "relax-train-step", "relax-mixed-precision"
PASSES = (GRADIENT, TRAINING, HALF)
OPTIMIZERS = ("sgd momentum=0.5 nesterov=true", "adam", "adamw weight-decay=0.1 clip-norm=1.0")
SHARES = (0.0, 0.04, 0.04, 0.3)
"""How many programs of a group a pass is run on."""


def chosen(chance: Random, group: int) -> str | None:
    """The pass that makes a program of this group; mostly none."""
    if chance.random() >= Random(f"{group} passes").choice(SHARES):
        return None
    return chance.choice([GRADIENT, GRADIENT, GRADIENT, TRAINING, HALF])


def with_loss(b: Builder, results: Sequence[ir.Value]) -> list[ir.Value]:
    """The results after the sum of those that are floats, in the type of most values."""
    kind = b.element if b.element in FLOATS else "f32"
    loss = None
    for result in results:
        annotation = graph.annotation_of(result)
        if not isinstance(annotation, graph.TensorType) or str(annotation.element) not in FLOATS:
            continue
        value = Value(
            result, graph.exact_dims(annotation.dims), str(annotation.element), False, 8.0
        )
        if value.element != kind:
            value = b.emit(graph.AstypeOp, [value], dtype=ir.Type.parse(kind))
        total = b.emit(graph.SumOp, [value], False, 8.0, axes=[], keepdims=False)
        loss = total if loss is None else b.emit(graph.AddOp, [loss, total], False, 8.0)
    return list(results) if loss is None else [loss.ir, *results]


def run(module: ir.Module, main: func.FuncOp, name: str, chance: Random) -> func.FuncOp | None:
    """The function that the pass makes of the module's public one; None if it refuses it."""
    function = main.name.value
    options = f"{{function={function}}}" if name == GRADIENT else ""
    if name == TRAINING:
        wrt = _floats(main)
        if not wrt:
            return None
        _name_arguments(main)
        options = f"{{function={function} wrt={wrt[-1]} optimizer={chance.choice(OPTIMIZERS)}}}"
    if name == HALF:
        options = f"{{dtype={chance.choice(['f16', 'bf16'])}}}"
    try:
        Pipeline.parse(f"{PREPARED},relax-name-dims,{name}{options}").run(module)
    except CompileError:
        return None
    made = {op.name.value: op for op in module.body.operations if isinstance(op, func.FuncOp)}
    suffix = {GRADIENT: "_adjoint", TRAINING: "_step", HALF: ""}[name]
    result = made[function + suffix]
    for tree in (ARGUMENT_TREE, RESULT_TREE):
        if tree in result.attributes:
            del result.attributes[tree]
    if suffix:
        made[function].operation.erase()
    return result


def _floats(main: func.FuncOp) -> list[str]:
    """The arguments that are tensors of floats, by name."""
    kinds = [graph.annotation_of(argument) for argument in main.arguments]
    return [
        f"a{index}"
        for index, kind in enumerate(kinds)
        if isinstance(kind, graph.TensorType) and str(kind.element) in FLOATS
    ]


def _name_arguments(main: func.FuncOp) -> None:
    count = len(main.arguments)
    names = [{NAME: ir.StringAttr.get(f"a{index}")} for index in range(count)]
    main.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(name) for name in names])
