"""Compiled modules for other CPUs as executables of an emulated machine or process.

    exe = Emulated(Machine(data, "max"))
    y = exe["main"](x, weight)                     # as relax_mlir.load does on an Arm machine

Tensors are laid out as `runtime/csrc/relax_runtime.h` says.
"""

import json
import struct
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from emulator import Fault, Machine
from process import Process

from relax_mlir.errors import ExecutionError
from relax_mlir.runtime.tensors import FLOAT8

CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
KINDS = {code: kind for kind, code in CODES.items()}
PACKED = {"bfloat16": 4}
PACKED |= {f"float8_{element[2:].lower()}": code for element, code in FLOAT8.items()}
NAMES = {code: name for name, code in PACKED.items()}
# By the bytes of an address.
CALL = {8: struct.Struct("<QQQQiii4x6q64x"), 4: struct.Struct("<IIIIiii4x6q48x")}
TENSOR = {8: struct.Struct("<QiiiBBHQQQ"), 4: struct.Struct("<IiiiBBHII4xQ")}


class Emulated:
    """A compiled module, called as `relax_mlir.executable.Executable` is, on one thread."""

    def __init__(self, machine: Machine | Process) -> None:
        self.machine = machine
        self.metadata = json.loads(self.machine.text(self.machine.call("rx_metadata")))
        self.context = self.machine.call("rx_create")

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions that can be called."""
        return tuple(self.metadata["functions"])

    def __getitem__(self, name: str) -> "EmulatedFunction":
        return EmulatedFunction(self, name, self.metadata["functions"][name])

    def close(self) -> None:
        """Destroys the context, which gives back all memory; Fault if some is left."""
        self.machine.call("rx_destroy", self.context)
        left = self.machine.allocated
        if left:
            raise Fault(f"{len(left)} blocks of memory are left: {left}")


class EmulatedFunction:
    """A function of the module."""

    def __init__(self, exe: Emulated, name: str, signature: dict[str, Any]) -> None:
        self._exe, self._name, self._signature = exe, name, signature

    def __call__(self, *values: Any, results: Sequence[np.ndarray] | None = None) -> Any:
        """The results for the arguments; with buffers, they are computed into those.

        Raises ExecutionError as the runtime refuses arguments, Fault if the code goes wrong: if it
        writes to an argument that is not updated in place, for example.
        """
        machine, expected = self._exe.machine, self._signature["results"]
        arrays = [np.asarray(value) for value in values]
        with _Rows(machine) as memory:
            ins = [
                memory.tensor(array, argument["dtype"])
                for array, argument in zip(arrays, self._signature["arguments"], strict=True)
            ]
            outs = [memory.room(result) for result in expected]
            if results is not None:
                outs = [memory.tensor(array) for array in results]
            args, rows = (memory.put(b"".join(row)) for row in (ins, outs))
            context, entry = self._exe.context, machine.symbols[f"rx_fn_{self._name}"]
            call = CALL[machine.word].pack(
                context, entry, args, rows, len(ins), len(outs), 0, *[0] * 6
            )
            failed = machine.call("rx_call", memory.put(call)) & 0xFFFFFFFF
            row_format = TENSOR[machine.word]
            size = row_format.size
            found = [machine.read(rows + size * i, size) for i in range(len(outs))]
            fresh = [
                row_format.unpack(row)[0]
                for row, result in zip(found, expected, strict=True)
                if results is None and result["alias"] is None
            ]
            if not failed:
                self._take_back(arrays, [memory.array(row) for row in ins])
                found = [memory.array(row) for row in found]
            for address in fresh:  # also after an error, which may come late
                machine.call("rx_free", address)
            if failed:
                raise ExecutionError(machine.text(machine.call("rx_last_error", context)))
        return found[0] if len(found) == 1 else tuple(found)

    def _take_back(self, arrays: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> None:
        arguments = self._signature["arguments"]
        for array, new, argument in zip(arrays, after, arguments, strict=True):
            if argument["inout"]:
                array[...] = new.view(array.dtype)
            elif array.tobytes() != new.tobytes():
                raise Fault(f"argument '{argument['name']}' was written to")


class _Rows:
    """Tensors in the memory of the machine, for one call."""

    def __init__(self, machine: Machine | Process) -> None:
        self._machine, self._tensor = machine, TENSOR[machine.word]
        self._owned: list[int] = []

    def __enter__(self) -> "_Rows":
        return self

    def __exit__(self, *_: object) -> None:
        for address in self._owned:
            self._machine.release(address)

    def put(self, data: bytes, alignment: int = 8) -> int:
        """The address of a copy."""
        self._owned.append(self._machine.allocate(len(data), alignment))
        self._machine.write(self._owned[-1], data)
        return self._owned[-1]

    def tensor(self, array: np.ndarray, element: str = "") -> bytes:
        """The description of a copy of an array, which is aligned to its elements only."""
        data = self.put(array.tobytes(), array.itemsize)
        dims = self.put(struct.pack(f"<{array.ndim}q", *array.shape))
        bits = 8 * array.itemsize
        code = PACKED.get(array.dtype.name) or CODES[array.dtype.kind]
        if element == "bf16" and array.dtype == np.uint16:
            code = PACKED["bfloat16"]
        return self._tensor.pack(data, 1, 0, array.ndim, code, bits, 1, dims, 0, 0)

    def room(self, result: dict[str, Any]) -> bytes:
        """The description of a result that the runtime is to allocate."""
        rank = 32 if result["dims"] is None else len(result["dims"])
        return self._tensor.pack(0, 0, 0, 0, 0, 0, 0, self.put(bytes(8 * rank)), 0, 0)

    def array(self, row: bytes) -> np.ndarray:
        """The array that a description is of."""
        data, _, _, rank, code, bits, _, dims, _, _ = self._tensor.unpack(row)
        shape = struct.unpack(f"<{rank}q", self._machine.read(dims, 8 * rank))
        dtype = getattr(ml_dtypes, NAMES[code]) if code in NAMES else f"{KINDS[code]}{bits // 8}"
        dtype = np.dtype(dtype)
        raw = self._machine.read(data, int(np.prod(shape)) * dtype.itemsize)
        return np.frombuffer(raw, dtype).reshape(shape)
