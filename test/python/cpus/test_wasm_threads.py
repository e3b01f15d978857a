"""Modules for WebAssembly with several threads, in Node: results, and threads that fail or end."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cpu_modules import operator, tensor

import relax_mlir
from relax_mlir.compiler import compile_to_file

NODE = shutil.which("node")
LOADER = Path(__file__).parents[3] / "web" / "relax.js"
TARGET = "wasm32+atomics"
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")

HEAD = """
import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
const { load, Tensor, RelaxError, OutOfMemoryError } = await import(process.argv[1]);
const bytes = readFileSync(process.argv[2]);
const workers = [];
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (...values) {
  workers.push(this);
  post.apply(this, values);
};
const value = (_, i) => ((i * 7) % 13) - 6;
const numbers = (length, dims) => new Tensor(Float32Array.from({ length }, value), dims);
const [n, k, m] = [211, 257, 129];
const x = numbers(n * k, [n, k]), y = numbers(k * m, [k, m]);
const expected = new Float32Array(n * m);
for (let i = 0; i < n; i++) for (let p = 0; p < k; p++) for (let j = 0; j < m; j++)
  expected[i * m + j] += x.data[i * k + p] * y.data[p * m + j];
const isRight = (module) =>
  module.call("main", x, y).data.every((value, i) => value === expected[i]);
const refused = async (action) => {
  try { return await action(); } catch (error) {
    if (error instanceof RelaxError) return `${error.name}: ${error.message}`;
    throw error;
  }
};
"""


READS = """
!x = tensor<?xi32, #graph.shape<["n"]>>
func.func @reads(%x: !x, %at: !x) -> !x {
  %0 = "graph.call_tir"(%x, %at) {callee = @read, operandSegmentSizes = array<i32: 1, 1ZEROS>,
    resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, sym_args = #graph.shape<[]>}
    : (!x, !x) -> !x
  return %0 : !x
}
func.func private @read(%x: tensor<?xi32>, %at: tensor<?xi32>, %out: tensor<?xi32>)
    -> tensor<?xi32> attributes {tir.prim_func, tir.num_outs = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%at : tensor<?xi32>) outs(%out : tensor<?xi32>) {
  ^bb0(%i: i32, %old: i32):
    %1 = arith.index_cast %i : i32 to index
    %2 = tensor.extract %x[%1] : tensor<?xi32>
    linalg.yield %2 : i32
  } -> tensor<?xi32>
  return %0 : tensor<?xi32>
}
""".replace("ZEROS", ", 0" * 30)


@cache
def product(target: str) -> Path:
    """A product of matrices, and reads at indices that may trap; for a target."""
    a, b = tensor("f32", "n", "k"), tensor("f32", "k", "m")
    text = operator("main", "matmul", [a, b], tensor("f32", "n", "m"))
    return compile_to_file(text + READS, target)


def run(script: str, target: str = TARGET) -> object:
    """What a script prints as JSON, given a product of matrices; a hang is a failure."""
    command = [NODE, "--input-type=module", "-e", HEAD + script, str(LOADER), str(product(target))]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_node
def test_threads() -> None:
    """Also many more than there are CPUs; programs end although threads wait."""
    script = """
      const found = [];
      for (const threads of [1, 2, 3, 16]) {
        const module = await load(bytes, { threads });
        const right = [1, 2, 3].every(() => isRight(module));
        const regions = module.counters().parallel_regions;
        module.close();
        found.push([right, regions > 0, isRight(module)]);
      }
      await load(bytes, { threads: 2 });
      console.log(JSON.stringify(found));
    """
    assert run(script) == [[True, threads > 1, True] for threads in (1, 2, 3, 16)]


@needs_node
def test_threads_that_end() -> None:
    """Threads that end while they wait are not missed; if one ends in a call, that fails."""
    script = """
      const module = await load(bytes, { threads: 3 });
      const before = isRight(module);
      await workers[0].terminate();
      const without = isRight(module);
      const found = [];
      const other = await load(bytes, { threads: 4 });
      other._exports.rx_set_patience(2000);
      for (const worker of workers.slice(2)) worker.terminate(); // not awaited: maybe in a call
      for (let call = 0; call < 100; call++) found.push(await refused(() => isRight(other)));
      const last = found.at(-1);
      console.log(JSON.stringify({ before, without, found: [...new Set(found)], last }));
    """
    actual = run(script)
    assert actual["before"]
    assert actual["without"]
    assert actual["last"] is True
    assert set(actual["found"]) <= {
        True,
        "RelaxError: a thread ended in a call, or did not answer for long: calls run on one from "
        "now on",
    }


@needs_node
def test_threads_that_trap() -> None:
    """Whichever thread it is says why; later calls use all threads."""
    script = """
      const module = await load(bytes, { threads: 3 });
      const length = 1 << 20, values = new Int32Array(length), found = new Set();
      const zeros = module.place(new Tensor(values));
      values[length - 1] = (1 << 30) - (1 << 22); // of memory that is not there
      const outside = module.place(new Tensor(values));
      const until = Date.now() + 60000;
      while (found.size < 2 && Date.now() < until)
        found.add(await refused(() => module.call("reads", zeros, outside)));
      const regions = module.counters().parallel_regions;
      const after = isRight(module);
      const added = module.counters().parallel_regions - regions;
      console.log(JSON.stringify({ found: [...found].sort(), after, isParallel: added > 0 }));
      module.close();
    """
    actual = run(script)
    assert actual["found"] == [
        "RelaxError: a thread of the module stopped: memory access out of bounds",
        "RelaxError: the module stopped: memory access out of bounds",
    ]
    assert actual["after"]
    assert actual["isParallel"]


@needs_node
@pytest.mark.parametrize(("target", "threads"), [("wasm32", 1), (TARGET, 3)])
def test_memory_that_grows(target: str, threads: int) -> None:
    """Tensors placed before stay what they are; threads that slept meanwhile see what is new."""
    script = """
      const module = await load(bytes, { threads: THREADS });
      const placed = module.place(x), pages = [], found = [];
      for (let size = 1 << 16; size <= 1 << 26; size *= 8) {
        const block = module.reserve([size], "i8");
        const room = module.place(new Tensor(x.data.slice(), [n, k])); // at the end of memory
        const made = module.call("main", room, y);
        found.push(isRight(module), made.data.every((value, i) => value === expected[i]));
        found.push(placed.read().data.every((value, i) => value === x.data[i]));
        found.push(block.read().data.every((value) => value === 0));
        pages.push(module._exports.memory.buffer.byteLength);
      }
      module.close();
      console.log(JSON.stringify({ found, grows: new Set(pages).size > 2 }));
    """
    actual = run(script.replace("THREADS", str(threads)), target)
    assert actual == {"found": [True] * 16, "grows": True}


@needs_node
def test_scratch_memory_that_is_not_there() -> None:
    """Whatever memory is left, threads give right results or say what is missing."""
    script = """
      const module = await load(bytes, { threads: 4, maxBytes: 48 << 20 });
      const found = new Set();
      for (let left = 1 << 17; left < 14 << 20; left += 3 << 17) {
        const fill = [];
        const block = module.reserve([left], "i8");
        for (let size = 1 << 22; size >= 1 << 10; size /= 2)
          for (;;) { try { fill.push(module.reserve([size], "i8")); } catch { break; } }
        block.free();
        found.add(await refused(() => isRight(module)));
        for (const each of fill) each.free();
      }
      console.log(JSON.stringify({ found: [...found], after: isRight(module) }));
    """
    actual = run(script)
    assert actual["after"]
    assert True in actual["found"]
    messages = [each for each in actual["found"] if each is not True]
    assert all(each.startswith("OutOfMemoryError: out of memory") for each in messages)
    assert any("scratch memory" in each for each in messages)


@needs_node
def test_what_is_refused() -> None:
    script = """
      const found = [];
      for (const threads of [0, 1.5, 65, 2])
        found.push(await refused(() => load(bytes, { threads })));
      globalThis.crossOriginIsolated = false;
      found.push(await refused(() => load(bytes, { threads: 2 })));
      console.log(JSON.stringify([...found.slice(0, 3), typeof found[3], found[4]]));
    """
    bounds = [f"RelaxError: threads is {each}; expects 1 to 64" for each in (0, 1.5, 65)]
    *actual, last = run(script)
    assert actual == [*bounds, "object"]
    assert "Cross-Origin-Opener-Policy: same-origin" in last
    script = "console.log(JSON.stringify(await refused(() => load(bytes, { threads: 2 }))));"
    expected = "RelaxError: the module is compiled for one thread; --target=wasm32+atomics makes "
    assert run(script, "wasm32") == expected + "one that has several"


def test_one_thread_in_python() -> None:
    """The package `wasmtime` runs such modules too, constants among them."""
    rng = np.random.default_rng()
    x, y = rng.standard_normal((2, 67, 67)).astype(np.float32)
    executable = relax_mlir.load(product(TARGET))
    expected = x.astype(np.float64) @ y
    np.testing.assert_allclose(executable["main"](x, y), expected, atol=1e-4)
    assert executable.threads == 1
