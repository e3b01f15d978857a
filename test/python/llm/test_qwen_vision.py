"""Qwen2-VL and Qwen2.5-VL against `transformers`: see `qwen_vision_reference.py`."""

import base64
import json
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np
import openai
import pytest
import tiny_qwen_vision
from PIL import Image
from scripted_engine import running, state_of
from tiny_qwen_vision import CASES, IMAGE, IMAGE_ID, PROMPTS, STEPS
from tiny_vision import PICTURES, integers, normal, picture
from vision_checks import check_logits, greedy_tokens

from relax_mlir import llm
from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.architectures.registry import of_folder
from relax_mlir.llm.batching.engine import Engine
from relax_mlir.llm.batching.request import Request
from relax_mlir.llm.decoder.pictures import Picture, Seen, coordinates, inserted
from relax_mlir.llm.generation.generation import Generation, Statistics
from relax_mlir.llm.generation.model import LanguageModel
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.vision.config import Normalisation
from relax_mlir.llm.vision.qwen_config import PatchPreprocessing, read_qwen_vision, windows_of
from relax_mlir.tools.relax_llm import main

KNOWN = dict(np.load(Path(__file__).parent / "Inputs" / "qwen_vision.npz"))
TURNS = [CASES[0], pytest.param(CASES[1], marks=pytest.mark.rotate(3, together=True))]
pytestmark = pytest.mark.usefixtures("llvm_turns")


@pytest.fixture(scope="module")
def model_of(folders):
    @cache
    def load(case: str) -> LanguageModel:
        return llm.load(str(folders(case)), weights="f32", threads=2)

    return load


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory):
    @cache
    def write(case: str) -> Path:
        return tiny_qwen_vision.write(tmp_path_factory.mktemp("vision") / "tiny", case)

    return write


def patches_of(image: str) -> np.ndarray:
    """Patches float32[n, 27] of integers uint8[3, n, 9]."""
    pixels = normal(KNOWN[f"{image}/patches"])
    return pixels.transpose(1, 0, 2).reshape(pixels.shape[1], -1)


@pytest.mark.parametrize("image", PICTURES)
@pytest.mark.parametrize("case", TURNS)
def test_images_become_rows(model_of, case: str, image: str) -> None:
    """One compilation for all sizes; Pillow 13 resizes the rows of tall images first."""
    vision, source = model_of(case).vision, picture(image)
    want = KNOWN[f"{image}/patches"]
    size = source.shape[:2]
    merge = tiny_qwen_vision.MERGE
    assert tuple(merge * np.array(vision.config.grid_of(*size))) == tuple(
        KNOWN[f"{image}/grid"][1:]
    )
    got = vision.pixels(source)
    got = integers(got.reshape(len(got), 3, -1).transpose(1, 0, 2)).astype(int)
    off = np.abs(got - want)
    assert off.max() <= (8 if image == "tall" else 1)
    assert off.mean() < (0.6 if image == "tall" else 0.02)
    rows = KNOWN[f"{case}/{image}/rows"]
    got = vision.rows(patches_of(image), *vision.config.arguments_of(*size))
    np.testing.assert_allclose(got, rows, atol=1e-5 * rows.std())
    assert len(vision.tokens_of(*size)) == len(rows)


def see(model: LanguageModel, name: str) -> Seen:
    """What a prompt has of an image with the pixels of the reference."""
    config, size = model.vision.config, PICTURES[name]
    rows = model.vision.rows(patches_of(name), *config.arguments_of(*size))
    return Seen(model.vision.tokens_of(*size), rows, name.encode(), config.grid_of(*size))


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("case", TURNS)
def test_logits(model_of, case: str, prompt: str) -> None:
    """Prompts with and without images, all at once and in pieces."""
    model, (text, names) = model_of(case), PROMPTS[prompt]
    ids = model.tokenizer.encode(text, add_special_tokens=False)
    ids, pictures = inserted(ids, IMAGE_ID, [see(model, name) for name in names])
    want = KNOWN[f"{case}/{prompt}/logits"][-len(ids) :]
    session = check_logits(model, ids, pictures, want)
    for cut in (len(ids) // 2, len(ids) - 1):
        session.truncate(cut)
        got = session.append(ids[cut:], 1, pictures)
        np.testing.assert_allclose(got[0], want[-1], atol=1e-5 * want.std())


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("case", TURNS)
def test_answers(model_of, case: str, prompt: str) -> None:
    """Greedy tokens after prompts with and without images."""
    model, (text, names) = model_of(case), PROMPTS[prompt]
    images = [picture(name) for name in names]
    assert greedy_tokens(model, text, images, STEPS) == KNOWN[f"{case}/{prompt}/tokens"].tolist()


def test_coordinates() -> None:
    """Those of a sequence with two images, whole and in every piece."""
    first, second = (Picture(at, np.zeros((n, 1)), b"", grid) for at, n, grid in
                     ((2, 6, (2, 3)), (9, 5, (5, 1))))  # fmt: skip
    text = [[i] * 3 for i in range(2)]
    rows = [[2, 2 + i, 2 + j] for i in range(2) for j in range(3)]
    column = [[6, 6 + i, 6] for i in range(5)]
    want = [*text, *rows, [5] * 3, *column, [11] * 3, [12] * 3]
    for begin in range(len(want)):
        for end in range(begin, len(want) + 1):
            got = coordinates((first, second), begin, end)
            assert got.tolist() == want[begin:end]
    assert coordinates((), 3, 5).tolist() == [[3] * 3, [4] * 3]


@pytest.mark.parametrize("grid", [(1, 1), (3, 4), (5, 11), (4, 4), (9, 2)])
@pytest.mark.parametrize("side", [1, 2, 4, 8])
def test_windows(grid: tuple[int, int], side: int) -> None:
    """Each unit is in one slot of the window that it belongs to."""
    units, slots, counts = windows_of(*grid, side)
    assert counts.sum() == len(slots) == grid[0] * grid[1]
    for unit, slot in enumerate(slots):
        window, position = divmod(slot, side**2)
        assert units[window, position] == unit
        assert position < counts[window]
        across = -(-grid[1] // side)
        row, column = divmod(unit, grid[1])
        assert window == (row // side) * across + column // side


@pytest.mark.parametrize(
    ("size", "grid"),
    [
        ((28, 28), (2, 2)),  # made larger
        ((1, 1), (2, 2)),
        ((480, 640), (17, 23)),
        ((70, 98), (2, 4)),  # halves are rounded to even multiples
        ((1, 200), (1, 29)),
        ((3000, 4000), (30, 41)),
        ((100, 16000), (2, 452)),
    ],
)
def test_sizes(size: tuple[int, int], grid: tuple[int, int]) -> None:
    """By the rule of Qwen2-VL, as `transformers` 5.24 gives them."""
    plain = Normalisation(1.0, (0.0,) * 3, (1.0,) * 3)
    assert PatchPreprocessing(14, 2, 56**2, 28**2 * 1280, 3, plain).grid_of(*size) == grid


def test_sizes_that_are_refused(model_of) -> None:
    config = model_of("qwen2_vl").vision.config
    for size in ((1, 201), (4021, 20)):
        with pytest.raises(UsageError, match=r"expects an edge at most 200 times"):
            config.grid_of(*size)
    huge = PatchPreprocessing(14, 2, 56**2, 64 << 20, 3, config.preprocessing.normalisation)
    with pytest.raises(UsageError, match="whose product is at most"):
        huge.grid_of(400, 65_536)


def test_texts(model_of) -> None:
    """Images are within their frame, where the text has them, and before a text that does not."""
    model = model_of("qwen2_vl")
    image = [IMAGE_ID + 1, IMAGE_ID, IMAGE_ID + 2]
    text = model.tokenizer.encode("hello", add_special_tokens=False)
    assert model.encode("hello", raw=True, images=2) == [*image, *image, *text]
    assert model.encode([{"role": "user", "content": [{"type": "image"}]}])[-4:-1] == image
    answer = model.generate("hello", images=[picture("wide")], max_tokens=3)
    list(answer)
    assert answer.statistics.prompt_tokens > 50
    with pytest.raises(UsageError, match="do not fit in a context of 192"):
        model.generate("hello", images=[picture("wide")] * 4)


@pytest.mark.parametrize(
    ("case", "file", "changes", "message"),
    [
        ("qwen2_vl", "config", {"rope_scaling": {"mrope_section": [1, 1, 1]}}, "whose sum is 4"),
        ("qwen2_vl", "config", {"rope_scaling": {"mrope_section": [2, 2]}}, "expects 3 counts"),
        ("qwen2_vl", "config", {"rope_scaling": {"mrope_section": [5, -1, 0]}}, "integers >= 0"),
        (
            "qwen2_vl",
            "config",
            {"vision_start_token_id": 10**6},
            "'vision_start_token_id' is 10000",
        ),
        ("qwen2_vl", "config", {"vision_config": {"patch_size": 4}}, "has patches of 4"),
        ("qwen2_vl", "config", {"vision_config": {"embed_dim": 42}}, "a multiple of 4 in each"),
        ("qwen2_vl", "config", {"vision_config": {"hidden_act": "tanh"}}, "'hidden_act' is 'tanh'"),
        ("qwen2_vl", "config", {"vision_config": {"hidden_size": 8}}, "the decoder expects 48"),
        (
            "qwen2_5_vl",
            "config",
            {"vision_config": {"window_size": 5}},
            "'window_size' is 5; expects",
        ),
        ("qwen2_5_vl", "config", {"vision_config": {"window_size": 2**31 - 1}}, "expects 1 to 64"),
        ("qwen2_vl", "preprocessor_config", {"min_pixels": 3000}, "has images of 3000 to 2000"),
        ("qwen2_vl", "preprocessor_config", {"max_pixels": 2**30}, "expects at most 67108864"),
        ("qwen2_vl", "preprocessor_config", {"do_resize": False}, "'do_resize' is false"),
    ],
)
def test_folders_that_are_refused(
    tmp_path: Path, case: str, file: str, changes: dict, message: str
) -> None:
    folder = tiny_qwen_vision.write(tmp_path, case)
    path = folder / f"{file}.json"
    values = json.loads(path.read_text())
    for key, value in changes.items():
        is_part = key == "vision_config"
        values[key] = {**values[key], **value} if is_part else value
    path.write_text(json.dumps(values))
    with pytest.raises(ModelError, match=message):
        read_qwen_vision(folder, of_folder(folder)[1].hidden_size)


ASKED = [
    (f"<|begin|>{IMAGE} hello", ["wide"]),
    (f"<|begin|>{IMAGE} hello", ["small"]),
    ("<|begin|>hello world", []),
    (f"{IMAGE}he{IMAGE}llo 12 w", ["same", "wide"]),
    (f"{IMAGE}he{IMAGE}llo 12 w", ["wide", "same"]),
]


@pytest.fixture(scope="module")
def engine_of(folders):
    """Loads an engine, and its encoder, within the test that is first."""
    with ExitStack() as opened:

        @cache
        def load() -> Engine:
            folder = str(folders("qwen2_vl"))
            engine = Engine.load(
                folder, weights="f32", threads=2, pages=24, step_tokens=19, max_sequences=6
            )
            assert engine.model.vision is not None
            return opened.enter_context(engine)

        yield load


def test_requests_at_once(model_of, engine_of) -> None:
    """Prompts are in chunks that end within images; with few pages sequences are run again."""
    alone, engine, tickets, want = model_of("qwen2_vl"), engine_of(), [], []
    for text, names in ASKED:
        ids = alone.tokenizer.encode(text, add_special_tokens=False)
        ids, pictures = alone.placed(ids, [picture(name) for name in names])
        for _ in range(2):
            tickets.append(engine.submit(Request(ids, max_tokens=9, pictures=pictures)))
            answer = Generation(
                alone.session(), ids, alone.tokenizer, Sampler(), alone.config.eos_ids, 9,
                Statistics(), pictures=pictures,
            )  # fmt: skip
            list(answer)
            want.append(answer.tokens)
    assert [[t for event in ticket for t in event.tokens] for ticket in tickets] == want
    assert engine.metrics().tokens_reused > 0
    assert want[0] != want[2]


def test_chats_and_command_line(
    model_of, folders, engine_of, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server and `relax-llm generate` answer as the model does."""
    alone, file = model_of("qwen2_vl"), tmp_path / "wide.png"
    Image.fromarray(picture("wide")).save(file)
    answer = alone.generate("hello", images=[picture("wide")], max_tokens=7)
    want = "".join(answer)
    options = ["--max-tokens", "7", "--weights", "f32", "--quiet"]
    assert (
        main(["generate", str(folders("qwen2_vl")), "hello", *options, "--image", str(file)]) == 0
    )
    assert capsys.readouterr().out == f"{want}\n"
    assert main(["convert", str(folders("qwen2_vl")), "-o", str(tmp_path / "x.gguf")]) == 1
    assert "reads images, which a GGUF file does not state" in capsys.readouterr().err
    url = f"data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}"
    parts = [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "text", "text": "hello"},
    ]
    with running(state_of(engine_of())) as address:
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
        got = client.chat.completions.create(
            model="tiny",
            messages=[{"role": "user", "content": parts}],
            max_tokens=7,
            temperature=0,
        )
    assert got.choices[0].message.content == want
    assert got.usage.prompt_tokens == answer.statistics.prompt_tokens
