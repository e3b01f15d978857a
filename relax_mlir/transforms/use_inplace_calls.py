"""Has element-wise kernels write over an operand that nothing needs afterwards.

    %1 = "graph.call_tir"(%0, %y) {callee = @add}                     %0 is not used later
      ->
    %1 = "graph.call_tir_inplace"(%0, %y) {callee = @add_inplace, inplace_indices = [0]}

The kernel has one loop nest, which reads the operand at the very element that it writes; its copy
reads that element from the output. The operand has the annotation of the result and memory that is
the function's own: of a call, no argument and no constant. Others stay.

Without it, a result and the operands of the call that makes it never share memory; with it, a plan
needs one tensor less for each chain of such kernels.

Needs: calls of tensor programs (`relax-legalize-ops`, `relax-fuse-tir`), a verified module.
Source: TVM `DataflowUseInplaceCalls`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.functions import PRIMITIVE, graph_functions
from relax_mlir.analysis.liveness import Liveness
from relax_mlir.analysis.memory import Memory
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.bindings import func, ir, linalg, tensor
from relax_mlir.dialects.graph import CallTirInplaceOp, CallTirOp, annotation_of
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes import Pass
from relax_mlir.rewriting import SymbolNames, is_unused, replace, safe_erase, walk_ops

from .lower_calls import why_not_in_place

PARALLEL = "#linalg.iterator_type<parallel>"


@dataclass(frozen=True)
class UseInplaceCalls(Pass):
    """Has element-wise kernels write over an operand that nothing needs afterwards."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Looks at every graph function that is no kernel."""
        functions = functions_by_name(op)
        kernels = _Kernels(functions, SymbolNames(op.regions[0].blocks[0]))
        for function in graph_functions(op):
            if PRIMITIVE not in function.attributes:
                liveness = Liveness(function, Memory(functions))
                # A call in place leaves what is known of later calls right: nothing reads the
                # operand's memory after it, but through the result.
                calls = [(c, _operand(c, function, liveness, functions)) for c in _calls(function)]
                for call, index in calls:
                    if index is not None:
                        _call_in_place(call, index, kernels)


def _calls(function: func.FuncOp) -> list[CallTirOp]:
    return walk_ops(function, CallTirOp)


def _operand(
    call: CallTirOp, function: func.FuncOp, liveness: Liveness, functions: Mapping[str, func.FuncOp]
) -> int | None:
    """The first operand that a call may write over, None if there is none."""
    kernel = functions.get(call.callee_name)
    if kernel is None or not PrimFunc.is_prim_func(kernel) or kernel.is_external:
        return None
    nest = _only_nest(PrimFunc(kernel))
    if nest is None or len(call.outs) != 1:
        return None
    for index, value in enumerate(call.ins):
        same = annotation_of(value) == annotation_of(call.outs[0])
        if same and _input_of(nest, PrimFunc(kernel).ins[index]) is not None:
            roots = liveness.memory.roots(value)
            own = all(isinstance(root, ir.OpResult) for root in roots)
            if own and why_not_in_place(call, index, liveness) is None:
                return index
    return None


def _only_nest(kernel: PrimFunc) -> linalg.GenericOp | None:
    """The nest of a kernel that has one, with parallel loops alone, and casts and extents."""
    if kernel.is_scheduled or kernel.schedule_hint is not None or kernel.num_outs != 1:
        return None
    *body, _ = kernel.op.entry_block.operations
    nests = [op for op in body if isinstance(op, linalg.GenericOp)]
    others = [op for op in body if not isinstance(op, linalg.GenericOp)]
    if len(nests) != 1 or not all(_is_border(op) for op in others):
        return None
    iterators = ir.ArrayAttr(nests[0].attributes["iterator_types"])
    fills = len(nests[0].outputs) == 1 and _uncast(nests[0].outputs[0]) == kernel.outs[0]
    return nests[0] if fills and all(str(each) == PARALLEL for each in iterators) else None


def _is_border(op: ir.OpView) -> bool:
    return isinstance(op, tensor.CastOp | tensor.DimOp) or op.operation.name == "arith.constant"


def _uncast(value: ir.Value) -> ir.Value:
    while not isinstance(value.owner, ir.Block) and isinstance(value.owner.opview, tensor.CastOp):
        value = value.owner.opview.source
    return value


def _input_of(nest: linalg.GenericOp, parameter: ir.Value) -> int | None:
    """Which input of the nest a parameter is, if it is one, read where the output is written.

    None too if an element of it is read by its indices.
    """
    inputs = [i for i, value in enumerate(nest.inputs) if _uncast(value) == parameter]
    maps = list(ir.ArrayAttr(nest.attributes["indexing_maps"]))
    if len(inputs) != 1 or maps[inputs[0]] != maps[-1]:
        return None
    uses = [use for value in _casts_of(parameter) for use in value.uses]
    others = (use.owner.opview for use in uses if use.owner.operation != nest.operation)
    extents = all(isinstance(op, tensor.CastOp | tensor.DimOp) for op in others)
    return inputs[0] if extents else None


def _casts_of(value: ir.Value) -> Iterator[ir.Value]:
    """A value and what it is cast to."""
    yield value
    for use in value.uses:
        if isinstance(use.owner.opview, tensor.CastOp):
            yield from _casts_of(use.owner.opview.result)


@dataclass
class _Kernels:
    """Copies of kernels that write over an operand, each made once."""

    functions: Mapping[str, func.FuncOp]
    names: SymbolNames
    _made: dict[tuple[str, int], str] = field(default_factory=dict)

    def in_place(self, name: str, index: int) -> str:
        """The name of the copy that writes over the parameter of that index."""
        if (name, index) not in self._made:
            self._made[name, index] = self.names.fresh(f"{name}_inplace")
            original = self.functions[name]
            with ir.InsertionPoint(original), original.location:
                copy = original.operation.clone().opview
            copy.attributes["sym_name"] = ir.StringAttr.get(self._made[name, index])
            _write_over(copy, index)
        return self._made[name, index]


def _write_over(function: func.FuncOp, index: int) -> None:
    """Takes a parameter out of a kernel, whose nest then reads the output instead."""
    kernel = PrimFunc(function)
    nest = _only_nest(kernel)
    assert nest is not None
    parameter, out = kernel.ins[index], kernel.outs[0]
    dropped = _input_of(nest, parameter)
    assert dropped is not None
    _without_input(nest, dropped)
    for cast in walk_ops(function, tensor.CastOp):
        if cast.source == parameter and is_unused(cast):
            safe_erase(cast)
    parameter.replace_all_uses_with(out)  # extents, which are those of the output
    function.entry_block.erase_argument(index)
    inputs = [argument.type for argument in function.arguments]
    type_ = ir.FunctionType.get(inputs, function.type.results)
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    if "arg_attrs" in function.attributes:
        function.arg_attrs = [e for i, e in enumerate(function.arg_attrs) if i != index]


def _without_input(nest: linalg.GenericOp, dropped: int) -> None:
    """The same nest, which reads an element of its output instead of an input's."""
    body = nest.operation.regions[0].blocks[0]
    body.arguments[dropped].replace_all_uses_with(body.arguments[len(body.arguments) - 1])
    body.erase_argument(dropped)
    inputs = [value for i, value in enumerate(nest.inputs) if i != dropped]
    maps = [each for i, each in enumerate(nest.attributes["indexing_maps"]) if i != dropped]
    attributes = {name: nest.attributes[name] for name in nest.attributes}
    attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(inputs), 1])
    with ir.InsertionPoint(nest), nest.location:
        new = ir.Operation.create(
            "linalg.generic",
            results=[nest.operation.results[0].type],
            operands=[*inputs, *nest.outputs],
            attributes=attributes,
            regions=1,
        )
    body.append_to(new.regions[0])
    replace(nest, new)


def _call_in_place(call: CallTirOp, index: int, kernels: _Kernels) -> None:
    name = kernels.in_place(call.callee_name, index)
    with ir.InsertionPoint(call), call.location:
        types = [annotation_of(result) for result in call.outs]
        new = CallTirInplaceOp.build(name, call.ins, [index], types, call.symbol_arguments)
    replace(call, new)
