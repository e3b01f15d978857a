"""The programs that `llm.py` compares with this one, and our target speedups."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import interleaved

FOLDER = Path(__file__).resolve().parent
WEIGHTS = ("f32", "bf16", "q8_0", "native")
"""The types that weights are compared in; "native" is what the file has, Q4_1."""


class BuildError(Exception):
    """What a program needs could not be built; the message says why."""


@dataclass(frozen=True)
class Peer:
    """A program: `spec` for `worker.py`, the weights that it has, and what is to be built first.

    `built` is a file below the work folder, with `{weights}` in it; `builder` is the script below
    `peers/` that makes it, and its words, among them `{trials}` of tuning; `build_seconds` is about
    how long that takes. A slow program would take minutes for a case: it generates `max_tokens`
    at most, and `max_prompt` is the longest prompt that it gets.
    """

    name: str
    spec: str
    weights: Sequence[str]
    built: str = ""
    builder: Sequence[str] = ()
    build_seconds: float = 0.0
    max_tokens: int | None = None
    max_prompt: int | None = None
    targets: Mapping[str, float] = field(default_factory=dict)

    def target(self, weights: str, kind: str) -> float:
        """How many times as fast ours is to be; `kind` is "pp" or "tg"."""
        target = self.targets.get(f"{weights} {kind}", self.targets.get(kind))
        return 1.05 if target is None else target

    def is_built(self, work: Path, weights: str) -> bool:
        """Whether there is nothing to be built."""
        return not self.built or (work / self.built.format(weights=weights)).exists()

    def build(self, work: Path, weights: str, python: str, trials: int) -> None:
        """Makes what the program needs, unless it is there; raises BuildError."""
        if self.is_built(work, weights):
            return
        words = [word.format(weights=weights, trials=trials) for word in self.builder]
        command = [python, str(FOLDER / "peers" / words[0]), str(work), *words[1:]]
        log = work / f"build-{'-'.join(words)}.log"
        takes = f"about {max(self.build_seconds, 60) / 60:.0f} min"
        print(f"building what {self.name} needs, once: {takes}; {log} tells more", flush=True)
        environment = {**os.environ, "PYTHONPATH": str(FOLDER)}
        begin = time.monotonic()
        with log.open("w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
            while process.poll() is None:
                interleaved.progress(f"building: {time.monotonic() - begin:.0f} s")
                time.sleep(0.2)
        interleaved.progress("")
        if process.returncode:
            last = (log.read_text(errors="replace").splitlines() or [""])[-1]
            raise BuildError(f"cannot be built: {last} ({log})")


def _tvm_peer(
    how: str,
    program: str,
    trials: str,
    build_seconds: float,
    max_tokens: int,
    max_prompt: int,
    targets: Mapping[str, float],
) -> Peer:
    """TVM Relax with the schedules of its pipeline `how`; it is slow, and gets less to do."""
    word = how.lower()
    return Peer(
        f"TVM Relax ({how})",
        f"peers.llm_tvm:{program}",
        ("f32",),
        f"tvm-{word}.so",
        ("llm_tvm_build.py", word, trials),
        build_seconds,
        max_tokens=max_tokens,
        max_prompt=max_prompt,
        targets=targets,
    )


GENAI: dict[str, Any] = {
    "built": "genai-{weights}/genai_config.json",
    "builder": ("llm_genai.py", "{weights}"),
    "build_seconds": 60,
}
PEERS = (
    Peer(
        "llama.cpp",
        "peers.llm_llamacpp:LlamaProgram",
        WEIGHTS,
        targets={"q8_0 pp": 2.0, "q8_0 tg": 1.2, "native pp": 4.0, "native tg": 2.0},
    ),
    Peer("ORT GenAI", "peers.llm_genai:GenAiProgram", ("f32", "q8_0", "native"), **GENAI),
    Peer("ONNX Runtime", "peers.llm_onnxruntime:OnnxRuntimeProgram", ("f32",), **GENAI),
    Peer(
        "OpenVINO",
        "peers.llm_openvino:OpenVinoProgram",
        ("f32", "bf16"),
        "openvino/model.xml",
        ("llm_openvino.py",),
        60,
    ),
    Peer("PyTorch", "peers.llm_torch:EagerProgram", ("f32", "bf16")),
    Peer("PyTorch compiled", "peers.llm_torch:CompiledProgram", ("f32", "bf16")),
    Peer("IREE", "peers.llm_iree:IreeProgram", ("f32",), "iree.vmfb", ("llm_iree_build.py",), 60),
    _tvm_peer("default", "TvmProgram", "0", 30, 4, 32, {"pp": 30.0, "tg": 30.0}),
    _tvm_peer("dlight", "DlightProgram", "0", 180, 16, 128, {"pp": 40.0, "tg": 3.0}),
    _tvm_peer("MetaSchedule", "TunedProgram", "{trials}", 900, 16, 128, {"pp": 40.0, "tg": 3.0}),
)
