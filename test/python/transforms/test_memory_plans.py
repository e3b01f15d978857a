"""Plans of random functions: the numbers stay, good plans are accepted and broken ones refused."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
from memory_machine import BrokenPlan, Machine
from random_memory import ARGUMENTS, KERNELS, SIZES, RandomProgram

from relax_mlir.bindings import ir
from relax_mlir.diagnostics import collecting
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import (
    AllocStorageOp,
    AllocTensorOp,
    CallDpsOp,
    CopyOp,
    TensorType,
    shape_attr,
)
from relax_mlir.errors import CompileError
from relax_mlir.passes import Pipeline
from relax_mlir.rewriting import walk_ops

OPTIONS = ("", "{reuse=false}", "{static=true}")
CALLS = [(*sizes, *rest) for sizes in SIZES for rest in product((False, True), (0, 2))]


def run(module: ir.Module, passes: str) -> None:
    Pipeline.parse(f"builtin.module({passes})").run(module)


@contextmanager
def planned(program: RandomProgram, options: str = "") -> Iterator[tuple[ir.Module, ir.Module]]:
    """The module of a program, and the same with its memory planned and checked."""
    context = make_context()
    with context, ir.Location.unknown(), collecting(context, ("remark",)):
        module, lowered = (ir.Module.parse(program.text) for _ in range(2))
        run(lowered, f"relax-lower-calls,relax-plan-memory{options},relax-check-memory-plan")
        yield module, lowered


def check_numbers(seed: int) -> None:
    """Results and updated arguments are those of the functional meaning, the rest is as it was."""
    program = RandomProgram(seed, 3 + seed % 14)
    with planned(program, OPTIONS[seed % 3]) as (module, lowered):
        for call in CALLS[seed % 2 :: 2]:
            given, arguments = program.arguments(*call), program.arguments(*call)
            want = Machine(module, KERNELS).run("main", given)
            got = Machine(lowered, KERNELS).run("main", arguments)
            for index in range(len(ARGUMENTS)):
                want.append(want[program.inout[index]] if index in program.inout else given[index])
                got.append(arguments[index])
            for value, expected in zip(got, want, strict=True):
                np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("start", range(0, 60, 10))
def test_numbers(start: int) -> None:
    for seed in range(start, start + 10):
        check_numbers(seed)


@pytest.mark.sweep
def test_numbers_of_many() -> None:
    for seed in range(1000, 4000):
        check_numbers(seed)


@pytest.mark.sweep
def test_accepts_many() -> None:
    for seed in range(10_000):
        with planned(RandomProgram(seed, 3 + seed % 20), OPTIONS[seed % 3]):
            pass


def move(module: ir.Module, rng: random.Random) -> None:
    """Puts a tensor where another one lies."""
    tensors = [op for op in walk_ops(module, AllocTensorOp) if op.operands]
    a, b = rng.choice(tensors), rng.choice(tensors)
    a.attributes["offset"] = b.attributes["offset"]


def swap(module: ir.Module, rng: random.Random) -> None:
    """Swaps two tensors."""
    tensors = [op for op in walk_ops(module, AllocTensorOp) if op.operands]
    a, b = rng.choice(tensors), rng.choice(tensors)
    offsets = a.attributes["offset"], b.attributes["offset"]
    b.attributes["offset"], a.attributes["offset"] = offsets


def shift(module: ir.Module, rng: random.Random) -> None:
    """Moves a tensor by a few bytes."""
    tensor = rng.choice([op for op in walk_ops(module, AllocTensorOp) if op.operands])
    distance = rng.choice((-64, -4, 4, 64))
    tensor.attributes["offset"] = shape_attr([tensor.byte_offset + distance])


def shrink(module: ir.Module, rng: random.Random) -> None:
    """Takes too small a storage."""
    storage = rng.choice(walk_ops(module, AllocStorageOp))
    storage.attributes["size"] = shape_attr([rng.choice((storage.bytes - 64, storage.bytes // 2))])


def read_late(module: ir.Module, rng: random.Random) -> None:
    """Reads a tensor once more, at the end of its block."""
    tensor = rng.choice([op for op in walk_ops(module, AllocTensorOp) if op.operands])
    block = tensor.operation.block
    with ir.InsertionPoint(block.operations[len(block.operations) - 1]):
        new = AllocTensorOp.build(TensorType.of(tensor.result))
        CopyOp.build(tensor.result, new.result)


def forget(module: ir.Module, rng: random.Random) -> None:
    """Leaves out a write."""
    rng.choice(walk_ops(module, CallDpsOp, CopyOp)).operation.erase()


def is_broken(module: ir.Module, program: RandomProgram) -> bool:
    """Whether some call reads what is not there."""
    for call in CALLS:
        try:
            Machine(module, KERNELS).run("main", program.arguments(*call))
        except BrokenPlan:
            return True
    return False


def break_plans(first: int, number: int) -> None:
    """Breaks so many plans, each of which has to be refused."""
    broken = 0
    for seed in range(first, first + 20 * number):
        program, rng = RandomProgram(seed, 3 + seed % 14), random.Random(seed)
        with planned(program) as (_, lowered):
            if not walk_ops(lowered, AllocStorageOp):
                continue
            rng.choice((move, move, swap, shift, shrink, read_late, forget))(lowered, rng)
            if is_broken(lowered, program):
                with pytest.raises(CompileError):
                    run(lowered, "relax-check-memory-plan")
                broken += 1
        if broken == number:
            return
    raise AssertionError(f"only {broken} plans are broken")


def test_refuses_broken_plans() -> None:
    break_plans(0, 40)


@pytest.mark.sweep
def test_refuses_many_broken_plans() -> None:
    break_plans(10_000, 1000)
