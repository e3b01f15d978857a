"""Calls of libraries that compute on a device: the runtime has them queued there.

Matrices are passed as `RxProduct` of `runtime/csrc/device/device.h`.
"""

from relax_mlir.analysis.devices import placed
from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import CallDpsOp
from relax_mlir.dialects.lib import CUBLAS_NN, CUBLAS_NT, FunctionOp
from relax_mlir.passes import PassFailure
from relax_mlir.target.device import HOST

from .dtypes import dlpack_dtype
from .function import ON_HOST, HostFunction

APIS = {CUBLAS_NN: "cuda", CUBLAS_NT: "cuda"}
"""The API of devices that functions of a convention compute on; those of others do on the host."""


def check_device(host: HostFunction, op: CallDpsOp, library: FunctionOp) -> None:
    """Raises PassFailure if a library does not compute where the function is."""
    wanted, index = APIS.get(library.convention.value), host.own_device
    has = None if index == ON_HOST else host.module.devices[index].api
    if wanted != has:
        where = f"devices of '{wanted}'" if wanted else "the host"
        own = placed(host.graph) if has else HOST
        raise PassFailure(
            op, f"calls '@{op.callee_name}', which computes on {where}, but is placed on '{own}'"
        )


def call_product(
    host: HostFunction, op: CallDpsOp, library: FunctionOp, function: ir.Value
) -> None:
    """Queues a product of matrices, or of as many as there are in a batch."""
    out, tensors = host.out, [host.tensor(value) for value in op.ins]
    lhs, rhs, _ = tensors
    is_transposed = library.convention.value == CUBLAS_NT
    left, right = host.integers(op, lhs.dims), host.integers(op, rhs.dims)
    *batch, first, second = right
    n, k = (first, second) if is_transposed else (second, first)
    rows = left[len(batch) : -1]
    m, count = out.product(rows or [out.integer(1)]), out.product(batch or [out.integer(1)])
    kinds = [out.integer(value) for value in (*dlpack_dtype(lhs.element), int(is_transposed))]
    integers = [*kinds, count, m, n, k]
    words = out.stack(1 + len(integers) + len(tensors))
    out.store(function, words)
    out.store_integers(integers, out.field(words, [1], out.i64))
    for index, tensor in enumerate(tensors, 1 + len(integers)):
        out.store(tensor.pointer, out.field(words, [index], out.i64))
    device = out.integer(host.own_device, out.i32)
    (status,) = out.call_runtime("rx_device_product", [out.context, device, words])
    out.fail_unless_zero(status)
