"""Layouts against NumPy, element by element."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import numbers, spec

from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError


def _blocked(x, factor):
    """NCHW4c of NCHW, of any factor."""
    n, c, h, w = x.shape
    result = np.zeros((n, c // factor, h, w, factor), x.dtype)
    for channel in range(c):
        result[:, channel // factor, :, :, channel % factor] = x[:, channel]
    return result


@pytest.mark.parametrize("dtype", ["f32", "i8", "i1"])
def test_layouts(dtype: str) -> None:
    nchw = spec(dtype, "n", 8, "h", 3)
    for shape in ((2, 8, 5, 3), (1, 8, 1, 3), (0, 8, 4, 3)):
        x = numbers(shape, dtype)
        for source, target, given, wanted in (
            ("NCHW", "NHWC", x, x.transpose(0, 2, 3, 1)),
            ("NCHW", "NCHW4c", x, _blocked(x, 4)),
            ("NCHW4c", "NCHW", _blocked(x, 4), x),
            ("NCHW4c", "NCHW2c", _blocked(x, 4), _blocked(x, 2)),
            ("NCHW4c", "2cHWCN", _blocked(x, 4), _blocked(x, 2).transpose(4, 2, 3, 1, 0)),
        ):
            own = nchw if source == "NCHW" else spec(dtype, "n", 2, "h", 3, 4)
            run = Decomposed(lambda v, s=source, t=target: d.layout_transform(v, s, t), own)
            np.testing.assert_array_equal(run(given), wanted)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("NCHW", "NCH", "expects layouts of the same axes"),
        ("NCHW", "NCHW3c", "expects a multiple of 3, but got dim 8"),
        ("NCHW", "NCHWc", "expects a layout such as NCHW4c, but got 'NCHWc'"),
        ("NCHW", "NCHW0c", "expects a layout such as"),
        ("NCHW", "NHW4c", "expects a layout such as"),
        ("NCHH", "NCHW", "expects a layout such as"),
        ("NCW", "NWC", "has rank 4, but layout NCW has 3 axes"),
        ("NCH5h", "NCH", "expects blocks of 5 along h, but got dim 3"),
    ],
)
def test_what_is_refused(source: str, target: str, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of(
            {"main": (lambda v: d.layout_transform(v, source, target), [spec("f32", 2, 8, 5, 3)])}
        )
