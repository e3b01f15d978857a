"""Index arithmetic that folds what is known: an `Int` is a Python int or an `index` value."""

from collections.abc import Iterable

from relax_mlir.bindings import arith, ir

Int = int | ir.Value


def value(x: Int) -> ir.Value:
    """The `index` value of x; an int becomes a constant at the insertion point."""
    return arith.ConstantOp(ir.IndexType.get(), x).result if isinstance(x, int) else x


def add(a: Int, b: Int) -> Int:
    """a + b."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(a, int) and a == 0:
        return b
    if isinstance(b, int) and b == 0:
        return a
    return arith.AddIOp(value(a), value(b)).result


def sub(a: Int, b: Int) -> Int:
    """a - b."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    if isinstance(b, int) and b == 0:
        return a
    return 0 if _same(a, b) else arith.SubIOp(value(a), value(b)).result


def mul(a: Int, b: Int) -> Int:
    """a * b."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    for x, y in ((a, b), (b, a)):
        if isinstance(x, int) and x in (0, 1):
            return y if x else 0
    return arith.MulIOp(value(a), value(b)).result


def floordiv(a: Int, b: Int) -> Int:
    """Floor of a / b, for b > 0 and a >= 0 where they are not both ints."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if isinstance(b, int) and b == 1:
        return a
    return arith.DivUIOp(value(a), value(b)).result


def mod(a: Int, b: Int) -> Int:
    """a modulo b, for b > 0 and a >= 0 where they are not both ints."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    if isinstance(b, int) and b == 1:
        return 0
    return arith.RemUIOp(value(a), value(b)).result


def ceildiv(a: Int, b: int) -> Int:
    """Ceiling of a / b, for b > 0 and a >= 0."""
    return floordiv(add(a, b - 1), b)


def minimum(a: Int, b: Int) -> Int:
    """The smaller of a and b, both taken as signed."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return a if _same(a, b) else arith.MinSIOp(value(a), value(b)).result


def product(factors: Iterable[Int]) -> Int:
    """The product, ints first so that they fold."""
    result: Int = 1
    for factor in sorted(factors, key=lambda x: not isinstance(x, int)):
        result = mul(result, factor)
    return result


def strides_of(sizes: tuple[Int, ...]) -> tuple[Int, ...]:
    """Row-major strides, in elements."""
    strides: list[Int] = []
    stride: Int = 1
    for size in reversed(sizes):
        strides.append(stride)
        stride = mul(stride, size)
    return tuple(reversed(strides))


def same(a: Int, b: Int) -> bool:
    """Whether a and b are certainly equal: one int, or one SSA value."""
    return _same(a, b)


def _same(a: Int, b: Int) -> bool:
    return isinstance(a, int) == isinstance(b, int) and a == b
