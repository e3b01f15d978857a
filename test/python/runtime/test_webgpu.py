"""Modules for wasm32@webgpu in Chromium, compared with the interpreter."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import chromium, missing
from test_device import COUNT, HOST, LOOP, MLP

import relax_mlir
from relax_mlir.compiler import compile_to_file
from relax_mlir.errors import ExecutionError, UsageError

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

ARRAYS = {"float32": "Float32Array", "int64": "BigInt64Array", "int32": "Int32Array"}
RUN = """async ({ url, name, values, stays }) => {
  const { loadOnWebGpu, PlacedOnDevice } = await import("/webgpu.js");
  const { Tensor } = await import("/relax.js");
  const modules = (window.modules ??= new Map());
  try {
    window.device = window.device?.isLost ? undefined : window.device;
    if (!modules.has(url)) {
      const module = await loadOnWebGpu(fetch(url), { gpu: window.device });
      window.device = module.gpu;
      modules.set(url, module);
    }
    const module = modules.get(url);
    const passed = values.map((value) => {
      if (value.data === undefined) return value;
      const bytes = Uint8Array.from(atob(value.data), (c) => c.charCodeAt(0));
      return new Tensor(new globalThis[value.array](bytes.buffer), value.dims);
    });
    const made = await module[stays ? "callOnDevice" : "call"](name, ...passed);
    const isOne = module.functions[name].results.length === 1;
    const results = isOne ? [made] : made;
    const found = [];
    for (const each of results) {
      const tensor = each instanceof PlacedOnDevice ? await each.read() : each;
      if (each instanceof PlacedOnDevice) each.free();
      if (!(tensor instanceof Tensor)) found.push({ value: tensor });
      else {
        const { buffer, byteOffset, byteLength } = tensor.data;
        const bytes = new Uint8Array(buffer, byteOffset, byteLength);
        found.push({ data: btoa(String.fromCharCode(...bytes)), dims: tensor.dims });
      }
    }
    return { found };
  } catch (error) {
    return { error: `${error.name}: ${error.message}` };
  }
}"""


class Page:
    """A module in the page."""

    def __init__(self, text: str, folder: Path, level: int = 2) -> None:
        source = compile_to_file(text, "wasm32@webgpu", level)
        (folder / "model.wasm").write_bytes(Path(source).read_bytes())
        self._url = f"{chromium().serve(folder.name, folder)}/model.wasm"
        self.meant = relax_mlir.interpret(text)

    def __call__(self, *values: Any, name: str = "main", stays: bool = False) -> list[Any]:
        """The results of a call; raises ExecutionError with the text of an error of the page."""
        passed = [_passed(x) for x in values]
        found = chromium().run(
            RUN, {"url": self._url, "name": name, "values": passed, "stays": stays}
        )
        if "error" in found:
            raise ExecutionError(found["error"])
        return found["found"]

    def check(self, *values: Any, name: str = "main", stays: bool = False) -> None:
        """Compares the results of a call with what the function means."""
        found = self(*values, name=name, stays=stays)
        want = self.meant[name](*values)
        wants = want if len(self.meant[name].results) > 1 else (want,)
        for one, other in zip(found, wants, strict=True):
            if "value" in one:
                assert one["value"] == (list(other) if isinstance(other, tuple) else other)
                continue
            actual = _array(one, other.dtype)
            assert actual.shape == other.shape
            np.testing.assert_allclose(actual, other, rtol=3e-6, atol=3e-6)


def _array(result: Any, dtype: np.dtype) -> np.ndarray:
    return np.frombuffer(base64.b64decode(result["data"]), dtype).reshape(result["dims"])


def _passed(x: Any) -> Any:
    if not isinstance(x, np.ndarray):
        return x
    data = base64.b64encode(x.tobytes()).decode()
    return {"data": data, "array": ARRAYS[x.dtype.name], "dims": x.shape}


@pytest.fixture
def page(tmp_path: Path) -> Callable[..., Page]:
    """Compiles a text for the page."""
    return lambda text, level=2: Page(text, tmp_path, level)


PERCEPTRON = (Path(__file__).parents[2] / "Integration" / "mlp.mlir").read_text()


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


WEIGHTS = (_floats(13, 31), _floats(31), _floats(31, 10), _floats(10))


@pytest.mark.parametrize("level", [0, 3])
def test_perceptron(page: Any, level: int) -> None:
    """For any batch."""
    run = page(PERCEPTRON, level)
    for n in (1, 5, 67, 257):
        run.check(_floats(n, 13), *WEIGHTS)
    run.check(_floats(3, 13), *WEIGHTS, stays=True)


def test_messages_are_those_of_other_targets(page: Any) -> None:
    run = page(PERCEPTRON)
    with pytest.raises(ExecutionError, match=r"RelaxError: argument 1 'w1': dim 0 is 12"):
        run(_floats(1, 13), _floats(12, 31), *WEIGHTS[1:])
    with pytest.raises(ExecutionError, match="'main' has 5 arguments, but got 1"):
        run(_floats(1, 13))
    with pytest.raises(ExecutionError, match="no function 'other'"):
        run(name="other")


def test_constants_are_on_the_device(page: Any) -> None:
    page(MLP).check(_floats(7, 40), _floats(40, 72), _floats(72, 10))


def test_scalars_and_shapes_are_on_the_host(page: Any) -> None:
    """The host reads an element of a tensor in the middle of a call, which the browser suspends."""
    page(HOST).check(_floats(7), 2.5, [3])


def test_loops_that_depend_on_data(page: Any) -> None:
    page(LOOP).check(np.float32([0.5, 1, -1]), 99.0)


@pytest.mark.parametrize("x", [[0, 2, 0, 3, 4], [0, 0], [1]])
def test_sizes_that_depend_on_data(page: Any, x: list[int]) -> None:
    page(COUNT).check(np.float32(x))


def test_arguments_that_are_updated(page: Any) -> None:
    run = page("""
        !x = tensor<?xf32, #graph.shape<["n"]>>
        func.func @main(%x: !x {graph.inout = 0 : i64}, %y: !x) -> !x {
          %0 = "graph.add"(%x, %y) : (!x, !x) -> !x
          return %0 : !x
        }""")
    x, y = _floats(5), _floats(5) * 2
    (found,) = run(x.copy(), y)
    np.testing.assert_array_equal(_array(found, np.dtype(np.float32)), x + y)


def test_memory_that_a_device_does_not_have(page: Any) -> None:
    run = page("""
        func.func @main(%s: !graph.shape_value<["n"]>) -> tensor<?xf32, #graph.shape<["n"]>> {
          %c = arith.constant dense<2.0> : tensor<f32>
          %0 = "graph.broadcast_to"(%c) {shape = #graph.shape<["n"]>} : (tensor<f32>)
            -> tensor<?xf32, #graph.shape<["n"]>>
          return %0 : tensor<?xf32, #graph.shape<["n"]>>
        }""")
    run.check([9])
    with pytest.raises(ExecutionError, match="OutOfMemoryError: out of memory"):
        run([2**29])


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be launched by code for 'native'; accepted is"):
        compile_to_file(PERCEPTRON, "native@webgpu")
    with pytest.raises(UsageError, match="accepted is another CPU in front of '@'"):
        compile_to_file(PERCEPTRON, "wasm32@gpu")
    made = compile_to_file(PERCEPTRON, "webgpu")
    with pytest.raises(ExecutionError, match="load it in a page"):
        relax_mlir.load(made)


def test_refusal_of_a_loader_without_a_device(tmp_path: Path) -> None:
    Page(PERCEPTRON, tmp_path)
    script = """async (url) => {
      const { load } = await import("/relax.js");
      try { await load(fetch(url)); } catch (error) { return error.message; }
    }"""
    url = chromium().serve(tmp_path.name, tmp_path)
    assert "loadOnWebGpu" in chromium().run(script, f"{url}/model.wasm")


ON_BOTH = """
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x, %y: !x {graph.device = "cpu"}) -> (!x, !x) {
  %0 = "graph.square"(%x) : (!x) -> !x
  %1 = "graph.astype"(%0) {dtype = f64} : (!x) -> tensor<?xf64, #graph.shape<["n"]>>
  %2 = "graph.exp"(%1) : (tensor<?xf64, #graph.shape<["n"]>>) -> tensor<?xf64, #graph.shape<["n"]>>
  %3 = "graph.astype"(%2) {dtype = f32} : (tensor<?xf64, #graph.shape<["n"]>>) -> !x
  %4 = "graph.add"(%3, %x) : (!x, !x) -> !x
  %5 = "graph.negative"(%y) : (!x) -> !x
  %6 = "graph.to_device"(%5) {device = "cpu"} : (!x) -> !x
  return %4, %6 : !x, !x
}
"""


@pytest.mark.parametrize("level", [0, 2])
def test_what_the_device_does_not_store_is_on_the_host(page: Any, level: int) -> None:
    """f64 is computed by WebAssembly, between two kernels; an argument and a result stay there."""
    page(ON_BOTH, level).check(_floats(5), _floats(5))
