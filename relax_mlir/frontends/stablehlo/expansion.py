"""Functions of single elements as ops of StableHLO, by its own passes.

What CHLO has beyond StableHLO, such as lgamma, are polynomials there; functions of complex elements
are functions of both parts.
"""

from relax_mlir.bindings import ir, stablehlo
from relax_mlir.errors import ModelError

PASSES = ("stablehlo-complex-math-expander", "chlo-legalize-to-stablehlo")


class Expansions:
    """The ops that stand for others, by name, element types and attributes."""

    def __init__(self, context: ir.Context) -> None:
        self.context = context
        self.modules: dict[str, ir.Module] = {}

    def of(self, op: ir.Operation) -> ir.Block:
        """The block of a function of tensors of rank 0; raises ModelError where there is none."""
        text = _function(op)
        if text not in self.modules:
            with self.context, ir.Location.unknown():
                self.modules[text] = self._expanded(op.name, text)
        return self.modules[text].body.operations[0].operation.regions[0].blocks[0]

    def _expanded(self, name: str, text: str) -> ir.Module:
        try:
            module = ir.Module.parse(text)
            for each in PASSES:
                stablehlo.run_pass(module, each)
        except ir.MLIRError as error:
            reason = error.error_diagnostics[0].message if error.error_diagnostics else str(error)
            raise ModelError(f"cannot be expanded: {reason}") from None
        body = module.body.operations[0].operation.regions[0].blocks[0]
        if any(each.operation.name == name for each in body.operations):
            raise ModelError("is not supported for operands of these types")
        return module


def _function(op: ir.Operation) -> str:
    """A function of the op alone, on tensors of rank 0."""
    kinds = [f"tensor<{_element(value.type)}>" for value in op.operands]
    results = [f"tensor<{_element(value.type)}>" for value in op.results]
    arguments = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(kinds))
    names = ", ".join(f"%a{i}" for i in range(len(kinds)))
    attributes = ", ".join(f"{name} = {op.attributes[name]}" for name in op.attributes)
    made = f'%r:{len(results)} = "{op.name}"({names}) {{{attributes}}}'
    signature = f"({', '.join(kinds)}) -> ({', '.join(results)})"
    yielded = ", ".join(f"%r#{i}" for i in range(len(results)))
    return (
        f"func.func @f({arguments}) -> ({', '.join(results)}) {{\n  {made} : {signature}\n"
        f"  func.return {yielded} : {', '.join(results)}\n}}"
    )


def _element(type_: ir.Type) -> ir.Type:
    return ir.ShapedType(type_).element_type
