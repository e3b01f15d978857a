"""Fourier transforms and what surrounds them; complex elements are pairs along the last dim."""

from .pairs import complex_abs, complex_conj, complex_exp, complex_multiply
from .transforms import dft, fft, irfft, rfft, stft
from .windows import blackman_window, hamming_window, hann_window, mel_weight_matrix

__all__ = [
    "blackman_window",
    "complex_abs",
    "complex_conj",
    "complex_exp",
    "complex_multiply",
    "dft",
    "fft",
    "hamming_window",
    "hann_window",
    "irfft",
    "mel_weight_matrix",
    "rfft",
    "stft",
]
