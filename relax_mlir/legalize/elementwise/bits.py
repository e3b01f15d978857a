"""Tensor programs on the bits of elements."""

from relax_mlir.bindings import arith, ir, linalg
from relax_mlir.dialects.graph import BitcastOp, PhiloxOp

from ..kernel import PARALLEL, KernelBuilder, affine_map, elementwise, generic, scalar
from ..movement.manipulate import same_memory

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
STEPS = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
_WORD = 0xFFFFFFFF


def bitcast(op: BitcastOp, kernel: KernelBuilder) -> None:
    """The bits of each element; where only a sign differs, the same memory."""
    element = ir.ShapedType(kernel.outs[0].type).element_type
    if kernel.keeps_elements:
        same_memory(kernel)
        return
    kernel.finish(elementwise(kernel.ins, kernel.outs[0], lambda x: _cast(x, element)))


def _cast(x: ir.Value, element: ir.Type) -> ir.Value:
    return x if x.type == element else arith.BitcastOp(element, x).result


def philox(op: PhiloxOp, kernel: KernelBuilder) -> None:
    """Words are i64 up to 2^32 - 1, so that the product of two is exact."""
    (state,) = kernel.ins
    i64 = ir.IntegerType.get_signless(64)

    def body(key: ir.Value, start: ir.Value, *_: ir.Value) -> list[ir.Value]:
        position = arith.IndexCastOp(i64, linalg.IndexOp(0).result).result
        counter = arith.AddIOp(start, position).result
        zero = scalar(i64, 0)
        words = [_low(counter), _high(counter), zero, zero]
        keys = [_low(key), _high(key)]
        for turn in range(ROUNDS):
            if turn:
                keys = [
                    _low(arith.AddIOp(word, scalar(i64, step)).result)
                    for word, step in zip(keys, STEPS)
                ]
            words = _round(words, keys)
        return [arith.TruncIOp(ir.IntegerType.get_signless(32), word).result for word in words]

    constants = [affine_map(1, [ir.AffineExpr.get_constant(i)]) for i in (0, 1)]
    maps = [*constants, *[affine_map(1, [0])] * 4]
    kernel.finish(*generic([state, state], kernel.outs, maps, [PARALLEL], body))


def _low(value: ir.Value) -> ir.Value:
    return arith.AndIOp(value, scalar(value.type, _WORD)).result


def _high(value: ir.Value) -> ir.Value:
    return arith.ShRUIOp(value, scalar(value.type, 32)).result


def _round(words: list[ir.Value], keys: list[ir.Value]) -> list[ir.Value]:
    a, b, c, d = words
    left, right = (
        arith.MulIOp(word, scalar(word.type, factor)).result
        for word, factor in zip((a, c), MULTIPLIERS)
    )
    return [_mixed(right, b, keys[0]), _low(right), _mixed(left, d, keys[1]), _low(left)]


def _mixed(product: ir.Value, word: ir.Value, key: ir.Value) -> ir.Value:
    return arith.XOrIOp(arith.XOrIOp(_high(product), word).result, key).result
