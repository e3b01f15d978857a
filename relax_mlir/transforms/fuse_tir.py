"""Merges the tensor programs that a primitive graph function calls into one tensor program.

    func.func private @fused_matmul_silu(%x, %w) attributes {graph.primitive} {
      %a = "graph.call_tir"(%x, %w) {callee = @matmul}
      %b = "graph.call_tir"(%a) {callee = @silu}
    }
    %b = "graph.call"(%x, %w) {callee = @fused_matmul_silu}
      ->
    func.func private @fused_matmul_silu(%x, %w, %out) attributes {tir.prim_func} {
      %a = the loops of matmul into tensor.empty
      the loops of silu from %a into %out
    }
    %b = "graph.call_tir"(%x, %w) {callee = @fused_matmul_silu}

In-place updates are preserved. Extents of intermediate tensors are computed from those of the
operands; the values of a shape operand become index arguments. MLIR's own fusion merges the
element-wise loops of the result, and makes a matmul read a transposed weight directly. A program
that decodes a factor of a product stays a separate call, unless a schedule rule supports it in the
product.

Needs: `relax-fuse-ops`. Leaves: no primitive function, and no unused tensor program.
Source: paper §4.2 (FuseTensorIR); TVM `FuseTIR`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.compute_pattern import moves_only
from relax_mlir.analysis.functions import PRIMITIVE, called_names, graph_functions
from relax_mlir.analysis.memory import Memory
from relax_mlir.analysis.symbols import Binding, bindings
from relax_mlir.bindings import arith, func, ir, linalg, tensor
from relax_mlir.dialects.graph import (
    CallOp,
    CallTirInplaceOp,
    CallTirOp,
    MakeShapeOp,
    ShapeValueType,
    TensorType,
    annotation_of,
    known_dims,
    shape_value_dims,
)
from relax_mlir.dialects.tir import PrimFunc, prim_funcs
from relax_mlir.legalize.kernel import KernelBuilder, dim, empty, index
from relax_mlir.legalize.signs import make_signless
from relax_mlir.passes import Pass, PassFailure, run_upstream
from relax_mlir.program.decoded import reads_decoded
from relax_mlir.rewriting import defining_op, erase_unused_makers, safe_erase, walk_ops
from relax_mlir.symbolic import Expr, as_expr

PLACEHOLDER = "__fused"
SIMPLIFY = "func.func(canonicalize,linalg-fuse-elementwise-ops,canonicalize,cse)"
SIMPLIFY_HINTED = "func.func(canonicalize,cse)"
HINTS = ("tir.schedule_hint", "tir.attention", "tir.paged_attention")


@dataclass(frozen=True)
class FuseTir(Pass):
    """Merges the tensor programs that a primitive graph function calls into one."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites every primitive function of the module and the calls of it."""
        functions = {f.name.value: f for f in graph_functions(op) if PRIMITIVE in f.attributes}
        kernels = {kernel.name: kernel for kernel in prim_funcs(op)}
        merged: dict[str, Merged] = {}
        texts: dict[str, str] = {}
        users: dict[str, list[CallOp]] = {name: [] for name in functions}
        for call in walk_ops(op, CallOp):
            if call.callee_name in functions:
                users[call.callee_name].append(call)
        for name, function in functions.items():
            result = _merge(function, kernels)
            if _hoist_decoders(function, users[name], kernels, PrimFunc(result.kernel)):
                safe_erase(result.kernel)
                result = _merge(function, kernels)
            text = result.kernel.operation.get_asm(assume_verified=True, use_local_scope=True)
            if text in texts:
                safe_erase(result.kernel)
            result.name = texts.setdefault(text, name)
            merged[name] = result
        for call in walk_ops(op, CallOp):
            if call.callee_name in merged:
                _replace_call(call, merged[call.callee_name])
        for name, function in functions.items():
            safe_erase(function)
            if merged[name].name == name:
                merged[name].kernel.attributes["sym_name"] = ir.StringAttr.get(name)
        if functions:
            erase_unused(op)


def _merge(function: func.FuncOp, kernels: dict[str, PrimFunc]) -> "Merged":
    result = merge(function, kernels)
    _simplify(result.kernel)
    return result


def _hoist_decoders(
    function: func.FuncOp, users: Sequence[CallOp], kernels: dict[str, PrimFunc], merged: PrimFunc
) -> bool:
    """Hoists decoders of a product before the calls, unless a schedule supports them inside.

    Otherwise every row of the product would be decoded again. Returns whether the function changed.
    """
    block = function.entry_block
    members = [op for op in block.operations if isinstance(op, CallTirOp)]
    sums = next((i for i, call in enumerate(members) if _is_product(kernels[call.callee_name])), 0)
    decoders = [
        call
        for call in members[:sums]
        if not moves_only(kernels[call.callee_name])
        and len(call.outs) == 1
        and all(value.owner == block for value in call.ins)
    ]
    if not decoders or reads_decoded(merged):
        return False
    old = list(block.arguments)
    for call in decoders:
        result = block.add_argument(call.outs[0].type, call.location)
        call.outs[0].replace_all_uses_with(result)
    read = {value for op in block.operations if op not in decoders for value in op.operands}
    arguments = [a for a in block.arguments if a in read or _is_shape(a)]
    for user in users:
        values = dict(zip(old, user.ins, strict=True))
        for call, result in zip(decoders, list(block.arguments)[len(old) :], strict=True):
            values[result] = _copy_before(user, call, values)
        with ir.InsertionPoint(user), user.location:
            types = [annotation_of(value) for value in user.outs]
            new = CallOp.build(user.callee_name, [values[a] for a in arguments], types)
        for out, value in zip(user.outs, new.outs, strict=True):
            out.replace_all_uses_with(value)
        safe_erase(user)
    for call in decoders:
        safe_erase(call)
    for i in reversed(range(len(block.arguments))):
        if block.arguments[i] not in arguments:
            block.erase_argument(i)
    kinds = ir.FunctionType.get([a.type for a in block.arguments], function.type.results)
    function.attributes["function_type"] = ir.TypeAttr.get(kinds)
    return True


def _copy_before(user: CallOp, call: CallTirOp, values: dict[ir.Value, ir.Value]) -> ir.Value:
    """The result of a clone of a call, with other operands, before another call."""
    copy = call.operation.clone(ir.InsertionPoint(user))
    for i, value in enumerate(call.ins):
        copy.operands[i] = values[value]
    return copy.results[0]


def _is_product(kernel: PrimFunc) -> bool:
    return kernel.pattern == "out_fusible" or kernel.schedule_hint is not None


@dataclass
class Merged:
    """The tensor program of a function: `inplace` maps its results to arguments, or to -1."""

    kernel: func.FuncOp
    inplace: list[int]
    name: str = ""


def _simplify(kernel: func.FuncOp) -> None:
    # Rules that use a hint expect the stages of the legalization.
    hinted = PrimFunc(kernel).schedule_hint is not None
    run_upstream(SIMPLIFY_HINTED if hinted else SIMPLIFY, kernel.operation)
    _restore_outputs(PrimFunc(kernel))


def _restore_outputs(kernel: PrimFunc) -> None:
    """Makes loops of returned results write to the outputs again; MLIR's fusion detaches them."""
    block = kernel.op.entry_block
    terminator = block.operations[len(block.operations) - 1]
    for value, out in zip(terminator.operands, kernel.outs, strict=True):
        source = defining_op(value, tensor.CastOp)
        value = source.source if source is not None else value
        loops = defining_op(value, linalg.GenericOp)
        if loops is None:
            continue
        position = len(loops.inputs) + list(loops.results).index(value)
        old = loops.operands[position]
        if defining_op(old, tensor.EmptyOp) is not None and plain_type(out.type) == old.type:
            with ir.InsertionPoint(loops), loops.location:
                loops.operation.operands[position] = cast(out, old.type)
            erase_unused_makers([old, *old.owner.operands])


def merge(function: func.FuncOp, kernels: dict[str, PrimFunc]) -> Merged:
    """Builds the tensor program of a primitive function, next to it.

    Raises PassFailure at an op other than calls of tensor programs and constants.
    """
    memory = _Memory.of(function)
    arguments = list(function.arguments)
    kept = [a for a in arguments if a not in memory.updated and not _is_shape(a)]
    block = function.operation.block
    with function.location:
        builder = KernelBuilder(
            PLACEHOLDER,
            [TensorType.of(a).storage for a in kept],
            [TensorType.of(value).storage for value in memory.returned],
            block,
        )
        with builder.insertion_point:
            _Inliner(function, memory, builder, kernels, kept).run()
    positions = [a for a in arguments if not _is_shape(a)]
    inplace = [
        positions.index(root) if root in memory.updated else -1 for root in memory.result_roots
    ]
    return Merged(builder.function, inplace)


def _is_shape(value: ir.Value) -> bool:
    return isinstance(value.type, ShapeValueType)


@dataclass
class _Memory:
    """The memory of results: `result_roots[r]` is the value that result r is computed into.

    `updated` are the arguments among them.
    """

    returned: list[ir.Value]
    result_roots: list[ir.Value]
    updated: list[ir.Value]

    @staticmethod
    def of(function: func.FuncOp) -> "_Memory":
        operations = function.entry_block.operations
        terminator = operations[len(operations) - 1]
        returned = list(terminator.operands)
        memory = Memory({})  # reshapes are copies here
        roots = [root for value in returned for root in memory.roots(value)]
        if len(set(roots)) < len(roots):
            raise PassFailure(terminator, "returns a value twice")
        arguments = list(function.arguments)
        for call in operations:
            for written in memory.effects(call).writes:
                for root in memory.roots(written):
                    if root in arguments and root not in roots:
                        raise PassFailure(call, "updates an argument, which is not returned")
        updated = [a for a in arguments if a in roots]
        for argument in updated:
            if argument in returned:
                raise PassFailure(terminator, "returns an argument unchanged")
        return _Memory(returned, roots, updated)


@dataclass
class _Inliner:
    """Fills the body of the merged program; `values` maps graph values to plain tensors."""

    function: func.FuncOp
    memory: _Memory
    builder: KernelBuilder
    kernels: dict[str, PrimFunc]
    ins: list[ir.Value]
    values: dict[ir.Value, ir.Value] = field(default_factory=dict)
    targets: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def run(self) -> None:
        """Inlines the callees in order."""
        builder = self.builder
        self.values.update(zip(self.ins, builder.ins, strict=True))
        for root, out in zip(self.memory.result_roots, builder.outs, strict=True):
            known = self.values if root in self.memory.updated else self.targets
            known[root] = out
        self._symbols = self._read_symbols()
        for op in self.function.entry_block.operations:
            if isinstance(op, CallTirOp | CallTirInplaceOp):
                self._inline(op)
            elif isinstance(op, arith.ConstantOp):
                copy = op.operation.clone(builder.insertion_point)
                make_signless(copy)
                self.values[op.result] = copy.results[0]
            elif not isinstance(op, func.ReturnOp):
                raise PassFailure(op, "cannot be in a primitive function")
        builder.finish(*(self.values[value] for value in self.memory.returned))

    def _read_symbols(self) -> "_Symbols":
        """The symbols that the arguments bind; those of shapes are index arguments."""
        sources: list[ir.Value | list[ir.Value]] = []
        annotations = []
        for argument in self.function.arguments:
            annotations.append(annotation_of(argument))
            if _is_shape(argument):
                dims = known_dims(shape_value_dims(argument.type))
                if dims is None:
                    raise PassFailure(argument, "is a shape with an unknown dim")
                sources.append([self.builder.symbol(dim) for dim in dims])
            else:
                sources.append(self.values[argument])
        return _Symbols(sources, bindings(annotations))

    def _inline(self, call: CallTirOp | CallTirInplaceOp) -> None:
        kernel = self.kernels.get(call.callee_name)
        if kernel is None:
            raise PassFailure(call, f"calls '@{call.callee_name}', which is not a tensor program")
        if kernel.is_scheduled:
            raise PassFailure(call, f"calls '@{kernel.name}', which is scheduled: fuse it before")
        ins, outs = call.ins, call.outs
        inplace = call.inplace if isinstance(call, CallTirInplaceOp) else (-1,) * len(outs)
        arguments = [self.values[v] for i, v in enumerate(ins) if i not in inplace]
        for value, position in zip(outs, inplace, strict=True):
            arguments.append(
                self.values[ins[position]] if position >= 0 else self._destination(call, value)
            )
        arguments += [self._symbols.value(call, dim) for dim in call.symbol_arguments]
        for hint in HINTS:
            if hint in kernel.op.attributes:
                self.builder.attribute(hint, kernel.op.attributes[hint])
        results = inline_body(kernel.op, arguments, self.builder.insertion_point)
        for value, result in zip(outs, results, strict=True):
            self.values[value] = cast(result, plain_type(TensorType.of(value).storage.to_mlir()))

    def _destination(self, call: ir.OpView, value: ir.Value) -> ir.Value:
        """The output argument that a result is computed into, or a new tensor."""
        if value in self.targets:
            return self.targets[value]
        annotation = TensorType.of(value)
        dims = known_dims(annotation.dims)
        if dims is None:
            raise PassFailure(call, f"has '{value.type}', whose dims are not all known")
        extents = [
            self._symbols.value(call, dim) if dim.value is None else dim.value for dim in dims
        ]
        return empty(extents, annotation.storage.element)


@dataclass
class _Symbols:
    """Values of symbols as indices; `sources` are the tensors, or index values, that bind them."""

    sources: list[ir.Value | list[ir.Value]]
    bindings: dict[str, Binding]
    known: dict[str, ir.Value] = field(default_factory=dict)

    def value(self, op: ir.OpView, expr: Expr | None) -> ir.Value:
        """Computes an expression; raises PassFailure if a symbol of it cannot be read."""
        if expr is None:
            raise PassFailure(op, "passes an unknown dim as a symbol")
        missing = sorted(name for name in expr.symbols if name not in self.bindings)
        if missing:
            raise PassFailure(op, f"needs the symbol '{missing[0]}', which no argument binds")
        return emit_expression(expr, lambda name: self._symbol(op, name))

    def _symbol(self, op: ir.OpView, name: str) -> ir.Value:
        if name not in self.known:
            binding = self.bindings[name]
            source = self.sources[binding.index]
            extent = source[binding.axis] if isinstance(source, list) else dim(source, binding.axis)
            offset = self.value(op, as_expr(0) - binding.offset)
            if binding.offset.value != 0:
                extent = arith.AddIOp(extent, offset).result
            if binding.factor != 1:
                extent = arith.DivUIOp(extent, index(binding.factor)).result
            self.known[name] = extent
        return self.known[name]


def emit_expression(expr: Expr, symbol: Callable[[str], ir.Value]) -> ir.Value:
    """Computes an expression as an index at the insertion point; `symbol` maps names to values."""

    def binary(op: type) -> Callable[[ir.Value, ir.Value], ir.Value]:
        return lambda a, b: op(a, b).result

    def modulo(a: ir.Value, b: ir.Value) -> ir.Value:
        whole = arith.MulIOp(arith.FloorDivSIOp(a, b).result, b).result
        return arith.SubIOp(a, whole).result

    return expr.lower(
        const=index,
        symbol=symbol,
        add=binary(arith.AddIOp),
        mul=binary(arith.MulIOp),
        floordiv=binary(arith.FloorDivSIOp),
        mod=modulo,
        min=binary(arith.MinSIOp),
        max=binary(arith.MaxSIOp),
    )


def plain_type(type_: ir.Type) -> ir.Type:
    """A tensor type without its encoding; other types unchanged."""
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is None:
        return type_
    return ir.RankedTensorType.get(type_.shape, type_.element_type)


def cast(value: ir.Value, type_: ir.Type) -> ir.Value:
    """The value as another tensor type of compatible extents."""
    return value if value.type == type_ else tensor.CastOp(type_, value).result


def inline_body(
    function: func.FuncOp, arguments: Sequence[ir.Value], point: ir.InsertionPoint
) -> list[ir.Value]:
    """Clones the body of a one-block function to `point`; returns results without encodings."""
    copy = function.operation.clone(point)
    block = copy.regions[0].blocks[0]
    for parameter, value in zip(block.arguments, arguments, strict=True):
        parameter.replace_all_uses_with(cast(value, plain_type(parameter.type)))
    *body, terminator = list(block.operations)
    results = list(terminator.operands)
    terminator.operation.erase()
    for op in body:
        op.operation.detach_from_parent()
        point.insert(op)
    copy.erase()
    return results


def _replace_call(call: CallOp, merged: Merged) -> None:
    tensors = [value for value in call.ins if not _is_shape(value)]
    shapes = [value for value in call.ins if _is_shape(value)]
    dims = [d for v in shapes for d in shape_value_dims(v.type) if d is None or d.value is None]
    types = [annotation_of(value) for value in call.outs]
    new: CallTirOp | CallTirInplaceOp
    with ir.InsertionPoint(call), call.location:
        if all(position < 0 for position in merged.inplace):
            new = CallTirOp.build(merged.name, tensors, types, dims)
        else:
            new = CallTirInplaceOp.build(merged.name, tensors, merged.inplace, types, dims)
    for old, value in zip(call.outs, new.outs, strict=True):
        old.replace_all_uses_with(value)
    safe_erase(call)
    erase_unused_makers(v for v in shapes if defining_op(v, MakeShapeOp) is not None)


def erase_unused(module: ir.Operation) -> None:
    """Erases the private tensor programs that no op refers to."""
    used = called_names(module)
    for kernel in prim_funcs(module):
        private = "sym_visibility" in kernel.op.attributes
        if private and kernel.name not in used:
            safe_erase(kernel.op)
