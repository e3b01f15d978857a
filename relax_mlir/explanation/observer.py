"""Reads a module between passes, for what they lose: the ops that facts and dims come from."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from relax_mlir.analysis.functions import (
    PRIMITIVE,
    argument_name,
    facts_of,
    graph_functions,
    signature_symbols,
)
from relax_mlir.analysis.memory import Memory, returned_allocations
from relax_mlir.analysis.scopes import bound_by, scoped_ops
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.analysis.symbols import bindings, dims_of
from relax_mlir.bindings import arith, func, ir
from relax_mlir.data import bytes_of
from relax_mlir.diagnostics import Diagnostic
from relax_mlir.dialects.graph import (
    AllocStorageOp,
    AllocTensorOp,
    AstypeOp,
    CallDpsLibraryOp,
    CallDpsOp,
    CallTirInplaceOp,
    CallTirOp,
    DataDependentOp,
    GraphOp,
    MatchCastOp,
    RequireOp,
    ReshapeOp,
    TensorToShapeOp,
    TensorType,
    annotation_of,
    element_bits,
    known_dims,
)
from relax_mlir.dialects.tir import prim_funcs
from relax_mlir.rewriting import walk_ops
from relax_mlir.symbolic import Expr, as_expr, product
from relax_mlir.transforms.state_assumptions import assumed_by

from .report import Bytes, Check, Explanation, Function, Kernel, Refusal, Symbol, Unexpressed

FORWARDS = MatchCastOp | TensorToShapeOp | ReshapeOp | AstypeOp
"""Ops that only pass on what decides a dim."""


@dataclass
class Observer:
    """Reads the module after passes; maps are by the names of functions, then of symbols, facts."""

    remarks: list[Diagnostic]
    file: str
    """What messages call the text that has no name in itself."""
    assumed: dict[str, dict[str, Check]] = field(default_factory=dict)
    given: dict[str, set[str]] = field(default_factory=dict)
    deciding: dict[str, str] = field(default_factory=dict)
    casts: dict[str, dict[str, Unexpressed]] = field(default_factory=dict)
    operators: dict[str, tuple[str, ...]] = field(default_factory=dict)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused_at: dict[tuple[str, str], str] = field(default_factory=dict)

    def __call__(self, name: str, module: ir.Operation) -> None:
        """Reads what holds after a pass, and what it refused."""
        for each in self.remarks:
            key = name, each.message
            self.refused[key] += 1
            self.refused_at.setdefault(key, self._named(each))
        self.remarks.clear()
        read = {
            "relax-name-dims": self._data_dependent,
            "relax-expand-data-dependent": self._assumptions,
            "relax-externalize-constants": self._unexpressed,
            "relax-fuse-ops": self._fused,
        }.get(name)
        if read is not None:
            read(module)

    def _data_dependent(self, module: ir.Operation) -> None:
        for op in walk_ops(module, DataDependentOp):
            self.deciding[str(op.location)] = op.operation.name

    def _assumptions(self, module: ir.Operation) -> None:
        functions = functions_by_name(module)
        for function in graph_functions(module):
            name = function.name.value
            self.given[name] = set(map(str, facts_of(function)))
            by = self.assumed.setdefault(name, {})
            for op in walk_ops(function, GraphOp):
                if isinstance(op, MatchCastOp | RequireOp):
                    continue
                for any_of in assumed_by(op, functions):
                    for fact in map(str, any_of):
                        by.setdefault(fact, Check(fact, op.operation.name, self._where(op)))

    def _unexpressed(self, module: ir.Operation) -> None:
        for function in graph_functions(module):
            own = self.casts.setdefault(function.name.value, {})
            for op, scope in scoped_ops(function):
                if isinstance(op, MatchCastOp):
                    for symbol in sorted(bound_by(op, scope.symbols)):
                        own[symbol] = self._cast(op, symbol)

    def _cast(self, cast: MatchCastOp, symbol: str) -> Unexpressed:
        """What a cast asks at run time: a dim of a tensor, or an element that is taken for one."""
        dims = dims_of(annotation_of(cast.result))
        axis = next(i for i, dim in enumerate(dims) if dim is not None and symbol in dim.symbols)
        kind = "dim" if isinstance(annotation_of(cast.result), TensorType) else "element"
        decides = self.deciding.get(str(cast.location))
        if decides is not None:
            return Unexpressed(symbol, f"count that {decides} finds", self._where(cast))
        value = cast.input
        while not isinstance(value.owner, ir.Block):
            producer = value.owner.opview
            if not isinstance(producer, FORWARDS):
                return Unexpressed(
                    symbol, f"{kind} {axis} of {producer.operation.name}", self._where(producer)
                )
            value = producer.operation.operands[0]
        owner = value.owner.owner.name
        return Unexpressed(symbol, f"{kind} {axis} of an argument of {owner}", self._where(cast))

    def _fused(self, module: ir.Operation) -> None:
        for function in graph_functions(module):
            if PRIMITIVE in function.attributes:
                calls = [
                    c for c in walk_ops(function) if isinstance(c, CallTirOp | CallTirInplaceOp)
                ]
                self.operators[function.name.value] = tuple(_base(c.callee_name) for c in calls)

    def _where(self, op: ir.OpView) -> str:
        return self._named(Diagnostic.at(op.location, "note", ""))

    def _named(self, diagnostic: Diagnostic) -> str:
        return (
            replace(diagnostic, file=self.file).where
            if diagnostic.file == "-"
            else diagnostic.where
        )

    def explanation(self, module: ir.Operation) -> Explanation:
        """What the last pass left, with what was read before."""
        functions = graph_functions(module)
        memory = Memory(functions_by_name(module))
        constants = [c for f in functions for c in walk_ops(f, arith.ConstantOp)]
        values = dict.fromkeys(each.attributes["value"] for each in constants)
        return Explanation(
            tuple(self._function(each, memory) for each in functions),
            tuple(self._kernels(module)),
            tuple(
                Refusal(by, message, self.refused_at[by, message], times)
                for (by, message), times in self.refused.items()
            ),
            sum(_stored(each) for each in values if isinstance(each.type, ir.ShapedType)),
        )

    def _function(self, function: func.FuncOp, memory: Memory) -> Function:
        name = function.name.value
        names = [argument_name(function, i) for i in range(len(function.arguments))]
        casts = self.casts.get(name, {})
        known = self.assumed.get(name, {})
        given = self.given.get(name, set())
        facts = [
            Check(fact, "given", "") if fact in given else known.get(fact, Check(fact, "", ""))
            for fact in map(str, facts_of(function))
        ]
        arguments = {n: str(annotation_of(a)) for n, a in zip(names, function.arguments)}
        symbols = [
            *_argument_symbols(function, names),
            *(Symbol(n, c.what) for n, c in casts.items()),
        ]
        return Function(
            name,
            arguments,
            tuple(str(annotation_of(each)) for each in _returned(function)),
            tuple(symbols),
            tuple(facts),
            tuple(self._requirements(function)),
            tuple(casts.values()),
            _bytes(function, memory),
        )

    def _requirements(self, function: func.FuncOp) -> Iterator[Check]:
        for op in walk_ops(function, RequireOp):
            facts = " or ".join(str(fact) for fact in op.facts)
            yield Check(facts, op.attributes["by"].value, self._where(op))

    def _kernels(self, module: ir.Operation) -> Iterator[Kernel]:
        """The kernels that are called, in the order of their first calls."""
        rules = {
            k.name: k.op.attributes["tir.schedule"].value
            for k in prim_funcs(module)
            if "tir.schedule" in k.op.attributes
        }
        calls: dict[str, list[str]] = {}
        for op in walk_ops(module):
            if isinstance(op, CallDpsOp | CallDpsLibraryOp):
                calls.setdefault(op.callee_name, []).append(self._where(op))
        for name, at in calls.items():
            fused = _PACKED.sub("", name)
            operators = self.operators.get(fused, (_base(fused),))
            where = tuple(dict.fromkeys(filter(None, at)))
            yield Kernel(name, operators, rules.get(name, "library"), len(at), where)


_PACKED = re.compile(r"_packed(_\d+)?$")
"""What passes that pack weights add to the name of a kernel that reads them."""


def _base(name: str) -> str:
    """The operator that a tensor program is named after, without the suffix of a name in use."""
    head, _, tail = name.rpartition("_")
    return head if head and tail.isdigit() else name


def _argument_symbols(function: func.FuncOp, names: list[str]) -> Iterator[Symbol]:
    """The symbols that arguments bind, and the dims that tell them."""
    annotations = [annotation_of(argument) for argument in function.arguments]
    told = bindings(annotations)
    for symbol in signature_symbols(function):
        if symbol not in told:
            yield Symbol(symbol, "several dims of arguments")
            continue
        binding = told[symbol]
        dim = dims_of(annotations[binding.index])[binding.axis]
        of = f"dim {binding.axis} of '{names[binding.index]}'"
        yield Symbol(symbol, of if str(dim) == symbol else f"{of}, which is {dim}")


def _returned(function: func.FuncOp) -> list[ir.Value]:
    return list(function.entry_block.operations[-1].operands)


def _bytes(function: func.FuncOp, memory: Memory) -> Bytes:
    """The formulas of a function whose memory is planned."""
    returned = returned_allocations(function, memory)
    storages = [op.bytes or as_expr(0) for op in walk_ops(function, AllocStorageOp)]
    loose = [
        _size(op.result)
        for op in walk_ops(function, AllocTensorOp)
        if not op.operands and op.result not in returned
    ]
    taken = [*storages, *loose]
    return Bytes(
        str(_sum([_size(each) for each in function.arguments])),
        str(_sum([_size(each) for each in dict.fromkeys(_returned(function))])),
        str(_sum(taken)),
        tuple(map(str, taken)),
    )


def _stored(constant: ir.Attribute) -> int:
    """Bytes of the elements, of those that are all equal one."""
    data = bytes_of(constant)
    return 0 if data is None else data.nbytes


def _size(value: ir.Value) -> Expr:
    """Bytes of a tensor, booleans taking a byte each; 0 for other values."""
    annotation = annotation_of(value)
    if not isinstance(annotation, TensorType):
        return as_expr(0)
    dims = known_dims(annotation.dims)
    assert dims is not None, annotation
    return product(dims) * max(1, element_bits(annotation.element) // 8)


def _sum(sizes: list[Expr]) -> Expr:
    return sum(sizes, as_expr(0))
