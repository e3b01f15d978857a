"""Operators along time that carry a state, or that go backwards."""

from .causal_conv import causal_conv
from .linear_attention import linear_attention
from .reversal import reverse_sequence

__all__ = ["causal_conv", "linear_attention", "reverse_sequence"]
