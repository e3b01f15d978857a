"""Lowers operators to calls of an external library; others stay.

    %t = "graph.permute_dims"(%w) {axes = [1, 0]}
    %y = "graph.matmul"(%x, %t) : (tensor<?x64xf32, ...>, tensor<64x32xf32>) -> ...
      ->
    "lib.function"() {sym_name = "openblas.sgemm_nt", convention = "cblas_sgemm_nt", ...}
    %y = "graph.call_dps_library"(%x, %w) {callee = @openblas.sgemm_nt}

The table of `relax_mlir.patterns.register_dispatch` has patterns and functions; the first match is
used. A function that needs memory while it runs is given workspaces, by the attribute
`graph.workspace` of the call. `libraries` names the libraries that may be used, `functions` the
graph functions to rewrite (all, if empty). An operator is dispatched only if it provably has at
least `min-work` multiplications.

`when` is a relation of the pattern's variables, as is that of a row: `{when='m >= 32'}`. Where
it is proved, the library is called, where it is refuted it is not; else the call decides, by an
`scf.if` that has both. `at-run-time=false` leaves those as they are. Libraries are searched when a
compiled module is loaded; with `require`, one that this machine lacks is an error at the operator.
A library computes on the host, or on devices of one API, as `cublas` does; `target` tells which
functions are there.

Needs: known dims. Leaves: other operators to `relax-legalize-ops`, workspaces to
    `relax-lift-workspace`.
Source: paper §4.6, Figure 12 (partial library lowering); TVM `FuseOpsByPattern`, `RunCodegen`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar

from relax_mlir.analysis.devices import placed
from relax_mlir.analysis.functions import facts_of, graph_functions
from relax_mlir.bindings import arith, func, ir, scf, tensor
from relax_mlir.dialects.graph import (
    WORKSPACE,
    CallDpsLibraryOp,
    Dim,
    TensorType,
    annotation_of,
    exact_dims,
    shape_attr,
)
from relax_mlir.dialects.lib import DLPACK, FunctionOp, workspaces
from relax_mlir.errors import UsageError
from relax_mlir.outlining import in_order
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.patterns import Match, Row, matches, rows_of
from relax_mlir.patterns.replacing import erase_unused
from relax_mlir.rewriting import identity, walk_ops
from relax_mlir.runtime.libraries import find_function
from relax_mlir.symbolic import Expr, Fact, Facts, SymbolicError, bounds, holds, product
from relax_mlir.target import Target, native
from relax_mlir.target.device import device_names

_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_PREDICATES = {"==": "oeq", "!=": "one", "<": "olt", ">=": "oge", ">": "ogt", "<=": "ole"}


@dataclass(frozen=True)
class DispatchLibrary(Pass):
    """Lowers operators to calls of an external library."""

    needs_verified: ClassVar[bool] = True

    libraries: tuple[str, ...] = ("openblas",)
    functions: tuple[str, ...] = ()
    min_work: int = 0
    when: str = ""
    at_run_time: bool = True
    target: Target = field(default_factory=native)
    """Where functions are: those of a library that computes on devices are for what is there."""
    require: bool = False
    """Whether a library that this machine does not have is an error at the operator."""

    def __post_init__(self) -> None:
        rows_of(self.libraries)
        self._fact()

    def _fact(self) -> Fact | None:
        try:
            return Fact.parse(self.when) if self.when else None
        except SymbolicError as error:
            raise UsageError(str(error)) from None

    def modules(self) -> set[str]:
        """This module, and those that have registered the functions."""
        return {*super().modules(), *(row.module for row in rows_of(self.libraries))}

    def registered(self) -> list[str]:
        """The rows, as text."""
        return [row.text for row in rows_of(self.libraries)]

    def run(self, op: ir.Operation) -> None:
        """Rewrites the operators of the chosen graph functions."""
        apis = [device.api for device in self.target.devices]
        for row in rows_of(self.libraries):
            if row.device and row.device not in apis:
                text = f"library '{row.library}' computes on devices of '{row.device}'"
                raise UsageError(f"{text}, but target '{self.target}' has none")
        for function in graph_functions(op):
            if not self.functions or function.name.value in self.functions:
                self._rewrite(function, op)

    def _rows(self, function: func.FuncOp) -> list[Row]:
        """The functions that compute where a graph function is."""
        devices = dict(zip(device_names(self.target.devices), self.target.devices))
        own = devices.get(placed(function))
        api = "" if own is None else own.api
        return [row for row in rows_of(self.libraries) if row.device == api]

    def _rewrite(self, function: func.FuncOp, module: ir.Operation) -> None:
        facts, erased, rows = facts_of(function), set[int](), self._rows(function)
        ops = [each.operation for each in walk_ops(function) if len(each.operation.results)]
        for key, op in reversed([(identity(op), op) for op in ops]):
            chosen = None if key in erased else self._choice(op, facts, rows)
            if chosen is not None:
                if self.require:
                    _find(chosen.row, op)
                chosen.dispatch()
                erased |= erase_unused(chosen.matched)
                _declare(chosen.row, module)

    def _choice(self, op: ir.Operation, facts: Facts, rows: Sequence[Row]) -> "_Choice | None":
        """The first function for a result of the op, with what decides at run time."""
        wanted = self._fact()
        for row, matched in self._candidates(op, facts, rows):
            for size in row.workspace:
                _require_variables(size, row, matched)
            conditions = [fact for fact in (row.when, wanted) if fact is not None]
            answers = [(fact, _decided(fact, row, matched, facts)) for fact in conditions]
            undecided = [fact for fact, answer in answers if answer is None]
            if any(answer is False for _, answer in answers):
                continue
            if not undecided or (self.at_run_time and _can_compute(undecided, matched, row)):
                return _Choice(row, matched, undecided)
        return None

    def _candidates(
        self, op: ir.Operation, facts: Facts, rows: Sequence[Row]
    ) -> Iterator[tuple[Row, Match]]:
        for row in rows:
            for value in op.results:
                for matched in matches(row.pattern, value, facts):
                    if op in matched.ops and self._accepts(row, matched, facts):
                        yield row, matched

    def _accepts(self, row: Row, matched: Match, facts: Facts) -> bool:
        """Whether the dims of what is passed are known, and the work is worth a call."""
        values = [matched[name] for name in row.operands]
        types = [annotation_of(value) for value in (*values, matched.value)]
        if not all(isinstance(type_, TensorType) and type_.is_exact for type_ in types):
            return False
        if row.check is not None and not row.check(matched):
            return False
        work = row.work.substitute(matched.dims)
        return self.min_work <= 0 or (bounds(work, facts)[0] or 0) >= self.min_work


def _require_variables(each: Fact | Expr, row: Row, matched: Match) -> None:
    """Fails at an op if a condition or a size is of what the pattern does not name."""
    unknown = sorted(each.symbols - matched.dims.keys())
    if unknown:
        variables = ", ".join(sorted(matched.dims)) or "no variable"
        raise PassFailure(
            matched.value.owner,
            f"matches '{row.function}', of {variables}, but '{each}' names {unknown[0]}",
        )


def _decided(fact: Fact, row: Row, matched: Match, facts: Facts) -> bool | None:
    """Whether a condition holds for a match, None if that depends on the call."""
    _require_variables(fact, row, matched)
    ours = fact.substitute(matched.dims)
    if holds(ours, facts).proved:
        return True
    never = Fact(ours.lhs, _NEGATED[ours.op], ours.rhs)
    return False if holds(never, facts).proved else None


@dataclass(frozen=True)
class _Choice:
    """A match that a function computes, if the facts hold at run time."""

    row: Row
    matched: Match
    undecided: list[Fact]

    def dispatch(self) -> None:
        """Replaces the matched value by that of a call, or of a branch that has one."""
        value = self.matched.value
        op = value.owner.operation
        with ir.InsertionPoint(op), op.location:
            new = self._branch() if self.undecided else self._call()
        value.replace_all_uses_with(new)

    def _call(self) -> ir.Value:
        operands = [self.matched[name] for name in self.row.operands]
        types = [annotation_of(self.matched.value)]
        arguments = self.row.arguments(self.matched) if self.row.arguments else ()
        call = CallDpsLibraryOp.build(self.row.function, operands, types, arguments)
        sizes = self._workspaces(operands, arguments)
        if sizes:
            call.attributes[WORKSPACE] = shape_attr(sizes)
        return call.outs[0]

    def _workspaces(self, operands: Sequence[ir.Value], arguments: Sequence[Dim]) -> Sequence[Dim]:
        """The bytes that the function needs: by its convention, or as the row tells."""
        if self.row.convention == DLPACK:
            return [size.substitute(self.matched.dims) for size in self.row.workspace]
        types = [TensorType.of(value) for value in operands]
        return workspaces(self.row.convention, types, arguments)

    def _branch(self) -> ir.Value:
        value = self.matched.value
        condition = self._holds(self.undecided[0])
        for fact in self.undecided[1:]:
            condition = arith.andi(condition, self._holds(fact))
        branch = scf.IfOp(condition, [value.type], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([self._call()])
        with ir.InsertionPoint(branch.else_block):
            copies: dict[ir.Value, ir.Value] = {}
            for op in in_order(self.matched.ops):
                copy = op.clone().operation
                for i, operand in enumerate(op.operands):
                    copy.operands[i] = copies.get(operand, operand)
                copies.update(zip(op.results, copy.results))
            scf.YieldOp([copies[value]])
        return branch.results[0]

    def _holds(self, fact: Fact) -> ir.Value:
        """Compares in f64, in which products of dims do not wrap."""
        sides = [self._evaluate(side) for side in (fact.lhs, fact.rhs)]
        predicate = getattr(arith.CmpFPredicate, _PREDICATES[fact.op].upper())
        return arith.cmpf(predicate, *sides)

    def _evaluate(self, expr: Expr) -> ir.Value:
        real = ir.F64Type.get()

        def refused(a: ir.Value, b: ir.Value) -> ir.Value:
            raise PassFailure(
                self.matched.value.owner,
                f"matches '{self.row.function}', but '{expr}' cannot be computed at run time; "
                "sums, products, min and max can",
            )

        return expr.lower(
            const=lambda value: arith.constant(real, float(value)),
            symbol=lambda name: _real(_extents(name, self.matched, self.row)),
            add=arith.addf,
            mul=arith.mulf,
            floordiv=refused,
            mod=refused,
            min=arith.minimumf,
            max=arith.maximumf,
        )


Extents = tuple[Expr, ir.Value | None, range]
"""The dims of a tensor whose product a variable is; the expression alone, if it is constant."""


def _extents(name: str, matched: Match, row: Row) -> Extents | None:
    """Where a call finds the value of a variable: a dim, or the product of several."""
    wanted = matched.dims[name]
    if wanted.value is not None:
        return wanted, None, range(0)
    for value in (matched[operand] for operand in row.operands):
        dims = TensorType.of(value).dims or ()
        for begin in range(len(dims)):
            for end in range(begin + 1, len(dims) + 1):
                if product(exact_dims(dims[begin:end])) == wanted:
                    return wanted, value, range(begin, end)
    return None


def _can_compute(undecided: list[Fact], matched: Match, row: Row) -> bool:
    names = [name for fact in undecided for name in fact.symbols]
    return all(_extents(name, matched, row) is not None for name in names)


def _real(extents: Extents | None) -> ir.Value:
    """The product of extents, as f64."""
    assert extents is not None  # `_can_compute`
    wanted, value, axes = extents
    real, integer, index = ir.F64Type.get(), ir.IntegerType.get_signless(64), ir.IndexType.get()
    if value is None:
        return arith.constant(real, float(wanted.value or 0))
    factors = []
    for axis in axes:
        extent = tensor.dim(value, arith.constant(index, axis))
        factors.append(arith.sitofp(real, arith.index_cast(integer, extent)))
    return reduce(arith.mulf, factors)


def _find(row: Row, op: ir.Operation) -> None:
    """Fails at an op whose function no provider has on this machine."""
    try:
        find_function(row.c_symbol, row.providers)
    except LookupError as error:
        raise PassFailure(op, f"matches '{row.function}', but {error}") from None


def _declare(row: Row, module: ir.Operation) -> None:
    """Declares the library function at the top of the module, once."""
    block = module.regions[0].blocks[0]
    for op in block.operations:
        if "sym_name" in op.attributes and op.attributes["sym_name"].value == row.function:
            return
    with ir.InsertionPoint.at_block_begin(block), module.location:
        FunctionOp.build(row.function, row.c_symbol, row.convention, row.providers)
