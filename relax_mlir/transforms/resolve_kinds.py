"""Gives values of open annotations the kind of what they hold.

    %0 = "graph.tuple"(%x, %k) : (tensor<4xf32>, index) -> tuple<tensor<4xf32>, index>
    %1 = "graph.match_cast"(%0) : (...) -> !graph.any_tuple
    %2 = "graph.call"(%1) {callee = @first} : (!graph.any_tuple) -> !graph.object
      ->
    %1 = "graph.match_cast"(%0) : (...) -> tuple<tensor<4xf32>, index>
    %2 = "graph.call"(%1) {callee = @first_1} : (tuple<tensor<4xf32>, index>) -> tensor<?xf32>

Which elements a tuple has, what elements a tensor, and whether an object is either or a function,
follows from what is passed, yielded and carried. A private function is copied for the kinds that it
is called with. An argument of an exported function is of the kind to which casts that always run
take it. What stays open is refused by later passes, where compiled code would have to hold it.

Needs: nothing. Leaves: open annotations only where values of several kinds meet. Fails at a cast to
    what a value can never be, and at calls with ever new kinds.
Source: paper §3.1; specialisation of calls.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.function_values import maker_of
from relax_mlir.analysis.functions import graph_functions, is_public
from relax_mlir.analysis.rename import FUNCTION_TYPE
from relax_mlir.analysis.scopes import runs_once
from relax_mlir.analysis.signatures import functions_by_name, kind_conflict, unify
from relax_mlir.bindings import func, ir, scf
from relax_mlir.dialects.graph import (
    Annotation,
    CallableType,
    CallOp,
    GraphOp,
    InvokeClosureOp,
    MakeClosureOp,
    MatchCastOp,
    ObjectType,
    ShapeError,
    TupleGetOp,
    TupleOp,
    annotation_of,
    coarser,
    compatible,
    elements_of,
    is_function,
    is_open,
    join,
    to_mlir,
    tuple_type,
)
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.passing import (
    coerce,
    coerce_carried,
    coerce_ends,
    give_kinds,
    handed,
    terminators,
    without_dims,
)
from relax_mlir.rewriting import SymbolNames, safe_erase, uncast, walk_ops

MOST, DEEPEST = 1000, 100
"""Copies of functions, and calls of open kinds in each other, beyond which a program is refused."""


@dataclass(frozen=True)
class ResolveKinds(Pass):
    """Gives values of open annotations the kind of what they hold."""

    takes_tuples: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites the functions of the module, if something is open."""
        if _has_open(op):
            _Resolution(op).run()


def _has_open(module: ir.Operation) -> bool:
    """Whether something is open that later passes cannot follow: they know tensors and objects."""
    types = set(_types(module))
    opened = [type_ for type_ in types if is_open(annotation_of(type_))]
    if not opened:
        return False
    others = (isinstance(type_, ir.TupleType) or is_function(type_) for type_ in types)
    return any(not isinstance(type_, ObjectType) for type_ in opened) or any(others)


def _is_open(function: func.FuncOp) -> bool:
    return any(is_open(annotation_of(type_)) for type_ in set(_types(function.operation)))


def _types(root: ir.Operation) -> Iterator[ir.Type]:
    for op in walk_ops(root):
        if isinstance(op, func.FuncOp):
            yield from (*op.type.inputs, *op.type.results)
        yield from (result.type for result in op.operation.results)


@dataclass
class _Resolution:
    """The work on one module: `copies` of functions by what they are called with.

    Functions that return nothing open are `waiting`: callers need not know their bodies.
    """

    module: ir.Operation
    copies: dict[tuple[str, tuple[ir.Type, ...]], func.FuncOp] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    waiting: list[func.FuncOp] = field(default_factory=list)
    depth: int = 0

    def run(self) -> None:
        """Rewrites exported functions and what they call; others are erased if they are open."""
        self.functions = functions_by_name(self.module)
        self.names = SymbolNames(self.module.regions[0].blocks[0])
        functions = graph_functions(self.module)
        exported = [function for function in functions if is_public(function)]
        for function in exported:
            _take(function)
        plain = [each for each in functions if not is_public(each) and not _is_open(each)]
        self.waiting = [*plain, *exported] or list(functions)
        while self.waiting:
            self._function(self.waiting.pop())
        for function in functions:
            if function.name.value not in self.done and _is_open(function):
                safe_erase(function)

    def _function(self, function: func.FuncOp) -> None:
        """Rewrites a body, then what the function returns."""
        name = function.name.value
        if name in self.done or len(function.body.blocks) != 1:
            return
        self.done.add(name)
        self._block(function.entry_block)
        operations = function.entry_block.operations
        end = operations[len(operations) - 1]
        declared = list(function.type.results)
        if len(declared) != len(end.operands):
            return
        results = [_refined(end, own, value) for own, value in zip(declared, end.operands)]
        coerce(end, results)
        type_ = ir.FunctionType.get(function.type.inputs, results)
        function.attributes[FUNCTION_TYPE] = ir.TypeAttr.get(type_)

    def _block(self, block: ir.Block) -> None:
        for op in list(block.operations):
            self._op(op)

    def _op(self, op: ir.OpView) -> None:
        if isinstance(op, MatchCastOp):
            op.result.set_type(_refined(op, op.result.type, op.input, dims=True))
        elif isinstance(op, TupleOp) and len(op.outs) == 1:
            op.outs[0].set_type(tuple_type([value.type for value in op.ins]))
        elif isinstance(op, TupleGetOp):
            types = elements_of(op.input.type) or []
            if is_open(annotation_of(op.result)) and 0 <= op.element < len(types):
                op.result.set_type(types[op.element])
        elif isinstance(op, MakeClosureOp):
            self._closure(op)
        elif isinstance(op, InvokeClosureOp):
            self._invoke(op)
        elif isinstance(op, CallOp):
            self._call(op)
        elif isinstance(op, scf.ForOp | scf.WhileOp):
            self._loop(op)
        elif isinstance(op, GraphOp):
            _infer(op)
        else:
            self._regions(op)

    # Control flow.

    def _loop(self, op: scf.ForOp | scf.WhileOp) -> None:
        coerce_carried(op)
        for region in op.operation.regions:
            for block in region.blocks:
                self._block(block)
                if isinstance(op, scf.WhileOp):
                    give_kinds(handed(block), list(op.regions[1].blocks[0].arguments))
                    give_kinds(handed(block), list(op.results))
        coerce_ends(op)

    def _regions(self, op: ir.OpView) -> None:
        """Rewrites regions; results are of what all of them yield."""
        for region in op.operation.regions:
            for block in region.blocks:
                self._block(block)
        ends = terminators(op)
        for index, result in enumerate(op.operation.results if ends else ()):
            if not is_open(annotation_of(result)):
                continue
            common = without_dims(annotation_of(ends[0].operands[index]))
            for end in ends[1:]:
                common = coarser(common, without_dims(annotation_of(end.operands[index])))
            if compatible(annotation_of(result), common):
                result.set_type(to_mlir(join(annotation_of(result), common)))
        for end in ends:
            coerce(end, [result.type for result in op.operation.results])

    # Functions.

    def _closure(self, op: MakeClosureOp) -> None:
        """Gives a closure the type of its callee, without what it captures."""
        callee = self.functions.get(op.callee_name)
        if callee is None or len(op.ins) > len(callee.type.inputs) or len(op.outs) != 1:
            return  # refused by its rule
        self.waiting.append(callee)
        if isinstance(op.result.type, CallableType):
            inputs = list(callee.type.inputs)[len(op.ins) :]
            op.result.set_type(ir.FunctionType.get(inputs, list(callee.type.results)))

    def _invoke(self, op: InvokeClosureOp) -> None:
        """Holds a call against the type of the function, and refines its results."""
        try:
            op.check()
        except ShapeError as error:
            raise PassFailure(op, str(error)) from None
        type_ = op.ins[0].type
        maker = maker_of(uncast(op.ins[0]))
        if maker is not None and _takes_open(maker.result.type):
            with ir.InsertionPoint(op), op.location:
                outs = [annotation_of(out) for out in op.outs]
                call = CallOp.build(maker.callee_name, [*maker.ins, *op.passed], outs)
            self._call(call)
            for old, new in zip(op.outs, call.outs, strict=True):
                old.replace_all_uses_with(new)
            safe_erase(op)
        elif isinstance(type_, ir.FunctionType):
            parameters = list(map(annotation_of, type_.inputs))
            given = [annotation_of(value) for value in op.passed]
            for index, (parameter, argument) in enumerate(zip(parameters, given)):
                if conflict := kind_conflict(parameter, argument):
                    raise PassFailure(op, f"passes operand {index}, which {conflict}")
            unification = unify(parameters, given)
            for out, result in zip(op.outs, type_.results):
                _refine(op, out, unification.annotation(annotation_of(result)))

    def _call(self, op: CallOp) -> None:
        """Calls a copy of the callee for the kinds of the arguments, and refines the results."""
        callee = self.functions.get(op.callee_name)
        if callee is None or not callee.body.blocks or len(callee.type.inputs) != len(op.ins):
            return  # refused by its rule
        for index, (type_, value) in enumerate(zip(callee.type.inputs, op.ins)):
            if conflict := kind_conflict(annotation_of(type_), annotation_of(value)):
                name = op.callee_name
                raise PassFailure(op, f"passes operand {index}, which {conflict}, to '@{name}'")
        types = [
            to_mlir(_given(annotation_of(type_), annotation_of(value)))
            for type_, value in zip(callee.type.inputs, op.ins)
        ]
        if types != list(callee.type.inputs):
            callee = self._copy(op, callee, types)
            op.attributes["callee"] = ir.FlatSymbolRefAttr.get(callee.name.value)
        if any(is_open(annotation_of(type_)) for type_ in callee.type.results):
            self._body(op, callee)
        else:
            self.waiting.append(callee)
        for out, result in zip(op.outs, callee.type.results):
            _refine(op, out, without_dims(annotation_of(result)))

    def _body(self, op: CallOp, callee: func.FuncOp) -> None:
        """Rewrites a function now, since its results are open."""
        if self.depth == DEEPEST:
            name = callee.name.value
            raise PassFailure(op, f"calls '@{name}' of ever new kinds, {DEEPEST} calls deep")
        self.depth += 1
        self._function(callee)
        self.depth -= 1

    def _copy(self, op: CallOp, callee: func.FuncOp, types: Sequence[ir.Type]) -> func.FuncOp:
        """A private copy of a function with other parameters."""
        key = (callee.name.value, tuple(types))
        if key not in self.copies:
            if len(self.copies) >= MOST:
                name = callee.name.value
                raise PassFailure(
                    op, f"calls '@{name}' of ever new kinds, {MOST} copies of functions"
                )
            with ir.InsertionPoint.after(callee):
                copy = callee.operation.clone().opview
            copy.attributes["sym_name"] = ir.StringAttr.get(self.names.fresh(key[0]))
            copy.attributes["sym_visibility"] = ir.StringAttr.get("private")
            _set_inputs(copy, types)
            self.copies[key] = self.functions[copy.name.value] = copy
        return self.copies[key]


def _infer(op: GraphOp) -> None:
    """Refines open results of an operator by its rule, which `relax-verify` reports errors of."""
    if not op.has_rule() or not any(is_open(annotation_of(out)) for out in op.operation.results):
        return
    try:
        inferred = op.infer()
    except ShapeError:
        return
    for out, known in zip(op.operation.results, inferred):
        if compatible(annotation_of(out), known):
            _refine(op, out, known)


def _given(parameter: Annotation, argument: Annotation) -> Annotation:
    """A parameter with the kind of what is passed; dims are those of the caller."""
    argument = without_dims(argument)
    if not is_open(parameter) or not compatible(parameter, argument):
        return parameter
    return join(parameter, argument)


def _refined(op: ir.OpView, declared: ir.Type, value: ir.Value, dims: bool = False) -> ir.Type:
    """A declared type with the kind of the value, if it is open; raises PassFailure at `op`."""
    wanted, own = annotation_of(declared), annotation_of(value)
    if not compatible(wanted, own):
        raise PassFailure(op, f"asserts '{declared}', which '{value.type}' can never be")
    if not is_open(wanted):
        return declared
    return to_mlir(join(wanted, own if dims else without_dims(own)))


def _refine(op: ir.OpView, result: ir.Value, known: Annotation) -> None:
    """Gives an open result the kind that is known; raises PassFailure if it cannot be."""
    if not compatible(annotation_of(result), known):
        raise PassFailure(op, f"has a result '{result.type}', which is '{to_mlir(known)}'")
    if is_open(annotation_of(result)):
        result.set_type(to_mlir(join(annotation_of(result), without_dims(known))))


def _takes_open(type_: ir.Type) -> bool:
    """Whether a function has a parameter of open kind."""
    inputs = type_.inputs if isinstance(type_, ir.FunctionType) else []
    return any(is_open(annotation_of(each)) for each in inputs)


def _take(function: func.FuncOp) -> None:
    """Gives open arguments the kinds to which casts that always run take them."""
    types = []
    for argument in function.arguments:
        annotation = annotation_of(argument)
        for cast in _casts(function, argument) if is_open(annotation) else ():
            target = without_dims(annotation_of(cast.result))
            if compatible(annotation, target):
                annotation = join(annotation, target)
        types.append(to_mlir(annotation))
    _set_inputs(function, types)


def _casts(function: func.FuncOp, argument: ir.Value) -> Iterable[MatchCastOp]:
    for use in argument.uses:
        cast = use.owner.opview
        block = cast.operation.block
        while block != function.entry_block and runs_once(block.owner.opview):
            block = block.owner.operation.block
        if isinstance(cast, MatchCastOp) and block == function.entry_block:
            yield cast


def _set_inputs(function: func.FuncOp, types: Sequence[ir.Type]) -> None:
    for argument, type_ in zip(function.arguments, types, strict=True):
        argument.set_type(type_)
    new = ir.FunctionType.get(list(types), list(function.type.results))
    function.attributes[FUNCTION_TYPE] = ir.TypeAttr.get(new)
