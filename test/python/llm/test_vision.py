"""Models that read images against `transformers`, on tiny models: see `vision_reference.py`."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tiny_vision
from tiny_vision import PICTURES, integers, normal, picture
from vision_prompts import PROMPTS, STEPS

from relax_mlir import llm
from relax_mlir.llm.decoder.pictures import Seen, inserted
from relax_mlir.llm.generation.generation import Generation, Statistics
from relax_mlir.llm.generation.model import LanguageModel
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.vision.model import Vision

KNOWN = dict(np.load(Path(__file__).parent / "Inputs" / "vision.npz"))


@pytest.fixture(scope="module")
def model_of(tmp_path_factory: pytest.TempPathFactory):
    @cache
    def load(case: str) -> LanguageModel:
        folder = tiny_vision.write(tmp_path_factory.mktemp("vision"), case)
        return llm.load(str(folder), weights="f32", threads=2)

    return load


@pytest.mark.parametrize("image", PICTURES)
@pytest.mark.parametrize("case", tiny_vision.CASES)
def test_images_become_rows(model_of, case: str, image: str) -> None:
    """Pixels differ by one of 255 at most: Pillow 13 resizes tall images in another order."""
    vision, want = model_of(case).vision, KNOWN[f"{case}/{image}/pixels"]
    off = np.abs(integers(vision.pixels(picture(image))).astype(int) - want)
    assert off.max() <= 1
    assert off.mean() < (0.3 if image == "tall" else 0.02)
    rows = KNOWN[f"{case}/{image}/rows"]
    np.testing.assert_allclose(vision.rows(normal(want)[None]), rows, atol=1e-5 * rows.std())


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("case", tiny_vision.CASES)
def test_logits(model_of, case: str, prompt: str) -> None:
    """Prompts with and without images, all at once and in pieces."""
    model, (text, names) = model_of(case), PROMPTS[prompt]
    pixels = [normal(KNOWN[f"{case}/{name}/pixels"])[None] for name in names]
    seen = [see(model.vision, each) for each in pixels]
    ids = model.tokenizer.encode(text, add_special_tokens=False)
    ids, pictures = inserted(ids, tiny_vision.IMAGE_ID, seen)
    want = KNOWN[f"{case}/{prompt}/logits"]
    tolerance = 1e-5 * want.std()
    got = model.session(len(ids)).append(ids, len(want), pictures)
    np.testing.assert_allclose(got, want, atol=tolerance)
    session = model.session(len(ids))
    for begin in range(0, len(ids), 7):
        got = session.append(ids[begin : begin + 7], 1, pictures)
    np.testing.assert_allclose(got[0], want[-1], atol=tolerance)


def see(vision: Vision, pixels: np.ndarray) -> Seen:
    """What a prompt has of an image with these pixels."""
    tokens = [vision.config.image_id] * vision.config.rows
    return Seen(tokens, vision.rows(pixels), pixels.tobytes())


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("case", tiny_vision.CASES)
def test_answers(model_of, case: str, prompt: str) -> None:
    """Greedy tokens after prompts with and without images."""
    model, (text, names) = model_of(case), PROMPTS[prompt]
    images = [picture(name) for name in names]
    ids, pictures = model.placed(model.tokenizer.encode(text, add_special_tokens=False), images)
    answer = Generation(
        model.session(), ids, model.tokenizer, Sampler(logit_bias={1: -np.inf}), (), STEPS,
        Statistics(), pictures=pictures,
    )  # fmt: skip
    list(answer)
    assert answer.tokens == KNOWN[f"{case}/{prompt}/tokens"].tolist()
