"""Threads that call two modules at once on the stand-in for a driver, and failures."""

import os
import random
import threading
import time

import numpy as np
from cuda_driver import Driver, nothing_left

import relax_mlir
from relax_mlir.errors import ExecutionError

TEXT = """
!x = tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x, %y: !x) -> !x {
  %0 = "graph.add"(%x, %y) : (!x, !x) -> !x
  %1 = "graph.OP"(%0) : (!x) -> !x
  %2 = "graph.multiply"(%1, %y) : (!x, !x) -> !x
  return %2 : !x
}
"""
OPERATORS = {"nn_relu": lambda x: np.maximum(x, 0), "negative": np.negative}
FAILING = (
    *("cuLaunchKernel", "cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"),
    *("cuStreamSynchronize", "cuEventRecord", "cuEventSynchronize", "cuGraphLaunch"),
    *("cuGraphAddKernelNode", "cuGraphInstantiate_v2", "cuGraphExecKernelNodeSetParams"),
)
THREADS, CALLS = 4, 12
INVALID, MEMORY = 1, 2


def _child(call) -> int:
    """The exit status of a forked process that calls: 0 if it is told that it cannot."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            call()
        except ExecutionError as error:
            status = "a forked process cannot use the device" not in str(error)
        finally:
            os._exit(status)
    return os.waitpid(process, 0)[1]


class _Caller(threading.Thread):
    """Calls the modules with fresh arrays, and counts what succeeds and what the driver fails."""

    def __init__(self, cuda: Driver, modules: dict, seed: int) -> None:
        super().__init__()
        self._cuda, self._modules = cuda, modules
        self._random, self._numbers = random.Random(seed), np.random.default_rng(seed)
        self.wrong: list[str] = []
        self.succeeded = self.failed = 0

    def run(self) -> None:
        for step in range(CALLS):
            name, count = self._random.choice(list(OPERATORS)), self._random.choice((0, 1, 17, 300))
            x, y = self._numbers.standard_normal((2, count), np.float32)
            expected = OPERATORS[name](x + y) * y
            module = self._modules[name]
            try:
                z = module["main"](module.device.array(x) if step % 2 else x, y)
                actual = z.numpy() if step % 2 else z
                self.succeeded += 1
                if not np.allclose(actual, expected, rtol=1e-5, atol=1e-5):
                    self.wrong.append(f"{name} of {count}")
            except (ExecutionError, MemoryError):
                self.failed += 1
            if step % 4 == 1:
                status = self._random.choice((INVALID, MEMORY))
                self._cuda.fail(self._random.choice(FAILING), self._random.randrange(1, 3), status)
            if step == CALLS // 2 and _child(lambda f=module["main"], x=x, y=y: f(x, y)):
                self.wrong.append("a forked process")


def test_threads_failures_and_forks() -> None:
    """Calls that succeed are right, the others say why, and nothing is left of any."""
    seed = time.time_ns() % 10**6
    with nothing_left() as cuda:
        modules = {
            name: relax_mlir.compile(TEXT.replace("OP", name), "cuda:sm_80", opt_level=0)
            for name in OPERATORS
        }
        callers = [_Caller(cuda, modules, seed + i) for i in range(THREADS)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert not any(caller.wrong for caller in callers), (seed, [c.wrong for c in callers])
        assert sum(caller.succeeded for caller in callers) > THREADS * CALLS // 3
        del modules, callers, caller
