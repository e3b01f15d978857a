"""The emulated machine notices what a real one might not."""

from functools import cache

import numpy as np
import pytest
from emulated import Emulated
from emulator import Fault, Machine
from quantized_programs import Matrix, Product

from relax_mlir.bindings import ir
from relax_mlir.codegen import building
from relax_mlir.compiler import compile_to_file
from relax_mlir.target import Target

KERNEL = """
func.func @move(%from: memref<?xi32>, %to: memref<?xi32>, %i: index, %j: index)
    attributes {tir.scheduled} {
  %x = memref.load %from[%i] : memref<?xi32>
  memref.store %x, %to[%j] : memref<?xi32>
  return
}
"""


@cache
def mover() -> Machine:
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(KERNEL)
        with building(Target.parse("aarch64")) as build:
            return Machine(b"".join(build.finish(module, ["move"])), "base")


def move(i: int, j: int) -> list[int]:
    """Copies number i of five to place j of three others."""
    machine = mover()
    blocks = []
    for numbers in ([1, 2, 3, 4, 5], [0, 0, 0]):
        blocks.append((machine.allocate(4 * len(numbers), 4), len(numbers)))
        machine.write(blocks[-1][0], np.array(numbers, np.int32).tobytes())
    try:
        words = [word for address, n in blocks for word in (address, address, 0, n, 1)]
        machine.call("move", *words, i, j)
        return np.frombuffer(machine.read(blocks[1][0], 12), np.int32).tolist()
    finally:
        for address, _ in blocks:
            machine.release(address)


def test_arguments_in_registers_and_on_the_stack() -> None:
    assert move(4, 2) == [0, 0, 5]
    assert move(0, 1) == [0, 1, 0]


@pytest.mark.parametrize(
    ("i", "j", "message"),
    [
        (5, 0, "Invalid memory read .* at 0x"),
        (0, 3, "Invalid memory write .* at 0x"),
        (0, -1, "memory around 12 allocated bytes was written to"),
    ],
)
def test_accesses_outside_of_arrays(i: int, j: int, message: str) -> None:
    with pytest.raises(Fault, match=message):
        move(i, j)


def test_memory_that_was_freed() -> None:
    machine = mover()
    address = machine.allocate(4, 4)
    machine.release(address)
    with pytest.raises(Fault, match="Invalid memory read"):
        machine.call("move", address, address, 0, 1, 1, address, address, 0, 1, 1, 0, 0)
    with pytest.raises(Fault, match="which is not allocated"):
        machine.release(address)


def test_instructions_that_the_level_lacks() -> None:
    """So that the tests at the lowest level show that its code needs nothing above."""
    text, x = Product("q8_0", 16, 32, "int8").text(), np.ones((2, 32), np.float32)
    operands = Matrix.random("q8_0", 16, 32).operands
    path = compile_to_file(text, "aarch64+dotprod")
    data = path.read_bytes()
    assert Emulated(Machine(data, "max"))["main"](x, *operands).shape == (2, 16)
    with pytest.raises(Fault, match="Unhandled CPU exception"):
        Emulated(Machine(data, "base"))["main"](x, *operands)
