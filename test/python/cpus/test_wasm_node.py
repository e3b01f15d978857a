"""`web/relax.js` in Node: what it returns, what modules refuse, memory."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from cpu_modules import operator, tensor

from relax_mlir.compiler import compile_to_file

NODE = shutil.which("node")
LOADER = Path(__file__).parents[3] / "web" / "relax.js"
MODULES = Path(__file__).parents[2] / "Integration"
pytestmark = pytest.mark.skipif(NODE is None, reason="needs node")

HEAD = """
import { readFileSync } from "node:fs";
const { load, Tensor, RelaxError, OutOfMemoryError } = await import(process.argv[1]);
const module = await load(readFileSync(process.argv[2]), { print: (text) => printed.push(text) });
const printed = [];
const f32 = (values, ...dims) => new Tensor(Float32Array.from(values), dims);
function refused(action) {
  try { action(); } catch (error) {
    if (!(error instanceof RelaxError)) throw error;
    return `${error.name}: ${error.message}`;
  }
  return "nothing";
}
const plain = ({ dims, dtype, data }) => ({ dims, dtype, data: Array.from(data, Number) });
"""


def run(text_or_path: "str | Path", script: str) -> object:
    """What a script prints as JSON, given a module."""
    path = compile_to_file(text_or_path, "wasm32")
    arguments = [NODE, "--input-type=module", "-e", HEAD + script, str(LOADER), str(path)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_results_and_refusals() -> None:
    matrix = tensor("f32", "n", 3)
    text = operator("main", "add", [matrix, matrix], matrix)
    script = """
      const x = f32([1, 2, 3, 4, 5, 6], 2, 3);
      const sum = module.call("main", x, x);
      const placed = module.place(x);
      const again = module.call("main", placed, x);
      placed.free();
      console.log(JSON.stringify({
        sum: plain(sum), again: plain(again), names: Object.keys(module.functions),
        refused: [
          () => module.call("main", x, f32([1, 2, 3], 1, 3)),
          () => module.call("main", x, new Tensor(new Float64Array(6), [2, 3])),
          () => module.call("main", x),
          () => module.call("other"),
          () => module.call("main", x, "text"),
          () => module.call("main", placed, x),
          () => new Tensor(new Float32Array(5), [2, 3]),
          () => new Tensor(new Float32Array(6), [2, 3], "f64"),
        ].map(refused),
        after: plain(module.call("main", x, x)).data,
      }));
    """
    found = run(text, script)
    expected = {"dims": [2, 3], "dtype": "f32", "data": [2, 4, 6, 8, 10, 12]}
    assert found["sum"] == expected
    assert found["again"] == expected
    assert found["after"] == expected["data"]
    assert found["names"] == ["main"]
    assert found["refused"] == [
        "RelaxError: argument 1 'arg1': dim 0 is 1, but 'n' is 2 (from argument 0 'arg0', dim 0)",
        "RelaxError: argument 1 'arg1': dtype is float64, but float32 is expected",
        "RelaxError: 'main' has 2 arguments, but got 1",
        "RelaxError: no function 'other', the module has 'main'",
        "RelaxError: argument 1 'arg1': a tensor is expected",
        "RelaxError: argument 0 'arg0': the tensor is freed, or of another module",
        "RelaxError: dims [2, 3] are of 6 elements, but there are 5",
        "RelaxError: elements of f64 are a Float64Array, but data are a Float32Array",
    ]


def test_caches_updated_in_place() -> None:
    """Once copied back to the caller's tensor, once where it is in the module."""
    new = np.random.default_rng(0).standard_normal((3, 2, 8)).astype(np.float32)
    script = (
        f"const values = {json.dumps(new.ravel().tolist())};"
        """
      const key = f32(values, 3, 2, 8), query = f32(Array(3 * 6 * 8).fill(1), 3, 6, 8);
      const keys = f32(Array(176).fill(0), 2, 11, 8), cache = f32(Array(176).fill(0), 2, 11, 8);
      const placed = module.place(cache);
      const results = module.call("main", query, key, key, [4], keys, placed);
      console.log(JSON.stringify({
        same: results[1] === keys && results[2] === placed,
        keys: plain(keys).data, cache: plain(placed.read()).data, left: plain(cache).data,
      }));
    """
    )
    found = run(MODULES / "decode_step.mlir", script)
    keys = np.zeros((2, 11, 8), np.float32)
    keys[:, 4:7] = new.swapaxes(0, 1)
    assert found["same"]
    np.testing.assert_array_equal(np.float32(found["keys"]), keys.ravel())
    np.testing.assert_array_equal(np.float32(found["cache"]), keys.ravel())
    assert not any(found["left"])


def test_memory_that_is_not_there() -> None:
    column, row = tensor("f32", "n", 1), tensor("f32", 1, "m")
    text = operator("main", "add", [column, row], tensor("f32", "n", "m"))
    script = """
      const zeros = (n, ...dims) => new Tensor(new Float32Array(n), dims);
      const sizes = [1 << 15, 1 << 16, 1 << 20];
      const add = (x, y) => module.call("main", x, y);
      const messages = sizes.map((n) => refused(() => add(zeros(n, n, 1), zeros(n, 1, n))));
      const after = plain(add(f32([1], 1, 1), f32([2], 1, 1))).data;
      console.log(JSON.stringify({ messages, after }));
    """
    found = run(text, script)
    assert all(each.startswith("OutOfMemoryError: out of memory") for each in found["messages"])
    assert found["after"] == [3]


def test_numbers_of_each_type() -> None:
    """Integers of 64 bits, truth values, and floats that JavaScript has no arrays of."""
    kinds = ("f64", "f16", "bf16", "i64", "i32", "i16", "i8", "ui64", "ui32", "ui16", "ui8", "i1")
    functions = []
    for kind in kinds:
        x = tensor(kind, "n")
        functions.append(operator(f"f_{kind}", "flip", [x], x, "axes = array<i64: 0>"))
    script = (
        f"const kinds = {json.dumps(kinds)};"
        + """
      const arrays = { f64: Float64Array, f16: Uint16Array, bf16: Uint16Array, i64: BigInt64Array,
        i32: Int32Array, i16: Int16Array, i8: Int8Array, ui64: BigUint64Array, ui32: Uint32Array,
        ui16: Uint16Array, ui8: Uint8Array, i1: Uint8Array };
      const found = kinds.map((kind) => {
        const values = kind === "i1" ? [0, 1, 1] : [1, 2, 3];
        const isBig = kind.endsWith("i64");
        const data = arrays[kind].from(isBig ? values.map(BigInt) : values);
        return plain(module.call(`f_${kind}`, new Tensor(data, [3])));
      });
      console.log(JSON.stringify(found));
    """
    )
    for kind, found in zip(kinds, run("".join(functions), script), strict=True):
        data = [1, 1, 0] if kind == "i1" else [3, 2, 1]
        assert found == {"dims": [3], "dtype": kind, "data": data}
