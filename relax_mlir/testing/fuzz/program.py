"""A random program: a public function of random ops, with what it calls."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from relax_mlir.analysis.functions import FACTS, INOUT, NO_LIFT, NUM_INPUTS
from relax_mlir.analysis.rename import FreshSymbols, rename_symbols
from relax_mlir.analysis.symbols import bound_symbols
from relax_mlir.bindings import func, ir
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import ShapeValueType, TensorType, annotation_of
from relax_mlir.symbolic import sym

from . import transformed
from .builder import FLOATS, Builder
from .coarsen import coarsened
from .recipes.table import step

WEIGHTS = {
    "elementwise": 24,
    "arithmetic": 12,
    "movement": 22,
    "reduction": 12,
    "product": 7,
    "call": 8,
    "shape": 6,
    "control": 5,
    "scalar": 2,
    "create": 4,
    "indexing": 5,
    "attention": 3,
    "quantised": 3,
    "decomposed": 4,
    "data": 4,
    "external": 4,
    "closure": 3,
    "placement": 3,
}
"""How often families are chosen."""
ELEMENTS = (
    *(("f32",) * 9 + ("f16", "bf16", "f64", "f64")),
    *("i32", "i32", "i64", "i8", "i16", "i1", "ui8", "ui8", "ui16", "ui32", "ui64"),
)
MAX_RESULTS = 5
COARSE = 0.2
"""How often a program has coarser annotations than what it is compared with."""
MIXED = 0.1
"""How often dims of a program are sums of symbols, where it has two."""
GROUP = 64
"""Seeds in a row whose programs have the same few types and dims, and so share kernels."""


@dataclass(frozen=True)
class Program:
    """The ops of a module, as text, whose public function is `name`, and how often it has each.

    `fine` is the text that it means, if annotations of `text` are coarser.
    """

    seed: int
    name: str
    text: str
    ops: Counter[str] = field(default_factory=Counter)
    fine: str | None = None
    gradients: int = 0
    """How many results, the last ones, are gradients of result 0 by arguments of floats."""


def program(seed: int, size: int | None = None) -> Program:
    """The program of a seed; `size` is the number of recipes, by default from 1 to 20."""
    chance = random.Random(seed)
    name = f"f{seed}"
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            main = func.FuncOp(name, ([], []))
        group = seed // GROUP
        kinds = random.Random(group).sample(ELEMENTS, 3)
        made_by = transformed.chosen(chance, group)
        if made_by == transformed.GRADIENT:
            kinds = ["f64", "f64", "f32"]
        block = main.add_entry_block()
        builder = Builder(chance, block, name, module, chance.choice(kinds), group)
        with ir.InsertionPoint(builder.entry):
            steps = size or chance.choice([1, 2, 3, 4, 5, 6, 8, 10, 14, 20])
            for _ in range(steps):
                step(builder, weights_of(group))
            results = _results(builder)
            if made_by in (transformed.GRADIENT, transformed.TRAINING):
                results = transformed.with_loss(builder, results)
            func.ReturnOp(results)
        _bind_symbols(builder)
        _finish(builder, main, results, plain=made_by is not None)
        if made_by is None and builder.chance(MIXED):
            _mix(builder, main)
        module.operation.verify()
        text, used = _text(module), Counter(builder.used)
        if made_by is not None:
            return _transformed(seed, module, main, made_by, chance, used)
        fine = None
        if builder.chance(COARSE):
            fine = text
            coarsened(module, seed)
            module.operation.verify()
            text = _text(module)
    return Program(seed, name, text, used, fine)


def _transformed(
    seed: int,
    module: ir.Module,
    main: func.FuncOp,
    made_by: str,
    chance: random.Random,
    used: Counter[str],
) -> Program:
    """What a pass makes of the program, or the program if the pass refuses it."""
    name, text, results = main.name.value, _text(module), len(main.type.results)
    made = transformed.run(module, main, made_by, chance)
    if made is None:
        return Program(seed, name, text, used + Counter([f"({made_by} refuses)"]))
    gradients = len(made.type.results) - results if made_by == transformed.GRADIENT else 0
    used += Counter([made_by])
    return Program(seed, made.name.value, _text(module), used, gradients=gradients)


def _text(module: ir.Module) -> str:
    return "\n".join(op.operation.get_asm(use_local_scope=True) for op in module.body.operations)


def weights_of(group: int) -> dict[str, int]:
    """How often programs of a group choose each family: some often, some never.

    What is rare in all programs would meet itself in none.
    """
    chance = random.Random(f"{group} weights")
    found = {name: weight * chance.choice([0, 1, 1, 6]) for name, weight in WEIGHTS.items()}
    return found if any(found.values()) else WEIGHTS


def _results(builder: Builder) -> list[ir.Value]:
    """What nothing uses, as far as it is not too much, and some tensor."""
    unused = [v for v in builder.values if not list(v.ir.uses) and v.ir.owner != builder.entry]
    if len(unused) < 2 and builder.values:
        unused.append(builder.random.choice(builder.values))
    chosen = [*unused[-MAX_RESULTS:], *builder.more_results[:1]] or [builder.argument([3])]
    return [value.ir for value in chosen]


def _bind_symbols(builder: Builder) -> None:
    """Adds an argument for each symbol that no dim of an argument alone is."""
    alone: set[str] = set()
    wanted = {str(symbol) for symbol in builder.symbols}
    for argument in builder.entry.arguments:
        annotation = annotation_of(argument)
        if isinstance(annotation, TensorType):
            dims = [dim for dim in annotation.dims or () if dim is not None]
            alone |= set(map(str, dims))
            wanted |= {name for dim in dims for name in dim.symbols}
    for name in sorted(wanted - alone):
        if builder.chance(0.5):
            shape = ir.Type.parse(f'!graph.shape_value<["{name}"]>')
            builder.entry.add_argument(shape, ir.Location.unknown())
        else:
            builder.argument([sym(name)], "f32")


def _mix(builder: Builder, main: func.FuncOp) -> None:
    """Replaces two symbols by sums of others, which calls find by two dims together."""
    arguments = [annotation_of(argument) for argument in main.arguments]
    names = sorted(bound_symbols(arguments))
    if len(names) < 2:
        return
    fresh = FreshSymbols(main)
    a, b = fresh("a"), fresh("b")
    pairs = [(a + b, a - b), (a + b, a + b * 2), (a * 2 + b, a + b * 3), (a, b - a)]
    rename_symbols(main, dict(zip(builder.random.sample(names, 2), builder.random.choice(pairs))))
    builder.used.append("mixed symbols")


def _finish(
    builder: Builder, main: func.FuncOp, results: Sequence[ir.Value], plain: bool = False
) -> None:
    """Gives the function its type, and, unless it is `plain`, facts and what it updates."""
    types = [argument.type for argument in builder.entry.arguments]
    type_ = ir.FunctionType.get(types, [value.type for value in results])
    main.attributes["function_type"] = ir.TypeAttr.get(type_)
    inout = {} if plain else _inout(builder, results)
    if inout:
        dicts = [
            {INOUT: ir.IntegerAttr.get(ir.IntegerType.get_signless(64), inout[index])}
            if index in inout
            else {}
            for index in range(len(types))
        ]
        main.arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(d) for d in dicts])
    if builder.symbols and builder.chance(0.15):
        symbol = builder.symbols[0]
        facts = [[f"{symbol} <= 40"], [f"{symbol} >= 1"], [f"{symbol} mod 4 == 0"]]
        texts = [ir.StringAttr.get(text) for text in builder.random.choice(facts)]
        main.attributes[FACTS] = ir.ArrayAttr.get(texts)
    if not plain:
        _mark_weights(builder, main, inout)


def _inout(builder: Builder, results: Sequence[ir.Value]) -> dict[int, int]:
    """Arguments that results are the new contents of."""
    found: dict[int, int] = {}
    if not builder.chance(0.6 if "call_tir_inplace" in builder.used else 0.25):
        return found
    for index, argument in enumerate(builder.entry.arguments):
        for place, result in enumerate(results):
            same = result.type == argument.type and not isinstance(
                annotation_of(result), ShapeValueType
            )
            if same and place not in found.values() and index not in found:
                found[index] = place
    return found


def _mark_weights(builder: Builder, main: func.FuncOp, inout: dict[int, int]) -> None:
    """Says that the last arguments are weights, if they are of constant dims and float."""
    arguments = list(builder.entry.arguments)
    first = len(arguments)
    while first > 1 and first - 1 not in inout and _is_weight(arguments[first - 1]):
        first -= 1
    if first < len(arguments) and builder.chance(0.6):
        count = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), first)
        main.attributes[NUM_INPUTS] = count
        if builder.chance(0.2):
            entries = list(main.arg_attrs or [ir.DictAttr.get({})] * len(arguments))
            entries[-1] = ir.DictAttr.get({NO_LIFT: ir.UnitAttr.get()})
            main.arg_attrs = ir.ArrayAttr.get(entries)


def _is_weight(argument: ir.Value) -> bool:
    annotation = annotation_of(argument)
    if not isinstance(annotation, TensorType) or str(annotation.element) not in FLOATS:
        return False
    return all(dim is not None and dim.value is not None for dim in annotation.dims or (None,))
