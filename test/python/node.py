"""Modules for WebAssembly in Node: a process for a module, asked by lines of JSON.

run = Node(path)
y = run["main"](x)
"""

import base64
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from relax_mlir.errors import ExecutionError

NODE = shutil.which("node")
LOADER = Path(__file__).parents[2] / "web" / "relax.js"
_SERVE = """
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
const [, loader, path] = process.argv;
const { load, Tensor, RelaxError } = await import(loader);
const module = await load(readFileSync(path));
const CLASSES = { f64: Float64Array, f32: Float32Array, i64: BigInt64Array, ui64: BigUint64Array,
  i32: Int32Array, ui32: Uint32Array, i16: Int16Array, ui16: Uint16Array, f16: Uint16Array,
  bf16: Uint16Array, i8: Int8Array };
const tensor = ({ dtype, dims, bytes }) => {
  const { buffer } = Uint8Array.from(Buffer.from(bytes, "base64"));
  return new Tensor(new (CLASSES[dtype] ?? Uint8Array)(buffer), dims, dtype);
};
const plain = ({ dtype, dims, data }) => {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
  return { dtype, dims, bytes };
};
const answer = ({ name, values }) => {
  try {
    const found = module.call(name, ...values.map(tensor));
    return { found: (Array.isArray(found) ? found : [found]).map(plain) };
  } catch (error) {
    if (!(error instanceof RelaxError)) throw error;
    return { refused: error.message };
  }
};
console.log(JSON.stringify(module.functions));
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(answer(JSON.parse(line))));
}
"""


class Node:
    """A module in a process; `dtypes` are NumPy's types of elements by their names."""

    def __init__(self, path: Path, dtypes: dict[str, np.dtype]) -> None:
        command = [str(NODE), "--input-type=module", "-e", _SERVE, str(LOADER), str(path)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._dtypes = dtypes
        self._functions = self._read()

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """A function from arrays to an array, or a tuple of them; ExecutionError if refused."""
        kinds = [argument["dtype"] for argument in self._functions[name]["arguments"]]

        def call(*arrays: np.ndarray) -> Any:
            values = [self._passed(kind, x) for kind, x in zip(kinds, arrays, strict=True)]
            answer = self._ask({"name": name, "values": values})
            if "refused" in answer:
                raise ExecutionError(answer["refused"])
            found = tuple(map(self._array, answer["found"]))
            return found[0] if len(found) == 1 else found

        return call

    def _passed(self, dtype: str, x: np.ndarray) -> dict[str, Any]:
        bytes_ = base64.b64encode(x.tobytes()).decode()
        return {"dtype": dtype, "dims": x.shape, "bytes": bytes_}

    def _array(self, found: dict[str, Any]) -> np.ndarray:
        made = np.frombuffer(base64.b64decode(found["bytes"]), self._dtypes[found["dtype"]])
        return made.reshape(found["dims"])

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())
