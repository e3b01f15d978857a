"""Turns calls of function values into calls of functions.

    %f = "graph.make_closure"(%w) {callee = @scaled}
    %0 = "graph.call"(%f, %x) {callee = @twice}            // calls its first argument
      ->
    %0 = "graph.call"(%w, %x) {callee = @twice_scaled}     // takes %w, calls @scaled

A function that takes functions is copied for those that it is called with, whose captured values
its copy takes; one that returns functions is inlined. Where a branch decides which function a value
is, or a loop carries one, it is an index instead, and calls switch over it. Dims of captured values
become symbols of the copy.

Needs: no tuples. Leaves: no function values. Fails at exported functions that take or return
    functions, and at branches and loops that yield functions of values of their own.
Source: TVM `LambdaLift`; defunctionalization (Reynolds 1972).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from relax_mlir.analysis.function_values import UnknownFunction, maker_of, makers_of
from relax_mlir.analysis.functions import graph_functions, is_public
from relax_mlir.analysis.recursion import Recursion
from relax_mlir.analysis.rename import FreshSymbols
from relax_mlir.analysis.signatures import functions_by_name, kind_conflict, substitute
from relax_mlir.bindings import arith, func, ir, scf
from relax_mlir.dialects.graph import (
    CallOp,
    Dim,
    InvokeClosureOp,
    MakeClosureOp,
    MatchCastOp,
    ShapeError,
    annotation_of,
    is_function,
    to_mlir,
)
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import SymbolNames, is_unused, safe_erase, walk_ops

from .inline_functions import inline_call

MOST = 1000
"""Copies of functions, and inlined calls, beyond which a program is refused."""
MOST_WITHIN = 500
"""Functions in one that is passed, which may be nested, beyond which a program is refused."""
MOST_IN_ALL = 20 * MOST
"""Functions in what copies are made for, beyond which a program is refused."""

_BRANCHES = scf.IfOp | scf.IndexSwitchOp | scf.ExecuteRegionOp

Key: TypeAlias = tuple
"""Which closure a value is: the callee's name, and for each captured value None or its key."""


@dataclass(frozen=True)
class ResolveClosures(Pass):
    """Turns calls of function values into calls of functions."""

    def run(self, op: ir.Operation) -> None:
        """Rewrites the functions of the module, if there is a function value in one of them."""
        if has_closures(op):
            _Resolution(op).run()


def has_closures(root: ir.Operation) -> bool:
    """Whether an argument, a result or a value is a function."""
    return any(map(is_function, _types(root)))


def check_maker(op: MakeClosureOp, functions: Mapping[str, func.FuncOp]) -> None:
    """Raises ShapeError unless a closure fits its callee, one of the functions of the module."""
    callee = functions.get(op.callee_name)
    is_graph = callee is not None and not PrimFunc.is_prim_func(callee)
    op.check_callee(callee.type if callee is not None and is_graph else None)


def _types(root: ir.Operation) -> Iterator[ir.Type]:
    for op in walk_ops(root):
        if isinstance(op, func.FuncOp):
            yield from (*op.type.inputs, *op.type.results)
        yield from (result.type for result in op.operation.results)


@dataclass
class _Resolution:
    """The work on one module.

    `waiting` are functions whose bodies are not rewritten yet; `copies` those that were made, by
    what they were made for; `selected` gives for each index that stands for a function the makers
    among which it selects, `makers` those by index.
    """

    module: ir.Operation
    copies: dict[tuple[str, tuple[Key | None, ...]], str] = field(default_factory=dict)
    waiting: list[func.FuncOp] = field(default_factory=list)
    selected: dict[ir.Value, list[int]] = field(default_factory=dict)
    makers: list[MakeClosureOp] = field(default_factory=list)
    inlined: int = 0
    described: int = 0
    total: int = 0

    def run(self) -> None:
        """Rewrites the functions that are called without functions, then what they call."""
        self.functions = functions_by_name(self.module)
        self.names = SymbolNames(self.module.regions[0].blocks[0])
        functions = graph_functions(self.module)
        self.recursive = Recursion(functions).groups
        higher = [f for f in functions if any(map(is_function, (*f.type.inputs, *f.type.results)))]
        for function in higher:
            if is_public(function):
                raise PassFailure(
                    function, "takes or returns a function, which only private functions do"
                )
        self.waiting = [function for function in functions if function not in higher]
        while self.waiting:
            self._function(self.waiting.pop())
        for function in higher:
            safe_erase(function)
        for op in walk_ops(self.module):
            if any(is_function(result.type) for result in op.operation.results):
                raise PassFailure(op, "makes a function that nothing resolves")

    def _function(self, function: func.FuncOp) -> None:
        self.fresh = FreshSymbols(function)
        self.selected, self.makers = {}, []
        self._inline_returned(function)
        self._block(function.entry_block)
        for op in reversed(walk_ops(function, MakeClosureOp)):
            if is_unused(op):
                safe_erase(op)

    def _inline_returned(self, function: func.FuncOp) -> None:
        """Inlines calls that return functions."""
        while calls := [
            op
            for op in walk_ops(function, CallOp)
            if op.callee_name in self.functions
            and any(map(is_function, self.functions[op.callee_name].type.results))
        ]:
            for op in calls:
                self._call(op)

    def _block(self, block: ir.Block) -> None:
        """Rewrites the ops of a block, from its beginning again once a call was inlined."""
        while any(self._op(op) for op in list(block.operations)):
            pass

    def _op(self, op: ir.OpView) -> bool:
        """Rewrites an op; returns whether what takes its place is to be looked at."""
        closures = any(is_function(result.type) for result in op.operation.results)
        if isinstance(op, scf.ForOp | scf.WhileOp):
            self._carry(op)
        for region in op.operation.regions:
            for block in region.blocks:
                self._block(block)
        if isinstance(op, scf.ForOp | scf.WhileOp):
            self._select_handed(op)
        elif isinstance(op, MakeClosureOp):
            self._check(op)
        elif isinstance(op, MatchCastOp) and self._stands_for(op.input):
            self._cast(op)
        elif isinstance(op, _BRANCHES) and closures:
            self._select(op)
        elif isinstance(op, InvokeClosureOp):
            self._check_invocation(op)
            return self._call(op)
        elif isinstance(op, CallOp) and (closures or any(map(self._stands_for, op.ins))):
            return self._call(op)
        return False

    def _check(self, op: MakeClosureOp) -> None:
        try:
            check_maker(op, self.functions)
        except ShapeError as error:
            raise PassFailure(op, str(error)) from None

    def _check_invocation(self, op: InvokeClosureOp) -> None:
        if not op.ins or op.ins[0] not in self.selected:
            try:
                op.check()
            except ShapeError as error:
                raise PassFailure(op, str(error)) from None

    # Values.

    def _stands_for(self, value: ir.Value) -> bool:
        """Whether a value is a function, or an index of one."""
        return is_function(value.type) or value in self.selected

    def _known(self, op: ir.OpView, value: ir.Value) -> MakeClosureOp:
        maker = maker_of(value)
        if maker is None:
            raise PassFailure(op, "takes a function that only graph.make_closure can make")
        return maker

    def _described(self, op: ir.OpView, value: ir.Value) -> tuple[Key, list[ir.Value]]:
        """Which closure a function is, and all the values that it captures."""
        maker = self._known(op, value)
        self.described += 1
        if self.described > MOST_WITHIN:
            raise PassFailure(op, f"takes a function of more than {MOST_WITHIN} functions")
        parts: list[Key | None] = []
        leaves: list[ir.Value] = []
        for captured in maker.ins:
            if is_function(captured.type):
                key, inner = self._described(op, captured)
                parts.append(key)
                leaves += inner
            elif captured in self.selected:
                raise PassFailure(op, "takes a function of a function that a branch selects")
            else:
                parts.append(None)
                leaves.append(captured)
        return (maker.callee_name, *parts), leaves

    def _cast(self, op: MatchCastOp) -> None:
        """Replaces a cast by the function, each of which it may be having to fit."""
        if op.input in self.selected:
            makers = [self.makers[choice] for choice in self.selected[op.input]]
        else:
            makers = [self._known(op, op.input)]
        wanted = annotation_of(op.result)
        for maker in makers:
            own = annotation_of(maker.result)
            if not is_function(op.result.type) or kind_conflict(wanted, own):
                raise PassFailure(op, f"asserts '{op.result.type}', which '{own}' can never be")
        op.result.replace_all_uses_with(op.input)
        safe_erase(op)

    # Branches.

    def _select(self, op: ir.OpView) -> None:
        """Makes branches yield the index of a maker, instead of a function."""
        blocks = [block for region in op.operation.regions for block in region.blocks]
        index = ir.IndexType.get()
        for number, result in enumerate(list(op.operation.results)):
            if not is_function(result.type):
                continue
            choices: list[int] = []
            for block in blocks:
                end = block.operations[len(block.operations) - 1]
                value = end.operands[number]
                if value not in self.selected:
                    maker = self._known(op, value)
                    _hoist(maker, op)
                    choice = self._index(maker)
                    with ir.InsertionPoint(end), end.location:
                        end.operation.operands[number] = arith.constant(index, choice)
                    choices.append(choice)
                else:
                    for choice in self.selected[value]:
                        _hoist(self.makers[choice], op)
                    choices += self.selected[value]
            result.set_type(index)
            self.selected[result] = sorted(set(choices))

    def _carry(self, op: scf.ForOp | scf.WhileOp) -> None:
        """Makes a loop carry the index of a maker, instead of a function."""
        blocks = [block for region in op.operation.regions for block in region.blocks]
        values = [*(each for block in blocks for each in block.arguments), *op.operation.results]
        carried = [value for value in values if is_function(value.type)]
        try:
            known = [makers_of(value) for value in carried]
        except UnknownFunction:
            raise PassFailure(
                op, "carries a function that only graph.make_closure can make"
            ) from None
        for value, makers in zip(carried, known, strict=True):
            for maker in makers:
                _hoist(maker, op)
            self.selected[value] = sorted(map(self._index, makers))
        for value in carried:
            value.set_type(ir.IndexType.get())
        self._select_operands(op)

    def _select_handed(self, op: scf.ForOp | scf.WhileOp) -> None:
        """Hands indices on where the blocks of a loop end."""
        for region in op.operation.regions:
            operations = region.blocks[0].operations
            self._select_operands(operations[len(operations) - 1])

    def _select_operands(self, op: ir.OpView) -> None:
        """Replaces functions among the operands by indices."""
        for number, value in enumerate(op.operands):
            if is_function(value.type):
                choice = self._index(self._known(op, value))
                with ir.InsertionPoint(op), op.location:
                    index = arith.constant(ir.IndexType.get(), choice)
                op.operation.operands[number] = index

    def _index(self, maker: MakeClosureOp) -> int:
        for index, known in enumerate(self.makers):
            if known.operation == maker.operation:
                return index
        self.makers.append(maker)
        return len(self.makers) - 1

    # Calls.

    def _call(self, op: CallOp | InvokeClosureOp) -> bool:
        """Replaces a call that takes functions; returns whether what replaces it is looked at."""
        for value in op.ins:
            if value in self.selected:
                self._switch(op, value)
                return True
        if isinstance(op, CallOp):
            name, operands = op.callee_name, op.ins
        else:
            maker = self._known(op, op.ins[0])
            name, operands = maker.callee_name, [*maker.ins, *op.passed]
        with ir.InsertionPoint(op), op.location:
            return self._replace(op, name, operands)

    def _switch(self, op: CallOp | InvokeClosureOp, index: ir.Value) -> None:
        """Calls each of the functions that an index selects in a branch of its own."""
        *cases, last = self.selected[index]
        types = [out.type for out in op.outs]
        if any(map(is_function, types)):
            raise PassFailure(op, "returns a function, and a branch selects what it calls")
        with ir.InsertionPoint(op), op.location:
            switch = ir.Operation.create(
                "scf.index_switch",
                results=types,
                operands=[index],
                attributes={"cases": ir.DenseI64ArrayAttr.get(cases)},
                regions=len(cases) + 1,
            )
            for region, choice in zip(switch.regions, (last, *cases), strict=True):
                maker = self.makers[choice].result
                operands = [maker if value == index else value for value in op.ins]
                with ir.InsertionPoint(region.blocks.append()):
                    scf.YieldOp(_like(op, operands).outs)
        for old, new in zip(op.outs, switch.results, strict=True):
            old.replace_all_uses_with(new)
        safe_erase(op)

    def _replace(
        self, op: CallOp | InvokeClosureOp, name: str, operands: Sequence[ir.Value]
    ) -> bool:
        """Replaces a call by one of a function; returns whether that is to be looked at."""
        callee = self.functions.get(name)
        if callee is None or PrimFunc.is_prim_func(callee):
            raise PassFailure(op, f"calls '@{name}', which is not a graph function")
        types = [annotation_of(out) for out in op.outs]
        returns = any(map(is_function, callee.type.results))
        if any(map(is_function, callee.type.inputs)) and not returns:
            name, operands = self._copy(op, callee, operands)
        try:
            call = CallOp.build(name, operands, types)
        except ShapeError as error:
            raise PassFailure(op, str(error)) from None
        for old, new in zip(op.outs, call.outs, strict=True):
            old.replace_all_uses_with(new)
        safe_erase(op)
        if returns:
            self._inline(call, callee)
        return returns

    def _inline(self, call: CallOp, callee: func.FuncOp) -> None:
        name = callee.name.value
        self.inlined += 1
        if name in self.recursive or self.inlined > MOST:
            raise PassFailure(call, f"calls '@{name}', which calls itself and returns a function")
        inline_call(call, callee, self.fresh)

    def _copy(
        self, op: ir.OpView, callee: func.FuncOp, operands: Sequence[ir.Value]
    ) -> tuple[str, list[ir.Value]]:
        """A copy of a function for what it is called with, and the operands of that."""
        if len(operands) != len(callee.type.inputs):
            raise PassFailure(
                op,
                f"passes {len(operands)} operands to '@{callee.name.value}' of "
                f"{len(callee.type.inputs)}",
            )
        keys: list[Key | None] = []
        flat: list[ir.Value] = []
        count = 0
        for operand, type_ in zip(operands, callee.type.inputs, strict=True):
            if is_function(operand.type) != is_function(type_):
                raise PassFailure(
                    op, f"passes '{operand.type}' for '{type_}' of '@{callee.name.value}'"
                )
            self.described = 0
            key, leaves = self._described(op, operand) if is_function(type_) else (None, [operand])
            keys.append(key)
            flat += leaves
            count += self.described if is_function(type_) else 0
        wanted = (callee.name.value, tuple(keys))
        if wanted not in self.copies:
            self.total += count
            if len(self.copies) >= MOST or self.total > MOST_IN_ALL:
                raise PassFailure(
                    op, f"passes ever new functions to '@{callee.name.value}', which calls itself"
                )
            self.copies[wanted] = self._specialise(callee, keys, operands)
        return self.copies[wanted], flat

    def _specialise(
        self, callee: func.FuncOp, keys: Sequence[Key | None], operands: Sequence[ir.Value]
    ) -> str:
        """Copies a function; makers at its beginning take the place of its function arguments."""
        name = self.names.fresh("_".join([callee.name.value, *(key[0] for key in keys if key)]))
        with ir.InsertionPoint.after(callee):
            copy = callee.operation.clone().opview
        copy.attributes["sym_name"] = ir.StringAttr.get(name)
        block, fresh = copy.entry_block, FreshSymbols(copy)
        entries = list(ir.ArrayAttr(copy.attributes["arg_attrs"])) if _has_entries(copy) else []
        kept: list[ir.Attribute] = []
        start = ir.InsertionPoint.at_block_begin(block)
        old = list(block.arguments)
        for position, (argument, key, operand) in enumerate(zip(old, keys, operands, strict=True)):
            if key is None:
                new = block.add_argument(argument.type, argument.location)
                kept += entries[position : position + 1]
            else:
                count = len(block.arguments)
                with start, argument.location:
                    maker = self._known(callee, operand)
                    new = _made(maker, argument.type, block, _Renaming(fresh))
                kept += [ir.DictAttr.get({})] * (len(block.arguments) - count if entries else 0)
            argument.replace_all_uses_with(new)
        for _ in old:
            block.erase_argument(0)
        if entries:
            copy.attributes["arg_attrs"] = ir.ArrayAttr.get(kept)
        inputs = [argument.type for argument in block.arguments]
        type_ = ir.FunctionType.get(inputs, list(callee.type.results))
        copy.attributes["function_type"] = ir.TypeAttr.get(type_)
        self.functions[name] = copy
        self.waiting.append(copy)
        return name


def _like(op: CallOp | InvokeClosureOp, operands: Sequence[ir.Value]) -> CallOp | InvokeClosureOp:
    """The same call with other operands."""
    types = [annotation_of(out) for out in op.outs]
    if isinstance(op, CallOp):
        return CallOp.build(op.callee_name, operands, types)
    return InvokeClosureOp.build(operands[0], operands[1:], types)


def _has_entries(function: func.FuncOp) -> bool:
    return "arg_attrs" in function.attributes


@dataclass
class _Renaming:
    """Gives each dim that is no number a symbol of the copy, equal ones the same."""

    fresh: FreshSymbols
    known: dict[Dim, Dim] = field(default_factory=dict)

    def __call__(self, dim: Dim) -> Dim:
        if dim is None:
            return self.fresh("c")
        if dim.value is not None:
            return dim
        if dim not in self.known:
            self.known[dim] = self.fresh("c")
        return self.known[dim]


def _made(maker: MakeClosureOp, type_: ir.Type, block: ir.Block, renamed: _Renaming) -> ir.Value:
    """A closure like that of a maker, of new arguments of a block."""
    captured: list[ir.Value] = []
    for value in maker.ins:
        if is_function(value.type):
            inner = maker_of(value)
            assert inner is not None
            captured.append(_made(inner, value.type, block, renamed))
        else:
            own = to_mlir(substitute(annotation_of(value), renamed))
            captured.append(block.add_argument(own, value.location))
    return MakeClosureOp.build(maker.callee_name, captured, type_).result


def _hoist(maker: MakeClosureOp, branch: ir.OpView) -> None:
    """Moves a maker in front of a branch that it is in; raises PassFailure if it cannot be."""
    if not _is_within(maker.operation, branch.operation):
        return
    for value in maker.ins:
        inner = maker_of(value)
        if inner is not None:
            _hoist(inner, branch)
        elif _is_within(_holder(value), branch.operation):
            kind = "branch" if isinstance(branch, _BRANCHES) else "loop"
            raise PassFailure(
                maker,
                f"captures a value of the {kind} that yields it; compute it before the {kind}",
            )
    maker.operation.move_before(branch.operation)


def _holder(value: ir.Value) -> ir.Operation:
    """The op that makes a value, or in whose region it is an argument."""
    owner = value.owner.owner if isinstance(value, ir.BlockArgument) else value.owner
    return owner.operation if isinstance(owner, ir.OpView) else owner


def _is_within(op: ir.Operation, outer: ir.Operation) -> bool:
    while op is not None and op != outer:
        op = op.parent
        op = op if op is None or isinstance(op, ir.Operation) else op.operation
    return op is not None
