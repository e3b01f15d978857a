"""The front end of Whisper as a graph: a log-mel spectrogram of a recording of any length.

    @main(sound: float32[n]) -> float32[mels, (n + samples) floordiv hop]

`samples` of silence follow the recording, so that each window of it is complete. Frames are
centered, at the ends mirrored; powers of frequencies are summed by bands, their logarithms are
bounded to 8 below the greatest, and scaled. Source: arXiv 2212.04356, §2.2; its code, `audio.py`.
"""

import numpy as np

from relax_mlir.bindings import arith, func, ir
from relax_mlir.decompositions.convolution import conv
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import TensorType
from relax_mlir.llm.modules.nn import (
    add,
    concat,
    constant,
    full,
    matmul,
    multiply,
    reshape,
    scaled,
    slice_axis,
)
from relax_mlir.llm.speech.config import Features

FLOOR = 1e-10
"""Powers below are taken as this one."""
RANGE = 8.0
_LINEAR, _STEP, _LOG_STEP = 1000.0, 200.0 / 3, np.log(6.4) / 27
"""Slaney's scale: linear up to 1 kHz, then logarithmic."""


def export_spectrogram(features: Features) -> str:
    """The text of the module."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        f32 = ir.F32Type.get()
        sound = TensorType.make(["n"], f32).to_mlir()
        frames = f"(n + {features.samples}) floordiv {features.hop}"
        mel = TensorType.make([features.mels, frames], f32).to_mlir()
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ([sound], [mel]))
        with ir.InsertionPoint(main.add_entry_block()):
            func.ReturnOp([_spectrogram(main.arguments[0], features, frames, mel)])
        return str(module)


def _spectrogram(sound: ir.Value, f: Features, frames: str, kind: ir.Type) -> ir.Value:
    edge = f.length // 2
    total = f"n + {f.samples}"
    whole = concat([sound, full(0.0, [f.samples])], 0)
    before = graph.FlipOp.build(slice_axis(whole, 0, 1, edge + 1), axes=[0]).result
    after = full(0.0, [edge])  # the mirrored end is silence
    x = concat([before, whole, after], 0)
    x = reshape(x, [1, 1, f"{total} + {2 * edge}"])
    bins = edge + 1
    parts = conv(x, _constant(_transform(f.length)), strides=[f.hop])
    parts = slice_axis(reshape(parts, [2 * bins, f"({total}) floordiv {f.hop} + 1"]), 1, 0, frames)
    squares = multiply(parts, parts)
    power = add(slice_axis(squares, 0, 0, bins), slice_axis(squares, 0, bins, 2 * bins))
    mel = matmul(_constant(mel_filters(f).T.astype(np.float32)), power)
    logarithm = graph.Log10Op.build(graph.MaximumOp.build(mel, constant(FLOOR)).result).result
    greatest = graph.MaxOp.build(logarithm, axes=[0, 1], keepdims=False).result
    least = graph.SubtractOp.build(greatest, constant(RANGE)).result
    bounded = graph.MaximumOp.build(logarithm, least).result
    return graph.MatchCastOp.build(scaled(add(bounded, constant(4.0)), 0.25), kind).result


def _constant(values: np.ndarray) -> ir.Value:
    data = ir.DenseElementsAttr.get(np.ascontiguousarray(values, np.float32))
    return arith.ConstantOp(data.type, data).result


def _transform(length: int) -> np.ndarray:
    """Filters [2 * bins, 1, length]: cosines, then sines, under a periodic Hann window."""
    n = np.arange(length)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * n / length)
    angles = 2 * np.pi * (np.outer(np.arange(length // 2 + 1), n) % length) / length
    return (np.concatenate([np.cos(angles), np.sin(angles)]) * window)[:, None]


def mel_filters(f: Features) -> np.ndarray:
    """Triangles of equal area, float64[bins, mels], at equal distances of Slaney's scale."""
    top = _to_mel(f.rate / 2)
    edges = _to_hertz(np.linspace(0.0, top, f.mels + 2))
    bins = np.linspace(0, f.rate / 2, f.length // 2 + 1)
    slopes = edges[None] - bins[:, None]
    widths = np.diff(edges)
    down, up = -slopes[:, :-2] / widths[:-1], slopes[:, 2:] / widths[1:]
    return np.maximum(0, np.minimum(down, up)) * 2 / (edges[2:] - edges[:-2])


def _to_mel(hertz: float) -> float:
    if hertz < _LINEAR:
        return hertz / _STEP
    return float(_LINEAR / _STEP + np.log(hertz / _LINEAR) / _LOG_STEP)


def _to_hertz(mel: np.ndarray) -> np.ndarray:
    bend = _LINEAR / _STEP
    return np.where(
        mel < bend, mel * _STEP, _LINEAR * np.exp(_LOG_STEP * (np.maximum(mel, bend) - bend))
    )
