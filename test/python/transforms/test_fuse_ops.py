"""Grouping must not change what a graph computes, nor compute anything twice."""

import numpy as np
import pytest
from random_calls import PATTERNS, WIDTH, evaluate, random_module

from relax_mlir.analysis.functions import PRIMITIVE
from relax_mlir.bindings import ir
from relax_mlir.dialects import make_context
from relax_mlir.dialects.graph import CallTirInplaceOp, CallTirOp
from relax_mlir.passes import Pipeline
from relax_mlir.rewriting import walk_ops

HARD = ("reduction", "out_fusible", "opaque")


def fuse(module: ir.Module, max_size: int = 256) -> list[ir.OpView]:
    """Groups the calls of a module; returns the functions that hold the groups."""
    options = f"{{max-size={max_size}}}"
    Pipeline.parse(f"relax-fuse-ops{options},relax-verify").run(module, verify=True)
    return [op for op in module.body.operations if PRIMITIVE in op.attributes]


@pytest.mark.parametrize("size", [1, 2, 7, 16, 33])
@pytest.mark.parametrize("seed", range(25))
def test_results_and_work_stay(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    arguments = [rng.standard_normal((5, WIDTH)) for _ in range(2)]
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(random_module(seed, size))
        expected, work = evaluate(module, *arguments)
        groups = fuse(module)
        results, fused_work = evaluate(module, *arguments)
        for group in groups:
            calls = walk_ops(group, CallTirOp, CallTirInplaceOp)
            hard = [c for c in calls if PATTERNS[c.callee_name][0] in HARD]
            assert len(calls) > 1
            assert len(hard) <= 1
            assert all(PATTERNS[c.callee_name][0] != "opaque" for c in hard)
    assert fused_work == work
    for got, want in zip(results, expected, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("max_size", [1, 2, 3])
def test_max_size(max_size: int) -> None:
    largest = 0
    with make_context(), ir.Location.unknown():
        for seed in range(12):
            module = ir.Module.parse(random_module(seed, 33))
            for group in fuse(module, max_size):
                largest = max(largest, len(walk_ops(group, CallTirOp, CallTirInplaceOp)))
    assert largest == (0 if max_size == 1 else max_size)


def test_operands_are_bounded() -> None:
    """A sum of 70 arguments cannot be one call of 32 operands."""
    kind, count = "tensor<4xf32>", 70
    lines, total = [], "%x0"
    for i in range(1, count):
        lines.append(f'  %s{i} = "graph.add"({total}, %x{i}) : ({kind}, {kind}) -> {kind}')
        total = f"%s{i}"
    arguments = ", ".join(f"%x{i}: {kind}" for i in range(count))
    head = f"func.func @main({arguments}) -> {kind} {{"
    text = "\n".join([head, *lines, f"  return {total} : {kind}", "}"])
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        Pipeline.parse("relax-legalize-ops,relax-annotate-pattern").run(module)
        groups = fuse(module)
        sizes = [len(group.arguments) for group in groups]
        Pipeline.parse("relax-fuse-tir,relax-verify").run(module, verify=True)
    assert len(groups) > 1
    assert max(sizes) <= 31
