"""Every operator as a scheduled kernel, interpreted, for machines that this one need not be.

Nothing is compiled, so kernels for any machine can be looked at, and each load and store is held
against the ends of its memory.
"""

import pytest
from harness import add_function
from operator_cases import Case, cases

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.interpreter import Interpreted
from relax_mlir.passes import Pipeline

SIZES = ({"n": 1, "m": 1}, {"n": 3, "m": 17})
SCHEDULE = """relax-infer-shapes,relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,
relax-fuse-tir,symbol-dce,relax-schedule"""


def small(dtype: str) -> list[Case]:
    """Those cases whose kernels do not decode tens of thousands of numbers one by one."""
    found = [case for case in cases(dtype) if not case.name.startswith("dequantize_q")]
    return [*found, *(case for case in cases(dtype) if case.name.startswith("dequantize_q5_k"))]


# Kernels of machines differ most in f32, for which each has half of them.
EVEN, ODD, ALL = slice(0, None, 2), slice(1, None, 2), slice(None)


@pytest.mark.rotate(4)
@pytest.mark.parametrize(
    ("target", "dtype", "part"),
    [
        ("x86-64-v2", "f32", EVEN),
        ("x86-64-v3", "bf16", EVEN),
        ("x86-64-v3", "i64", ODD),
        ("x86-64-v4", "f64", EVEN),
        ("x86-64-v4", "i8", ALL),
        ("x86-64-v3", "ui8", ALL),
        ("aarch64", "ui64", ODD),
        ("x86-64-v4", "f8E5M2", ALL),
        ("znver4", "f16", ODD),
        ("aarch64", "f32", ODD),
        ("aarch64", "i1", ALL),
        # Without vectors: one lane, of f64 in registers of f32 as well.
        ("x86-64+vector-bytes=4", "f32", slice(1, None, 4)),
        ("x86-64+vector-bytes=4", "i8", EVEN),
        ("x86-64-v4+vector-bytes=4", "f64", slice(0, None, 4)),
        # Launches, before they are outlined.
        ("gpu", "f32", EVEN),
        ("cuda:sm_90a", "f32", ODD),
        ("gpu", "ui8", ALL),
        ("gpu", "f8E5M2", ALL),
    ],
    ids=lambda x: "" if isinstance(x, slice) else x,
)
def test_kernels(target: str, dtype: str, part: slice) -> None:
    found = small(dtype)[part]
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        for case in found:
            add_function(module, case.name, case.op, case.specs, [], case.attributes)
        meant = relax_mlir.interpret(module)
        Pipeline.parse(f"{SCHEDULE}{{target={target}}}").run(module)
        scheduled = Interpreted(module)
    for case in found:
        for sizes in SIZES:
            case.compare(scheduled[case.name], meant[case.name], sizes)
