"""Graph functions that stay functions: `graph.noinline` keeps calls of them."""

from pathlib import Path

import numpy as np
import pytest
from call_segments import segments
from host_module import allocate, build, call
from levels import LEVELS

import relax_mlir
from relax_mlir.errors import CompileError, ExecutionError
from relax_mlir.executable import Executable

TEXT = f"""
!n = tensor<?xf32, #graph.shape<["n"]>>
!m = tensor<?xf32, #graph.shape<["m"]>>
!twice = tensor<?xf32, #graph.shape<["2*m"]>>
!kv = tensor<?x2x4xf32, #graph.shape<["n", 2, 4]>>
!cache = tensor<2x16x4xf32>

func.func private @smooth(%x: !n) -> !n attributes {{graph.noinline, graph.facts = ["n != 5"]}} {{
  %0 = "graph.exp"(%x) : (!n) -> !n
  %1 = "graph.nn_softmax"(%0) {{axis = 0 : i64}} : (!n) -> !n
  %2 = "graph.nn_softmax"(%1) {{axis = 0 : i64}} : (!n) -> !n
  return %2 : !n
}}
func.func private @both(%x: !n, %same: !n, %s: !graph.shape_value<["m"]>) -> (!n, !n)
    attributes {{graph.noinline}} {{
  %0 = "graph.call"(%x) {{callee = @smooth, {segments(1, 1)}}} : (!n) -> !n
  %1 = "graph.subtract"(%0, %same) : (!n, !n) -> !n
  return %1, %x : !n, !n
}}
func.func @main(%x: !m, %y: !m) -> (!m, !twice) {{
  %s = "graph.make_shape"() {{dims = #graph.shape<["m + 1"]>}} : () -> !graph.shape_value<["m + 1"]>
  %0:2 = "graph.call"(%x, %y, %s) {{callee = @both, {segments(3, 2)}}}
      : (!m, !m, !graph.shape_value<["m + 1"]>) -> (!m, !m)
  %1 = "graph.call"(%0#0) {{callee = @smooth, {segments(1, 1)}}} : (!m) -> !m
  %2 = "graph.concat"(%1, %0#1) {{axis = 0 : i64, {segments(2, 1)}}} : (!m, !m) -> !twice
  %3 = "graph.call"(%2) {{callee = @smooth, {segments(1, 1)}}} : (!twice) -> !twice
  return %1, %3 : !m, !twice
}}
func.func private @append(%ks: !cache {{graph.inout = 1 : i64}}, %k: !kv,
    %vs: !cache {{graph.inout = 0 : i64}}, %at: !graph.shape_value<["m"]>) -> (!cache, !cache)
    attributes {{graph.noinline, graph.facts = ["m + n <= 16"]}} {{
  %0:2 = "graph.nn_kv_append"(%ks, %vs, %k, %k) {{position = #graph.shape<["m"]>}}
      : (!cache, !cache, !kv, !kv) -> (!cache, !cache)
  return %0#1, %0#0 : !cache, !cache
}}
func.func @step(%k: !kv, %past: !graph.shape_value<["p"]>, %ks: !cache {{graph.inout = 0 : i64}},
    %vs: !cache {{graph.inout = 1 : i64}}) -> (!cache, !cache, !cache) {{
  %0:2 = "graph.call"(%ks, %k, %vs, %past) {{callee = @append, {segments(4, 2)}}}
      : (!cache, !kv, !cache, !graph.shape_value<["p"]>) -> (!cache, !cache)
  %1 = "graph.negative"(%0#1) : (!cache) -> !cache
  return %0#1, %0#0, %1 : !cache, !cache, !cache
}}
"""


@pytest.fixture(scope="module", params=LEVELS, ids=lambda level: f"O{level}")
def exe(request: pytest.FixtureRequest) -> Executable:
    return relax_mlir.compile(TEXT, opt_level=request.param)


def numbers(*dims: int) -> np.ndarray:
    return np.random.default_rng(dims).standard_normal(dims).astype(np.float32)


def smooth(x: np.ndarray) -> np.ndarray:
    x = np.exp(x.astype(np.float64))
    for _ in range(2):
        x = np.exp(x - x.max(initial=0))
        x /= x.sum()
    return x


def test_functions_are_called(exe: Executable) -> None:
    for n in (0, 1, 3, 17, 64):
        x, y = numbers(n), numbers(n + 1)[:n]
        first = smooth(smooth(x) - y)
        got = exe["main"](x, y)
        np.testing.assert_allclose(got[0], first, rtol=1e-5)
        np.testing.assert_allclose(got[1], smooth(np.concatenate([first, x])), rtol=1e-5)
    with pytest.raises(ExecutionError, match=r"^-:\d+:\d+: @smooth requires m != 5, but m = 5$"):
        exe["main"](numbers(5), numbers(5))
    call = exe["main"].bind(x, y, results=[np.empty_like(r) for r in got])
    steady = exe.counters()["allocations"]
    for _ in range(3):
        call.run()
    assert exe.counters()["allocations"] == steady


def test_a_called_function_updates_its_arguments(exe: Executable) -> None:
    keys, values = np.zeros((2, 2, 16, 4), np.float32)
    mirror = np.zeros((2, 16, 4), np.float32)
    for past, n in ((0, 3), (3, 1), (4, 0), (4, 12)):
        k = numbers(n, 2, 4)
        mirror[:, past : past + n] = k.swapaxes(0, 1)
        got = exe["step"](k, past, keys, values)
        assert got[0] is keys
        assert got[1] is values
        np.testing.assert_array_equal(keys, mirror)
        np.testing.assert_array_equal(values, mirror)
        np.testing.assert_array_equal(got[2], -mirror)
    with pytest.raises(
        ExecutionError, match=r"^-\S+ @append requires n \+ p <= 16, but n = 1, p = 16$"
    ):
        exe["step"](numbers(1, 2, 4), 16, keys, values)


def test_sites_go_through_calls(exe: Executable) -> None:
    main = exe.metadata["functions"]["main"]
    assert len(main["sites"]) == sum(main["calls"].values())
    exe.record(100)
    exe["main"](numbers(3), numbers(3))
    assert exe.spans()["site"].tolist() == list(range(len(main["sites"])))
    exe.record(0)
    last = main["sites"][-1]["bytes"]
    assert "m" in last
    assert "n" not in last


UNKNOWN = f"""
!n = tensor<?xf32, #graph.shape<["2*n"]>>
!j = tensor<?xf32, #graph.shape<["j"]>>
func.func private @f(%x: !n) -> !j attributes {{graph.noinline}} {{
  %0 = "graph.match_cast"(%x) : (!n) -> tensor<*xf32>
  %1 = "graph.match_cast"(%0) : (tensor<*xf32>) -> !j
  return %1 : !j
}}
func.func @main(%x: !n) -> tensor<?xf32> {{
  %0 = "graph.call"(%x) {{callee = @f, {segments(1, 1)}}} : (!n) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}}"""


RETURNS_SHAPE = f"""
!n = tensor<?xf32, #graph.shape<["n"]>>
!k = tensor<?xf32, #graph.shape<["k"]>>
func.func private @f(%x: !n) -> !graph.shape_value<["n"]> attributes {{graph.noinline}} {{
  %0 = "graph.shape_of"(%x) : (!n) -> !graph.shape_value<["n"]>
  return %0 : !graph.shape_value<["n"]>
}}
func.func @main(%x: !n, %one: tensor<f32>) -> !k {{
  %0 = "graph.call"(%x) {{callee = @f, {segments(1, 1)}}} : (!n) -> !graph.shape_value<["?"]>
  %1 = "graph.match_cast"(%0) : (!graph.shape_value<["?"]>) -> !graph.shape_value<["k"]>
  %2 = "graph.full"(%one) {{shape = #graph.shape<["k"]>}} : (tensor<f32>) -> !k
  return %2 : !k
}}"""


@pytest.mark.parametrize("level", LEVELS)
def test_what_a_caller_cannot_know_is_computed_in_the_caller(level: int) -> None:
    x, one = numbers(6), np.float32(1).reshape(())
    unknown = relax_mlir.compile(UNKNOWN, opt_level=level)
    np.testing.assert_array_equal(unknown["main"](x), x)
    shape = relax_mlir.compile(RETURNS_SHAPE, opt_level=level)
    np.testing.assert_array_equal(shape["main"](x, one), np.ones(6, np.float32))


SHAPE = f"""
!n = tensor<?xf32, #graph.shape<["n"]>>
!p = tensor<?xf32, #graph.shape<["p"]>>
func.func private @f(%x: !n, %s: !graph.shape_value<["n"]>) -> !n ATTRIBUTES {{
  %0 = "graph.negative"(%x) : (!n) -> !n
  return %0 : !n
}}
func.func @main(%x: !p, %s: !graph.shape_value<["q"]>) -> !p {{
  %0 = "graph.call"(%x, %s) {{callee = @f, {segments(2, 1)}}}
      : (!p, !graph.shape_value<["q"]>) -> !p
  return %0 : !p
}}"""


@pytest.mark.parametrize("attributes", ["", "attributes {graph.noinline}"])
def test_shapes_that_are_passed_agree(attributes: str) -> None:
    main = relax_mlir.compile(SHAPE.replace("ATTRIBUTES", attributes), opt_level=0)["main"]
    x = numbers(3)
    np.testing.assert_array_equal(main(x, [3]), -x)
    with pytest.raises(ExecutionError, match=r"^-\S+ @f requires [pq] == [pq], but p = 3, q = 4$"):
        main(x, [4])


N, M = (f'tensor<?xf32, #graph.shape<["{name}"]>>' for name in "nm")
BY_HAND = f"""
func.func private @same(%x: {N}, %y: {N}) -> {N} {{
  return %x : {N}
}}
func.func @main(%x: {N}, %y: {M}) -> {N} {{
  %0 = {allocate(N)}
  REQUIRE
  {call("same", ["%x", "%y", "%0"], [N, M, N])}
  return %0 : {N}
}}"""


def test_the_caller_shows_that_dims_agree(tmp_path: Path) -> None:
    require = '"graph.require"() {any_of = ["m == n"], by = "@same"} : () -> ()'
    exe = build(BY_HAND.replace("REQUIRE", require), tmp_path)
    x = numbers(7)
    np.testing.assert_array_equal(exe["main"](x, x), x)
    with pytest.raises(CompileError, match=r"'graph.call_dps' op passes .* not proved to be"):
        build(BY_HAND.replace("REQUIRE", ""), tmp_path)


def chain(length: int, attributes: str, is_doubled: bool = True) -> str:
    """Functions each of which calls the next one, and that one or the last one once more."""
    one = "tensor<4xf32>"

    def called(index: int, value: str) -> str:
        return f'"graph.call"({value}) {{callee = @f{index}, {segments(1, 1)}}} : ({one}) -> {one}'

    text = f"""
func.func @main(%x: {one}) -> {one} {{
  %0 = {called(0, "%x")}
  return %0 : {one}
}}
func.func private @f{length}(%x: {one}) -> {one} {attributes} {{
  %0 = "graph.negative"(%x) : ({one}) -> {one}
  return %0 : {one}
}}"""
    for index in range(length):
        text += f"""
func.func private @f{index}(%x: {one}) -> {one} {attributes} {{
  %0 = {called(index + 1, "%x")}
  %1 = {called(index + 1 if is_doubled else length, "%0")}
  return %1 : {one}
}}"""
    return text


NOINLINE = "attributes {graph.noinline}"


def test_what_grows_with_each_function_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relax_mlir.transforms.inline_functions.MOST_OPS", 200)
    with pytest.raises(CompileError, match=r"^-:\d+:8: error: .* makes '@f\d+' too large, of more"):
        relax_mlir.compile(chain(60, ""), opt_level=0)
    monkeypatch.setattr("relax_mlir.host.site_counts.MOST", 1000)
    with pytest.raises(CompileError, match=r"calls more than 1000 kernels, each call of a"):
        relax_mlir.compile(chain(60, NOINLINE), opt_level=0)


def test_a_chain_of_functions_may_be_long() -> None:
    x = numbers(4)
    main = relax_mlir.compile(chain(300, NOINLINE, is_doubled=False), opt_level=0)["main"]
    np.testing.assert_array_equal(main(x), -x)
