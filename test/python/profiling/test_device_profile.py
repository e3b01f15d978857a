"""Time spans of kernels on devices: those of what a kernel does, not of having it queued."""

import numpy as np
import pytest
import vulkan
from cuda_driver import nothing_left
from perceptron import MLP, normal, perceptron

import relax_mlir
from relax_mlir.errors import ExecutionError
from relax_mlir.profile import profile, table


@pytest.mark.parametrize("target", ["cuda:sm_90a", "vulkan"])
def test_spans_are_of_the_work(target: str) -> None:
    """The stand-in for NVIDIA's driver, and lavapipe, compute when they are waited for."""
    if target == "vulkan":
        vulkan.require()
    with nothing_left() as cuda:
        module = relax_mlir.compile(MLP, target, opt_level=0)
        arrays = [module.device.array(normal(*dims)) for dims in ((16, 40), (40, 72), (72, 10))]
        result = module.device.array(normal(16, 10))
        call = module["main"].bind(*arrays, results=[result])
        found = profile(call, rounds=2)
        assert len(found.spans) > 2
        assert all(span.seconds > 0 for span in found.spans)
        slowest, *_ = found.kernels()
        assert "matmul" in slowest
        assert found.gaps < 0.5 * found.seconds
        assert slowest in table(found)
        if target != "vulkan":
            cuda.fail("cuStreamSynchronize", 2, 700)
            with pytest.raises(ExecutionError, match=f"{target}: running kernels: a kernel fails"):
                profile(call, rounds=1)
            assert not len(module.spans())
        call.run()
        assert not len(module.spans())  # nothing is recorded any more
        wanted = perceptron(*(each.numpy() for each in arrays))
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-3)
        del module, arrays, call, found, result


def test_a_kernel_that_fails_while_spans_are_recorded() -> None:
    """It is found before the result is allocated, for which the device has no memory then."""
    with nothing_left() as cuda:
        module = relax_mlir.compile(MLP, "cuda:sm_90a")
        arrays = normal(3, 40), normal(40, 72), normal(72, 10)
        module["main"](*arrays)
        module.record(100)
        cuda.interpret(False)
        try:
            with pytest.raises(ExecutionError, match="illegal memory access was encountered"):
                module["main"](*arrays)
        finally:
            cuda.interpret(True)
            module.record(0)
        del module
