"""Maps of tensors, of which devices copy boxes by themselves: types of values."""

import re

from relax_mlir.bindings import ir

MAP_BYTES, MAP_ALIGNMENT = 128, 64
"""What a map takes as an argument of a kernel."""
_MAP = re.compile(r"!nvgpu\.tensormap\.descriptor<tensor = memref<((?:\d+x)+)")


def is_tensor_map(type_: ir.Type) -> bool:
    """Whether values of a type are maps."""
    return _MAP.match(str(type_)) is not None


def map_box(type_: ir.Type) -> tuple[int, ...]:
    """The extents of what a map's copies have, outermost first."""
    match = _MAP.match(str(type_))
    assert match is not None
    return tuple(map(int, match[1].rstrip("x").split("x")))
