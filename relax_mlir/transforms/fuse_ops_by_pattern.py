"""Groups the ops that match patterns into private graph functions.

    relax-fuse-ops-by-pattern{match="blas.dense = add(matmul(%x, %w), %b)"}

    %0 = "graph.matmul"(%x, %w)         func.func private @blas_dense(%x, %w, %b)
    %1 = "graph.add"(%0, %b)                attributes {graph.composite = "blas.dense"} { ... }
                                   ->   %1 = "graph.call"(%x, %w, %b) {callee = @blas_dense}

`match` has patterns as text, `patterns` names those that Python code has registered; they are tried
in this order, each on later ops first. An op is in one group at most. Results that others use are
results of the function. Symbols that operands do not bind are passed by a last operand. Matched
constants are copied into the function, unless `bind-constants=false`. With `annotate-codegen`, the
function says too for whom it is: the name up to the first dot.

A match is left as it is, with a remark, if something outside computes an operand of the group from
one of its results, or if an op between has to stay where it is.

Needs: a verified module. Leaves: `relax-inline-functions` undoes it.
Source: paper Figure 12; TVM `FuseOpsByPattern`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import CODEGEN, COMPOSITE, PRIMITIVE, facts_of, graph_functions
from relax_mlir.analysis.purity import Purity
from relax_mlir.bindings import func, ir
from relax_mlir.diagnostics import remark
from relax_mlir.errors import UsageError
from relax_mlir.outlining import Group, Outliner, Refused
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.patterns import Match, NamedPattern, matches, parse_list, registered_pattern
from relax_mlir.rewriting import identity, walk_ops
from relax_mlir.symbolic import Facts


@dataclass(frozen=True)
class FuseOpsByPattern(Pass):
    """Groups the ops that match patterns into private graph functions."""

    needs_verified: ClassVar[bool] = True

    match: str = ""
    patterns: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    """The graph functions to look at; all, if there are none."""
    bind_constants: bool = True
    annotate_codegen: bool = False

    def __post_init__(self) -> None:
        if not self.named():
            raise UsageError("expects patterns: match='name = pattern', or patterns=NAME")

    def named(self) -> list[NamedPattern]:
        """The patterns, in the order in which they are tried."""
        given = [NamedPattern(name, pattern) for name, pattern in parse_list(self.match)]
        return [*given, *map(registered_pattern, self.patterns)]

    def modules(self) -> set[str]:
        """This module, and those that have registered the patterns."""
        return {*super().modules(), *(each.module for each in self.named() if each.module)}

    def registered(self) -> list[str]:
        """The patterns, as text."""
        return [f"{each.name} = {each.pattern}" for each in self.named()]

    def run(self, op: ir.Operation) -> None:
        """Groups ops of every block of the chosen functions."""
        outliner = Outliner(op, Purity.of(op))
        for function in graph_functions(op):
            chosen = not self.functions or function.name.value in self.functions
            if chosen and not {PRIMITIVE, COMPOSITE} & set(function.attributes):
                for pattern in self.named():
                    self._group(function, pattern, outliner)

    def _group(self, function: func.FuncOp, pattern: NamedPattern, outliner: Outliner) -> None:
        facts, gone = facts_of(function), set[int]()
        ops = [each.operation for each in walk_ops(function) if len(each.operation.results)]
        for key, op in reversed([(identity(op), op) for op in ops]):
            made = None if key in gone else self._group_of(op, pattern, facts, outliner)
            if made is not None:
                gone.update(identity(member) for member in (*made.ops, *made.copied))
                outliner.outline(made, pattern.name.replace(".", "_"), self._marks(pattern))

    def _group_of(
        self, op: ir.Operation, pattern: NamedPattern, facts: Facts, outliner: Outliner
    ) -> Group | None:
        refusal = ""
        for matched in _accepted(op, pattern, facts):
            constants = matched.constants if self.bind_constants else ()
            try:
                group = Group.of(matched.ops, constants, outliner.purity)
            except Refused as reason:
                refusal = refusal or str(reason)
                continue
            if group.outputs:
                return group
        if refusal:
            remark(op.location, f"'{pattern.name}' matches '{op.name}', but {refusal}")
        return None

    def _marks(self, pattern: NamedPattern) -> dict[str, ir.Attribute]:
        marks: dict[str, ir.Attribute] = {COMPOSITE: ir.StringAttr.get(pattern.name)}
        if self.annotate_codegen:
            marks[CODEGEN] = ir.StringAttr.get(pattern.codegen)
        return marks


def _accepted(op: ir.Operation, pattern: NamedPattern, facts: Facts) -> Iterator[Match]:
    """The matches of an op's results that name ops and that the pattern's check accepts."""
    try:
        for value in op.results:
            for matched in matches(pattern.pattern, value, facts):
                if matched.ops and op in matched.ops and pattern.accepts(matched):
                    yield matched
    except UsageError as error:
        raise PassFailure(op, f"{error}; it is '{pattern.name}'") from None
