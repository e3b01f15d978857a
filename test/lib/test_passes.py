"""Passes that exist to test how passes run; `relax-opt --load-passes=` takes them in."""

from dataclasses import dataclass

from relax_mlir.bindings import arith, ir
from relax_mlir.dialects.graph import AllocTensorOp, SubtractOp
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import rewrite_greedily, rewrite_walk, safe_erase, walk_ops


@dataclass(frozen=True)
class TestTag(Pass):
    """Writes its options onto the op it runs on."""

    count: int = 8
    names: tuple[str, ...] = ()
    verbose: bool = False
    target: str = "native"
    share: float = 0.5

    def run(self, op: ir.Operation) -> None:
        op.attributes["test.tag"] = ir.StringAttr.get(str(self))


@dataclass(frozen=True)
class TestNeedsOption(Pass):
    """Cannot be built without its option, which must be positive."""

    size: int

    def __post_init__(self) -> None:
        if self.size <= 0:
            raise ValueError(f"size must be positive, but is {self.size}")

    def run(self, op: ir.Operation) -> None:
        op.attributes["test.size"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), self.size)


@dataclass(frozen=True)
class TestFail(Pass):
    """Fails at the op that carries `test.fail`, with a note at the function around it."""

    def run(self, op: ir.Operation) -> None:
        for child in walk_ops(op):
            if "test.fail" in child.attributes:
                raise PassFailure(child, "must not be here", [(child.operation.parent, "in this")])


@dataclass(frozen=True)
class TestEmitErrors(Pass):
    """Emits an error at each op that carries `test.fail`, and returns."""

    def run(self, op: ir.Operation) -> None:
        for child in walk_ops(op):
            if "test.fail" in child.attributes:
                child.location.emit_error("this one is wrong")


@dataclass(frozen=True)
class TestBreak(Pass):
    """Leaves IR that does not verify: drops the operands of every return."""

    def run(self, op: ir.Operation) -> None:
        for child in walk_ops(op):
            if child.operation.name == "func.return":
                with ir.InsertionPoint(child), child.location:
                    ir.Operation.create("func.return")
                safe_erase(child)


@dataclass(frozen=True)
class TestBug(Pass):
    """Raises what no pass should."""

    def run(self, op: ir.Operation) -> None:
        raise ZeroDivisionError(f"a bug while running on '{op.name}'")


def addition_to_product(op: arith.AddIOp) -> ir.Value | None:
    """Turns `x + x` into `x * 2`."""
    if op.lhs != op.rhs:
        return None
    two = arith.ConstantOp(op.result.type, 2)
    return arith.MulIOp(op.lhs, two.result).result


def swap_operands(op: arith.AddIOp) -> ir.Value:
    """Matches its own result, for ever."""
    return arith.AddIOp(op.rhs, op.lhs).result


@dataclass(frozen=True)
class TestRewrite(Pass):
    """Applies one of the patterns above."""

    pattern: str = "addition-to-product"
    greedy: bool = True

    def run(self, op: ir.Operation) -> None:
        patterns = {"addition-to-product": addition_to_product, "swap-operands": swap_operands}
        rewrite = rewrite_greedily if self.greedy else rewrite_walk
        rewrite(op, patterns[self.pattern])


@dataclass(frozen=True)
class TestSwapSubtraction(Pass):
    """Takes subtraction for commutative: each `graph.subtract` gets its operands in turn."""

    def run(self, op: ir.Operation) -> None:
        for child in walk_ops(op, SubtractOp):
            lhs, rhs = child.lhs, child.rhs
            child.operation.operands[0], child.operation.operands[1] = rhs, lhs


@dataclass(frozen=True)
class TestPlanInOnePlace(Pass):
    """Moves each tensor to the beginning of its storage, as if no two were live at once."""

    def run(self, op: ir.Operation) -> None:
        for child in walk_ops(op, AllocTensorOp):
            if len(child.operation.operands):
                child.attributes["offset"] = ir.Attribute.parse("#graph.shape<[0]>")
