"""Modules whose kernels are functions of a device, for what runs or reads these."""

from relax_mlir.bindings import ir
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import outlining


def outlined(text: str, target: str, level: int = 2) -> ir.Module:
    """A module in the current context, whose launches are outlined; raises as passes do."""
    module = ir.Module.parse(text)
    Pipeline.parse(outlining(target, level)).run(module, verify=True)
    return module
