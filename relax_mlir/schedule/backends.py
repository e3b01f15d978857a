"""The backend of a target: the only module that names them."""

from functools import lru_cache

from relax_mlir.schedule.backend import Backend
from relax_mlir.schedule.cpu.backend import CpuBackend
from relax_mlir.schedule.gpu.backend import DeviceBackend
from relax_mlir.target import Target


@lru_cache
def backend_of(target: Target) -> Backend:
    """The backend of a target: that of its device if kernels run on one, else of its CPU."""
    if target.device is not None:
        return DeviceBackend(target.device)
    return CpuBackend(target.host)
