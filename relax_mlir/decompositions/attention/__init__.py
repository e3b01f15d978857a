"""Attention as ONNX has it, of sequences in a row, and what prepares its operands."""

from .cache import tensor_scatter
from .dense import attention
from .flexible import flex_attention
from .ragged import attention_var_len
from .rotary import rotary_embedding

__all__ = ["attention", "attention_var_len", "flex_attention", "rotary_embedding", "tensor_scatter"]
