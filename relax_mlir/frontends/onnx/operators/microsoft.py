"""Operators of ONNX Runtime's own domain that its exporters and optimizers write."""

import numpy as np

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import add, astype, divide, element_of, emit, multiply, scalar
from relax_mlir.dialects import graph
from relax_mlir.errors import ModelError

from ...known import Known
from ..node import Node
from ..registry import MICROSOFT, Value, operator
from .broadcasting import aligned


@operator("BiasGelu", domain=MICROSOFT)
def bias_gelu(node: Node) -> ir.Value:
    """Gelu of a sum."""
    return emit(graph.GeluOp, add(*aligned(node.tensors())))


@operator("QuickGelu", domain=MICROSOFT)
def quick_gelu(node: Node) -> ir.Value:
    """x * sigmoid(alpha * x)."""
    return d.swish(node.tensor(0), node.attribute("alpha", 1.702))


@operator("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def qlinear(node: Node) -> ir.Value:
    """A sum or product of quantised tensors, quantised to the type of the operands.

    It is rounded with its zero point added, as ONNX Runtime does, not before as `QuantizeLinear`.
    """
    a, b = (_dequantized(node, start) for start in (0, 3))
    a, b = aligned([a, b])
    result = add(a, b) if node.op == "QLinearAdd" else multiply(a, b)
    steps = divide(result, node.tensor(6))
    if node.value(7) is not None:
        steps = add(steps, astype(node.tensor(7), element_of(steps)))
    one = scalar(1, element_of(steps))
    return d.quantize_linear(steps, one, element=element_of(node.tensor(0)))


def _dequantized(node: Node, start: int) -> ir.Value:
    if any(node.rank(i) for i in (start + 1, start + 2) if node.value(i) is not None):
        raise ModelError("has scales that are not of rank 0, which is not supported")
    x, scale = node.tensor(start), node.tensor(start + 1)
    return d.dequantize_linear(x, scale, node.optional(start + 2))


@operator("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_norm(node: Node) -> tuple[Value, ...]:
    """The normalization of a sum of embeddings: of words, positions and segments.

    The lengths of rows, which no mask says, are 0. Source: ONNX Runtime.
    """
    if node.value(7) is not None:
        raise ModelError("has a mask of which positions are counted, which is not supported")
    i64 = ir.IntegerType.get_signless(64)
    positions = node.optional(8)
    if positions is None:
        positions = d.emit.expand_dims(d.emit.arange(0, node.dims(0)[1], 1, i64), [0])
    total = emit(graph.TakeOp, node.tensor(2), node.tensor(0), axis=0)
    total = add(total, emit(graph.TakeOp, node.tensor(3), positions, axis=0))
    if node.value(1) is not None:
        total = add(total, emit(graph.TakeOp, node.tensor(4), node.tensor(1), axis=0))
    epsilon = node.attribute("epsilon", 1e-12)
    y = d.layer_norm(total, node.tensor(5), node.optional(6), epsilon=epsilon)
    i32 = ir.IntegerType.get_signless(32)
    counts = emit(graph.FullOp, scalar(0, i32), shape=node.dims(0)[:1])
    return y, counts, total


@operator("MatMulNBits", domain=MICROSOFT)
def matmul_nbits(node: Node) -> ir.Value:
    """A product with a matrix of few bits, which becomes a constant of floats."""
    if node.value(4) is not None:
        raise ModelError("has groups by index, which is not supported")
    bits, block = node.attribute("bits", 4), node.required("block_size")
    if bits not in (2, 4, 8):
        raise ModelError(f"has elements of {bits} bits, where 2, 4 or 8 are expected")
    depth, columns = node.required("K"), node.required("N")
    blocks = -(-depth // block)
    packed = node.array(1, "weights").reshape(columns, blocks, -1)
    scales = node.array(2, "scales").reshape(columns, blocks, 1)
    zeros: np.ndarray = np.array(1 << (bits - 1))
    if node.value(3) is not None:
        given = node.array(3, "zero points")
        if given.dtype == np.uint8:
            zeros = _unpacked(given.reshape(columns, -1), bits)[:, :blocks, None]
        else:
            zeros = given.reshape(columns, blocks, 1)
    steps = _unpacked(packed, bits)[..., :block] - zeros.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # as the kernel would at run time
        weights = (steps * scales.astype(np.float32)).reshape(columns, -1)[:, :depth]
    matrix = Known(np.ascontiguousarray(weights.T.astype(np.float32)), "f32")
    x = node.tensor(0)
    result = d.matmul(x, astype(node.importer.tensor(matrix), element_of(x)))
    return result if node.value(5) is None else add(result, node.tensor(5))


def _unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Elements of bytes, the lowest bits first, as floats."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    elements = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return elements.reshape(*packed.shape[:-1], -1).astype(np.float32)


@operator("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(node: Node) -> tuple[Value, ...]:
    """Attention of heads that are part of the last dim; also keys and values with the past."""
    if node.value(1) is None or node.value(2) is None:
        raise ModelError("has a packed query, key and value, which is not supported")
    if any(node.value(i) is not None for i in (4, 8, 9)) or node.wants(3):
        raise ModelError("has a padding mask, a shared past or scores, which are not supported")
    parts = [node.tensor(i) for i in range(3)]
    if node.value(3) is not None:
        bias, start = node.tensor(3), 0
        for i, part in enumerate(parts):
            end = d.emit.dims_of(part)[-1]
            if end.value is None or node.rank(i) != 3:
                raise ModelError("has a bias for dims that are not known, which is not supported")
            bounds = {"begin": [start], "end": [start + end.value], "strides": [1]}
            own = emit(graph.StridedSliceOp, bias, axes=[0], **bounds)
            parts[i], start = add(part, own), start + end.value
    past = None if node.value(6) is None else (node.tensor(6), node.tensor(7))
    y, *rest = d.attention(
        *parts,
        mask=node.optional(5),
        past=past,
        heads=node.required("num_heads"),
        kv_heads=node.required("num_heads"),
        scale=node.attribute("scale", 0.0) or None,
        causal=node.flag("unidirectional"),
    )
    return (y, *rest)
