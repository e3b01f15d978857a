"""Takes tuples apart: what carries a tuple carries its elements instead.

    func.func @f(%t: tuple<tensor<4xf32>, tuple<index, f32>>) -> tuple<f32, index> {
      %0 = "graph.tuple_get"(%t) {index = 1 : i64} : ... -> tuple<index, f32>
      ... "graph.tuple"(%b, %a) ...
      ->
    func.func @f(%t: tensor<4xf32>, %a: index, %b: f32) -> (f32, index) {
      return %b, %a

Arguments and results of functions and calls, what branches yield and loops carry become several
values; `graph.tuple` and `graph.tuple_get` are gone. An argument `x` becomes `x.0`, `x.1`, ...; if
it is updated in place, each of its elements is. The attributes `graph.argument_tree` and
`graph.result_tree` of an exported function tell the tuples that users pass and get.

A cast of a tuple becomes one of each element.

Needs: nothing; it is run automatically before the first pass of a pipeline. Leaves: no tuple.
Fails at other ops that take or make tuples, and at calls whose tuples are not those of the callee.
Source: TVM `ExpandTupleArguments`, for any tuple.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from relax_mlir.analysis.functions import INOUT, NAME, NUM_INPUTS, OPTIONAL, VALUE, is_public
from relax_mlir.analysis.rename import FreshSymbols
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.analysis.symbols import bound_symbols, symbols_of
from relax_mlir.analysis.trees import ARGUMENT_TREE, RESULT_TREE, tree_attribute
from relax_mlir.bindings import func, ir, scf
from relax_mlir.dialects.graph import (
    Annotation,
    AnyTupleType,
    CallOp,
    MatchCastOp,
    ShapeError,
    TupleGetOp,
    TupleOp,
    annotation_of,
    elements_of,
    leaf_suffixes,
    leaf_types,
    trees_of,
)
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.passing import bind_together
from relax_mlir.rewriting import safe_erase, walk_ops

_WITH_REGIONS = scf.IfOp | scf.IndexSwitchOp | scf.ExecuteRegionOp | scf.ForOp | scf.WhileOp
_ENDS = scf.YieldOp | scf.ConditionOp | func.ReturnOp


@dataclass(frozen=True)
class FlattenTuples(Pass):
    """Takes tuples apart: what carries a tuple carries its elements instead."""

    takes_tuples: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites the functions of the module, if there is a tuple in one of them."""
        if has_tuples(op):
            functions = functions_by_name(op)
            trees = {
                name: (trees_of(function.type.inputs), trees_of(function.type.results))
                for name, function in functions.items()
            }
            for call in walk_ops(op, CallOp):
                _check_call(call, trees.get(call.callee_name))
            for function in functions.values():
                _Flattening(FreshSymbols(function)).function(function)


def has_tuples(root: ir.Operation) -> bool:
    """Whether an argument or a result of a function or an op is a tuple."""
    known: dict[ir.Type, bool] = {}

    def is_found(types: Iterable[ir.Type]) -> bool:
        return any(
            known[t] if t in known else known.setdefault(t, isinstance(t, ir.TupleType))
            for t in types
        )

    for op in walk_ops(root):
        if isinstance(op, func.FuncOp) and is_found([*op.type.inputs, *op.type.results]):
            return True
        if is_found(result.type for result in op.operation.results):
            return True
    return False


def _check_call(call: CallOp, trees: tuple[list, list] | None) -> None:
    """Raises PassFailure unless tuples are those of the callee, which flattened ones hide."""
    passed = (
        trees_of([value.type for value in call.ins]),
        trees_of([value.type for value in call.outs]),
    )
    if trees is not None and passed != trees:
        raise PassFailure(call, f"passes or returns other tuples than '@{call.callee_name}'")


@dataclass
class _Flattening:
    """The elements of the tuples of a function, and what is erased at the end."""

    fresh: FreshSymbols
    elements: dict[ir.Value, Sequence[ir.Value]] = field(default_factory=dict)
    replaced: list[ir.OpView] = field(default_factory=list)
    arguments: list[tuple[ir.Block, int]] = field(default_factory=list)

    def function(self, function: func.FuncOp) -> None:
        """Rewrites the body, then the signature."""
        _flatten_signature(function)
        for block in function.body.blocks:
            self._block(block)
        for op in reversed(self.replaced):
            safe_erase(op)
        for block, count in self.arguments:
            for _ in range(count):
                block.erase_argument(0)

    def _block(self, block: ir.Block) -> None:
        """Replaces the arguments of a block, then its ops in order."""
        old = list(block.arguments)
        if any(isinstance(argument.type, ir.TupleType) for argument in old):
            for argument in old:
                new = [block.add_argument(t, argument.location) for t in leaf_types(argument.type)]
                self._replace(argument, new)
            self.arguments.append((block, len(old)))
        for op in list(block.operations):
            self._op(op)

    def _op(self, op: ir.OpView) -> None:
        if isinstance(op, TupleOp | TupleGetOp):
            self._tuple(op)
        elif not _has_tuple([*op.operands, *op.results]):
            for region in op.operation.regions:
                for block in region.blocks:
                    self._block(block)
        elif isinstance(op, CallOp):
            self._call(op)
        elif isinstance(op, MatchCastOp):
            self._cast(op)
        elif isinstance(op, _ENDS):
            with ir.InsertionPoint(op), op.location:
                _create(op, self._leaves(op.operands))
            op.operation.erase()
        elif isinstance(op, _WITH_REGIONS):
            self._with_regions(op)
        else:
            raise PassFailure(
                op,
                "takes or makes a tuple, which only graph.tuple, graph.tuple_get, "
                "graph.match_cast, graph.call and control flow do",
            )

    def _tuple(self, op: TupleOp | TupleGetOp) -> None:
        try:
            op.check()
        except ShapeError as error:
            raise PassFailure(op, str(error)) from None
        if isinstance(op, TupleOp):
            self._replace(op.outs[0], self._leaves(op.ins))
        elif isinstance(op.input.type, AnyTupleType):
            raise _untold(op, op.input.type)
        elif op.input not in self.elements:
            raise PassFailure(op, "takes a tuple that structured control flow does not pass")
        else:
            before = (elements_of(op.input.type) or [])[: op.element]
            first = sum(len(leaf_types(type_)) for type_ in before)
            count = len(leaf_types(op.result.type))
            self._replace(op.result, self.elements[op.input][first : first + count])
        self.replaced.append(op)

    def _call(self, op: CallOp) -> None:
        types = [annotation_of(t) for out in op.outs for t in leaf_types(out.type)]
        with ir.InsertionPoint(op), op.location:
            try:
                new = CallOp.build(op.callee_name, self._leaves(op.ins), types)
            except ShapeError as error:
                raise PassFailure(op, f"{error} once tuples are flattened") from None
        self._replace_results(op, new.outs)

    def _cast(self, op: MatchCastOp) -> None:
        """Casts each element; those first that bind their symbols by dims of their own."""
        for type_ in (op.input.type, op.result.type):
            if isinstance(type_, AnyTupleType):
                raise _untold(op, type_)
        if trees_of([op.input.type]) != trees_of([op.result.type]):
            raise PassFailure(
                op, f"asserts '{op.result.type}', which '{op.input.type}' can never be"
            )
        leaves, types = self._leaves([op.input]), leaf_types(op.result.type)
        annotations = list(map(annotation_of, types))
        order = _binding_order(annotations)
        ordered = [annotations[index] for index in order]
        with ir.InsertionPoint(op), op.location:
            given = [leaves[index] for index in order]
            given = bind_together(given, ordered, symbols_of(ordered), self.fresh)
            for index, value in zip(order, given, strict=True):
                leaves[index] = MatchCastOp.build(value, types[index]).result
        self._replace(op.result, leaves)
        self.replaced.append(op)

    def _with_regions(self, op: ir.OpView) -> None:
        """Moves the blocks of an op to a new one that takes and makes the elements."""
        with ir.InsertionPoint(op), op.location:
            new = _create(op, self._leaves(op.operands))
        for old_region, region in zip(op.operation.regions, new.regions, strict=True):
            for block in list(old_region.blocks):
                block.append_to(region)
                self._block(block)
        self._replace_results(op, list(new.results))

    def _replace_results(self, op: ir.OpView, leaves: Sequence[ir.Value]) -> None:
        rest = iter(leaves)
        for result in op.operation.results:
            self._replace(result, [next(rest) for _ in leaf_types(result.type)])
        self.replaced.append(op)

    def _replace(self, value: ir.Value, leaves: Sequence[ir.Value]) -> None:
        """Has the leaves in place of a value: in ops that are rewritten later if it is a tuple."""
        if isinstance(value.type, ir.TupleType):
            self.elements[value] = leaves
        else:
            value.replace_all_uses_with(leaves[0])

    def _leaves(self, values: Iterable[ir.Value]) -> list[ir.Value]:
        return [leaf for value in values for leaf in self.elements.get(value, [value])]


def _untold(op: ir.OpView, type_: ir.Type) -> PassFailure:
    return PassFailure(op, f"has '{type_}', which compiled code cannot hold: no one kind is known")


def _binding_order(annotations: Sequence[Annotation]) -> list[int]:
    """An order in which each annotation can bind its symbols, as far as there is one."""
    order: list[int] = []
    left, known = list(range(len(annotations))), set[str]()
    while left:
        ready = [
            i
            for i in left
            if set(symbols_of([annotations[i]])) <= known | bound_symbols([annotations[i]], known)
        ]
        order += ready or left
        left = [i for i in left if i not in order]
        known |= set(symbols_of([annotations[i] for i in order]))
    return order


def _has_tuple(values: Iterable[ir.Value]) -> bool:
    return any(isinstance(value.type, ir.TupleType) for value in values)


def _create(op: ir.OpView, operands: Sequence[ir.Value]) -> ir.Operation:
    """A copy of an op for other operands, with elements as results, and empty regions."""
    return ir.Operation.create(
        op.operation.name,
        results=[t for result in op.operation.results for t in leaf_types(result.type)],
        operands=list(operands),
        attributes=dict(op.operation.attributes.items()),
        regions=len(op.operation.regions),
    )


def _flatten_signature(function: func.FuncOp) -> None:
    """Rewrites the type and the attributes of a function."""
    inputs, results = list(function.type.inputs), list(function.type.results)
    if not any(isinstance(type_, ir.TupleType) for type_ in (*inputs, *results)):
        return
    attributes = function.attributes
    if "arg_attrs" in attributes:
        entries = _flattened_entries(function, list(ir.ArrayAttr(attributes["arg_attrs"])))
        attributes["arg_attrs"] = ir.ArrayAttr.get(entries)
    if "res_attrs" in attributes:
        flat = zip(ir.ArrayAttr(attributes["res_attrs"]), results, strict=True)
        attributes["res_attrs"] = ir.ArrayAttr.get([a for a, t in flat for _ in leaf_types(t)])
    if NUM_INPUTS in attributes:
        count = ir.IntegerAttr(attributes[NUM_INPUTS])
        flat_count = sum(len(leaf_types(type_)) for type_ in inputs[: count.value])
        attributes[NUM_INPUTS] = ir.IntegerAttr.get(count.type, flat_count)
    if is_public(function):
        attributes[ARGUMENT_TREE] = tree_attribute(trees_of(inputs))
        attributes[RESULT_TREE] = tree_attribute(trees_of(results))
    types = [[leaf for type_ in part for leaf in leaf_types(type_)] for part in (inputs, results)]
    attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))


def _flattened_entries(function: func.FuncOp, entries: list[ir.DictAttr]) -> list[ir.DictAttr]:
    """The attributes of the leaves of arguments."""
    inputs, results = list(function.type.inputs), list(function.type.results)
    first = [0]
    for result in results:
        first.append(first[-1] + len(leaf_types(result)))
    flat: list[ir.DictAttr] = []
    for index, (entry, type_) in enumerate(zip(entries, inputs, strict=True)):
        attributes = {named.name: named.attr for named in entry}
        if INOUT in attributes:
            attributes[INOUT] = old = ir.IntegerAttr(attributes[INOUT])
            if not 0 <= old.value < len(results) or trees_of([results[old.value]]) != trees_of(
                [type_]
            ):
                text = f"has argument {index} updated as result {old.value}, which it cannot be"
                raise PassFailure(function, text)
            begin = first[old.value]
        for name in (VALUE, OPTIONAL):
            if isinstance(type_, ir.TupleType) and name in attributes:
                raise PassFailure(function, f"has argument {index}, a tuple, with '{name}'")
        for offset, name in enumerate(leaf_suffixes(type_)):
            own = dict(attributes)
            if NAME in own:
                own[NAME] = ir.StringAttr.get(ir.StringAttr(own[NAME]).value + name)
            if INOUT in own:
                own[INOUT] = ir.IntegerAttr.get(old.type, begin + offset)
            flat.append(ir.DictAttr.get(own))
    return flat
