"""Recurrent layers of ONNX, as loops over the elements of sequences."""

from .layers import gru, lstm, rnn
from .steps import activation_of

__all__ = ["activation_of", "gru", "lstm", "rnn"]
