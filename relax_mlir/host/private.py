"""Graph functions that others call: they take addresses and symbols, and write to given memory.

    func.func private @host.f(%context, %site: i32,
                              %address and unannotated dims of each tensor argument,
                              %value of each scalar argument,
                              %symbol of each symbol of the arguments,
                              %address of each result that is not an updated argument) -> i32

There are no tables: the caller proves that arguments and results agree with the signature. The
function releases what it allocates from the arena. Its kernel calls have the sites from `%site` on;
functions that call themselves pass it on, since they share sites, and count how deep they are.
"""

from collections.abc import Iterator, Mapping, Sequence

from relax_mlir.analysis.devices import device_of, device_of_argument, is_constant, placed
from relax_mlir.analysis.functions import facts_of, inout_arguments, signature_symbols
from relax_mlir.analysis.signatures import parameter_types, result_types, unify
from relax_mlir.analysis.symbols import dims_of
from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import Diagnostic
from relax_mlir.dialects.graph import Annotation, CallDpsOp, TensorType, annotation_of
from relax_mlir.passes import PassFailure
from relax_mlir.symbolic import equal

from .builder import Builder
from .function import Emitter, HostFunction, HostModule
from .memory import mark_arena, release_arena, return_results
from .scalars import define_scalars, scalar_type
from .scope import HostTensor, Size


def call_private(host: HostFunction, op: CallDpsOp, graph: func.FuncOp) -> None:
    """Calls a graph function of the module, which `emit_called` emits."""
    arguments, inout = passed_arguments(op, graph), inout_arguments(graph)
    parameters = parameter_types(graph)
    unification = unify(parameters, [annotation_of(value) for value in arguments])
    operands: list[ir.Value] = []
    for index, (parameter, value) in enumerate(zip(parameters, arguments, strict=True)):
        device = device_of_argument(graph, index)
        if isinstance(parameter, TensorType) and not is_constant(value):
            require_location(host, op, value, device)
        _check(host, op, parameter, unification.annotation(parameter), value)
        if isinstance(parameter, TensorType):
            at = host.module.index(device)
            is_moved = is_constant(value) and host.device_of(value) != at
            tensor = host.constant(value, at) if is_moved else host.tensor(value)
            operands += [tensor.pointer, *host.integers(op, _unnamed(parameter, tensor.dims))]
        elif scalar_type(value.type) is not None:
            operands.append(host.scalar(op, value))
    for symbol in signature_symbols(graph):
        if symbol not in unification.values:
            raise PassFailure(op, f"does not bind '{symbol}' of '@{graph.name.value}'")
        operands.append(host.integer(op, unification.values[symbol]))
    for index, (declared, value) in enumerate(zip(result_types(graph), op.destinations)):
        if index not in inout:
            require_location(host, op, value, placed(graph))
            _check(host, op, declared, unification.annotation(declared), value)
            operands.append(host.tensor(value).pointer)
    out, module, name = host.out, host.module, graph.name.value
    if name not in module.callees:
        module.callees[name] = module.names.fresh(f"host.{name}")
    is_recursive = module.sites.recursion.is_recursive(host.name, name)
    if is_recursive:
        _enter(host, op)
    site = host.group_site() if is_recursive else host.next_site(module.sites.total(name))
    (status,) = out.call(module.callees[name], [out.context, site, *operands], [out.i32])
    out.fail_unless_zero(status)
    if is_recursive:
        out.call_runtime("rx_leave", [out.context])


def require_location(host: HostFunction, op: CallDpsOp, value: ir.Value, device: str) -> None:
    """Refuses a tensor that is not on the device where it is needed."""
    if host.device_of(value) != host.module.index(device):
        text = f"needs '{value.type}' on '{device}', but it is on '{device_of(value)}'"
        raise PassFailure(op, f"{text}; run relax-copy-between-devices before relax-lower-calls")


def _enter(host: HostFunction, op: CallDpsOp) -> None:
    """Returns with an error if calls of functions that call themselves are nested too deep."""
    where = str(Diagnostic.at(op.location, "error", f"a call of '@{op.callee_name}'"))
    text = host.out.address(host.module.table.string(where))
    (status,) = host.out.call_runtime("rx_enter", [host.out.context, text])
    host.out.fail_unless_zero(status)


def passed_arguments(op: CallDpsOp, graph: func.FuncOp) -> list[ir.Value]:
    """The argument for each parameter; updated ones are among the destinations.

    Raises PassFailure if the counts do not agree.
    """
    updated = {argument: result for result, argument in inout_arguments(graph).items()}
    count, sources = len(graph.arguments), iter(op.sources)
    if len(op.sources) + len(updated) != count or len(op.destinations) != len(graph.type.results):
        raise PassFailure(op, f"does not agree with the signature of '@{graph.name.value}'")
    return [
        op.destinations[updated[index]] if index in updated else next(sources)
        for index in range(count)
    ]


def _check(
    host: HostFunction, op: CallDpsOp, declared: Annotation, wanted: Annotation, value: ir.Value
) -> None:
    """Refuses a tensor or shape whose dims are not provably those of the signature."""
    dims = zip(*(dims_of(annotation) for annotation in (declared, wanted, annotation_of(value))))
    for annotated, want, have in dims:
        if annotated is None:
            continue
        if want is None or have is None or not equal(want, have, host.scope.facts).proved:
            raise PassFailure(op, f"passes '{value.type}', which is not proved to be '{declared}'")


def _unnamed(declared: TensorType, dims: Sequence[Size]) -> list[Size]:
    """The dims of a tensor that its declaration leaves unknown."""
    return [have for dim, have in zip(declared.dims or (), dims, strict=True) if dim is None]


def emit_called(module: HostModule, emitters: Mapping[type[ir.OpView], Emitter]) -> None:
    """Emits the functions that emitted ones call, and those that they call."""
    emitted: set[str] = set()
    while missing := [name for name in module.callees if name not in emitted]:
        for name in missing:
            _emit(module, module.functions[name], emitters)
        emitted.update(missing)


def _emit(
    module: HostModule, graph: func.FuncOp, emitters: Mapping[type[ir.OpView], Emitter]
) -> None:
    symbols, border = signature_symbols(graph), _Pointers(graph)
    i32, i64 = map(ir.IntegerType.get_signless, (32, 64))
    pointer = ir.Type.parse("!llvm.ptr")
    type_ = ir.FunctionType.get([pointer, i32, *border.types(len(symbols), pointer, i64)], [i32])
    name = module.callees[graph.name.value]
    op = func.FuncOp(name, type_, visibility="private", ip=ir.InsertionPoint(module.block))
    with graph.location:
        out = Builder(op, module.runtime)
        host = HostFunction(graph, out, module, border, emitters, out.arguments[1])
        values = border.take(iter(list(out.arguments)[2:]), symbols)
        define_scalars(host)
        host.open_facts = [fact for fact in facts_of(graph) if not fact.symbols <= values.keys()]
        mark = mark_arena(host, graph)
        with host.region(graph.entry_block, host.scope.inside(values)) as terminator:
            return_results(host, terminator)
        release_arena(host, mark)
        host.scope.close(module.table, host.name)
        out.finish()


class _Pointers:
    """Arguments and results as addresses and unannotated dims."""

    is_host_result = False

    def __init__(self, graph: func.FuncOp) -> None:
        self._parameters = parameter_types(graph)
        self._num_results, self._inout = len(graph.type.results), inout_arguments(graph)
        self._arguments: dict[int, HostTensor] = {}
        self._scalars: dict[int, ir.Value] = {}
        self._results: dict[int, ir.Value] = {}

    def types(self, num_symbols: int, pointer: ir.Type, integer: ir.Type) -> list[ir.Type]:
        """The types of the host function's arguments."""
        types_: list[ir.Type] = []
        for parameter in self._parameters:
            if isinstance(parameter, TensorType):
                types_ += [pointer, *(integer for dim in parameter.dims or () if dim is None)]
            elif (scalar := scalar_type(parameter)) is not None:
                types_.append(scalar)
        num_pointers = self._num_results - len(self._inout)
        return [*types_, *[integer] * num_symbols, *[pointer] * num_pointers]

    def take(self, passed: Iterator[ir.Value], symbols: Sequence[str]) -> dict[str, ir.Value]:
        """Takes arguments of those types; returns the symbols."""
        for index, parameter in enumerate(self._parameters):
            if isinstance(parameter, TensorType):
                pointer = next(passed)
                dims = tuple(next(passed) if d is None else d for d in parameter.dims or ())
                self._arguments[index] = HostTensor(pointer, dims, parameter.element)
            elif scalar_type(parameter) is not None:
                self._scalars[index] = next(passed)
        values = {symbol: next(passed) for symbol in symbols}
        for index in range(self._num_results):
            if index not in self._inout:
                self._results[index] = next(passed)
        return values

    def argument(self, index: int, annotation: TensorType) -> HostTensor:
        """What was passed."""
        return self._arguments[index]

    def scalar_argument(self, index: int, type_: ir.Type) -> ir.Value:
        """What was passed."""
        return self._scalars[index]

    def result(
        self, index: int, element: ir.Type, dims: Sequence[ir.Value], is_tensor: bool = True
    ) -> ir.Value:
        """The passed address; the caller knows the dims."""
        return self._results[index]

    def return_argument(self, index: int, argument: int) -> None:
        """The caller knows."""
