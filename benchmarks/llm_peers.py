"""The programs that `llm.py` measures beside this one, and how much faster ours is to be."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
WEIGHTS = ("f32", "bf16", "q8_0", "native")
"""The types that weights are compared in; "native" is what the file has, Q4_1."""


class BuildError(Exception):
    """What a program needs could not be built; the message says why."""


@dataclass(frozen=True)
class Peer:
    """A program: `spec` for `worker.py`, the weights that it has, and what is to be built first.

    `built` is a file below the work folder, with `{weights}` in it; `builder` is the script below
    `peers/` that makes it. A `slow` program would take minutes for a case: it generates fewer
    tokens, and is not given the long ones.
    """

    name: str
    spec: str
    weights: Sequence[str]
    built: str = ""
    builder: Sequence[str] = ()
    slow: bool = False
    targets: Mapping[str, float] = field(default_factory=dict)

    def target(self, weights: str, kind: str) -> float:
        """How many times as fast ours is to be; `kind` is "pp" or "tg"."""
        found = self.targets.get(f"{weights} {kind}", self.targets.get(kind))
        return 1.05 if found is None else found

    def build(self, work: Path, weights: str, python: str) -> None:
        """Makes what the program needs, unless it is there; raises BuildError."""
        if not self.built or (work / self.built.format(weights=weights)).exists():
            return
        words = [word.format(weights=weights) for word in self.builder]
        command = [python, str(FOLDER / "peers" / words[0]), str(work), *words[1:]]
        log = work / f"build-{'-'.join(words)}.log"
        print(f"building what {self.name} needs, once; {log} tells how it goes", flush=True)
        environment = {**os.environ, "PYTHONPATH": str(FOLDER)}
        with log.open("w") as output:
            made = subprocess.run(command, stdout=output, stderr=output, env=environment)
        if made.returncode:
            last = (log.read_text().splitlines() or [""])[-1]
            raise BuildError(f"cannot be built: {last} ({log})")


GENAI = {"built": "genai-{weights}/genai_config.json", "builder": ("llm_genai.py", "{weights}")}
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
    ),
    Peer("PyTorch", "peers.llm_torch:EagerProgram", ("f32", "bf16")),
    Peer("PyTorch compiled", "peers.llm_torch:CompiledProgram", ("f32", "bf16")),
    Peer(
        "TVM Relax (default)",
        "peers.llm_tvm:TvmProgram",
        ("f32",),
        "tvm.json",
        ("llm_tvm.py",),
        slow=True,
        targets={"pp": 30.0, "tg": 30.0},
    ),
)
