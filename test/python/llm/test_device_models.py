"""Models whose decoders run on a device: what stays there, and the answers of NumPy."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_llama
import vulkan
from tiny_models import CONFIG, random_weights, to_bf16, write_gguf

from relax_mlir.errors import OutOfMemoryError
from relax_mlir.llm import LanguageModel, load
from relax_mlir.llm.batching.batch import Batch, Run
from relax_mlir.llm.batching.loading import load_batch
from relax_mlir.llm.decoder import caches
from relax_mlir.runtime.device import DeviceMemory
from relax_mlir.tools.relax_llm import main

WEIGHTS = random_weights()
TOKENS = [5, 3, 8, 1, 9, 2, 7, 4, 6, 11, 3, 5, 2, 8, 8, 1, 10, 7, 3]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    vulkan.require()
    return str(write_gguf(tmp_path_factory.mktemp("devices") / "tiny.gguf", WEIGHTS))


@pytest.fixture(scope="module")
def model(path: str) -> LanguageModel:
    return load(path, weights="f32", target="vulkan", opt_level=2)


@pytest.fixture(scope="module")
def batch(path: str) -> Batch:
    return load_batch(path, weights="f32", pages=9, target="vulkan", opt_level=2)[1]


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each copy to a device, or from it."""
    sizes: list[int] = []
    copy = DeviceMemory._copy

    def counted(self: DeviceMemory, *arguments: Any) -> None:
        sizes.append(arguments[-1])
        copy(self, *arguments)

    monkeypatch.setattr(DeviceMemory, "_copy", counted)
    return sizes


def expected(tokens: list[int], weights: dict[str, np.ndarray] = WEIGHTS) -> np.ndarray:
    return reference_llama.logits(CONFIG, weights.__getitem__, np.array(tokens), np.float64)


def near(actual: np.ndarray, wanted: np.ndarray, tolerance: float = 1e-3) -> None:
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=tolerance)


def test_logits(model: LanguageModel) -> None:
    near(model.logits(TOKENS), expected(TOKENS))


@pytest.mark.rotate(2)
@pytest.mark.parametrize("cache", ["f32", "bf16"])
def test_bits_of_bf16(path: str, cache: str) -> None:
    """NumPy has no such numbers: their bits are integers there."""
    model = load(path, weights="bf16", activations="f32", cache=cache, target="vulkan", opt_level=2)
    rounded = {name: w if w.ndim == 1 else to_bf16(w) for name, w in WEIGHTS.items()}
    wanted, session = expected(TOKENS, rounded), model.session()
    tolerance = 1e-3 if cache == "f32" else 2e-2 * np.abs(wanted).max()
    near(session.append(TOKENS[:-1], rows=len(TOKENS) - 1), wanted[:-1], tolerance)
    near(session.append(TOKENS[-1:]), wanted[-1:], tolerance)


def test_weights_and_caches_stay_there(model: LanguageModel, copied: list[int]) -> None:
    session = model.session()
    session.append([1, 2, 3])
    copied.clear()
    session.append([4])
    assert 0 < sum(copied) < 4 * CONFIG.vocab_size + 100  # logits, a token


def test_caches_grow_and_are_forked(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "FIRST_ROOM", 2)
    session, tokens = model.session(), TOKENS[:7]
    near(np.array([session.append([token])[0].copy() for token in tokens]), expected(tokens))
    other = session.fork()
    session.truncate(3)
    near(session.append([4])[0], expected([*tokens[:3], 4])[-1])
    near(other.append([4])[0], expected([*tokens, 4])[-1])
    session.reset()
    near(session.append(tokens)[0], expected(tokens)[-1])


def test_there_is_no_memory_for_caches_that_grow(
    model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session stays as it was, and goes on when there is memory again."""
    monkeypatch.setattr(caches, "FIRST_ROOM", 4)
    session = model.session()
    session.append(TOKENS[:4])
    new = DeviceMemory.new
    for after in range(2):
        left = iter([None] * after)

        def lacking(self: DeviceMemory, size: int) -> int:
            if next(left, self) is self:
                raise OutOfMemoryError("out of memory")
            return new(self, size)

        with monkeypatch.context() as patch:
            patch.setattr(DeviceMemory, "new", lacking)
            for _ in range(2):
                with pytest.raises(OutOfMemoryError):
                    session.append(TOKENS[4:6])
        assert session.length == 4
    near(session.append(TOKENS[4:6])[0], expected(TOKENS[:6])[-1])


def test_batches(batch: Batch, copied: list[int]) -> None:
    """Two sequences at once, one of them after a copy of a page of the other."""
    long, short = TOKENS, TOKENS[:5]
    first = batch.step([Run(long[:17], 0, [3, 1]), Run(short, 0, [8])])
    near(first, np.array([expected(long[:17])[-1], expected(short)[-1]]))
    copied.clear()
    near(batch.step([Run(long[17:18], 17, [3, 1])]), expected(long[:18])[-1:])
    assert 0 < sum(copied) < 4 * CONFIG.vocab_size + 300
    batch.copy(3, 0)
    again = [*long[:16], 9]
    steps = batch.step([Run([9], 16, [0, 5]), Run(long[18:], 18, [3, 1])])
    near(steps, np.array([expected(again)[-1], expected(long)[-1]]))


def test_memory_of_sessions_is_returned(model: LanguageModel) -> None:
    device = model.executable.device
    assert device is not None
    model.logits(TOKENS)  # temporaries stay
    before = device.bytes
    session = model.session()
    session.append(TOKENS)
    assert device.bytes > before
    del session
    assert device.bytes == before


def test_files_of_prompts(path: str, model: LanguageModel, tmp_path: Path) -> None:
    """The command's target is that of the engine."""
    prompts, output = tmp_path / "prompts.jsonl", tmp_path / "answers.jsonl"
    prompts.write_text('{"id": "a", "prompt": "hello"}\n{"id": "b", "prompt": "1 2"}\n')
    options = [
        "--weights",
        "f32",
        "--target",
        "vulkan",
        "-O",
        "2",
        "--pages",
        "9",
        "--raw",
        "--quiet",
    ]
    assert (
        main(["batch", path, str(prompts), "-o", str(output), "--max-tokens", "6", *options]) == 0
    )
    found = {each["id"]: each["text"] for each in map(json.loads, output.read_text().splitlines())}
    for name, prompt in (("a", "hello"), ("b", "1 2")):
        assert found[name] == "".join(model.generate(prompt, max_tokens=6, raw=True))


@pytest.mark.parametrize("command", ["generate", "batch", "serve"])
def test_unknown_targets(
    path: str, tmp_path: Path, capfd: pytest.CaptureFixture, command: str
) -> None:
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "hello"}\n')
    given = {
        "generate": [path, "hello"],
        "batch": [path, str(tmp_path / "prompts.jsonl"), "-o", str(tmp_path / "answers.jsonl")],
        "serve": [path, "--port", "0"],
    }
    assert main([command, *given[command], "--target", "cuda:sm_7"]) == 2
    assert "unknown device 'cuda:sm_7'; accepted are gpu, cuda:sm_75" in capfd.readouterr().err
