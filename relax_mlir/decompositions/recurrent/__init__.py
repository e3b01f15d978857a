"""Recurrent layers of ONNX, as loops over the elements of sequences."""

from .layers import dynamic_quantize_lstm, gru, lstm, rnn
from .quantized import Quantized
from .steps import activation_of

__all__ = ["Quantized", "activation_of", "dynamic_quantize_lstm", "gru", "lstm", "rnn"]
