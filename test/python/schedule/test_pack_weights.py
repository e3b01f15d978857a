"""Packed weights against NumPy, and through the kernel that reads them."""

import numpy as np
import pytest
from matmul_programs import NATIVE, build, call, pack

from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import TensorType
from relax_mlir.dialects.tir import PrimFunc
from relax_mlir.schedule.backend import schedule
from relax_mlir.schedule.backends import backend_of
from relax_mlir.schedule.build.packed_weights import (
    PAIRS,
    pack_weights_kernel,
    packed_type,
)
from relax_mlir.target import Target


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("layout", ["nk", "kn"])
def test_packing(layout, element):
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        kind = ir.Type.parse(element)
        weights = TensorType.make([*layout], kind)
        function = pack_weights_kernel("k", weights, 16, module.body, layout)
        del function.attributes["sym_visibility"]
        schedule(PrimFunc(function), backend_of(NATIVE))
        library = build(module)
    dtype = {"f32": np.float32, "f16": np.float16}[element]
    random = np.random.default_rng(0)
    for n, k in [(1, 1), (15, 3), (16, 7), (17, 16), (33, 65), (5, 0)]:
        weights = random.standard_normal((n, k)).astype(dtype)
        expected = pack(weights, 16)
        out = np.full(expected.shape, 7, dtype)
        call(library, weights if layout == "nk" else np.ascontiguousarray(weights.T), out)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("layout", ["nk", "kn"])
def test_packing_in_pairs(layout):
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        weights = TensorType.make([33 if x == "n" else 66 for x in layout], ir.F16Type.get())
        function = pack_weights_kernel("k", weights, 16, module.body, layout, groups=PAIRS)
        del function.attributes["sym_visibility"]
        schedule(PrimFunc(function), backend_of(NATIVE))
        library = build(module)
    weights = np.random.default_rng(0).standard_normal((33, 66)).astype(np.float16)
    out = np.full((3, 33, 16, 2), 7, np.float16)
    call(library, weights if layout == "nk" else np.ascontiguousarray(weights.T), out)
    rows = np.pad(weights, ((0, 15), (0, 0)))
    for panel in range(3):
        for k in range(33):
            expected = rows[16 * panel : 16 * (panel + 1), 2 * k : 2 * k + 2]
            np.testing.assert_array_equal(out[panel, k], expected)


def test_type_of_packed_weights():
    with make_context(), ir.Location.unknown():
        f32 = ir.F32Type.get()
        assert packed_type(TensorType.make(["n", 64], f32), 32) == TensorType.make(
            ["(n + 31) floordiv 32", 64, 32], f32
        )
        assert packed_type(TensorType.make([64, 100], f32), 32, "kn") == TensorType.make(
            [4, 64, 32], f32
        )


def test_panel_width_follows_the_vectors():
    names = ("x86-64-v4", "x86-64-v3")
    widths = {name: backend_of(Target.parse(name)).layouts.panel_columns for name in names}
    assert widths == {"x86-64-v4": 32, "x86-64-v3": 16}
