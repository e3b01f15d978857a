"""Models that read images against `transformers`, on tiny models: see `vision_reference.py`."""

import io
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import tiny_vision
from PIL import Image
from safetensors.numpy import save_file
from tiny_models import TEMPLATE, random_weights, write_hf
from tiny_vision import PICTURES, integers, normal, picture
from vision_checks import check_logits, greedy_tokens
from vision_prompts import PROMPTS, STEPS

from relax_mlir import llm
from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.architectures.registry import of_folder
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.decoder.pictures import Picture, Seen, inserted
from relax_mlir.llm.generation.conversation import Conversation
from relax_mlir.llm.generation.model import LanguageModel
from relax_mlir.llm.generation.session import Session
from relax_mlir.llm.generation.text_model import TextModel
from relax_mlir.llm.tokenization.chat import ChatTemplate
from relax_mlir.llm.tokenization.content import asked_of, in_parts, in_texts, takes_parts
from relax_mlir.llm.vision.config import read_vision
from relax_mlir.llm.vision.model import Vision, load_vision
from relax_mlir.tools.relax_llm import main

KNOWN = dict(np.load(Path(__file__).parent / "Inputs" / "vision.npz"))

CASES = ["clip", pytest.param("siglip", marks=pytest.mark.rotate(3, together=True))]
pytestmark = pytest.mark.usefixtures("llvm_turns")


@pytest.fixture(scope="module")
def model_of(tmp_path_factory: pytest.TempPathFactory):
    @cache
    def load(case: str) -> LanguageModel:
        folder = tiny_vision.write(tmp_path_factory.mktemp("vision"), case)
        return llm.load(str(folder), weights="f32", threads=2)

    return load


@pytest.mark.parametrize("image", PICTURES)
@pytest.mark.parametrize("case", CASES)
def test_images_become_rows(model_of, case: str, image: str) -> None:
    """Pixels differ by one of 255 at most: Pillow 13 resizes tall images in another order."""
    vision, want = model_of(case).vision, KNOWN[f"{case}/{image}/pixels"]
    off = np.abs(integers(vision.pixels(picture(image))[0]).astype(int) - want)
    assert off.max() <= 1
    assert off.mean() < (0.3 if image == "tall" else 0.02)
    rows = KNOWN[f"{case}/{image}/rows"]
    np.testing.assert_allclose(vision.rows(normal(want)[None]), rows, atol=1e-5 * rows.std())


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("case", CASES)
def test_logits(model_of, case: str, prompt: str) -> None:
    """Prompts with and without images, all at once and in pieces."""
    model, (text, names) = model_of(case), PROMPTS[prompt]
    pixels = [normal(KNOWN[f"{case}/{name}/pixels"])[None] for name in names]
    seen = [see(model.vision, each) for each in pixels]
    ids = model.tokenizer.encode(text, add_special_tokens=False)
    ids, pictures = inserted(ids, tiny_vision.IMAGE_ID, seen)
    want = KNOWN[f"{case}/{prompt}/logits"]
    check_logits(model, ids, pictures, want)


def see(vision: Vision, pixels: np.ndarray) -> Seen:
    """What a prompt has of an image with these pixels."""
    tokens = [vision.config.image_id] * vision.config.rows
    return Seen(tokens, vision.rows(pixels), pixels.tobytes())


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("case", CASES)
def test_answers(model_of, case: str, prompt: str) -> None:
    """Greedy tokens after prompts with and without images."""
    model, (text, names) = model_of(case), PROMPTS[prompt]
    images = [picture(name) for name in names]
    assert greedy_tokens(model, text, images, STEPS) == KNOWN[f"{case}/{prompt}/tokens"].tolist()


def test_sessions_run_again_what_follows_another_image(model_of) -> None:
    """Tokens of both are equal, and so is the session afterwards if it is not used for another."""
    model = model_of("clip")
    text, options = f"a{tiny_vision.IMAGE}b", {"raw": True, "max_tokens": 5}
    fresh = {}
    for name in ("wide", "small"):
        answer = model.generate(text, images=[picture(name)], **options)
        fresh[name] = "".join(answer), answer.tokens
    assert fresh["wide"] != fresh["small"]
    session = model.session()
    for name, reused in (("wide", 0), ("small", 1), ("small", 26), ("wide", 1)):
        answer = model.generate(text, images=[picture(name)], session=session, **options)
        assert ("".join(answer), answer.tokens) == fresh[name]
        assert answer.statistics.reused_tokens == reused
    answer = model.generate("ab", session=session, **options)
    assert "".join(answer) == "".join(model.generate("ab", **options))
    session.truncate(0)
    assert session.pictures == ()


def test_sessions_that_end_within_an_image(model_of) -> None:
    model = model_of("clip")
    text, images = f"x{tiny_vision.IMAGE}y", [picture("tall")]
    ids, pictures = model.placed(model.encode(text, raw=True, images=1), images)
    want = model.session().append(ids, 1, pictures).copy()
    session = model.session()
    session.append(ids, 1, pictures)
    session.truncate(9)
    copy = session.fork()
    for each in (session, copy):
        got = each.append(ids[9:], 1, pictures)
        np.testing.assert_allclose(got, want, atol=1e-5 * want.std())
        assert [picture.begin for picture in each.pictures] == [1]


def test_several_answers_share_the_prompt(model_of) -> None:
    model = model_of("clip")
    options = {"images": [picture("wide")], "max_tokens": 6, "temperature": 1.0}
    answers = model.samples("what", 3, seed=4, **options)
    texts = ["".join(answer) for answer in answers]
    assert texts == ["".join(model.generate("what", seed=4 + i, **options)) for i in range(3)]


def test_messages(model_of) -> None:
    """Images are where the parts of messages have them, and before a text alone."""
    model, image, token = model_of("clip"), picture("small"), tiny_vision.IMAGE_ID
    parts = [{"type": "text", "text": "he"}, {"type": "image"}, {"type": "text", "text": "llo"}]
    messages = [{"role": "system", "content": "be"}, {"role": "user", "content": parts}]
    text = "<|begin|>system\nbe<|im_end|><|begin|>user\nhe<image>\nllo<|im_end|>"
    want = model.tokenizer.encode(text, add_special_tokens=False)
    assert model.encode(messages) == want
    ids, (placed,) = model.placed(want, [image])
    assert placed.begin == want.index(token)
    assert ids.count(token) == model.vision.config.rows == len(placed.rows)
    for raw, text in ((False, "<|begin|>user\n<image>\nhi<|im_end|>"), (True, "<image>\nhi")):
        want = model.tokenizer.encode(text, add_special_tokens=False)
        assert model.encode("hi", raw, images=1)[-len(want) :] == want


@pytest.mark.parametrize("form", [TEMPLATE, tiny_vision.TEMPLATE])
def test_templates_of_texts_and_of_parts(form: str) -> None:
    chat = ChatTemplate(form)
    assert takes_parts(chat) == (form == tiny_vision.TEMPLATE)
    messages = [asked_of("hi", 1), {"role": "user", "content": "a"}]
    forms = in_parts(messages) if takes_parts(chat) else in_texts(messages, "<image>\n")
    turns = [f"<|begin|>user\n{text}<|im_end|>" for text in ("<image>\nhi", "a")]
    assert chat.render(forms) == "".join(turns)


def test_conversations(model_of) -> None:
    """Images stay with their questions, until those are taken back or omitted."""
    model = model_of("clip")
    conversation, told = Conversation(model), []
    turns = [("a", ["wide"]), ("b", []), ("c", ["small", "dot"]), ("d", ["same"]), ("e", ["wide"])]
    for question, names in turns:
        answer = "".join(conversation.ask(question, 3, [picture(name) for name in names], keep=2))
        told += [(asked_of(question, len(names)), names)]
        messages, images = [message for message, _ in told], [n for _, each in told for n in each]
        omitted = conversation.left_out
        if omitted:
            messages, images = (
                messages[2 * omitted :],
                [n for _, e in told[2 * omitted :] for n in e],
            )
        want = model.generate(messages, images=[*map(picture, images)], max_tokens=3)
        assert answer == "".join(want)
        conversation.answered(answer)
        told += [({"role": "assistant", "content": answer}, [])]
    assert omitted == 3  # 3 images are in the context, and not 4
    assert conversation.undo()
    assert conversation.undo()
    again = "".join(conversation.ask("d", 3, [picture("same")]))
    assert again == told[7][0]["content"]
    with pytest.raises(UsageError, match="the question takes"):
        conversation.ask("f", 3, [picture("dot")] * 8)
    assert conversation.messages[-1] == asked_of("d", 1)


@pytest.mark.parametrize(
    ("text", "count", "message"),
    [
        ("<image> a", 2, "is on 1 images, and 2 are given"),
        ("<image> <image>", 0, "is on 2 images, and 0 are given"),
        ("<image>" * 9, 9, "do not fit"),
    ],
)
def test_prompts_that_do_not_match(model_of, text: str, count: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        list(model_of("clip").generate(text, raw=True, images=[picture("dot")] * count))


def test_parts_that_are_none(model_of) -> None:
    for part in ({"type": "video"}, {"type": "text"}, {}):
        with pytest.raises(UsageError, match="expects 'text' with 'text', or 'image'"):
            model_of("clip").encode([{"role": "user", "content": [part]}])


def test_models_without_images(tmp_path: Path, model_of) -> None:
    """Nothing is compiled before images are refused."""
    checkpoint = open_checkpoint(str(write_hf(tmp_path / "text", random_weights())))
    text = TextModel(checkpoint, 64)
    for refused in (lambda: text.encode("a", images=1), lambda: text.vision):
        with pytest.raises(UsageError, match="the model 'text' reads no images"):
            refused()
    model = model_of("clip")
    config = replace(model.config, image_id=None)
    session = Session(model.executable["main"], config, model.parameters, 64)
    with pytest.raises(UsageError, match="reads no images"):
        session.append([1, 2], 1, [Picture(0, np.zeros((1, 48), np.float32), b"")])
    assert session.length == 0


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("config", {"vision_config": {"model_type": "pixtral"}}, "encoder of type 'pixtral'"),
        ("config", {"image_token_index": 10**6}, "'image_token_id' is 1000000; the last one is"),
        ("config", {"vision_feature_layer": 9}, "'vision_feature_layer' is 9"),
        ("config", {"vision_feature_select_strategy": "cls"}, "expects 'default' or 'full'"),
        ("config", {"projector_hidden_act": "tanh"}, "'projector_hidden_act' is 'tanh'"),
        ("config", {"text_config": {"model_type": "t5"}}, "has architecture 't5'"),
        ("preprocessor_config", {"resample": 0}, "'resample' is"),
        ("preprocessor_config", {"do_normalize": False}, "'do_normalize' is false"),
        ("preprocessor_config", {"size": {"shortest_edge": 9}}, "'crop_size' is 37 x 37"),
        ("preprocessor_config", {"crop_size": 35}, "preprocessing makes images of 35 x 35"),
        ("preprocessor_config", {"image_std": [1.0]}, "a value for each of 3 channels"),
    ],
)
def test_folders_that_are_refused(
    tmp_path: Path, file: str, changes: dict[str, object], message: str
) -> None:
    folder = tiny_vision.write(tmp_path)
    path = folder / f"{file}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(ModelError, match=message):
        read_vision(folder, of_folder(folder)[1].hidden_size)


def test_weights_that_are_missing(tmp_path: Path) -> None:
    folder, weights = tiny_vision.write(tmp_path), tiny_vision.weights("clip")
    name = "multi_modal_projector.linear_2.bias"
    for value, message in ((None, "has no weight"), (np.zeros(3, np.float32), "has shape")):
        changed = {**weights, name: value} if value is not None else dict(weights)
        changed = changed if value is not None else {k: v for k, v in weights.items() if k != name}
        save_file(changed, folder / "model.safetensors")
        with pytest.raises(ModelError, match=message):
            load_vision(folder, tiny_vision.HIDDEN, list)


@pytest.mark.rotate(3)
def test_matrices_in_bfloat16(tmp_path: Path, model_of) -> None:
    """Encoders of files in bfloat16 have the rows of the rounded weights."""
    rounded, raw = {}, {}
    for name, values in tiny_vision.weights("clip").items():
        bits = (values.view(np.uint32) + 0x8000) >> 16
        raw[name] = bits.astype(np.uint16).view(ml_dtypes.bfloat16)
        rounded[name] = (bits << 16).view(np.float32)
    folder, other = (tiny_vision.write(tmp_path / name) for name in ("bf16", "f32"))
    save_file(raw, folder / "model.safetensors")
    save_file(rounded, other / "model.safetensors")
    pixels = normal(KNOWN["clip/wide/pixels"])[None]
    got, want = (
        load_vision(path, tiny_vision.HIDDEN, list).rows(pixels) for path in (folder, other)
    )
    np.testing.assert_allclose(got, want, atol=1e-5 * want.std())


def test_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tiny_vision.write(tmp_path / "m"))
    files = [str(tmp_path / f"{name}.png") for name in ("wide", "small")]
    for name, file in zip(("wide", "small"), files):
        Image.fromarray(picture(name)).save(file)
    images = [word for file in files for word in ("--image", file)]
    arguments = ["generate", folder, "hello", "--max-tokens", "7", "--weights", "f32", "--json"]
    assert main([*arguments, *images]) == 0
    told = json.loads(capsys.readouterr().out)
    model = llm.load(folder, weights="f32")
    answer = model.generate("hello", images=[picture("wide"), picture("small")], max_tokens=7)
    assert (told["text"], told["tokens"]) == ("".join(answer), answer.tokens)
    assert main([*arguments, "--image", folder]) == 2
    assert main([*arguments, "--image", f"{folder}/config.json"]) == 2
    assert main([*arguments, "--image", f"{folder}/none.png"]) == 2
    assert "Traceback" not in capsys.readouterr().err
    lines = ["/image", *(f"/image {file}" for file in files), "/image none.png", "hello", "hello"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    assert main(["chat", folder, "--max-tokens", "7", "--weights", "f32"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(told["text"] + "\n")
    assert "name the file: /image FILE\nnone.png: cannot be read" in err
    assert main(["convert", folder, "-o", str(tmp_path / "x.gguf")]) == 1
    assert "reads images, which a GGUF file does not state" in capsys.readouterr().err
    assert not (tmp_path / "x.gguf").exists()


PUBLISHED = {
    "config": {
        **{"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava"},
        **{"ignore_index": -100, "image_token_index": 32000, "pad_token_id": 32001},
        **{"projector_hidden_act": "gelu", "torch_dtype": "float16"},
        **{"vision_feature_layer": -2, "vision_feature_select_strategy": "default"},
        "text_config": {
            **{"_name_or_path": "lmsys/vicuna-7b-v1.5", "architectures": ["LlamaForCausalLM"]},
            **{"max_position_embeddings": 4096, "model_type": "llama", "rms_norm_eps": 1e-05},
            **{"torch_dtype": "float16", "vocab_size": 32064},
        },
        "vision_config": {
            **{"hidden_size": 1024, "image_size": 336, "intermediate_size": 4096},
            **{"model_type": "clip_vision_model", "num_attention_heads": 16},
            **{"num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768},
        },
    },
    "preprocessor_config": {
        **{"crop_size": 336, "do_center_crop": True, "image_std": [0.268, 0.261, 0.275]},
        **{"image_mean": [0.481, 0.457, 0.408], "resample": 3, "size": 336},
    },
}
"""Entries of LLaVA 1.5, which omits sizes that are those of Llama 7B."""


def test_files_that_omit_sizes(tmp_path: Path) -> None:
    for name, values in PUBLISHED.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(values))
    architecture, config = of_folder(tmp_path)
    assert (architecture.gguf, config.image_id) == ("llama", 32000)
    assert (config.hidden_size, config.num_layers, config.num_heads) == (4096, 32, 32)
    assert (config.vocab_size, config.max_context, config.intermediate_size) == (32064, 4096, 11008)
    vision = read_vision(tmp_path, config.hidden_size)
    assert (vision.rows, vision.layers, vision.tower.activation) == (576, (23,), "quick_gelu")
    assert vision.preprocessing.resized(640, 480) == (448, 336)
    assert vision.preprocessing.resized(333, 1000) == (336, int(336 * 1000 / 333))
