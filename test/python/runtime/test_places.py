"""Modules that compute on the host and on a device: what is where, which copies are made."""

import ctypes
import gc
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import vulkan
from call_segments import segments
from cuda_driver import driver
from perceptron import normal

import relax_mlir
from relax_mlir.analysis.devices import DEVICE
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError, ExecutionError, OutOfMemoryError
from relax_mlir.interpreter import interpret
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline

ALLOC, LAUNCH, SYNC, COPY, OPEN, LOST = range(6)
TO_DEVICE, TO_HOST, ON_DEVICE = range(3)
X = '!x = tensor<?xf32, #graph.shape<["n"]>>\n'
MIXED = f"""{X}
func.func @main(%x: !x, %y: !x) -> (!x, !x) {{
  %0 = "graph.add"(%x, %y) : (!x, !x) -> !x
  %1 = "graph.square"(%0) {{graph.device = "cpu"}} : (!x) -> !x
  %2 = "graph.negative"(%1) : (!x) -> !x
  %3 = "graph.to_device"(%2) {{device = "device"}} : (!x) -> !x
  %4 = "graph.multiply"(%3, %x) : (!x, !x) -> !x
  %5 = "graph.to_device"(%4) {{device = "cpu"}} : (!x) -> !x
  return %4, %5 : !x, !x
}}
"""
ARGUMENTS = f"""{X}
func.func @main(%x: !x {{graph.device = "cpu"}},
                %state: !x {{graph.device = "cpu", graph.inout = 1}}, %y: !x) -> (!x, !x) {{
  %c = arith.constant dense<3.0> : tensor<f32>
  %k = "graph.full"(%c) {{shape = #graph.shape<["n"]>}} : (tensor<f32>) -> !x
  %0 = "graph.multiply"(%x, %k) : (!x, !x) -> !x
  %1 = "graph.add"(%0, %state) : (!x, !x) -> !x
  %2 = "graph.add"(%1, %y) : (!x, !x) -> !x
  return %2, %1 : !x, !x
}}
"""
WHOLE = f"""{X}
func.func @main(%x: !x) -> (!x, f32) attributes {{graph.device = "cpu"}} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 5 : index
  %0 = scf.for %i = %zero to %end step %one iter_args(%a = %x) -> (!x) {{
    %2 = "graph.add"(%a, %x) : (!x, !x) -> !x
    %3 = "graph.negative"(%2) : (!x) -> !x
    scf.yield %3 : !x
  }}
  %1 = tensor.extract %0[%zero] : !x
  "graph.print"(%0, %1) {{format = "{{}} {{}}", {segments(2, 0)}}} : (!x, f32) -> ()
  return %0, %1 : !x, f32
}}
"""
LOOP = f"""{X}
func.func @main(%x: !x, %limit: f32) -> !x {{
  %zero = arith.constant 0 : index
  %y = scf.while (%a = %x) : (!x) -> !x {{
    %b = "graph.square"(%a) {{graph.device = "cpu"}} : (!x) -> !x
    %first = tensor.extract %b[%zero] : !x
    %more = arith.cmpf olt, %first, %limit : f32
    scf.condition(%more) %b : !x
  }} do {{
  ^bb0(%a: !x):
    %twice = "graph.add"(%a, %a) : (!x, !x) -> !x
    scf.yield %twice : !x
  }}
  return %y : !x
}}
"""
SHARED = """
!a = tensor<?x?xf32, #graph.shape<["n", "n"]>>
func.func @main(%a: !a) -> !a {
  %0 = "graph.matmul"(%a, %a) : (!a, !a) -> !a
  %1 = "graph.matmul"(%0, %0) {graph.device = "cpu"} : (!a, !a) -> !a
  %2 = "graph.nn_softmax"(%1) {axis = -1 : i64, graph.device = "device"} : (!a) -> !a
  %3 = "graph.nn_softmax"(%2) {axis = -1 : i64, graph.device = "cpu"} : (!a) -> !a
  %4 = "graph.negative"(%3) : (!a) -> !a
  return %4 : !a
}
"""


@cache
def built(text: str, level: int = 2, target: str = "gpu") -> Any:
    return relax_mlir.compile(text, target, opt_level=level)


@pytest.fixture(autouse=True)
def _cuda() -> Iterator[None]:
    driver().library.standin_reset()
    yield
    driver().library.standin_reset()


def copies(module: Any) -> list[int]:
    count = module._library.rx_standin_copies
    count.restype, count.argtypes = ctypes.c_int64, (ctypes.c_int32,)
    return [count(which) for which in (TO_DEVICE, TO_HOST, ON_DEVICE)]


def failing(module: Any, which: int, after: int) -> None:
    module._library.rx_standin_fail(ctypes.c_int32(which), ctypes.c_int64(after))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 7, 257])
def test_host_and_device_take_turns(level: int, count: int) -> None:
    x, y = normal(count), normal(count)
    expected = -((x + y) ** 2) * x
    module = built(MIXED, level)
    on_device, on_host = module["main"](module.device.array(x), module.device.array(y))
    assert isinstance(on_host, np.ndarray)
    np.testing.assert_allclose(on_device.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(on_host, expected, rtol=1e-6)
    both = interpret(MIXED)["main"](x, y)
    np.testing.assert_allclose(both, [expected, expected], rtol=1e-6)


@pytest.mark.parametrize("target", ["cuda:sm_90a", "vulkan", "native", "x86-64-v2"])
def test_on_other_targets(target: str) -> None:
    if target == "vulkan":
        vulkan.require()
    x, y = normal(19), normal(19)
    for result in built(MIXED, 2, target)["main"](x, y):
        np.testing.assert_allclose(result, -((x + y) ** 2) * x, rtol=1e-6)


def test_copies_are_those_of_the_ir() -> None:
    module = built(MIXED)
    x, y = module.device.array(normal(9)), module.device.array(normal(9))
    before = copies(module)
    results = module["main"](x, y)
    # The sum to the host, the square back, and the product to the host.
    assert np.subtract(copies(module), before).tolist() == [1, 2, 0]
    del results


def test_memory_of_a_call_is_counted_and_freed() -> None:
    module = built(MIXED)
    x, y = module.device.array(normal(300)), module.device.array(normal(300))
    module["main"](x, y)
    gc.collect()
    before = module.device.bytes, module._library.rx_standin_blocks(), module.counters()
    for _ in range(3):
        module["main"](x, y)
    gc.collect()
    assert (module.device.bytes, module._library.rx_standin_blocks()) == before[:2]
    assert module.counters()["arena_bytes"] == before[2]["arena_bytes"]


@pytest.mark.parametrize("level", [0, 2])
def test_arguments_on_the_host(level: int) -> None:
    module = built(ARGUMENTS, level)
    x, state, y = normal(13), normal(13), normal(13)
    after = 3 * x.astype(np.float64) + state
    before = copies(module)
    result, updated = module["main"](x, state, module.device.array(y))
    assert updated is state
    # The product may be rounded before the sum or not, and the sum may be near 0.
    np.testing.assert_allclose(state, after, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(result.numpy(), after + y, rtol=1e-5, atol=1e-6)
    # The argument y and the sum to the device, the result to be compared.
    assert np.subtract(copies(module), before).tolist() == [2, 1, 0]
    with pytest.raises(ExecutionError, match="argument 0 'arg0': is on the host"):
        module["main"](module.device.array(x), state, y)


@pytest.mark.parametrize("level", [0, 2])
def test_a_function_on_the_host(level: int, capfd: pytest.CaptureFixture) -> None:
    module, x = built(WHOLE, level), np.arange(1, 4, dtype=np.float32)
    before = copies(module)
    result, first = module["main"](x)
    assert copies(module) == before
    expected = x
    for _ in range(5):
        expected = -(expected + x)
    np.testing.assert_array_equal(result, expected)
    assert first == expected[0]
    shown = ", ".join(f"{value:g}" for value in expected)
    assert capfd.readouterr().out == f"[{shown}] {expected[0]:g}\n"


@pytest.mark.parametrize("level", [0, 2])
def test_loops_carry_tensors_of_the_device(level: int) -> None:
    x = np.abs(normal(9)) + 1
    expected = x * x
    while expected[0] < 1e6:
        expected = (2 * expected) ** 2
    np.testing.assert_allclose(built(LOOP, level)["main"](x, 1e6), expected, rtol=1e-5)


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("count", [0, 1, 5, 33])
def test_programs_that_both_run(level: int, count: int) -> None:
    a = normal(count, count) / max(count, 1)
    wide = a.astype(np.float64)
    wide = (wide @ wide) @ (wide @ wide)
    for _ in range(2):
        wide = np.exp(wide - wide.max(1, keepdims=True, initial=-np.inf))
        wide /= wide.sum(1, keepdims=True)
    np.testing.assert_allclose(built(SHARED, level)["main"](a), -wide, rtol=1e-5)


@pytest.mark.parametrize("which", [ALLOC, LAUNCH, SYNC, COPY])
def test_failures_in_front_of_each_step(which: int) -> None:
    module = relax_mlir.compile(MIXED, "gpu", use_cache=False)
    x, y = normal(2000), normal(2000)
    module["main"](x, y)
    gc.collect()
    before = module.device.bytes, module._library.rx_standin_blocks()
    says = "out of memory" if which == ALLOC else "gpu: "
    steps = {ALLOC: 3, LAUNCH: 2, SYNC: 1, COPY: 6}[which]
    for after in range(1, steps + 1):
        failing(module, which, after)
        with pytest.raises((ExecutionError, OutOfMemoryError), match=says):
            module["main"](x, y)
    failing(module, which, steps + 1)
    np.testing.assert_allclose(module["main"](x, y)[1], -((x + y) ** 2) * x, rtol=1e-6)
    failing(module, which, 0)
    gc.collect()
    assert (module.device.bytes, module._library.rx_standin_blocks()) == before


@pytest.mark.parametrize("after", range(1, 10))
def test_a_device_that_is_lost_between_copies(after: int) -> None:
    module = relax_mlir.compile(MIXED, "gpu", use_cache=False)
    failing(module, LOST, after)
    for _ in range(2):
        with pytest.raises(ExecutionError, match=r"gpu: .*the device is lost"):
            module["main"](normal(5), normal(5))


def test_another_device_is_refused() -> None:
    text = MIXED.replace('"device"', '"vulkan"', 1)
    for target in ("native", "gpu", "cuda:sm_90a"):
        with pytest.raises(CompileError, match=r"is placed on 'vulkan', but the target has"):
            relax_mlir.compile(text, target)


@pytest.mark.parametrize("level", [0, 2])
def test_facts_are_those_of_the_caller(level: int) -> None:
    text = """
    func.func @main(%x: tensor<?xf32, #graph.shape<["n"]>>, %y: tensor<?xf32, #graph.shape<["m"]>>)
        -> tensor<?xf32, #graph.shape<["n"]>> {
      %0 = "graph.add"(%x, %y) {graph.device = "cpu"} : (tensor<?xf32, #graph.shape<["n"]>>,
          tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
      return %0 : tensor<?xf32, #graph.shape<["n"]>>
    }"""
    x, y = normal(6), normal(6)
    np.testing.assert_array_equal(built(text, level)["main"](x, y), x + y)
    with pytest.raises(ExecutionError, match="requires"):
        built(text, level)["main"](x, normal(5))


@pytest.mark.parametrize(
    ("left_out", "says"),
    [
        (
            ",relax-copy-between-devices",
            r"needs 'tensor<.*>' on 'cpu', but it is on 'device'; ",
        ),
        (",relax-place-devices{target=gpu}", "'graph.hint_on_device' op has no legalization"),
    ],
)
def test_pipelines_without_a_pass(left_out: str, says: str) -> None:
    text = MIXED.replace('"graph.to_device"(%2)', '"graph.hint_on_device"(%2)')
    passes = pipeline("gpu").replace(left_out, "")
    with pytest.raises(CompileError, match=says):
        relax_mlir.compile(text, "gpu", passes=passes)


@pytest.mark.parametrize(
    ("scheduled", "says"),
    [
        ("native", "accesses memory on the host"),
        ("gpu", "is of 'device', but '@main' of 'cpu'"),
    ],
)
def test_kernels_of_the_other_side(scheduled: str, says: str) -> None:
    text = f"""{X}
    func.func @main(%x: !x) -> !x attributes {{graph.device = "cpu"}} {{
      %0 = "graph.exp"(%x) : (!x) -> !x
      return %0 : !x
    }}"""
    if scheduled == "native":
        text = text.replace('attributes {graph.device = "cpu"}', "")
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        Pipeline.parse("relax-legalize-ops").run(module)
        main = next(iter(module.body.operations))
        device = main.attributes[DEVICE] if DEVICE in main.attributes else None
        if device is not None:
            del main.attributes[DEVICE]
        Pipeline.parse(f"relax-schedule{{target={scheduled}}}").run(module)
        if device is not None:
            main.attributes[DEVICE] = device
        rest = (
            "relax-lower-calls,relax-plan-memory,relax-outline-launches,relax-to-host{target=gpu}"
        )
        with pytest.raises(CompileError, match=says):
            Pipeline.parse(rest).run(module)


@pytest.mark.parametrize("level", [0, 3])
def test_constants_are_on_both_sides(level: int) -> None:
    c = "dense<[1.0, -2.0, 3.5]> : tensor<3xf32>"
    text = f"""
    func.func private @square(%x: tensor<3xf32>) -> tensor<3xf32>
        attributes {{graph.device = "cpu", graph.noinline}} {{
      %0 = "graph.square"(%x) : (tensor<3xf32>) -> tensor<3xf32>
      return %0 : tensor<3xf32>
    }}
    func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {{
      %c = arith.constant {c}
      %0 = "graph.call"(%c) {{callee = @square, {segments(1, 1)}}}
          : (tensor<3xf32>) -> tensor<3xf32>
      %1 = "graph.multiply"(%x, %c) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      %2 = "graph.to_device"(%c) {{device = "cpu"}} : (tensor<3xf32>) -> tensor<3xf32>
      %3 = "graph.add"(%1, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      return %3, %2 : tensor<3xf32>, tensor<3xf32>
    }}"""
    x, known = normal(3), np.float32([1, -2, 3.5])
    result, same = built(text, level)["main"](x)
    np.testing.assert_allclose(result, x * known + known * known, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(same, known)
