"""Shapes as results of exported functions: tuples of integers, interpreted and compiled."""

from typing import Any

import numpy as np
import pytest
from levels import LEVELS

import relax_mlir
from relax_mlir.errors import ExecutionError

X = 'tensor<?x3xf32, #graph.shape<["n", 3]>>'
SHAPE = '!graph.shape_value<["n", 3]>'
ARGUMENT, COMPUTED, EMPTY = (
    f"!graph.shape_value<[{dims}]>" for dims in ('"m", "2*k"', '"k*n - m", 5', "")
)
TEXT = f"""
func.func @of(%x: {X}) -> {SHAPE} {{
  %0 = "graph.shape_of"(%x) : ({X}) -> {SHAPE}
  return %0 : {SHAPE}
}}
func.func @several(%x: {X} {{graph.inout = 2 : i64}}, %s: {ARGUMENT})
    -> ({ARGUMENT}, {COMPUTED}, {X}, {EMPTY}) {{
  %0 = "graph.make_shape"() {{dims = #graph.shape<["k*n - m", 5]>}} : () -> {COMPUTED}
  %1 = "graph.make_shape"() {{dims = #graph.shape<[]>}} : () -> {EMPTY}
  %2 = "graph.negative"(%x) : ({X}) -> {X}
  return %s, %0, %2, %1 : {ARGUMENT}, {COMPUTED}, {X}, {EMPTY}
}}
func.func @chosen(%x: {X}, %c: i1, %d: tensor<2xi64>) -> !graph.shape_value<["?", "?"]> {{
  %r = scf.if %c -> !graph.shape_value<["?", "?"]> {{
    %0 = "graph.shape_of"(%x) : ({X}) -> {SHAPE}
    %1 = "graph.match_cast"(%0) : ({SHAPE}) -> !graph.shape_value<["?", "?"]>
    scf.yield %1 : !graph.shape_value<["?", "?"]>
  }} else {{
    %0 = "graph.tensor_to_shape"(%d) : (tensor<2xi64>) -> !graph.shape_value<["?", "?"]>
    scf.yield %0 : !graph.shape_value<["?", "?"]>
  }}
  return %r : !graph.shape_value<["?", "?"]>
}}
"""


@pytest.fixture(scope="module", params=["interpreted", *LEVELS])
def exe(request: pytest.FixtureRequest) -> Any:
    if request.param == "interpreted":
        return relax_mlir.interpret(TEXT)
    return relax_mlir.compile(TEXT, opt_level=request.param)


def test_a_shape_is_a_tuple(exe: Any) -> None:
    for n in (0, 1, 7, 2**20):
        got = exe["of"](np.empty((n, 3), np.float32))
        assert got == (n, 3)
        assert [type(dim) for dim in got] == [int, int]


def test_shapes_are_returned_beside_tensors(exe: Any) -> None:
    for n, m, k in ((0, 0, 0), (1, 0, 3), (5, 10, 2)):
        x = np.ones((n, 3), np.float32)
        got = exe["several"](x, (m, 2 * k))
        assert got[:2] == ((m, 2 * k), (k * n - m, 5))
        assert got[2] is x
        assert (got[2] == -1).all()
        assert got[3] == ()


def test_run_time_decides(exe: Any) -> None:
    x = np.ones((4, 3), np.float32)
    for chosen, want in ((True, (4, 3)), (False, (0, 9))):
        assert exe["chosen"](x, chosen, np.array([0, 9])) == want
    with pytest.raises(ExecutionError, match="has a negative dim"):
        exe["chosen"](x, False, np.array([0, -9]))


def test_a_buffer_takes_a_shape(exe: Any) -> None:
    buffer = np.zeros(2, np.int64)
    call = exe["of"].bind(np.empty((7, 3), np.float32), results=[buffer])
    assert call.run() is buffer
    assert buffer.tolist() == [7, 3]
    with pytest.raises(ExecutionError, match=r"result 0: dim 0 is 3|dims are \[3\]"):
        exe["of"].bind(np.empty((7, 3), np.float32), results=[np.zeros(3, np.int64)]).run()
