"""Random programs against float64 NumPy, fused and not, on wide and narrow vectors."""

import numpy as np
import pytest
from random_programs import RandomProgram
from scheduled import Built, assert_guarded, guarded


@pytest.mark.parametrize(
    ("fuse", "target"), [(True, "native"), (False, "native"), (True, "x86-64-v3")]
)
@pytest.mark.parametrize("seed", range(25))
def test_random_program(seed, fuse, target):
    random_program = RandomProgram(seed)
    text, results = random_program.text()
    pairs = [guarded(known.value.shape, np.dtype(np.float32)) for known in results]
    kernel = Built(text, fuse, target)
    kernel(*(known.value for known in random_program.inputs), *(out for out, _ in pairs))
    for (out, memory), known in zip(pairs, results, strict=True):
        assert_guarded(memory)
        np.testing.assert_allclose(out, known.value, rtol=1e-4, atol=1e-4)
