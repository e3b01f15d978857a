"""Models for the web in Chromium: on WebGPU and without, by the loader and by the page."""

import time
from pathlib import Path
from typing import Any

import pytest
from chromium import chromium, missing
from tiny_models import random_weights, write_hf

from relax_mlir import llm
from relax_mlir.tools.relax_llm import main

pytestmark = pytest.mark.skipif(missing() is not None, reason=missing() or "")

GENERATE = """async ({ url, device, prompts }) => {
  const { load } = await import("/llm.js");
  try {
    const seen = [];
    const options = device === null ? {} : { device };
    const model = await load(url, { ...options, progress: (state) => seen.push(state) });
    const answers = [];
    for (const [prompt, options] of prompts) {
      const answer = model.generate(prompt, options);
      answers.push([await answer.text(), answer.tokens]);
    }
    const { loaded, total } = seen.at(-1);
    return { answers, target: model.target, loaded: loaded === total };
  } catch (error) {
    return { error: `${error.name}: ${error.message}` };
  }
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A tiny model, and its folder for the web."""
    model = write_hf(tmp_path_factory.mktemp("tiny"), random_weights())
    folder = tmp_path_factory.mktemp("site") / "tiny"
    command = ["export-web", str(model), "-o", str(folder), "--target", "webgpu"]
    assert main([*command, "--context", "64"]) == 0
    return model, folder


@pytest.mark.rotate(3)
@pytest.mark.parametrize("device", ["webgpu", "wasm", None])
def test_answers(device: str | None, site: tuple[Path, Path]) -> None:
    """The tokens are those of the CPU's decoder; without a choice, they come from WebGPU."""
    source, folder = site
    url = chromium().serve("tiny", folder)
    prompts = [["hello", {"raw": True, "maxTokens": 8}], ["hello world", {"maxTokens": 12}]]
    found: Any = chromium().run(GENERATE, {"url": url, "device": device, "prompts": prompts})
    assert "error" not in found, found
    assert found["loaded"]
    assert ("webgpu" in found["target"]) == (device != "wasm")
    model = llm.load(str(source), weights="f32", context=64)
    for (prompt, options), (text, tokens) in zip(prompts, found["answers"], strict=True):
        answer = model.generate(
            prompt, raw=options.get("raw", False), max_tokens=options["maxTokens"]
        )
        assert (text, tokens) == ("".join(answer), answer.tokens)


def test_an_unknown_device(site: tuple[Path, Path]) -> None:
    url = chromium().serve("tiny", site[1])
    found: Any = chromium().run(GENERATE, {"url": url, "device": "cuda", "prompts": []})
    assert found["error"] == 'RelaxError: device is \'cuda\'; expects "webgpu" or "wasm"'


def test_the_page(site: tuple[Path, Path]) -> None:
    """Loads the model, and answers on WebGPU; a second visit takes it from the browser's cache."""
    browser = chromium()
    url = browser.serve("tiny", site[1])
    before = browser.call(lambda: browser.page.url)
    try:
        for _ in range(2):
            browser.open(f"{url}/index.html")
            _wait(browser, "() => !document.getElementById('send').disabled")
            status = browser.run("() => document.getElementById('status').textContent")
            assert "webgpu" in status
        browser.call(browser.page.fill, "#prompt", "hello")
        browser.call(browser.page.click, "#send")
        _wait(browser, "() => document.getElementById('status').textContent.includes('stopped')")
        answer = browser.run("() => document.querySelector('.assistant').textContent")
        assert answer
        names = browser.run(
            "async () => (await (await caches.open('relax-models')).keys()).map(({ url }) => url)"
        )
        assert any("webgpu.wasm?sha256=" in name for name in names)
    finally:
        browser.open(before)


def _wait(browser: Any, condition: str) -> None:
    for _ in range(300):
        if browser.run(condition):
            return
        time.sleep(0.2)
    raise AssertionError(browser.run("() => document.body.innerText"), browser.console[-3:])
