"""Memory of the pages of a batch, on the host or on the decoder's device."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_mlir.executable import Argument, Function
from relax_mlir.llm.decoder.arrays import ELEMENTS, Kind, aligned_arrays, total_bytes


def pages_for(main: Function, count: int) -> Sequence[Any]:
    """The caches of a decoder, with so many pages of zeros; raises MemoryError."""
    caches = [argument for argument in main.arguments if argument.inout]
    device, what = main.executable.device, f"{count} pages"
    if device is None:
        return aligned_arrays([_kind(argument, count) for argument in caches], what)
    made = []
    for argument in caches:
        shape, dtype = _kind(argument, count)
        made.append(device.array(np.zeros(shape, dtype), argument.dtype))
    return made


def copy_page(caches: Sequence[Any], source: int, target: int) -> None:
    """Copies the keys and values of a page to another one."""
    for cache in caches:
        if isinstance(cache, np.ndarray):
            cache[target] = cache[source]
            continue
        size = cache.nbytes // cache.shape[0]
        page = np.empty(size, np.uint8)
        cache.memory.download(page.ctypes.data, cache.address + source * size, size)
        cache.memory.upload(cache.address + target * size, page.ctypes.data, size)


def page_bytes(main: Function) -> int:
    """The size of a page in the caches of all layers, of a decoder that has pages."""
    return total_bytes([_kind(each, 1) for each in main.arguments if each.inout])


def _kind(argument: Argument, pages: int) -> Kind:
    """Shape and element type of a cache; its only symbolic dim is the count of pages."""
    heads, size, columns = (dim for dim in argument.dims or () if isinstance(dim, int))
    return (pages, heads, size, columns), ELEMENTS[argument.dtype]
