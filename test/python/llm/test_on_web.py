"""SmolLM2 in WebAssembly and WebGPU: the tokens that Hugging Face transformers generates."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import chromium, missing

from relax_mlir.llm.checkpoints.checkpoint import Checkpoint
from relax_mlir.llm.decoder.decoder import Settings
from relax_mlir.llm.web.export import export_web

NODE = shutil.which("node")
WEB = Path(__file__).parents[3] / "web"
CONTEXT = 64
SHORT = 3
"""Tokens of the answer in Chromium, whose device is a CPU."""

GREEDY = """async ({ loader, folder, options, prompt, count }) => {
  const { load } = await import(loader);
  const model = await load(folder, options);
  const session = model.session();
  const best = (logits) => logits.reduce((at, x, i) => (x > logits[at] ? i : at), 0);
  const first = await session.append(prompt);
  const tokens = [best(first)];
  while (tokens.length < count) tokens.push(best(await session.append(tokens.slice(-1))));
  model.module.close?.();
  return { tokens, logits: Array.from(first), target: model.target };
}"""


def _in_node(argument: dict[str, Any]) -> Any:
    script = f"console.log(JSON.stringify(await ({GREEDY})(JSON.parse(process.argv[1]))))"
    command = [str(NODE), "--input-type=module", "-e", script, json.dumps(argument)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _check(found: Any, golden: dict[str, np.ndarray], count: int) -> None:
    prompt = len(golden["chat_tokens"])
    assert found["tokens"] == golden["greedy32"][prompt : prompt + count].tolist()
    last = np.array(found["logits"])[golden["chat_last_ids"]]
    np.testing.assert_allclose(last, golden["chat_last"], rtol=0, atol=1e-3)


@pytest.mark.sweep
@pytest.mark.skipif(NODE is None, reason="needs node")
def test_two_threads_in_node(
    smollm2: Checkpoint, golden: dict[str, np.ndarray], tmp_path: Path
) -> None:
    """The whole prompt in one call, then token by token."""
    export_web(smollm2, Settings("f32", "f32", "wasm32+atomics"), tmp_path, CONTEXT)
    prompt = golden["chat_tokens"].tolist()
    count = len(golden["greedy32"]) - len(prompt)
    argument = {"loader": str(WEB / "llm.js"), "folder": str(tmp_path), "options": {"threads": 2},
                "prompt": prompt, "count": count}  # fmt: skip
    _check(_in_node(argument), golden, count)


@pytest.mark.sweep
@pytest.mark.skipif(missing() is not None, reason=missing() or "")
def test_webgpu_in_chromium(
    smollm2: Checkpoint, golden: dict[str, np.ndarray], tmp_path: Path
) -> None:
    """The same for the first tokens; it takes some minutes."""
    export_web(smollm2, Settings("f32", "f32", "webgpu"), tmp_path, CONTEXT)
    browser = chromium()
    browser.call(browser.page.set_default_timeout, 1_200_000)
    argument = {"loader": "/llm.js", "folder": browser.serve("smollm2", tmp_path), "options": {},
                "prompt": golden["chat_tokens"].tolist(), "count": SHORT}  # fmt: skip
    found = browser.run(GREEDY, argument)
    assert "webgpu" in found["target"]
    _check(found, golden, SHORT)
