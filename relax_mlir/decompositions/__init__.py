"""Operators of the standards that are compositions of the dialect's, for frontends and users.

    with ir.InsertionPoint(block):
        y = einsum("bij,bjk->bik", x, w)

Each function builds operators at the insertion point and returns their result; fusion makes one
kernel of what is element-wise. Dims may be expressions. What cannot be right raises ShapeError.
"""

from .activations import (
    celu,
    clip,
    elu,
    glu,
    hardmax,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_sigmoid,
    mish,
    prelu,
    quick_gelu,
    relu6,
    selu,
    shrink,
    softplus,
    softsign,
    swiglu,
    swish,
    thresholded_relu,
)
from .adaptive_pooling import adaptive_avg_pool, adaptive_max_pool
from .attention import attention, attention_var_len, rotary_embedding, tensor_scatter
from .bits import bitcast
from .broadcasts import collapse_sum_like, collapse_sum_to, ewise_fma
from .contraction import dot_general, matmul, outer
from .convolution import conv
from .detection import (
    all_class_non_max_suppression,
    get_valid_counts,
    non_max_suppression,
)
from .einsum import einsum
from .grid_sample import affine_grid, grid_sample
from .layout import channel_shuffle, depth_to_space, meshgrid, space_to_depth
from .linear_algebra import cholesky, det, inverse, solve, triangular_solve
from .losses import cross_entropy, cross_entropy_with_logits, nll_loss
from .norms import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    lp_norm,
    mean_variance_norm,
    rms_norm,
)
from .patches import deform_conv2d, fold, max_pool_with_indices, max_unpool, unfold
from .pooling import (
    avg_pool,
    global_avg_pool,
    global_lp_pool,
    global_max_pool,
    lp_pool,
    max_pool,
    sum_pool,
)
from .quantized import (
    conv_integer,
    dequantize_linear,
    dynamic_quantize_linear,
    matmul_integer,
    qlinear_conv,
    qlinear_matmul,
    quantize_linear,
)
from .random import (
    bernoulli,
    dropout,
    multinomial,
    multinomial_from_uniform,
    random_bits,
    random_integers,
    random_normal,
    random_uniform,
)
from .recurrent import gru, lstm, rnn
from .reshaping import reshape
from .resize import resize
from .searching import bucketize
from .selection import argwhere, compress, index_by_mask, masked_select, median
from .sequences import causal_conv, linear_attention, reverse_sequence
from .signal import (
    blackman_window,
    complex_abs,
    complex_conj,
    complex_exp,
    complex_multiply,
    dft,
    fft,
    hamming_window,
    hann_window,
    irfft,
    mel_weight_matrix,
    rfft,
    stft,
)
from .small_floats import decode_float, encode_float
from .transposed_convolution import conv_transpose

__all__ = [
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "affine_grid",
    "all_class_non_max_suppression",
    "argwhere",
    "attention",
    "attention_var_len",
    "avg_pool",
    "batch_norm",
    "bernoulli",
    "bitcast",
    "blackman_window",
    "bucketize",
    "causal_conv",
    "celu",
    "channel_shuffle",
    "cholesky",
    "clip",
    "collapse_sum_like",
    "collapse_sum_to",
    "complex_abs",
    "complex_conj",
    "complex_exp",
    "complex_multiply",
    "compress",
    "conv",
    "conv_integer",
    "conv_transpose",
    "cross_entropy",
    "cross_entropy_with_logits",
    "decode_float",
    "deform_conv2d",
    "depth_to_space",
    "dequantize_linear",
    "det",
    "dft",
    "dot_general",
    "dropout",
    "dynamic_quantize_linear",
    "einsum",
    "elu",
    "encode_float",
    "ewise_fma",
    "fft",
    "fold",
    "get_valid_counts",
    "global_avg_pool",
    "global_lp_pool",
    "global_max_pool",
    "glu",
    "grid_sample",
    "group_norm",
    "gru",
    "hamming_window",
    "hann_window",
    "hardmax",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "index_by_mask",
    "instance_norm",
    "inverse",
    "irfft",
    "layer_norm",
    "leaky_relu",
    "linear_attention",
    "local_response_norm",
    "log_sigmoid",
    "lp_norm",
    "lp_pool",
    "lstm",
    "masked_select",
    "matmul",
    "matmul_integer",
    "max_pool",
    "max_pool_with_indices",
    "max_unpool",
    "mean_variance_norm",
    "median",
    "mel_weight_matrix",
    "meshgrid",
    "mish",
    "multinomial",
    "multinomial_from_uniform",
    "nll_loss",
    "non_max_suppression",
    "outer",
    "prelu",
    "qlinear_conv",
    "qlinear_matmul",
    "quantize_linear",
    "quick_gelu",
    "random_bits",
    "random_integers",
    "random_normal",
    "random_uniform",
    "relu6",
    "reshape",
    "resize",
    "reverse_sequence",
    "rfft",
    "rms_norm",
    "rnn",
    "rotary_embedding",
    "selu",
    "shrink",
    "softplus",
    "softsign",
    "solve",
    "space_to_depth",
    "stft",
    "sum_pool",
    "swiglu",
    "swish",
    "tensor_scatter",
    "thresholded_relu",
    "triangular_solve",
    "unfold",
]
