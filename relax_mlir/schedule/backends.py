"""The backend of a target: the only module that names them."""

from functools import lru_cache

from relax_mlir.schedule.backend import Backend
from relax_mlir.schedule.cpu.backend import CpuBackend
from relax_mlir.target import Target, TargetError


@lru_cache
def backend_of(target: Target) -> Backend:
    """The backend of a target; raises TargetError if it has none."""
    if target.device is not None:
        raise TargetError(
            f"target '{target}' has kernels run on '{target.device}', but there is no backend for "
            f"'{target.device.api}' yet: leave the device out, and kernels run on the CPU"
        )
    return CpuBackend(target.host)
