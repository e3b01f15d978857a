"""Windows and mel filters against their formulas in float64."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import spec

from relax_mlir import decompositions as d
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import ShapeError

FACTORS = {"hann": (0.5, 0.5), "hamming": (25 / 46, 21 / 46), "blackman": (0.42, 0.5, 0.08)}


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("name", FACTORS)
@pytest.mark.parametrize("static", [True, False])
def test_windows(name: str, periodic: bool, static: bool) -> None:
    build = getattr(d, f"{name}_window")
    for n in (0, 1, 2, 7, 64):
        run = Decomposed(
            lambda _, n=n: build(n if static else "n", ir.F64Type.get(), periodic=periodic),
            spec("i1", "n"),
        )
        angles = 2 * np.pi * np.arange(n) / max(n if periodic else n - 1, 1)
        wanted = sum(f * (-1) ** k * np.cos(k * angles) for k, f in enumerate(FACTORS[name]))
        if n == 1 and not periodic:
            wanted = np.ones(1)
        np.testing.assert_allclose(run(np.zeros(n, bool)), wanted, atol=1e-15)


def _mel(bins, length, rate, low, high):
    """Element by element, as ONNX has it."""
    spectrum = length // 2 + 1
    low_mel, high_mel = (2595 * np.log10(1 + hertz / 700) for hertz in (low, high))
    step = (high_mel - low_mel) / (bins + 2)
    edges = []
    for i in range(bins + 2):
        hertz = 700 * (10 ** ((i * step + low_mel) / 2595) - 1)
        edges.append(int((length + 1) * hertz // rate))
    output = np.zeros((spectrum, bins))
    for i in range(bins):
        first, centre, last = edges[i : i + 3]
        if centre == first:
            output[centre, i] = 1
        else:
            for j in range(first, centre + 1):
                output[j, i] = (j - first) / (centre - first)
        for j in range(centre, last):
            output[j, i] = (last - j) / (last - centre)
    return output


@pytest.mark.parametrize(
    "settings", [(8, 16, 8192, 0, 4096), (40, 400, 16000, 20, 8000), (5, 7, 8000, 0, 4000),
                 (30, 64, 16000, 100, 100), (1, 1, 2, 0, 1)],
)  # fmt: skip
def test_mel_weight_matrix(settings) -> None:
    run = Decomposed(lambda _: d.mel_weight_matrix(*settings, ir.F64Type.get()), spec("i1", "n"))
    np.testing.assert_allclose(run(np.zeros(1, bool)), _mel(*settings), rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda _: d.hann_window(3, ir.IntegerType.get_signless(32)), "expects a float element"),
        (lambda _: d.hann_window(-1, ir.F32Type.get()), "expects a size, but got -1"),
        (lambda _: d.mel_weight_matrix(3, 8, 8000, 0, 5000, ir.F32Type.get()), "half of the"),
        (lambda _: d.mel_weight_matrix(3, 8, 8000, 9, 5, ir.F32Type.get()), "half of the"),
        (lambda _: d.mel_weight_matrix(0, 8, 8000, 0, 5, ir.F32Type.get()), "half of the"),
    ],
)
def test_what_is_refused(build, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, [spec("i1", "n")])})
