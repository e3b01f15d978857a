"""Operators that PyTorch does not decompose, in its own terms."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

aten = torch.ops.aten
REWRITTEN: dict[Any, Callable[..., Any]] = {}
"""Functions by operators, as decompositions are given to PyTorch."""


def _rewrites(operator: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        REWRITTEN[operator] = function
        return function

    return register


@_rewrites(aten._native_multi_head_attention.default)
def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Attention of [batch, length, embed_dim] with its projections; its weights on demand."""
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    operands = zip((query, key, value), weights, biases, strict=True)
    width = embed_dim // num_head
    q, k, v = (
        F.linear(x, weight, bias).unflatten(-1, (num_head, width)).transpose(1, 2)
        for x, weight, bias in operands
    )
    scores = q @ k.transpose(-1, -2) * width**-0.5
    if mask is not None:
        scores = scores.masked_fill(_mask(mask, mask_type, q.shape[0]), float("-inf"))
    probabilities = torch.softmax(scores, -1)
    result = F.linear((probabilities @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, probabilities.mean(1) if average_attn_weights else probabilities


def _mask(mask: Tensor, mask_type: int | None, batch: int) -> Tensor:
    """The mask of scores: of queries and keys (0), of keys (1), or of both."""
    mask = mask.bool()
    if mask_type == 1 or (mask_type is None and mask.dim() == 2 and mask.shape[0] == batch):
        return mask[:, None, None]
    return mask if mask.dim() == 4 else mask[None, None]


def linear_cross_entropy(
    x: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    *_: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The loss of classes by a linear layer, whole; what is for gradients is empty."""
    loss = F.cross_entropy(
        F.linear(x, linear_weight, linear_bias),
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
    return loss, x.new_empty(0, 0), x.new_empty(0, 0), x.new_empty(0)


def linear_cross_entropy_of_each(
    x: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    ignore_index: int,
    *_: Any,
) -> Tensor:
    """The loss of each element."""
    operands = (x, linear_weight, target, linear_bias, weight)
    return linear_cross_entropy(*operands, "none", ignore_index, 0.0)[0]


CUSTOM: dict[str, Callable[..., Any]] = {
    "_linear_cross_entropy_batch_chunked": linear_cross_entropy,
    "_linear_cross_entropy_batch_chunked_no_reduction": linear_cross_entropy_of_each,
}
"""Functions by operators of `torch_nn`, which PyTorch registers when a program first uses them."""


@_rewrites(aten._transformer_encoder_layer_fwd.default)
def encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """A layer of an encoder, for inference."""

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), weight, bias, eps)

    def attend(x: Tensor) -> Tensor:
        projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        masks = (mask, False, True, mask_type)
        return multi_head_attention(x, x, x, embed_dim, num_heads, *projections, *masks)[0]

    def feed(x: Tensor) -> Tensor:
        inner = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(inner) if use_gelu else F.relu(inner), ffn_weight_2, ffn_bias_2)

    first, second = (norm_weight_1, norm_bias_1), (norm_weight_2, norm_bias_2)
    if norm_first:
        src = src + attend(norm(src, *first))
        return src + feed(norm(src, *second))
    src = norm(src + attend(src), *first)
    return norm(src + feed(src), *second)
