"""ONNX Runtime GenAI, on models that its own builder makes of the Hugging Face folder.

python llm_genai.py WORK f32     builds WORK/genai-f32
python llm_genai.py WORK native  builds that too, and WORK/genai-native with the file's own blocks
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime_genai
from peers import llm_genai_blocks
from peers.llm_decoder import CAPACITY, Decoder, Program

PRECISIONS = {"f32": "fp32", "q8_0": "int8"}
"""The builder's name of the type that is compared with each of ours; its int4 is wrong."""
CONFIG = "genai_config.json"


class GenAi(Decoder):
    """A generator whose caches are cut by rewinding it."""

    def __init__(self, weights: str, work: Path, threads: int) -> None:
        folder = work / f"genai-{weights}"
        config = onnxruntime_genai.Config(str(folder))
        session = {"intra_op_num_threads": threads}
        config.overlay(json.dumps({"model": {"decoder": {"session_options": session}}}))
        self._model = onnxruntime_genai.Model(config)
        parameters = onnxruntime_genai.GeneratorParams(self._model)
        parameters.set_search_options(max_length=CAPACITY, batch_size=1)
        self._generator = onnxruntime_genai.Generator(self._model, parameters)

    def append(self, tokens: Sequence[int]) -> None:
        """See `Decoder`."""
        self._generator.append_tokens(np.array(tokens, np.int32))

    def truncate(self, length: int) -> None:
        """See `Decoder`."""
        self._generator.rewind_to(length)

    def logits(self) -> np.ndarray:
        """See `Decoder`."""
        return self._generator.get_logits().reshape(-1)


class GenAiProgram(Program):
    """Started by `worker.py`."""

    def __init__(self, threads: int) -> None:
        super().__init__(GenAi, onnxruntime_genai.__version__, threads)


def build(work: Path, weights: str) -> None:
    """Makes the model; of a prompt it computes the logits of the last token alone."""
    if weights in PRECISIONS:
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-m", "hf"]
        command += ["-i", str(work / "hf"), "-o", str(work / f"genai-{weights}")]
        command += ["-p", PRECISIONS[weights], "-e", "cpu", "-c", str(work / "builder")]
        command += ["--extra_options", "prune_lm_head=true"]
        # Without our folder among its paths: transformers takes our kernels.py for a library.
        paths = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run(command, check=True, env=paths, cwd=work)
        return
    plain, target = work / "genai-f32", work / f"genai-{weights}"
    if not (plain / CONFIG).exists():
        build(work, "f32")
    target.mkdir(exist_ok=True)
    llm_genai_blocks.convert(plain / "model.onnx", target / "model.onnx")
    shutil.copy(plain / CONFIG, target)


if __name__ == "__main__":
    build(Path(sys.argv[1]), sys.argv[2])
