"""Custom calls and composites that JAX writes for common things."""

from relax_mlir.decompositions.loops import truth_of
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError
from relax_mlir.symbolic import Expr, Fact, Facts, as_expr

from ...known import Known
from ..folding import Undecided, compared, objects
from ..node import Node
from ..registry import Value, operator

_RELATIONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


@operator("@Sharding", "@annotate_device_placement", "@SPMDFullToShardShape", takes_pairs=True)
def identity(node: Node) -> Value:
    """The operand: what is said of devices is ignored."""
    return tuple(node.operands)


@operator("@shape_assertion", takes_pairs=True)
def shape_assertion(node: Node) -> tuple[Value, ...]:
    """What JAX assumes of sizes: facts, which run time checks."""
    value = node.value(0)
    if isinstance(value, Known) and not value.is_symbolic:
        if not value.array.all():
            raise ModelError(f"asserts what is false: {node.text('error_message')}")
        return ()
    fact = _asserted(node)
    if fact is not None:
        graph.RequireOp.build([fact], "@shape_assertion")
        node.importer.facts = Facts((*node.importer.facts, fact))
        return ()
    condition = truth_of(node.tensor(0))
    graph.AssertOp.build(condition, node.text("error_message") or "a shape assertion fails")
    return ()


def _asserted(node: Node) -> Fact | None:
    """The relation of sizes that is asserted, if it is one."""
    owner = node.op.operands[0].owner
    op = getattr(owner, "operation", None)
    if op is None or op.name != "stablehlo.compare":
        return None
    sides = [node.scope.find(each) for each in op.operands]
    if not all(isinstance(each, Known) and each.array.size == 1 for each in sides):
        return None
    a, b = (_one(each) for each in sides if isinstance(each, Known))
    direction = str(op.attributes["comparison_direction"]).split()[-1].rstrip(">")
    try:
        if compared(direction, a, b, node.importer.facts):
            return None
    except Undecided:
        pass
    return Fact(a, _RELATIONS[direction], b)


def _one(value: Known) -> Expr:
    return as_expr(objects(value).reshape(-1)[0])
