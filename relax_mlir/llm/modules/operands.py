"""A decoder that also returns what its matrices are multiplied with, for calibration."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_mlir.bindings import func, ir
from relax_mlir.dialects import graph, make_context
from relax_mlir.llm.modules.decoder import Transformer, export_main
from relax_mlir.llm.modules.nn import Product


@dataclass(frozen=True)
class OperandResult:
    """What `export_operands` returns of an operand: rows for the weights `names`.

    Of experts there are the names of each one's weights, and a second result says which of them
    each row is for.
    """

    names: tuple[tuple[str, ...], ...]
    has_experts: bool


def export_operands(model: Transformer) -> tuple[str, list[OperandResult]]:
    """As `export`, with more results, after those: the operands of all products with matrices.

    One that several matrices share is returned once.
    """
    with make_context(), ir.Location.unknown(), graph.remembering():
        module = ir.Module.create()
        main, products = export_main(model, module, batched=False)
        operands, values = _operands(products)
        [*_, last] = main.entry_block.operations
        results = [*last.operands, *values]
        last.erase()
        with ir.InsertionPoint(main.entry_block):
            func.ReturnOp(results)
        kind = ir.FunctionType.get(main.type.inputs, [value.type for value in results])
        main.attributes["function_type"] = ir.TypeAttr.get(kind)
        return str(module), operands


def _operands(products: Sequence[Product]) -> tuple[list[OperandResult], list[ir.Value]]:
    """The operands of products, each once, and their values, with those of experts."""
    groups: dict[tuple[ir.Value, ir.Value | None], list[Product]] = {}
    for product in products:
        groups.setdefault((product.operand, product.experts), []).append(product)
    operands, values = [], []
    for (operand, experts), group in groups.items():
        names: list[list[str]] = [[] for _ in range(group[0].count)]
        for product in group:
            each = len(product.sources) // product.count
            for index, name in enumerate(product.sources):
                names[index // each].append(name)
        operands.append(OperandResult(tuple(map(tuple, names)), experts is not None))
        values += [operand] if experts is None else [operand, experts]
    return operands, values
