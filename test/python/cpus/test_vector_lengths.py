"""Code for vectors of one length, on machines whose vectors have it or another (SVE, RVV)."""

import numpy as np
import pytest
from cpu_modules import operator, tensor
from emulated import Emulated
from process import Process, missing

from relax_mlir.compiler import compile_to_file
from relax_mlir.errors import ExecutionError

RVV = "rv64,v=true,vlen={},vext_spec=v1.0"
MATRIX = tensor("f32", "n", 37)
# A target, CPUs that run it, and others with the length of their vectors.
CASES = [
    ("neoverse-v1", ["max,sve256=on"], {"max,sve128=on": 16, "max,sve512=on": 64}),
    (
        "riscv64-v+vector-bytes=32",
        [RVV.format(256), RVV.format(512)],
        {RVV.format(128): 16},
    ),
]


@pytest.mark.parametrize(("target", "fitting", "others"), CASES)
def test_machines_with_vectors_of_another_length_are_refused(
    target: str, fitting: list[str], others: dict[str, int]
) -> None:
    if why := missing(target):
        pytest.skip(why)
    path = compile_to_file(operator("main", "add", [MATRIX, MATRIX], MATRIX), target)
    x = np.random.default_rng().standard_normal((5, 37), np.float32)
    for cpu in fitting:
        np.testing.assert_array_equal(Emulated(Process(path, target, cpu))["main"](x, x), 2 * x)
    for cpu, length in others.items():
        message = rf"vectors of 32 bytes, but those of this machine have {length}; append '\+vector"
        with pytest.raises(ExecutionError, match=message):
            Emulated(Process(path, target, cpu))["main"](x, x)
