"""Makes products that share their left side one product.

    %0 = "graph.matmul"(%x, %a)          [..., m, k] x [k, p]
    %1 = "graph.matmul"(%x, %b)          [..., m, k] x [k, q]
      ->
    %w = "graph.concat"(%a, %b)          [k, p + q]
    %y = "graph.matmul"(%x, %w)
    %0, %1 = "graph.split"(%y) {sizes = [p, q]}

Where each product is followed by the sum with a vector of its width, and by nothing else, the
vectors are joined too; and so is a function of single elements that follows each of them. Widths
may be any known expressions. At most eight products become one, and what is left over others.

Right sides that pure operators make between the products move in front of the first. Stays: what a
product itself is needed for, sides of different batches, dims that are not known to agree.

The left side is read once and one kernel runs instead of several; but the right sides are copied in
each call, unless they are parameters, which `relax-lift-params` has joined once. So it is in no
default pipeline. Each element is the same sum; in which order a kernel adds it up may follow from
the width.

Needs: a verified module; known dims (`relax-infer-shapes`). Leaves: no two such products.
Source: TVM `CombineParallelMatmul`.
"""

from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.purity import is_pure_operator
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import (
    AddOp,
    ConcatOp,
    MatmulOp,
    SplitOp,
    TensorType,
    UnaryOp,
    dims_equal,
    exact_dims,
    known_dims,
)
from relax_mlir.passes import Pass
from relax_mlir.rewriting import replace, retyped, safe_erase, walk_ops

MOST = 8
"""As many results as `graph.split` has."""
Op = TypeVar("Op", bound=ir.OpView)


@dataclass(frozen=True)
class CombineParallelMatmul(Pass):
    """Makes products that share their left side one product."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Combines the products of each block of every graph function."""
        for function in graph_functions(op):
            groups: dict[Hashable, list[MatmulOp]] = {}
            for product in walk_ops(function, MatmulOp):
                kind = _kind(product)
                if kind is not None:
                    groups.setdefault(kind, []).append(product)
            for group in groups.values():
                _combine_group(group)


def _kind(product: MatmulOp) -> Hashable | None:
    """What products have in common that can become one; None for those that cannot."""
    lhs, rhs = (known_dims(TensorType.of(value).dims) for value in product.operands)
    if lhs is None or rhs is None or not dims_equal(lhs[-1], rhs[-2]):
        return None
    return product.operation.block, product.lhs, rhs[:-1]


def _combine_group(products: Sequence[MatmulOp]) -> None:
    """Combines products of a kind, each time those that can be computed where the first one is."""
    group = {product.operation for product in products}
    rest = sorted(products, key=lambda product: _positions(product)[product.operation])
    while rest:
        first, *others = rest
        members, rest = [first], []
        for product in others:
            room = len(members) < MOST
            (members if room and _bring(product.rhs, first, group) else rest).append(product)
        if len(members) > 1:
            _Combined(members, group).build()


def _positions(op: ir.OpView) -> dict[ir.Operation, int]:
    """The places of the ops in the op's block."""
    return {each.operation: i for i, each in enumerate(op.operation.block.operations)}


def _bring(value: ir.Value, first: ir.OpView, group: Set[ir.Operation]) -> bool:
    """Moves what makes a value in front of an op, if pure operators do, none of the group."""
    places = _positions(first)
    hoisted: dict[ir.Operation, None] = {}

    def can_move(value: ir.Value) -> bool:
        if isinstance(value.owner, ir.Block):
            return True
        owner = value.owner.operation
        if owner in hoisted:
            return True
        if owner.block != first.operation.block or places[owner] < places[first.operation]:
            return True
        if owner in group or not is_pure_operator(owner.opview):
            return False
        if not all(map(can_move, owner.operands)):
            return False
        hoisted[owner] = None
        return True

    if not can_move(value):
        return False
    for op in hoisted:
        op.move_before(first.operation)
    return True


class _Combined:
    """Products that become one; `tails` are what replaces them: what follows each of them alike."""

    def __init__(self, products: Sequence[MatmulOp], group: Set[ir.Operation]) -> None:
        self.first, self.group = products[0], group
        self.widths = [exact_dims(TensorType.of(product.rhs).dims)[-1] for product in products]
        self.chains: list[list[ir.OpView]] = [[product] for product in products]

    def build(self) -> None:
        """Emits the one product, with what follows, and takes the others out."""
        with ir.InsertionPoint(self.first), self.first.location:
            sides = [chain[0].rhs for chain in self.chains]
            axis = len(exact_dims(TensorType.of(sides[0]).dims)) - 1
            weights = ConcatOp.build(*sides, axis=axis).outs[0]
            value = MatmulOp.build(self.first.lhs, weights).result
            vectors = self._vectors()
            if vectors is not None:
                value = AddOp.build(value, ConcatOp.build(*vectors, axis=0).outs[0]).result
            function = self._function()
            if function is not None:
                value = function.build(value).result
            last = len(exact_dims(TensorType.of(value).dims)) - 1
            pieces = SplitOp.build(value, sizes=self.widths, axis=last).outs
        for chain, piece in zip(self.chains, pieces, strict=True):
            *before, tail = chain
            with ir.InsertionPoint(tail), tail.location:
                replace(tail, retyped(piece, tail.operation.results[0].type))
            for op in reversed(before):
                safe_erase(op)

    def _vectors(self) -> list[ir.Value] | None:
        """What is added to the products, if to each one vector of its width; None if not."""
        users = self._users(AddOp)
        if users is None:
            return None
        vectors = []
        for chain, user, width in zip(self.chains, users, self.widths, strict=True):
            others = [value for value in user.operands if value != chain[-1].operation.results[0]]
            dims = TensorType.of(others[0]).dims if others else None
            if dims != (width,) or not _bring(others[0], self.first, self.group):
                return None
            vectors += others
        self._follow(users)
        return vectors

    def _function(self) -> type[UnaryOp] | None:
        """The function of single elements that follows everywhere; None if there is none."""
        users = self._users(UnaryOp)
        if users is None or len({(type(user), str(user.attributes)) for user in users}) > 1:
            return None
        self._follow(users)
        return type(users[0])

    def _users(self, kind: type[Op]) -> list[Op] | None:
        """The only user of each tail, if all are of that class and in the same block."""
        result = []
        for chain in self.chains:
            value = chain[-1].operation.results[0]
            users = [use.owner.opview for use in value.uses]
            if len(users) != 1 or not isinstance(users[0], kind):
                return None
            if users[0].operation.block != self.first.operation.block:
                return None
            result.append(users[0])
        return result

    def _follow(self, users: Sequence[ir.OpView]) -> None:
        for chain, user in zip(self.chains, users, strict=True):
            chain.append(user)
