"""SmolVLM, which is Idefics 3, against `transformers`: see `idefics_vision_reference.py`."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tiny_idefics_vision
from tiny_idefics_vision import CONFIG, EDGE, IMAGE_ID, PREPROCESSOR, PROMPTS, STEPS
from tiny_vision import PICTURES, integers, normal, picture
from vision_checks import check_logits, greedy_tokens

from relax_mlir import llm
from relax_mlir.errors import ModelError
from relax_mlir.llm.architectures.registry import of_folder
from relax_mlir.llm.batching.engine import Engine
from relax_mlir.llm.batching.request import Request
from relax_mlir.llm.decoder.pictures import Seen, inserted
from relax_mlir.llm.generation.model import LanguageModel
from relax_mlir.llm.vision.config import Normalisation
from relax_mlir.llm.vision.idefics_config import TilePreprocessing, read_idefics_vision
from relax_mlir.llm.vision.model import Vision

KNOWN = dict(np.load(Path(__file__).parent / "Inputs" / "idefics_vision.npz"))
pytestmark = [pytest.mark.usefixtures("llvm_turns"), pytest.mark.rotate(3, together=True)]


@pytest.fixture(scope="module")
def loaded() -> list[LanguageModel]:
    return []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_idefics_vision.write(tmp_path_factory.mktemp("vision") / "tiny")


@pytest.fixture
def model(loaded, folder: Path, llvm_turns) -> LanguageModel:
    if not loaded:
        loaded.append(llm.load(str(folder), weights="f32", threads=2))
    return loaded[0]


def rows_of(vision: Vision, image: str) -> np.ndarray:
    """The rows of the pixels of the reference."""
    return vision.rows(np.stack([normal(tile) for tile in KNOWN[f"{image}/tiles"]]))


@pytest.mark.parametrize("image", PICTURES)
def test_images_become_rows(model: LanguageModel, image: str) -> None:
    """Pixels differ more where Pillow 13 resizes rows first, and clips what is between."""
    want = KNOWN[f"{image}/tiles"]
    got = model.vision.pixels(picture(image))
    assert got.shape == (len(want), 3, EDGE, EDGE)
    off = np.abs(np.stack([integers(tile) for tile in got]).astype(int) - want)
    assert off.max() <= (16 if image == "tall" else 2)
    assert off.mean() < (0.6 if image == "tall" else 0.05)
    rows = KNOWN[f"{image}/rows"]
    np.testing.assert_allclose(rows_of(model.vision, image), rows, atol=1e-5 * rows.std())


@pytest.mark.parametrize("prompt", PROMPTS)
def test_logits(model: LanguageModel, prompt: str) -> None:
    """Prompts with and without images, whose tokens are those of the processor, in pieces."""
    text, names = PROMPTS[prompt]
    seen = [
        Seen(model.vision.tokens_of(*PICTURES[name]), rows_of(model.vision, name), name.encode())
        for name in names
    ]
    ids = model.tokenizer.encode(text, add_special_tokens=False)
    ids, pictures = inserted(ids, IMAGE_ID, seen)
    assert ids == KNOWN[f"{prompt}/ids"].tolist()
    want = KNOWN[f"{prompt}/logits"]
    check_logits(model, ids, pictures, want)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_answers(model: LanguageModel, prompt: str) -> None:
    """Greedy tokens after prompts with and without images."""
    text, names = PROMPTS[prompt]
    images = [picture(name) for name in names]
    assert greedy_tokens(model, text, images, STEPS) == KNOWN[f"{prompt}/tokens"].tolist()


def test_requests_at_once(model: LanguageModel, folder: Path) -> None:
    """Images whose rows have texts between them, in chunks, with few pages."""
    with Engine.load(
        str(folder), weights="f32", threads=2, pages=16, step_tokens=19, max_sequences=6
    ) as engine:
        tickets, want = [], []
        for prompt in ("two", "one", "none", "two"):
            text, names = PROMPTS[prompt]
            ids = model.tokenizer.encode(text, add_special_tokens=False)
            ids, pictures = model.placed(ids, [picture(name) for name in names])
            tickets.append(engine.submit(Request(ids, max_tokens=9, pictures=pictures)))
            want.append(KNOWN[f"{prompt}/tokens"][:9].tolist())
        tokens = [[t for event in ticket for t in event.tokens] for ticket in tickets]
    assert tokens == want


def test_messages(model: LanguageModel) -> None:
    parts = [{"type": "image"}, {"type": "text", "text": "hello"}]
    answer = model.generate([{"role": "user", "content": parts}], images=[picture("wide")])
    assert "".join(answer)
    assert answer.statistics.prompt_tokens > len(model.vision.tokens_of(*PICTURES["wide"]))


@pytest.mark.parametrize(
    ("size", "resized", "grid"),
    [
        ((480, 640), (1536, 2048), (3, 4)),
        ((333, 1000), (682, 2048), (2, 4)),
        ((1000, 333), (2048, 682), (4, 2)),
        ((1, 1), (2048, 2048), (4, 4)),
        ((1, 4096), (1, 2048), (1, 4)),
        ((3000, 4001), (1536, 2048), (3, 4)),
    ],
)
def test_sizes(size, resized, grid) -> None:
    """Those of SmolVLM, as `transformers` 5.24 gives them."""
    plain = Normalisation(1.0, (0.0,) * 3, (1.0,) * 3)
    p = TilePreprocessing(512, 2048, True, 1, plain)
    assert (p.resized(*size), p.grid_of(*size)) == (resized, grid)
    assert TilePreprocessing(512, 2048, False, 1, plain).grid_of(*size) == (1, 1)


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("config", {"scale_factor": 4}, "expects a divisor of 6"),
        ("config", {"image_token_id": 10**6}, "'image_token_id' is 1000000"),
        ("config", {"vision_config": {**CONFIG["vision_config"], "image_size": 40}}, "of 30"),
        ("preprocessor_config", {"max_image_size": {"longest_edge": 9999}}, "at most 4096"),
        ("preprocessor_config", {"size": {"longest_edge": 5000}}, "at most 4096"),
        ("preprocessor_config", {"size": {"longest_edge": 1921}}, "64 tiles on an edge"),
        ("preprocessor_config", {"do_rescale": False}, "'do_rescale' is false"),
    ],
)
def test_folders_that_are_refused(tmp_path: Path, file: str, changes: dict, message: str) -> None:
    folder = tiny_idefics_vision.write(tmp_path)
    values = {**(CONFIG if file == "config" else PREPROCESSOR), **changes}
    (folder / f"{file}.json").write_text(json.dumps(values))
    with pytest.raises(ModelError, match=message):
        read_idefics_vision(folder, of_folder(folder)[1].hidden_size)


def test_tokenizers_without_the_token_between(model: LanguageModel) -> None:
    with pytest.raises(ModelError, match="no token '<fake_token_around_image>'"):
        model.vision.config.tokens_of(5, 5, lambda text: [1] * len(text))


@pytest.mark.parametrize("text", ["<fake_token_around_image>", "<global-img>"])
def test_texts_around_images_that_are_images(model: LanguageModel, text: str) -> None:
    """By a damaged `image_token_id`."""
    encode = partial(model.tokenizer.encode, add_special_tokens=False)
    config = replace(model.vision.config, image_id=encode(text)[0])
    with pytest.raises(ModelError, match="is one of the texts around them"):
        config.tokens_of(5, 5, encode)
