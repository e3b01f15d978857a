"""Outlines the bodies of parallel loops to functions that the runtime calls on its threads.

    func.func private @k(%x: memref<?xf32>) {
      scf.parallel (%i) = (%lb) to (%ub) step (%s) { use(%x, %i) } {tir.grain = 8 : i64}
      ->
    func.func private @k(%x: memref<?xf32>) {
      %count = ceildiv(%ub - %lb, %s)
      scf.if %count <= 8 { func.call @k_parallel0(%x, %lb, %s, 0, %count) } else {
        llvm.store (%x, %lb, %s), %data
        llvm.call @rx_parallel_for(@k_parallel0_task, %data, %count, 8) }
    llvm.func @k_parallel0_task(%data: !llvm.ptr, %begin: i64, %end: i64) {
      func.call @k_parallel0(load %data, %begin, %end)
    func.func private @k_parallel0(%x: memref<?xf32>, %lb, %s, %begin, %end) {
      scf.for %i = %lb + %begin * %s to %lb + %end * %s step %s { use(%x, %i) }

The task calls a second function so that buffers are arguments of it, which can be marked as
non-overlapping. Constants are cloned, not passed. Buffers of an iteration are hoisted out of the
loop if their sizes are loop-invariant.

Needs: parallel loops of one dim without reductions. Leaves: only nested parallel loops, which are
lowered to sequential loops.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from relax_mlir.bindings import arith, func, ir, llvm, scf
from relax_mlir.diagnostics import Diagnostic, compile_error

RUNTIME_FUNCTION = "rx_parallel_for"
_COPIED = frozenset({"arith.constant", "llvm.mlir.constant", "memref.get_global", "ub.poison"})
_BUFFERS = frozenset({"memref.alloc"})
_FEW_OPS = 1000
"""A loop of fewer ops is walked to find what it reads."""


def outline_parallel(module: ir.Module) -> None:
    """Outlines each outermost parallel loop of each function, in place.

    Raises CompileError, located, for a loop of several dims or with a reduction.
    """
    with module.context, ir.Location.unknown():
        outlined = False
        for function in list(module.body.operations):
            if function.operation.name == "func.func" and function.regions[0].blocks:
                for index, loop in enumerate(list(_outermost(function.operation))):
                    _Outliner(module, function.operation, loop, index).run()
                    outlined = True
        if outlined and RUNTIME_FUNCTION not in ir.SymbolTable(module.operation):
            declaration = f"llvm.func @{RUNTIME_FUNCTION}(!llvm.ptr, !llvm.ptr, i64, i64)"
            module.body.append(ir.Operation.parse(declaration))


def _outermost(function: ir.Operation) -> Iterator[ir.Operation]:
    loops: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name != "scf.parallel":
            return ir.WalkResult.ADVANCE
        loops.append(op)
        return ir.WalkResult.SKIP

    function.walk(visit, ir.WalkOrder.PRE_ORDER)
    return iter(loops)


@dataclass
class _Outliner:
    """The outlining of one loop of a function."""

    module: ir.Module
    function: ir.Operation
    loop: ir.Operation
    index: int

    def run(self) -> None:
        loop, block = self.loop, self.loop.regions[0].blocks[0]
        if len(loop.operands) != 3:
            message = (
                f"'scf.parallel' op has {len(loop.operands)} bounds, steps and initial values; "
                "code generation takes loops of one dim without reductions, which have 3"
            )
            raise compile_error([Diagnostic.at(loop.location, "error", message)])
        lower, upper, step = loop.operands
        captured = _captured(loop, self.function)
        values = [value for value in captured if not _is_copied(value)]
        parent = ir.StringAttr(self.function.attributes["sym_name"]).value
        name = f"{parent}_parallel{self.index}"
        with loop.location:
            self._body(name, captured, values, block)
            self._call(name, values, lower, upper, step)
            self._task(name, [value.type for value in values])
        loop.erase()

    def _call(
        self,
        name: str,
        values: Sequence[ir.Value],
        lower: ir.Value,
        upper: ir.Value,
        step: ir.Value,
    ) -> None:
        """Replaces the loop by a call: of the body for one thread's work, else of the runtime.

        The data that the runtime passes on is on the function's stack.
        """
        pointer, i64 = ir.Type.parse("!llvm.ptr"), ir.IntegerType.get_signless(64)
        index = ir.IndexType.get()
        record = _record([value.type for value in values])
        with ir.InsertionPoint.at_block_begin(self.function.regions[0].blocks[0]):
            one = llvm.mlir_constant(ir.IntegerAttr.get(i64, 1))
            data = llvm.alloca(pointer, one, ir.Type.parse(record))
        with ir.InsertionPoint(self.loop):
            zero = arith.constant(index, 0)
            count = arith.maxsi(arith.ceildivsi(arith.subi(upper, lower), step), zero)
            grain = self._grain()
            few = arith.cmpi(arith.CmpIPredicate.sle, count, arith.constant(index, grain))
            branch = scf.IfOp(few, has_else=True)
        with ir.InsertionPoint(branch.then_block):
            func.CallOp([], name, [*values, zero, count])
            scf.YieldOp([])
        with ir.InsertionPoint(branch.else_block):
            for i, value in enumerate(values):
                stored = _cast(value, ir.Type.parse(_llvm_type(value.type)))
                llvm.store(stored, _field(data, record, i))
            operands = [
                llvm.mlir_addressof(pointer, f"{name}_task"),
                data,
                arith.index_cast(i64, count),
                llvm.mlir_constant(ir.IntegerAttr.get(i64, grain)),
            ]
            ir.Operation.create(
                "llvm.call",
                operands=operands,
                attributes={
                    "callee": ir.FlatSymbolRefAttr.get(RUNTIME_FUNCTION),
                    "operandSegmentSizes": ir.DenseI32ArrayAttr.get([4, 0]),
                    "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
                },
            )
            scf.YieldOp([])

    def _grain(self) -> int:
        """The least number of iterations that are worth a thread."""
        if "tir.grain" not in self.loop.attributes:
            return 1
        return ir.IntegerAttr(self.loop.attributes["tir.grain"]).value

    def _body(
        self,
        name: str,
        captured: Mapping[ir.Value, Sequence[ir.Operation]],
        values: Sequence[ir.Value],
        block: ir.Block,
    ) -> None:
        """Makes the function that runs a range of iterations from the loop's own block."""
        index = ir.IndexType.get()
        types = [value.type for value in values]
        function = func.FuncOp(
            name,
            ([*types, index, index], []),
            visibility="private",
            ip=ir.InsertionPoint(self.module.body),
        )
        if "tir.scheduled" in self.function.attributes and _distinct(values, self.function):
            function.attributes["tir.scheduled"] = ir.UnitAttr.get()
        entry = function.add_entry_block()
        *inside, begin, end = entry.arguments
        mapping = dict(zip(values, inside, strict=True))
        lower, _, step = self.loop.operands
        with ir.InsertionPoint(entry):
            for value in captured:
                if value not in mapping:
                    position = ir.OpResult(value).result_number
                    mapping[value] = value.owner.clone().results[position]
            start, stride = mapping[lower], mapping[step]
            first = arith.addi(start, arith.muli(begin, stride))
            last = arith.addi(start, arith.muli(end, stride))
            loop = ir.Operation.create("scf.for", operands=[first, last, stride], regions=1)
            func.return_([])
        block.append_to(loop.regions[0])
        terminator = block.operations[len(block.operations) - 1]
        terminator.erase()
        with ir.InsertionPoint(block):
            ir.Operation.create("scf.yield")
        for value, others in captured.items():
            value.replace_all_uses_except(mapping[value], others)
        _hoist_buffers(loop, block)

    def _task(self, name: str, types: Sequence[ir.Type]) -> None:
        """Makes the function that the runtime calls."""
        parsed = ir.Module.parse(  # must outlive the detached op
            _task_text(name, types)
        )
        task = parsed.body.operations[1]
        task.operation.detach_from_parent()
        self.module.body.append(task)


def _captured(loop: ir.Operation, function: ir.Operation) -> dict[ir.Value, list[ir.Operation]]:
    """The values that a loop captures, each with its users outside the loop.

    Of a long loop the visible values are looked at, of which there are far fewer than ops in it.
    """
    inside = dict.fromkeys(function.regions[0].blocks, False)
    inside[loop.regions[0].blocks[0]] = True

    def is_inside(block: ir.Block) -> bool:
        if block not in inside:
            inside[block] = is_inside(block.owner.operation.block)
        return inside[block]

    read, operands = {}, _operands(loop)
    for value in operands or _visible(loop, function):
        if operands and is_inside(_block_of(value)):
            continue
        users = [use.owner.operation for use in value.uses]
        others = [user for user in users if not is_inside(user.block)]
        if len(others) < len(users) or value in (loop.operands[0], loop.operands[2]):
            read[value] = others
    return read


def _operands(loop: ir.Operation) -> list[ir.Value]:
    """All that a loop and the ops in it read; none if these are more than a few."""
    values: dict[ir.Value, None] = {}
    left = _FEW_OPS

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal left
        left -= 1
        values.update(dict.fromkeys(op.operands))
        return ir.WalkResult.ADVANCE if left else ir.WalkResult.INTERRUPT

    loop.walk(visit)
    return list(values) if left else []


def _block_of(value: ir.Value) -> ir.Block:
    return value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block


def _visible(op: ir.Operation, function: ir.Operation) -> Iterator[ir.Value]:
    """The values of the blocks that enclose an op, a superset of those that it may read."""
    if op.parent != function:
        yield from _visible(op.parent.operation, function)
    blocks = [op.block] if op.parent != function else function.regions[0].blocks
    for block in blocks:
        yield from block.arguments
        for other in block.operations:
            yield from other.operation.results


def _is_copied(value: ir.Value) -> bool:
    """Whether a value is a constant or can be cloned like one."""
    return not isinstance(value.owner, ir.Block) and value.owner.name in _COPIED


def _hoist_buffers(loop: ir.Operation, block: ir.Block) -> None:
    """Hoists buffers with loop-invariant sizes out of a loop: one serves all iterations."""
    inner = {value for op in block.operations for value in op.operation.results}
    inner.update(block.arguments)
    after = loop.parent.regions[0].blocks[0].operations
    end = after[len(after) - 1].operation
    for op in list(block.operations):
        if op.operation.name != "memref.alloc" or inner.intersection(op.operation.operands):
            continue
        ends = [use.owner for use in op.operation.result.uses if _frees(use.owner, block)]
        if len(ends) == 1:
            op.operation.move_before(loop)
            ends[0].operation.move_before(end)
            end = ends[0].operation


def _frees(op: ir.OpView, block: ir.Block) -> bool:
    return op.operation.name == "memref.dealloc" and op.operation.block == block


def _distinct(values: Sequence[ir.Value], function: ir.Operation) -> bool:
    """Whether all buffers are arguments or allocations of the function, not views."""
    entry = function.regions[0].blocks[0]
    return all(
        value.owner == entry if isinstance(value.owner, ir.Block) else value.owner.name in _BUFFERS
        for value in values
        if isinstance(value.type, ir.MemRefType)
    )


def _task_text(name: str, types: Sequence[ir.Type]) -> str:
    """The text of the function that the runtime calls: it unpacks the data and calls the body."""
    record = _record(types)
    lines, arguments = [], []
    for i, type in enumerate(types):
        stored = _llvm_type(type)
        lines += [
            f"%p{i} = llvm.getelementptr %data[0, {i}] : (!llvm.ptr) -> !llvm.ptr, {record}",
            f"%l{i} = llvm.load %p{i} : !llvm.ptr -> {stored}",
        ]
        if stored == str(type):
            arguments.append(f"%l{i}")
        else:
            lines.append(f"%c{i} = builtin.unrealized_conversion_cast %l{i} : {stored} to {type}")
            arguments.append(f"%c{i}")
    signature = ", ".join([*map(str, types), "index", "index"])
    body = "\n  ".join(lines)
    return (
        f"func.func private @{name}({signature})\n"
        f"llvm.func @{name}_task(%data: !llvm.ptr, %begin: i64, %end: i64) {{\n  {body}\n"
        "  %b = builtin.unrealized_conversion_cast %begin : i64 to index\n"
        "  %e = builtin.unrealized_conversion_cast %end : i64 to index\n"
        f"  func.call @{name}({', '.join([*arguments, '%b', '%e'])}) : ({signature}) -> ()\n"
        "  llvm.return\n}"
    )


def _record(types: Sequence[ir.Type]) -> str:
    return f"!llvm.struct<({', '.join(_llvm_type(type) for type in types)})>"


def _llvm_type(type: ir.Type) -> str:
    """The type of a value after lowering. Source: MLIR, LLVM IR target, type conversion."""
    if isinstance(type, ir.MemRefType):
        dims = f", array<{type.rank} x i64>" * 2 if type.rank else ""
        return f"!llvm.struct<(ptr, ptr, i64{dims})>"
    if isinstance(type, ir.IndexType):
        return "i64"
    if isinstance(type, ir.VectorType):
        *outer, last = type.shape or [1]
        element = "i64" if isinstance(type.element_type, ir.IndexType) else str(type.element_type)
        text = f"vector<{last}x{element}>"
        for size in reversed(outer):
            text = f"!llvm.array<{size} x {text.removeprefix('!llvm.')}>"
        return text
    return str(type)


def _cast(value: ir.Value, type: ir.Type) -> ir.Value:
    if value.type == type:
        return value
    return ir.Operation.create(
        "builtin.unrealized_conversion_cast", results=[type], operands=[value]
    ).result


def _field(data: ir.Value, record: str, index: int) -> ir.Value:
    return llvm.getelementptr(
        ir.Type.parse("!llvm.ptr"), data, [], [0, index], ir.Type.parse(record), 0
    )
