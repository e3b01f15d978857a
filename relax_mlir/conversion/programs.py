"""Tensor programs that a conversion builds: equal ones are one, each is called where it stood."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from relax_mlir.analysis.tensor_programs import unsupported
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import CallTirInplaceOp, CallTirOp, TensorType
from relax_mlir.legalize.kernel import KernelBuilder
from relax_mlir.passes import PassFailure
from relax_mlir.rewriting import SymbolNames


@dataclass(frozen=True)
class Input:
    """A tensor that a program reads, and its type there."""

    value: ir.Value
    type: TensorType


@dataclass(frozen=True)
class Output:
    """A tensor that a program fills: its type at the call, and in the program.

    With `init`, the program finds the elements of that tensor there.
    """

    result: TensorType
    type: TensorType
    init: ir.Value | None = None


@dataclass
class Programs:
    """The tensor programs of a module."""

    block: ir.Block
    _known: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = SymbolNames(self.block)

    def call(
        self,
        name: str,
        ins: Sequence[Input],
        outs: Sequence[Output],
        write: Callable[[KernelBuilder], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """Builds a program, whose results `write` returns, unless there is one; calls it."""
        types = [each.type for each in ins], [each.type for each in outs]
        builder = KernelBuilder(self._names.fresh(name), *types, self.block)
        with builder.insertion_point:
            builder.finish(*write(builder))
        for op, reason in unsupported(builder.function):
            raise PassFailure(op, reason)
        callee = self._shared(builder)
        values = [each.value for each in ins]
        results = [each.result for each in outs]
        inits = [each.init for each in outs if each.init is not None]
        if not inits:
            call = CallTirOp.build(callee, values, results, builder.sym_args)
            return list(call.outs)
        indices = iter(range(len(values), len(values) + len(inits)))
        inplace = [-1 if each.init is None else next(indices) for each in outs]
        operands = [*values, *inits]
        updating = CallTirInplaceOp.build(callee, operands, inplace, results, builder.sym_args)
        return list(updating.outs)

    def _shared(self, builder: KernelBuilder) -> str:
        """The name of the program, or that of an equal one, which is left alone then."""
        function = builder.function
        own = function.name.value
        text = function.operation.get_asm(assume_verified=True, use_local_scope=True)
        text = text.replace(f"@{own}(", "@(", 1)
        if text in self._known:
            function.operation.erase()
            return self._known[text]
        self._known[text] = own
        return own
