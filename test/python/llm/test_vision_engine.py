"""Requests on images, many at once and over HTTP, against each alone."""

import base64
import io
import json
from functools import cache

import numpy as np
import openai
import pytest
import tiny_vision
from PIL import Image
from scripted_engine import running, state_of
from tiny_models import random_weights, write_hf
from tiny_vision import IMAGE, IMAGE_ID, picture

from relax_mlir import llm
from relax_mlir.errors import UsageError
from relax_mlir.llm.batching.engine import Engine
from relax_mlir.llm.batching.loading import load_batch
from relax_mlir.llm.batching.request import Request
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.decoder.pictures import Picture
from relax_mlir.llm.generation.generation import Generation, Statistics
from relax_mlir.llm.generation.model import LanguageModel
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.generation.text_model import TextModel
from relax_mlir.llm.tokenization.content import asked_of
from relax_mlir.tools.relax_llm import main

pytestmark = pytest.mark.usefixtures("llvm_turns")

PROMPTS = [
    (f"<|begin|>{IMAGE} hello", ["wide"]),
    (f"<|begin|>{IMAGE} hello", ["small"]),
    ("<|begin|>hello world", []),
    (f"{IMAGE}he{IMAGE}llo 12 w", ["wide", "dot"]),
    (f"{IMAGE}he{IMAGE}llo 12 w", ["dot", "wide"]),
    (f"<|begin|>{IMAGE} hello", ["wide"]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_vision.write(tmp_path_factory.mktemp("served") / "tiny"))


@pytest.fixture(scope="module")
def loaded(folder: str):
    """Loads the model within the test that is first."""
    return cache(lambda: llm.load(folder, weights="f32", threads=2))


@pytest.fixture
def alone(loaded, llvm_turns) -> LanguageModel:
    return loaded()


def engine_of(folder: str, pages: int) -> Engine:
    return Engine.load(
        folder, weights="f32", threads=2, pages=pages, step_tokens=19, max_sequences=6
    )


def asked(model: LanguageModel, text: str, names: list[str]) -> Request:
    ids = model.tokenizer.encode(text, add_special_tokens=False)
    ids, pictures = model.placed(ids, [picture(name) for name in names])
    return Request(ids, max_tokens=9, pictures=pictures)


def answer_of(model: LanguageModel, text: str, names: list[str]) -> list[int]:
    request = asked(model, text, names)
    answer = Generation(
        model.session(), request.prompt, model.tokenizer, Sampler(), model.config.eos_ids, 9,
        Statistics(), pictures=request.pictures,
    )  # fmt: skip
    list(answer)
    return answer.tokens


@pytest.mark.parametrize("pages", [40, 13])
def test_requests_at_once(folder: str, alone: LanguageModel, pages: int) -> None:
    """Prompts are in chunks that end within images; with few pages sequences are run again."""
    with engine_of(folder, pages) as engine:
        requests = [asked(engine.model, *prompt) for prompt in PROMPTS]
        tickets = [engine.submit(request) for request in requests for _ in range(2)]
        tokens = [[t for event in ticket for t in event.tokens] for ticket in tickets]
    want = [answer_of(alone, *prompt) for prompt in PROMPTS for _ in range(2)]
    assert tokens == want
    assert tokens[0] != tokens[2]


def test_pages_are_shared_by_equal_images_alone(folder: str) -> None:
    with engine_of(folder, 40) as engine:
        reused = []
        for name in ("wide", "wide", "small", "small", "wide"):
            ticket = engine.submit(asked(engine.model, f"{IMAGE}hello hello", [name]))
            list(ticket)
            reused.append(ticket.reused)
    assert reused[0] == reused[2] == 0
    assert reused[1] == reused[3] == reused[4] == 16


def test_positions_of_images_are_part_of_keys(folder: str) -> None:
    """Equal tokens, and rows of one image that begin elsewhere."""
    with engine_of(folder, 40) as engine:
        rows = engine.model.vision.see(picture("wide")).rows
        tokens = [IMAGE_ID] * 20
        for begin in (0, 3, 0):
            pictures = [Picture(begin, rows[:9], b"key")]
            ticket = engine.submit(Request(tokens, max_tokens=1, pictures=pictures))
            list(ticket)
        assert ticket.reused == 16
        ticket = engine.submit(Request(tokens, max_tokens=1))
        list(ticket)
        assert ticket.reused == 0


def data_url(name: str, form: str = "PNG") -> str:
    file = io.BytesIO()
    Image.fromarray(picture(name)).save(file, form)
    return f"data:image/{form.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"


def part(url: str) -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": url}}


@pytest.fixture(scope="module")
def client(folder: str):
    with engine_of(folder, 40) as engine, running(state_of(engine)) as url:
        assert engine.model.vision is not None  # which requests have, too
        yield openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def test_chats_with_images(client: openai.OpenAI, alone: LanguageModel) -> None:
    text = {"type": "text", "text": "hello"}
    shapes = [
        [part(data_url("wide")), text],
        [text, part(data_url("small")), part(data_url("wide"))],
    ]
    for parts, names in zip(shapes, (["wide"], ["small", "wide"])):
        messages = [{"role": "user", "content": parts}]
        got = client.chat.completions.create(
            model="tiny", messages=messages, max_tokens=8, temperature=0
        )
        own = [each if each is text else {"type": "image"} for each in parts]
        images = [picture(name) for name in names]
        answer = alone.generate([{"role": "user", "content": own}], images=images, max_tokens=8)
        assert got.choices[0].message.content == "".join(answer)
        assert got.usage.prompt_tokens == answer.statistics.prompt_tokens > 25 * len(names)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:1/x.png", "no data URL"),
        ("file:///etc/passwd", "no data URL"),
        ("data:text/plain;base64,aGk=", "expects data:image"),
        ("data:image/png,hello", "expects data:image"),
        ("data:image/png;base64,a?b", "base64"),
        ("data:image/png;base64,aGVsbG8=", "is no image"),
        ("data:image/png;base64,", "is no image"),
    ],
)
def test_images_that_are_refused(client: openai.OpenAI, url: str, message: str) -> None:
    messages = [{"role": "user", "content": [part(url)]}]
    with pytest.raises(openai.BadRequestError, match=message):
        client.chat.completions.create(model="tiny", messages=messages)


def test_more_images_than_fit(client: openai.OpenAI) -> None:
    for count, message in ((9, "context"), (17, "more than 16 images")):
        messages = [{"role": "user", "content": [part(data_url("dot"))] * count}]
        with pytest.raises(openai.BadRequestError, match=message):
            client.chat.completions.create(model="tiny", messages=messages)


def test_files_of_prompts(folder: str, alone: LanguageModel, tmp_path) -> None:
    """Images are files next to that of the lines, or data; what is none is an error of its line."""
    (tmp_path / "in 1").mkdir()
    for name in ("wide", "small"):
        Image.fromarray(picture(name)).save(tmp_path / "in 1" / f"{name}.png")
    text, file = {"type": "text", "text": "hello"}, (tmp_path / "in 1" / "wide.png").as_uri()
    both = [part("wide.png"), text, part(data_url("small"))]
    refused = {
        "none": ({"prompt": "a", "images": ["none.png"]}, "none.png"),
        "url": ({"prompt": "a", "images": ["http://127.0.0.1:1/x.png"]}, "is not fetched"),
        "data": ({"prompt": "a", "images": ["data:image/png,x"]}, "expects data:image/...;base64"),
        "base64": ({"prompt": "a", "images": ["data:image/png;base64,?"]}, "no base64"),
        "NUL": ({"prompt": "a", "images": ["\0"]}, "cannot be read"),
        "kind": ({"prompt": "a", "images": "wide.png"}, "expects a list of files"),
        "both": ({"messages": [], "images": ["wide.png"]}, "in messages they are parts"),
        "content": ({"messages": [{"role": "user", "content": 3}]}, "has a content '3'; expects"),
        "part": ({"messages": [{"role": "user", "content": [3]}]}, "expects 'text' with 'text'"),
        "raw": ({"prompt": f"{IMAGE}{IMAGE}", "raw": True, "images": ["wide.png"]}, "is on 2"),
    }
    lines = {
        "prompt": {"prompt": "hello", "images": ["wide.png", file]},
        "system": {"prompt": "hello", "system": "be", "images": [data_url("small")]},
        "parts": {"messages": [{"role": "user", "content": both}]},
        "texts": {"messages": [{"role": "user", "content": [text, text]}]},
        **{name: line for name, (line, _) in refused.items()},
    }
    prompts, output = tmp_path / "in 1" / "prompts.jsonl", tmp_path / "out.jsonl"
    prompts.write_text("\n".join(json.dumps({"id": name, **x}) for name, x in lines.items()))
    options = ["--weights", "f32", "--threads", "2", "--max-tokens", "7", "--quiet"]
    assert main(["batch", folder, str(prompts), "-o", str(output), *options]) == 1
    got = {each["id"]: each for each in map(json.loads, output.read_text().splitlines())}
    wide, small = picture("wide"), picture("small")
    parts = [{"type": "image"}, text, {"type": "image"}]
    system = {"role": "system", "content": "be"}
    asked = {
        "prompt": ("hello", [wide, wide]),
        "system": ([system, asked_of("hello", 1)], [small]),
        "parts": ([{"role": "user", "content": parts}], [wide, small]),
        "texts": ("hello\nhello", []),
    }
    for name, (prompt, images) in asked.items():
        answer = alone.generate(prompt, images=images, max_tokens=7)
        assert got[name]["text"] == "".join(answer), name
        assert got[name]["prompt_tokens"] == answer.statistics.prompt_tokens
    for name, (_, message) in refused.items():
        assert message in got[name]["error"], name


def test_models_that_read_no_images(folder: str, tmp_path) -> None:
    checkpoint = open_checkpoint(str(write_hf(tmp_path, random_weights())))
    _, batch = load_batch(folder, "f32", threads=2, pages=8)
    with Engine(TextModel(checkpoint, 64), batch) as engine:
        pictures = [Picture(0, np.zeros((1, 48), np.float32), b"")]
        with pytest.raises(UsageError, match="reads no images"):
            engine.submit(Request([1, 2], pictures=pictures))
