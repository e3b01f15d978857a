"""Functions as values: closures and their calls."""

from collections.abc import Sequence

from relax_mlir.bindings import ext, ir

from .annotations import Annotation, is_function, to_mlir
from .dialect import CallableType
from .slots import SlotOp
from .types import ShapeError


class MakeClosureOp(SlotOp, name="make_closure", traits=[ext.Pure]):
    """A function value: a graph function with values for its first parameters.

        %f = "graph.make_closure"(%w) {callee = @scaled, ...} : (!w) -> ((!x) -> !y)

    Its type is MLIR's function type, of the parameters that are left. Symbols in it are its own:
    each call binds them.

    C1  the callee is a graph function of the module
    C2  there are no more operands than the callee has parameters
    C3  the result is an `!graph.callable`, or a function of as many parameters and results as are
        left

    Source: TVM `relax.make_closure`.
    """

    callee: ir.FlatSymbolRefAttr = ext.attribute(kw_only=True)

    @classmethod
    def build(cls, callee: str, captured: Sequence[ir.Value], type_: ir.Type) -> "MakeClosureOp":
        """Creates the op at the insertion point."""
        return cls.create(captured, [type_], {"callee": ir.FlatSymbolRefAttr.get(callee)})

    @property
    def callee_name(self) -> str:
        """Name of the function, without `@`."""
        return ir.FlatSymbolRefAttr(self.attributes["callee"]).value

    @property
    def result(self) -> ir.Value:
        """The function value."""
        return self.outs[0]

    def check_callee(self, type_: ir.FunctionType | None) -> None:
        """Raises ShapeError if the type of the callee, None if there is none, does not fit."""
        if type_ is None:  # C1
            raise ShapeError(f"names '@{self.callee_name}', which is not a graph function")
        if len(self.ins) > len(type_.inputs):  # C2
            raise ShapeError(
                f"has {len(self.ins)} operands, but '@{self.callee_name}' takes {len(type_.inputs)}"
            )
        counts = (len(type_.inputs) - len(self.ins), len(type_.results))
        kinds = [out.type for out in self.outs]
        if len(kinds) != 1 or not is_function(kinds[0]):  # C3
            raise ShapeError("expects one result, a function type")
        if isinstance(kinds[0], CallableType):
            return
        own = ir.FunctionType(kinds[0])
        if (len(own.inputs), len(own.results)) != counts:  # C3
            raise ShapeError(
                f"makes a function of {len(own.inputs)} parameters and {len(own.results)} "
                f"results, but '@{self.callee_name}' leaves {counts[0]} and {counts[1]}"
            )


class InvokeClosureOp(SlotOp, name="invoke_closure"):
    """Calls a function value, its first operand, with the others.

        %y = "graph.invoke_closure"(%f, %x) {...} : ((!x) -> !y, !x) -> !y

    The call is one of the closure's callee, and has to agree with its signature as `graph.call`.

    Of an `!graph.callable`, the callee's own signature alone says what fits.

    C1  the first operand is a function value
    C2  operands and results are as many as its type says

    Source: TVM `relax.invoke_closure`.
    """

    @classmethod
    def build(
        cls, function: ir.Value, ins: Sequence[ir.Value], out_types: Sequence[Annotation]
    ) -> "InvokeClosureOp":
        """Creates the call with the given result annotations."""
        return cls.create([function, *ins], [to_mlir(type_) for type_ in out_types], {})

    @property
    def passed(self) -> list[ir.Value]:
        """The operands that the function takes."""
        return self.ins[1:]

    def check(self) -> None:
        """Raises ShapeError if the call does not fit the type of the function."""
        if not self.ins or not is_function(self.ins[0].type):  # C1
            raise ShapeError("expects a function as its first operand")
        if isinstance(self.ins[0].type, CallableType):
            return
        type_ = ir.FunctionType(self.ins[0].type)
        if (len(self.passed), len(self.outs)) != (len(type_.inputs), len(type_.results)):  # C2
            raise ShapeError(
                f"has {len(self.passed)} operands and {len(self.outs)} results, but the function "
                f"takes {len(type_.inputs)} and returns {len(type_.results)}"
            )
