"""Attention, and what goes with it."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import multiply
from relax_mlir.errors import ModelError

from ..node import Node
from ..registry import Value, operator


@operator("Attention")
def attention(node: Node) -> tuple[Value, ...]:
    """Scaled dot-product attention; also the keys, values and scores, if they are wanted."""
    past = None
    if node.value(4) is not None:
        past = node.tensor(4), node.tensor(5)
    scores = node.attribute("qk_matmul_output_mode", 0) if node.wants(3) else None
    left, right = (
        None if node.attribute(name, -1) < 0 else node.attribute(name)
        for name in ("left_window_size", "right_window_size")
    )
    softcap = node.attribute("softcap", 0.0)
    y, *rest = d.attention(
        node.tensor(0),
        node.tensor(1),
        node.tensor(2),
        mask=node.optional(3),
        past=past,
        lengths=node.optional(6),
        heads=node.attribute("q_num_heads"),
        kv_heads=node.attribute("kv_num_heads"),
        scale=node.attribute("scale"),
        causal=node.flag("is_causal"),
        window=(left, right),
        softcap=softcap or None,
        scores=scores,
    )
    return (y, *rest)


@operator("RotaryEmbedding")
def rotary_embedding(node: Node) -> ir.Value:
    """Pairs of features, rotated."""
    return d.rotary_embedding(
        node.tensor(0),
        node.tensor(1),
        node.tensor(2),
        node.optional(3),
        interleaved=node.flag("interleaved"),
        width=node.attribute("rotary_embedding_dim", 0) or None,
        heads=node.attribute("num_heads", 0) or None,
    )


@operator("CausalConvWithState")
def causal_conv(node: Node) -> tuple[Value, ...]:
    """A convolution over the past, and the past of what comes next."""
    kind = node.attribute("activation", "none")
    if kind not in ("none", "silu", "swish"):
        raise ModelError(f"has activation '{kind}', which is none of none, silu, swish")
    operands = node.tensor(0), node.tensor(1), node.optional(2), node.optional(3)
    return d.causal_conv(*operands, silu=kind != "none")


@operator("LinearAttention")
def linear_attention(node: Node) -> tuple[Value, ...]:
    """Attention by a state."""
    rule = node.attribute("update_rule", "gated_delta")
    decay, beta = node.optional(4), node.optional(5)
    if rule not in ("linear", "gated", "delta", "gated_delta"):
        raise ModelError(f"has update rule '{rule}'")
    return d.linear_attention(
        node.tensor(0),
        node.tensor(1),
        node.tensor(2),
        node.optional(3),
        heads=node.required("q_num_heads"),
        kv_heads=node.required("kv_num_heads"),
        decay=decay if "gated" in rule else None,
        beta=beta if "delta" in rule else None,
        scale=node.attribute("scale", 0.0) or None,
    )


@operator("SwiGLU")
def swiglu(node: Node) -> ir.Value:
    """swish(a) * b."""
    return multiply(d.swish(node.tensor(0), node.attribute("alpha", 1.0)), node.tensor(1))
