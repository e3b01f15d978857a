"""Transforms of signals."""

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import expand_dims

from ...elements import mlir_element
from ..node import Node
from ..registry import operator
from ..types import element_name


@operator("DFT")
def dft(node: Node) -> ir.Value:
    """The discrete Fourier transform."""
    if node.version >= 20:
        axis = int(node.constant(2, "an axis", -2))
    else:
        axis = node.attribute("axis", 1)
    length = None if node.value(1) is None else node.exprs(1, "a length")[0]
    return d.dft(
        node.tensor(0),
        length,
        axis=axis,
        inverse=node.flag("inverse"),
        onesided=node.flag("onesided"),
    )


@operator("STFT")
def stft(node: Node) -> ir.Value:
    """Transforms of parts of a signal."""
    step = int(node.constant(1, "a step"))
    length = None if node.value(3) is None else int(node.constant(3, "a length"))
    onesided = node.flag("onesided", default=True)
    x = node.tensor(0)
    if node.rank(0) == 2:  # as ONNX Runtime takes it, without an axis of real parts
        x = expand_dims(x, [2])
    return d.stft(x, step, node.optional(2), length=length, onesided=onesided)


WINDOWS = {
    "BlackmanWindow": d.blackman_window,
    "HammingWindow": d.hamming_window,
    "HannWindow": d.hann_window,
}


@operator(*WINDOWS)
def window(node: Node) -> ir.Value:
    """Weights of a part of a signal."""
    (size,) = node.exprs(0, "a size")
    element = mlir_element(element_name(node.attribute("output_datatype", 1)))
    return WINDOWS[node.op](size, element, periodic=node.flag("periodic", default=True))


@operator("MelWeightMatrix")
def mel_weight_matrix(node: Node) -> ir.Value:
    """Triangles over a spectrum."""
    bins, length, rate = (int(node.constant(i, "sizes")) for i in range(3))
    low, high = (float(node.constant(i, "bounds")) for i in (3, 4))
    element = mlir_element(element_name(node.attribute("output_datatype", 1)))
    return d.mel_weight_matrix(bins, length, rate, low, high, element)
