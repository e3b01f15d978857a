"""Complex tensors of real ones, their parts, and casts."""

from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import broadcast_to, reshape
from relax_mlir.errors import ModelError

from ....complex import Pair, joined, split
from ....complex.arithmetic import is_true, polar
from ...call import Call
from ...registry import of_pairs
from ...types import PARTS


@of_pairs("complex")
def complex_(call: Call, real: ir.Value, imaginary: ir.Value) -> Pair:
    """Both parts as one tensor."""
    return Pair(*(broadcast_to(part, call.dims) for part in (real, imaginary)))


@of_pairs("polar")
def polar_(call: Call, size: ir.Value, angle: ir.Value) -> Pair:
    """The elements of distances from 0 and angles."""
    return polar(size, angle)


@of_pairs("view_as_real", "view_as_real_copy")
def view_as_real(call: Call, x: Pair) -> ir.Value:
    """Both parts along a last dim."""
    return joined(x)


@of_pairs("view_as_complex", "view_as_complex_copy")
def view_as_complex(call: Call, x: ir.Value) -> Pair:
    """Parts that lie along the last dim."""
    return split(x)


@of_pairs("real")
def real(call: Call, x: Pair) -> ir.Value:
    """The real part."""
    return x.real


@of_pairs("imag")
def imag(call: Call, x: Pair) -> ir.Value:
    """The imaginary part."""
    return x.imaginary


@of_pairs("view.dtype")
def view_dtype(call: Call, x: Any, dtype: Any) -> Any:
    """Parts in a row as complex elements, or these as their parts."""
    own = call.operands[0].meta["val"].dtype
    if own == call.first.dtype:
        return x
    if PARTS.get(own) == call.first.dtype:
        return reshape(joined(x), call.dims)
    if PARTS.get(call.first.dtype) == own:
        return split(reshape(x, [*call.dims, 2]))
    raise ModelError(f"views elements of {own} as {call.first.dtype}, which is not supported")


@of_pairs("_to_copy", "to.dtype", "to.dtype_layout", "prims::convert_element_type")
def to_copy(call: Call, x: Any, *args: Any, **options: Any) -> Any:
    """Elements of another type: the real part where that is real, unless it is a truth value."""
    if call.first.is_complex():
        return call.pair(x)
    return is_true(x) if str(call.element) == "i1" else call.tensor(x.real, call.element)
