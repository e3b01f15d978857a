"""Recipes of matrix products, convolutions and pooling."""

from typing import Any

from relax_mlir.bindings import ir
from relax_mlir.dialects import graph
from relax_mlir.symbolic import const

from ..builder import FLOATS, Builder, Value, size_of
from .table import recipe

WINDOWS = ((3, 3), (1, 1), (3, 2), (2, 2), (1, 5), (5, 5))
FAST = "#arith.fastmath<reassoc,nnan,ninf>"


@recipe("product", graph.MatmulOp)
def matmul(b: Builder, op: Any) -> None:
    """With any batches, of what is there or of arguments, transposed or not."""
    left = b.take(lambda v: v.rank >= 2 and v.element != "i1", (2, 2, 2, 3), _number(b))
    right = _right_side(b, left)
    pair = [left, right]
    bound = left.bound * right.bound * size_of(left.dims[-1:])
    if not left.is_float:
        b.emit(op, pair)
    elif b.chance(0.5):
        product = b.emit(op, pair, False, 1)
        b.emit(graph.MultiplyOp, [product, b.number(1 / 16, left.element)], False, bound / 16)
    else:
        b.emit(op, pair, False, bound)


def _number(b: Builder) -> str:
    return "f32" if b.element == "i1" else b.element


def _right_side(b: Builder, left: Value) -> Value:
    depth = left.dims[-1]

    def multiplies(v: Value) -> bool:
        return v.element == left.element and v.rank in (2, left.rank) and _agree(v, left)

    found = b.pick(multiplies) if b.chance(0.5) else None
    if found is not None:
        return found
    batch = left.dims[:-2] if b.chance(0.4) else ()
    depth = b.maybe_other(depth)
    if b.chance(0.3):
        turned = b.weight([*batch, b.pick_dim(), depth], left.element)
        last = turned.rank - 1
        axes = [*range(last - 1), last, last - 1]
        return b.emit(graph.PermuteDimsOp, [turned], axes=axes)
    return b.weight([*batch, depth, b.pick_dim()], left.element)


def _agree(v: Value, left: Value) -> bool:
    return v.dims[-2] == left.dims[-1] and v.dims[:-2] in ((), left.dims[:-2])


def _images(b: Builder, channels: int, element: str) -> Value:
    def is_image(v: Value) -> bool:
        sizes = [dim.value for dim in v.dims[1:]]
        return v.rank == 4 and v.element == element and sizes[0] == channels and None not in sizes

    found = b.pick(lambda v: is_image(v) and all(d.value and d.value > 4 for d in v.dims[2:]))
    if found is not None and b.chance(0.8):
        return found
    batch = b.few("batch", [1, 2, *b.symbols], 1)
    sizes = [b.few("image sizes", [1, 2, 5, 7, 8, 9, 16, 17], 2) for _ in range(2)]
    dims = [batch, channels, *sizes]
    if b.symbols and b.chance(0.2):
        dims[3] = b.any_symbol() + 3
    return b.argument([const(d) if isinstance(d, int) else d for d in dims], element)


def _window(b: Builder) -> dict[str, Any]:
    return {
        "strides": b.few("strides", [(1, 1), (1, 2), (2, 1), (2, 3)], 1),
        "padding": b.few(
            "padding", [(0, 0, 0, 0), (1, 1, 1, 1), (2, 0, 1, 2), (0, 1, 2, 0), (1, 0, 0, 1)], 2
        ),
        "dilation": b.few("dilation", [(1, 1), (1, 1), (2, 1), (1, 2)], 1),
    }


@recipe("product", graph.Conv2dOp)
def conv2d(b: Builder, op: Any) -> None:
    """Of few channels or many, in groups, one channel a group among them."""
    element = b.element if b.element in FLOATS else "f32"
    channels = b.few("channels", [1, 2, 3, 4, 8, 16], 1)
    groups = b.random.choice([1, 1, channels, *([2] if channels % 2 == 0 else [])])
    filters = groups * b.few("filters", [1, 2, 3, 8, 16], 1)
    image, window = _images(b, channels, element), b.few("windows", WINDOWS, 1)
    weight = b.weight([filters, channels // groups, *window], element)
    bound = image.bound * weight.bound * channels * window[0] * window[1]
    settings = _window(b)
    if window == (3, 3) and b.chance(0.5):
        settings |= {"strides": (1, 1), "dilation": (1, 1)}
    if not _fits(image, window, settings):
        settings["padding"] = (4, 4, 4, 4)
    operands = [image.ir, weight.ir]
    built = op.build(*operands, groups=groups, **settings)
    if window == (3, 3) and b.chance(0.25):
        built.attributes["graph.fastmath"] = ir.Attribute.parse(FAST)
    b.results_of(built, False, bound)


def _fits(image: Value, window: tuple[int, int], settings: dict[str, Any]) -> bool:
    """Whether a window lies in the image at least once, if dims are numbers."""
    low = settings["padding"]
    for axis in (0, 1):
        size = image.dims[2 + axis].value
        extent = (window[axis] - 1) * settings["dilation"][axis] + 1
        if size is None or size + low[axis] + low[axis + 2] < extent:
            return False
    return True


@recipe("product", graph.MaxPool2dOp, graph.SumPool2dOp)
def pool2d(b: Builder, op: Any) -> None:
    """Of any elements."""
    element = _number(b)
    image, window = (
        _images(b, b.few("channels", [1, 2, 3, 4, 8, 16], 1), element),
        b.few("windows", WINDOWS, 1),
    )
    settings = _window(b)
    if not _fits(image, window, settings):
        settings["padding"] = (4, 4, 4, 4)
    bound, exact = image.bound if image.is_float else None, None
    if op is graph.SumPool2dOp and image.is_float:
        bound, exact = image.bound * window[0] * window[1], False
    b.emit(op, [image], exact, bound, window=window, **settings)
