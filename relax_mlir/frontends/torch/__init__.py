"""Imports PyTorch's exported programs, and compiles modules.

    program = torch.export.export(model, args, dynamic_shapes=...)
    model = relax_mlir.compile(from_exported_program(program))

    model = relax_mlir.frontends.torch.compile(model, args, dynamic_shapes=...)
    y = model(x)                                # of PyTorch's tensors

Dynamic dims are symbols. Needs PyTorch.
"""

from .compiled import Compiled, compile
from .program import from_exported_program

__all__ = ["Compiled", "compile", "from_exported_program"]
