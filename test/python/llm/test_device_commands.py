"""The command that generates text on a device: what it prints, and where there is no driver."""

from pathlib import Path

import numpy as np
import pytest
import reference_llama
from cuda_driver import nothing_left
from tiny_models import CONFIG, random_weights, write_gguf

from relax_mlir.llm import load
from relax_mlir.tools.relax_llm import main

TOKENS = [5, 3, 8]
OPTIONS = "-O 2 --weights f32 --raw --quiet --max-tokens 2 --target cuda:sm_80".split()


@pytest.mark.rotate(3)
def test_cuda(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    """On the stand-in for NVIDIA's driver, whose kernels are interpreted as PTX, and without."""
    weights = random_weights()
    path = str(write_gguf(tmp_path / "tiny.gguf", weights))
    with nothing_left():
        with monkeypatch.context() as without:
            without.setenv("RELAX_CUDA_DRIVER", "/nowhere/driver.so")
            assert main(["generate", path, "hello", *OPTIONS]) == 1
        told = capfd.readouterr().err
        assert "Traceback" not in told
        for part in (
            *("cuda:sm_80: no NVIDIA driver: ", "it looked for '/nowhere/driver.so'"),
            "(RELAX_CUDA_DRIVER names another file)",
        ):
            assert part in told
        model = load(path, weights="f32", target="cuda:sm_80", opt_level=2)
        wanted = reference_llama.logits(CONFIG, weights.__getitem__, np.array(TOKENS), np.float64)
        np.testing.assert_allclose(model.logits(TOKENS), wanted, rtol=0, atol=1e-3)
        text = "".join(model.generate("hello", max_tokens=2, raw=True))
        assert main(["generate", path, "hello", *OPTIONS]) == 0
        assert capfd.readouterr().out.strip() == text.strip()
        del model
