"""Evaluates expressions of constants at compile time.

    %c = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %0 = "graph.exp"(%c) : (tensor<2xf32>) -> tensor<2xf32>
      ->
    %0 = arith.constant dense<[2.71828175, 7.3890562]> : tensor<2xf32>

The operators are compiled by the passes of `-O2` for the target, and run on this machine: results
are bitwise those of separately compiled code. If this machine cannot run code for the target, the
operators stay, with a remark.

An operator is not evaluated if its results take more than `max-bytes` and more than the constants
that they depend on. All results together take at most the function's constants and `max-bytes`.
Operators that only move elements (a reshape, a permutation, a broadcast) or create them (a range)
are evaluated as parts of others, but their own results are not stored, since fusion makes them
free. Decoding stays with the product that reads it. Tensor programs are not run: they may be
untrusted.

Needs: known dims (`relax-infer-shapes`). Leaves: constants, which may be large.
Source: TVM Relax `FoldConstant`.
"""

import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.analysis.rename import own_symbols
from relax_mlir.bindings import arith, func, ir
from relax_mlir.cache import cached
from relax_mlir.codegen import building
from relax_mlir.data import attribute_of, bytes_of, elements_of, is_data
from relax_mlir.diagnostics import remark
from relax_mlir.dialects import operator_modules
from relax_mlir.dialects.graph import (
    ArangeOp,
    BitcastOp,
    BroadcastToOp,
    DequantizeBlocksOp,
    DequantizeOp,
    DequantizeRowsOp,
    ExpandDimsOp,
    FullOp,
    GraphOp,
    PermuteDimsOp,
    ReshapeOp,
    SqueezeOp,
    constant,
)
from relax_mlir.errors import OutOfMemoryError
from relax_mlir.executable import load
from relax_mlir.extensions import fingerprint
from relax_mlir.fingerprint import compiler_fingerprint
from relax_mlir.host.dtypes import byte_width
from relax_mlir.host.exports import exported_symbols
from relax_mlir.legalize import legalization_of
from relax_mlir.passes import Pass, Pipeline
from relax_mlir.rewriting import erase_unused_makers, is_unused, safe_erase, walk_ops
from relax_mlir.target import Target, lacking, native

FREE = (
    *(ArangeOp, BitcastOp, BroadcastToOp, ExpandDimsOp, FullOp),
    *(PermuteDimsOp, ReshapeOp, SqueezeOp),
)
"""Operators that fusion moves into their users at no cost."""
DECODERS = (DequantizeOp, DequantizeBlocksOp, DequantizeRowsOp)
EVALUATED = "evaluated"
PASSES = (
    "builtin.module(relax-legalize-ops,relax-annotate-pattern,relax-fuse-ops,relax-fuse-tir,"
    "symbol-dce,relax-build-kernels{{target={target}}},relax-lower-calls,relax-plan-memory,"
    "relax-to-host{{target={target}}})"
)


@dataclass(frozen=True)
class FoldConstants(Pass):
    """Evaluates expressions of constants at compile time."""

    needs_verified: ClassVar[bool] = True

    target: Target = field(default_factory=native)
    max_bytes: int = 1 << 16

    def run(self, op: ir.Operation) -> None:
        """Evaluates expressions in each graph function."""
        for function in graph_functions(op):
            expressions = _Expressions(function, self.max_bytes)
            if not expressions.stored:
                continue
            if missing := _what_lacks(self.target):
                text = f"constants are not folded: this machine cannot run code for {missing}"
                remark(function.location, text)
                return
            expressions.replace(replace(self.target, devices=()))


def _what_lacks(target: Target) -> str:
    """The features that this machine lacks to run code for a target; empty if it can."""
    if target.host.arch != platform.machine():
        return target.host.arch
    return ", ".join(lacking(target.host.needs))


class _Expressions:
    """The operators of a function that depend only on constants, and the results to store."""

    def __init__(self, function: func.FuncOp, max_bytes: int) -> None:
        self.constants: dict[ir.Value, int] = {}
        """The bytes of each constant; 0 for a splat."""
        self.limits: dict[ir.Value, int] = {}
        """For each value that may be evaluated, the bytes of its constants, at most all."""
        self.operators: list[GraphOp] = []
        for known in walk_ops(function, arith.ConstantOp):
            if isinstance(known.result.type, ir.RankedTensorType):
                self.constants[known.result] = _stored_bytes(known.attributes["value"])
        self.limits.update(self.constants)
        self.total = sum(self.constants.values())
        for op in _operators(function) if self.constants else ():
            if self._add(op, max_bytes):
                self.operators.append(op)
        self.stored = self._choose(self.total + max_bytes)

    def _add(self, op: GraphOp, max_bytes: int) -> bool:
        """Whether an operator may be evaluated, given those before it."""
        if not all(operand in self.limits for operand in op.operands) or not _is_evaluable(op):
            return False
        limit = min(sum(self.limits[value] for value in set(op.operands)), self.total)
        size = sum(map(_size, op.results))
        if not 0 < size <= max(limit, max_bytes):
            return False
        self.limits.update(dict.fromkeys(op.results, limit))
        return True

    def _choose(self, budget: int) -> list[ir.Value]:
        """The results that remaining operators read; free operators stay with their users."""
        leaving = {op.operation for op in self.operators}
        stored: list[ir.Value] = []
        for op in reversed(self.operators):
            read = [
                value
                for value in op.results
                if any(use.owner.operation not in leaving for use in value.uses)
            ]
            size = sum(map(_size, read))
            if read and (isinstance(op, FREE) or size > budget):
                leaving.discard(op.operation)
            else:
                stored += read
                budget -= size
        return stored[::-1]

    def replace(self, target: Target) -> None:
        """Replaces the stored values by constants."""
        needed = self._needed()
        inputs = [
            value
            for value in dict.fromkeys(operand for op in needed for operand in op.operands)
            if self.constants.get(value)
        ]
        try:
            arrays = _evaluate(_program(needed, inputs, self.stored), inputs, target)
        except OutOfMemoryError as error:
            remark(self.stored[0].location, f"constants are not folded: {error}")
            return
        for value, array in zip(self.stored, arrays, strict=True):
            with ir.InsertionPoint(value.owner), value.location:
                made = constant(attribute_of(value.type, array))
            value.replace_all_uses_with(made)
        for op in reversed(self.operators):
            if is_unused(op):
                safe_erase(op)
        erase_unused_makers(self.constants)

    def _needed(self) -> list[GraphOp]:
        """The operators that compute the stored values, in order."""
        wanted, needed = set(self.stored), []
        for op in reversed(self.operators):
            if not wanted.isdisjoint(op.results):
                needed.append(op)
                wanted.update(op.operands)
        return needed[::-1]


def _operators(function: func.FuncOp) -> list[GraphOp]:
    """Operators in program order, those of regions included."""
    operators: list[GraphOp] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if isinstance(op.opview, GraphOp):
            operators.append(op.opview)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return operators


def _is_evaluable(op: GraphOp) -> bool:
    """Whether an operator can be evaluated: pure, on arrays of known dims."""
    return (
        op.has_rule()
        and legalization_of(type(op)) is not None
        and getattr(type(op), "inplace_operands", None) is None
        and not isinstance(op, DECODERS)
        and all(map(_is_array, (*op.operands, *op.results)))
        and not own_symbols(op)
    )


def _is_array(value: ir.Value) -> bool:
    """Whether a value is a tensor of known dims that can be passed to compiled code."""
    if not isinstance(value.type, ir.RankedTensorType) or not value.type.has_static_shape:
        return False
    try:
        return byte_width(value.type.element_type) > 0
    except ValueError:
        return False


def _size(value: ir.Value) -> int:
    """Bytes of an array."""
    type_ = ir.RankedTensorType(value.type)
    return math.prod(type_.shape) * byte_width(type_.element_type)


def _stored_bytes(attribute: ir.Attribute) -> int:
    """The bytes of a constant; 0 if it is a splat, or has no data."""
    if isinstance(attribute, ir.DenseElementsAttr):
        if attribute.is_splat:
            return 0
    elif not is_data(attribute):
        return 0
    data = bytes_of(attribute)
    return 0 if data is None else data.nbytes


def _program(
    operators: Sequence[GraphOp], inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]
) -> ir.Module:
    """A module whose function computes the outputs; it contains splats."""
    types = [value.type for value in inputs], [value.type for value in outputs]
    module = ir.Module.create(outputs[0].location)
    with ir.InsertionPoint(module.body), outputs[0].location:
        function = func.FuncOp(EVALUATED, types)
    point = ir.InsertionPoint(function.add_entry_block())
    known = dict(zip(inputs, function.arguments))
    for op in operators:
        for value in op.operands:
            if value not in known:
                known[value] = value.owner.clone(point).results[0]
        copy = op.operation.clone(point)
        for index, value in enumerate(op.operands):
            copy.operands[index] = known[value]
        known.update(zip(op.results, copy.results))
    with point, outputs[0].location:
        func.ReturnOp([known[value] for value in outputs])
    return module


def _evaluate(
    program: ir.Module, inputs: Sequence[ir.Value], target: Target
) -> Sequence[np.ndarray]:
    """The results of a program of `_program`, which it consumes."""
    outside = fingerprint(operator_modules())
    text = (EVALUATED, str(program), repr(target), compiler_fingerprint())
    path = cached(repr(text).encode() + outside, lambda: _compile(program, target))
    arguments = [elements_of(value.owner.attributes["value"]) for value in inputs]
    results = load(path)[EVALUATED](*arguments)
    return results if isinstance(results, tuple) else (results,)


def _compile(program: ir.Module, target: Target) -> list[bytes | memoryview]:
    """The parts of a shared object that exports the program's function."""
    with building(target) as build:
        Pipeline.parse(PASSES.format(target=target)).run(program)
        return build.finish(program, exported_symbols(program))
