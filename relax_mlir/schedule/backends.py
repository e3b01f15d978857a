"""The backend of a target: the one place that knows which there are."""

from functools import lru_cache

from relax_mlir.schedule.backend import Backend
from relax_mlir.schedule.cpu.backend import CpuBackend
from relax_mlir.target import Target, TargetError


@lru_cache
def backend_of(target: Target) -> Backend:
    """The backend that makes kernels for a target; raises TargetError if there is none for it."""
    if target.device is not None:
        raise TargetError(
            f"target '{target}' has kernels run on '{target.device}', but there is no backend for "
            f"'{target.device.api}' yet: leave the device out, and kernels run on the CPU"
        )
    return CpuBackend(target.host)
