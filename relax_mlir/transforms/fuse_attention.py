"""Fuses decomposed attention to one operator, which never materialises its scores.

    %s = "graph.matmul"(%q, %k)          [..., n, d] x [..., d, m]
    %t = "graph.multiply"(%s, %scale)    or divide, or neither
    %u = "graph.add"(%t, %mask)          or neither
    %p = "graph.nn_softmax"(%u) {axis = -1}
    %y = "graph.matmul"(%p, %v)          [..., n, m] x [..., m, e]
      ->
    %y = permutation of "graph.nn_batched_attention"(%q', %k', %v', %mask') {scale, causal}

The leading dims are a batch, a batch and heads, or a batch, groups of heads that share keys, and
heads; in keys and values the dims of heads may be 1. A mask that is -inf above the diagonal makes
the operator causal; `where` with -inf is a mask. Queries, keys and values are permuted to [batch,
tokens, heads, features], and the result back: `relax-canonicalize-bindings` merges these
permutations with those of models.

The operator divides by the sum at the end, so results differ by rounding. Not fused: what the
operator's schedule does not support (dynamic heads, features that are not a multiple of 4, f64),
and scores with other uses.

Needs: known dims (`relax-infer-shapes`). Leaves: permutations and reshapes to be merged.
Source: arXiv 2205.14135; TVM `relax.nn.attention`; ONNX Runtime's attention fusion.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias, TypeVar

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.bindings import arith, ir
from relax_mlir.dialects.graph import (
    AddOp,
    BatchedAttentionOp,
    Dim,
    DivideOp,
    FullOp,
    MatmulOp,
    MultiplyOp,
    PermuteDimsOp,
    ReshapeOp,
    SoftmaxOp,
    TensorType,
    TriuOp,
    WhereOp,
    dims_equal,
    exact_dims,
    known_dims,
)
from relax_mlir.passes import Pass
from relax_mlir.rewriting import defining_op, is_used_once, safe_erase, walk_ops
from relax_mlir.rewriting import replace as replace_op
from relax_mlir.symbolic import Expr, const, product

Dims: TypeAlias = tuple[Expr, ...]

_FEATURES = 4
_ONE = const(1)

Op = TypeVar("Op", bound=ir.OpView)


@dataclass(frozen=True)
class FuseAttention(Pass):
    """Fuses decomposed attention to one operator."""

    needs_verified: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites every graph function of the module."""
        for function in graph_functions(op):
            for last in walk_ops(function, MatmulOp):
                attention = match(last)
                if attention is None:
                    continue
                with ir.InsertionPoint(last), last.location:
                    replacement = attention.build()
                replace_op(last, replacement)
                for dead in attention.scores.chain:
                    safe_erase(dead)


@dataclass(frozen=True)
class Scores:
    """The operand of a softmax: `product` * scale + mask, or -inf where `condition` is false.

    `chain` are the ops from the softmax to the product, users first.
    """

    product: MatmulOp
    chain: tuple[ir.OpView, ...]
    scale: float = 1.0
    mask: ir.Value | None = None
    condition: ir.Value | None = None
    causal: bool = False

    @property
    def is_masked(self) -> bool:
        """Whether a mask follows the product and the scale."""
        return self.causal or self.mask is not None or self.condition is not None


@dataclass(frozen=True)
class Attention:
    """A match; `fronts` are the leading dims of the scores, before queries and keys."""

    scores: Scores
    value: ir.Value
    fronts: Dims
    heads: int
    kv_heads: int

    def build(self) -> ir.Value:
        """Builds the operator, and permutes its result to that of the last product."""
        query, key = self.scores.product.operands
        n, d = exact_dims(TensorType.of(query).dims)[-2:]
        m, e = exact_dims(TensorType.of(self.value).dims)[-2:]
        batch, heads, kv_heads = self._batch, const(self.heads), const(self.kv_heads)
        query = _permuted(_reshaped(query, (batch, heads, n, d)), (0, 2, 1, 3))
        key = _permuted(_reshaped(key, (batch, kv_heads, d, m)), (0, 3, 1, 2))
        value = _permuted(_reshaped(self.value, (batch, kv_heads, m, e)), (0, 2, 1, 3))
        scale, causal = self.scores.scale, self.scores.causal
        attended = BatchedAttentionOp.build(
            query, key, value, self._mask(), scale=scale, causal=causal
        ).result
        return _reshaped(_permuted(attended, (0, 2, 1, 3)), (*self.fronts, n, e))

    @property
    def _batch(self) -> Expr:
        return self.fronts[0] if self.fronts else _ONE

    def _mask(self) -> ir.Value | None:
        """The mask in the operator's form: rank 4, with one dim for the heads."""
        mask, condition = self.scores.mask, self.scores.condition
        if condition is not None:
            element = TensorType.of(self.value).element
            masked = WhereOp.build(condition, _scalar(0.0, element), _scalar(-math.inf, element))
            mask = masked.result
        if mask is None:
            return None
        *fronts, n, m = _padded(exact_dims(TensorType.of(mask).dims), len(self.fronts) + 2)
        heads = product(fronts[1:])
        return _reshaped(mask, (fronts[0] if fronts else _ONE, heads, n, m))


def match(product: MatmulOp) -> Attention | None:
    """The attention whose last product this is, or None."""
    softmax = defining_op(product.lhs, SoftmaxOp)
    if softmax is None:
        return None
    shape = known_dims(TensorType.of(softmax.input).dims)
    axis = ir.IntegerAttr(softmax.attributes["axis"]).value
    if shape is None or not 2 <= len(shape) <= 5 or axis not in (-1, len(shape) - 1):
        return None
    scores = _scores(softmax.input, shape)
    if scores is None:
        return None
    scores = replace(scores, chain=(softmax, *scores.chain))
    if not all(is_used_once(op.results[0]) for op in scores.chain):
        return None
    heads = _heads(scores.product, product, shape)
    return heads and Attention(scores, product.rhs, shape[:-2], *heads)


def _scores(value: ir.Value, shape: Dims) -> Scores | None:
    """Matches the operand of a softmax backwards; every step has the shape of the scores."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.opview
    if not isinstance(op, MatmulOp | MultiplyOp | DivideOp | AddOp | WhereOp):
        return None
    if not _are_equal(TensorType.of(value).dims, shape):
        return None
    scores = None
    if isinstance(op, MatmulOp):
        return Scores(op, (op,))
    if isinstance(op, MultiplyOp | DivideOp):
        scores = _scaled(op, shape)
    elif isinstance(op, WhereOp):
        inner = _scores(op.x, shape)
        if inner is not None and not inner.is_masked and _splat_value(op.y) == -math.inf:
            fits = _is_mask(TensorType.of(op.condition), shape)
            scores = replace(inner, condition=op.condition) if fits else None
    else:
        scores = _masked(op.lhs, op.rhs, shape) or _masked(op.rhs, op.lhs, shape)
    return scores and replace(scores, chain=(op, *scores.chain))


def _scaled(op: MultiplyOp | DivideOp, shape: Dims) -> Scores | None:
    inner, factor = _scores(op.lhs, shape), _splat_value(op.rhs)
    if isinstance(op, MultiplyOp) and factor is None:
        inner, factor = _scores(op.rhs, shape), _splat_value(op.lhs)
    if inner is None or inner.is_masked or not factor:
        return None
    scale = inner.scale * factor if isinstance(op, MultiplyOp) else inner.scale / factor
    return replace(inner, scale=scale)


def _masked(value: ir.Value, mask: ir.Value, shape: Dims) -> Scores | None:
    """Scores plus a mask; a causal mask is not an operand."""
    inner = _scores(value, shape)
    if inner is None:
        return None
    if _is_causal(mask, shape):
        return replace(inner, causal=True)
    if inner.mask is not None or inner.condition is not None:
        return None
    return replace(inner, mask=mask) if _is_mask(TensorType.of(mask), shape) else None


def _is_causal(mask: ir.Value, shape: Dims) -> bool:
    """Whether a mask is 0 up to the diagonal of the scores, and -inf above."""
    triangle = defining_op(mask, TriuOp)
    if triangle is None or ir.IntegerAttr(triangle.attributes["k"]).value != 1:
        return False
    full = defining_op(triangle.input, FullOp)
    if full is None or _splat_value(full.fill_value) != -math.inf:
        return False
    dims = TensorType.of(mask).dims
    return dims is not None and _are_equal(dims[-2:], shape[-2:])


def _is_mask(mask: TensorType, shape: Dims) -> bool:
    """Whether the operator supports a mask: its dims, except the keys, are 1 or the scores'."""
    known = known_dims(mask.dims)
    if known is None or len(known) > len(shape):
        return False
    dims = _padded(known, len(shape))
    same = [dims_equal(*pair) for pair in zip(dims, shape, strict=True)]
    if not all(s or dim == _ONE for s, dim in zip(same, dims, strict=True)) or not same[-1]:
        return False
    heads = dims[1:-2]  # all or none of the dims of heads
    return all(dim == _ONE for dim in heads) or all(same[1:-2])


def _heads(first: MatmulOp, last: MatmulOp, shape: Dims) -> tuple[int, int] | None:
    """Heads of queries and of keys, if the operands have the dims of attention."""
    operands = map(TensorType.of, (first.lhs, first.rhs, last.rhs))
    query, key, value = (known_dims(operand.dims) for operand in operands)
    if query is None or key is None or value is None:
        return None
    if any(len(dims) != len(shape) for dims in (query, key, value)):
        return None
    if not isinstance(TensorType.of(first.lhs).element, ir.F32Type | ir.F16Type | ir.BF16Type):
        return None
    for features in (query[-1], value[-1]):
        if not features.value or features.value % _FEATURES:
            return None
    fronts = shape[:-2]
    kv_fronts = key[:-2]
    pairs = [(query[:-2], fronts), (value[:-2], kv_fronts), (kv_fronts[:1], fronts[:1])]
    pairs.append(((key[-1],), (value[-2],)))
    if not all(_are_equal(*pair) for pair in pairs):
        return None
    heads, kv_heads = (_constants(dims[1:]) for dims in (fronts, kv_fronts))
    if heads is None or kv_heads is None or 0 in heads:
        return None
    # Dims of heads that keys lack come last: they are the heads that share keys.
    shared = next((i for i, x in enumerate(kv_heads) if x != heads[i]), len(heads))
    if any(x != 1 for x in kv_heads[shared:]):
        return None
    return math.prod(heads), math.prod(kv_heads)


def _constants(dims: Dims) -> list[int] | None:
    """The dims as integers, if none depends on a symbol."""
    values = [dim.value for dim in dims if dim.value is not None]
    return values if len(values) == len(dims) else None


def _are_equal(a: tuple[Dim, ...] | None, b: tuple[Dim, ...]) -> bool:
    return a is not None and len(a) == len(b) and all(map(dims_equal, a, b))


def _padded(dims: Dims, rank: int) -> Dims:
    return (_ONE,) * (rank - len(dims)) + dims


def _splat_value(value: ir.Value) -> float | None:
    """The value of a splat constant, as a float."""
    op = defining_op(value, arith.ConstantOp)
    if op is None or not isinstance(op.attributes["value"], ir.DenseElementsAttr):
        return None
    elements = ir.DenseElementsAttr(op.attributes["value"])
    return ir.FloatAttr(elements.get_splat_value()).value if elements.is_splat else None


def _scalar(value: float, element: ir.Type) -> ir.Value:
    kind = ir.RankedTensorType.get([], element)
    elements = ir.DenseElementsAttr.get_splat(kind, ir.FloatAttr.get(element, value))
    return arith.ConstantOp(kind, elements).result


def _reshaped(value: ir.Value, dims: tuple[Dim, ...]) -> ir.Value:
    if _are_equal(TensorType.of(value).dims, dims):
        return value
    return ReshapeOp.build(value, shape=dims).result


def _permuted(value: ir.Value, axes: tuple[int, ...]) -> ir.Value:
    return PermuteDimsOp.build(value, axes=axes).result
