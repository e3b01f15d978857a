"""The ops of the dialect `linalg`.

The host package's own module of that name also runs the language that the named ones were once
written in, which takes a seventh of the time that `relax-opt` takes to start.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    from torch_mlir._mlir_libs._mlirDialectsLinalg import get_indexing_maps as get_indexing_maps
    from torch_mlir.dialects._linalg_ops_gen import *
