"""Every operator, compiled for each element type that it takes, against what it means.

The other tests here compare what operators mean, and the programs they become, with NumPy; this one
shows that code says the same, at sizes where vectors end. One module holds all cases of a type.
"""

import numpy as np
import pytest
from cases import SIZES, TOLERANCE, Case, cases
from harness import FLOATS, INTEGERS, add_function, assert_close, wide

import relax_mlir
from relax_mlir.bindings import ir
from relax_mlir.dialects import graph, make_context


def module_of(found: list[Case]) -> str:
    """The text of a module with a function for each case."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        for case in found:
            add_function(module, case.name, case.op, case.specs, [], case.attributes)
        return str(module)


def check(case: Case, got: np.ndarray, want: np.ndarray) -> None:
    """Holds one result against what it should be."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    if got.dtype.kind in "ib":
        np.testing.assert_array_equal(got, want)
    elif case.ulps is not None:
        assert_close(got, wide(want), case.ulps)
    else:
        kind = {2: "f16", 4: "f32", 8: "f64"}[got.dtype.itemsize]
        tolerance = TOLERANCE["bf16" if got.dtype.name == "bfloat16" else kind]
        scale = np.abs(wide(want)[np.isfinite(wide(want))]).max(initial=1)
        np.testing.assert_allclose(wide(got), wide(want), rtol=tolerance, atol=tolerance * scale)


# What is computed in one way for two types, or is not optimised, is sampled.
EVEN, ODD = slice(0, None, 2), slice(1, None, 2)
SAMPLES = {("f16", 2): EVEN, ("bf16", 2): ODD, ("i32", 2): EVEN, ("i64", 2): ODD, ("f32", 0): ODD}


@pytest.mark.parametrize(
    ("dtype", "level"), [*((dtype, 2) for dtype in (*FLOATS, *INTEGERS, "i1")), ("f32", 0)]
)
def test_operators(dtype: str, level: int) -> None:
    found = list(cases(dtype))[SAMPLES.get((dtype, level), slice(None))]
    text = module_of(found)
    compiled, meant = relax_mlir.compile(text, opt_level=level), relax_mlir.interpret(text)
    for case in found:
        for sizes in SIZES:
            arrays = case.arrays(sizes)
            results = [
                main(*(array.copy() for array in arrays))
                for main in (compiled[case.name], meant[case.name])
            ]
            got, want = (r if isinstance(r, tuple) else (r,) for r in results)
            for one, other in zip(got, want, strict=True):
                try:
                    check(case, one, other)
                except AssertionError as error:
                    raise AssertionError(f"{case.name} at {sizes}: {error}") from None


def test_every_operator_is_here() -> None:
    tested = {
        case.op.OPERATION_NAME for dtype in (*FLOATS, *INTEGERS, "i1") for case in cases(dtype)
    }
    declared = {
        kind.OPERATION_NAME
        for kind in vars(graph).values()
        if isinstance(kind, type)
        and issubclass(kind, graph.GraphOp)
        and "OPERATION_NAME" in vars(kind)
        and kind.has_rule()
    }
    assert declared - {"graph.make_shape", "graph.shape_of"} == tested
