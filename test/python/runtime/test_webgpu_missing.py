"""What modules say in Chromium where a device, or isolation, is missing or is lost."""

from pathlib import Path
from typing import Any

import pytest
from chromium import chromium, missing
from test_device import MLP

from relax_mlir.compiler import compile_to_file

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

SQUARE = """
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x) -> !x {
  %0 = "graph.square"(%x) : (!x) -> !x
  return %0 : !x
}
"""
OPEN = """async (source) => {
  const { WebGpu } = await import("/webgpu.js");
  try { await WebGpu.open(eval(source)); }
  catch (error) { return `${error.name}: ${error.message}`; }
  return "opened";
}"""
LOSE = """async (url) => {
  const { WebGpu, loadOnWebGpu } = await import("/webgpu.js");
  const { Tensor } = await import("/relax.js");
  const adapter = await navigator.gpu.requestAdapter();
  let lose;
  const requestDevice = async (options) => {
    const device = await adapter.requestDevice(options);
    Object.defineProperty(device, "lost", { value: new Promise((resolve) => { lose = resolve; }) });
    return device;
  };
  const requestAdapter = async () => ({ limits: adapter.limits, requestDevice });
  const gpu = await WebGpu.open({ requestAdapter });
  const module = await loadOnWebGpu(fetch(url), { gpu });
  const x = new Tensor(new Float32Array([3]), [1]);
  const told = [(await module.call("main", x)).data[0]];
  lose({ reason: "unknown", message: "it was unplugged" });
  for (let call = 0; call < 2; call++) {
    try { told.push((await module.call("main", x)).data[0]); }
    catch (error) { told.push(`${error.name}: ${error.message}`); }
  }
  return told;
}"""
THREADS = """async (url) => {
  const { load } = await import("/relax.js");
  try { await load(fetch(url), { threads: 2 }); }
  catch (error) { return `${error.name}: ${error.message}`; }
  return "loaded";
}"""


@pytest.mark.parametrize(
    ("gpu", "message"),
    [
        ("null", "there is no WebGPU here"),
        ("({ requestAdapter: async () => null })", "WebGPU finds no device: the driver is missing"),
        (
            "({ requestAdapter: async () => ({ limits: {}, "
            "requestDevice: async () => { throw new Error('it is busy'); } }) })",
            "WebGPU does not open its device: it is busy",
        ),
    ],
)
def test_no_device(gpu: str, message: str) -> None:
    told = chromium().run(OPEN, gpu)
    assert told.startswith(f"RelaxError: {message}")
    assert told.endswith("modules for wasm32 need none")


def _served(text: str, target: str, folder: Path) -> str:
    """The address of a module."""
    (folder / "model.wasm").write_bytes(compile_to_file(text, target).read_bytes())
    return f"{chromium().serve(folder.name, folder)}/model.wasm"


def test_a_lost_device(tmp_path: Path) -> None:
    """Each call from then on says so."""
    why = "the device is lost: it was unplugged; load the module again"
    lost = f"RelaxError: webgpu: square_kernel: {why}"
    told: Any = chromium().run(LOSE, _served(SQUARE, "webgpu", tmp_path))
    assert told == [9, lost, lost]


def test_a_page_that_is_not_isolated(tmp_path: Path) -> None:
    told = chromium().run(THREADS, _served(MLP, "wasm32+atomics", tmp_path))
    assert told.startswith(
        "RelaxError: threads need a page that is isolated: the server has to send"
    )
