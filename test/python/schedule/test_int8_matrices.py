"""Products of small 8-bit matrices (i8mm of Arm), on any machine: schedules are interpreted."""

from functools import cache

import numpy as np
import pytest
from integer_programs import body, exact, random_bytes, tensor_program

from relax_mlir.bindings import func, ir
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import CallTirOp, TensorType
from relax_mlir.interpreter import Interpreted
from relax_mlir.passes import Pipeline

TARGETS = ("aarch64-v8.6", "neoverse-v1")
FORMS = [
    (left, right, offset)
    for left in ("extsi", "extui")
    for right in ("extsi", "extui")
    for offset in (0, -13)
]


@cache
def scheduled(
    target: str, left: str = "extsi", right: str = "extsi", offset: int = 0, sides: str = "mk,nk"
) -> Interpreted:
    """A product of 8-bit elements, plus 7, that are extended so; `sides` are their loops."""
    (a, b), out = sides.split(","), "tensor<?x?xi32>"
    types = [("tensor<?x?xi8>", ", ".join(side)) for side in (a, b)]
    text = tensor_program(body(left, right, offset), *types, (out, "m, n"), "mnk")
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        i8, i32 = (ir.IntegerType.get_signless(bits) for bits in (8, 32))
        operands = [TensorType.make(list(side), i8) for side in (a, b)]
        result = TensorType.make(["m", "n"], i32)
        with ir.InsertionPoint(module.body):
            kinds = [operand.to_mlir() for operand in operands], [result.to_mlir()]
            main = func.FuncOp("main", kinds)
        with ir.InsertionPoint(main.add_entry_block()):
            call = CallTirOp.build("kernel", list(main.arguments), [result])
            func.ReturnOp(list(call.outs))
        Pipeline.parse(f"relax-schedule{{target={target}}}").run(module)
        assert "mmla" in str(module)
        return Interpreted(module)


@pytest.mark.rotate(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("left", "right", "offset"), FORMS)
def test_signs_and_a_zero_point(left: str, right: str, offset: int, target: str) -> None:
    random = np.random.default_rng()
    kinds = [np.int8 if name == "extsi" else np.uint8 for name in (left, right)]
    for m, n, k in [(5, 5, 13), (16, 9, 8), (1, 1, 0), (9, 17, 7), (31, 18, 65)]:
        x, w = random_bytes(random, m, k), random_bytes(random, n, k)
        actual = scheduled(target, left, right, offset)["main"](x, w)
        expected = exact(x.view(kinds[0]), w.view(kinds[1]).astype(np.int32) + offset) + 7
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.rotate(2)
@pytest.mark.parametrize("target", TARGETS)
def test_sides_stored_by_columns(target: str) -> None:
    """Groups of eight are gathered along k, and rows of the left side are summed lane by lane."""
    random = np.random.default_rng()
    for m, n, k in [(5, 5, 13), (17, 9, 64), (4, 33, 3)]:
        x, w = random_bytes(random, m, k), random_bytes(random, n, k)
        stored = np.ascontiguousarray(x.T), np.ascontiguousarray(w.T)
        actual = scheduled(target, offset=5, sides="km,kn")["main"](*stored)
        np.testing.assert_array_equal(actual, exact(x, w.astype(np.int32) + 5) + 7)
