"""Adapters that requests choose, against merged weights in float64: alone, in batches, served."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import openai
import pytest
import tiny_vision
from architecture_cases import TOKENS, write
from reference_llama import logits as reference
from scripted_engine import running
from test_adapters import write_adapter
from tiny_models import CONFIG, random_weights, write_gguf

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm import load
from relax_mlir.llm.batching.batch import Batch, Run
from relax_mlir.llm.batching.engine import Engine
from relax_mlir.llm.batching.request import Request
from relax_mlir.llm.checkpoints.adapters import read_adapter
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.checkpoints.hf_reader import HuggingFaceWeights
from relax_mlir.llm.checkpoints.stacked_adapters import StackedAdapters
from relax_mlir.llm.decoder.decoder import Settings, decoder_for
from relax_mlir.llm.generation.conversation import Conversation
from relax_mlir.llm.generation.generation import Generation, Statistics
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.modules.decoder import Transformer
from relax_mlir.llm.modules.nn import Storage
from relax_mlir.llm.serving.engines import Served
from relax_mlir.llm.serving.limits import State
from relax_mlir.tools.relax_llm import main

LAYERS = [f"model.layers.{i}" for i in range(CONFIG.num_layers)]
RANKS = {
    "plain": {f"{x}.self_attn.{m}_proj": 3 for x in LAYERS for m in ("q", "v")},
    "wide": {f"{x}.mlp.{m}_proj": 3 for x in LAYERS for m in ("gate", "up", "down")},
    "head": {"lm_head": 3, f"{LAYERS[1]}.self_attn.q_proj": 1, f"{LAYERS[0]}.mlp.up_proj": 2},
}
"""Ranks by module of three adapters."""
LENGTHS = (1, 2, 5, 11, 16, 17, 19)
PAGES = 20


class Adapted:
    """A model with adapters, and the weights that each merges to, float64; None has the model's."""

    def __init__(self, folder) -> None:
        weights = random_weights()
        self.path = str(write_gguf(folder / "tiny.gguf", weights))
        self.weights = {None: {name: w.astype(np.float64) for name, w in weights.items()}}
        self.folders = {}
        for seed, (name, ranks) in enumerate(RANKS.items()):
            modules = {m: (*weights[f"{m}.weight"].shape, r) for m, r in ranks.items()}
            tensors = write_adapter(folder / name, modules, seed, lora_alpha=0.25)
            self.folders[name] = str(folder / name)
            merged = dict(self.weights[None])
            for module, rank in ranks.items():
                a, b = (
                    tensors[f"base_model.model.{module}.lora_{part}.weight"].astype(np.float64)
                    for part in "AB"
                )
                merged[f"{module}.weight"] = merged[f"{module}.weight"] + 0.25 / rank * (b @ a)
            self.weights[name] = merged

    def logits(self, tokens, adapter=None) -> np.ndarray:
        return reference(CONFIG, self.weights[adapter].__getitem__, np.array(tokens), np.float64)


@pytest.fixture(scope="module")
def adapted(tmp_path_factory) -> Adapted:
    return Adapted(tmp_path_factory.mktemp("adapted"))


@pytest.fixture(scope="module")
def alone(adapted):
    return load(adapted.path, weights="f32", threads=2, adapters=adapted.folders)


@pytest.fixture(scope="module")
def engine(adapted):
    with Engine.load(
        adapted.path, weights="f32", threads=2, pages=40, adapters=adapted.folders
    ) as engine:
        yield engine


def close(found, expected) -> None:
    assert np.abs(found - expected).max() < 1e-5 * np.ptp(expected)


def batch_of(path: str, adapters: dict[str, str]) -> Batch:
    checkpoint = open_checkpoint(path, adapters=adapters)
    decoder = decoder_for(checkpoint, Settings("f32", batched=True), 2)
    main_ = decoder.executable["main"]
    return Batch(main_, checkpoint.config, decoder.parameters, PAGES, len(adapters))


def test_logits_are_those_of_merged_weights(adapted, alone):
    tokens = np.random.default_rng().integers(0, CONFIG.vocab_size, 37)
    seen = []
    for name in (None, *RANKS):
        expected = adapted.logits(tokens, name)
        close(alone.logits(tokens, name), expected)
        assert all(np.abs(expected - other).max() > 0.01 for other in seen)
        seen.append(expected)
    assert np.array_equal(
        alone.logits(tokens), load(adapted.path, weights="f32", threads=2).logits(tokens)
    )


def test_a_ragged_batch(adapted):
    """All adapters and none in each step, in chunks; without an adapter, the bits are the same."""
    random = np.random.default_rng()
    names = [None, *RANKS]
    adapters = random.permutation([i % len(names) for i in range(len(LENGTHS))]).tolist()
    prompts = [random.integers(0, CONFIG.vocab_size, n).tolist() for n in LENGTHS]
    pages = random.permutation(PAGES).tolist()
    tables = [[pages.pop(), pages.pop()] for _ in prompts]
    wanted = [adapted.logits(p, names[a]) for p, a in zip(prompts, adapters)]
    batch, plain = batch_of(adapted.path, adapted.folders), batch_of(adapted.path, {})
    done = [0] * len(prompts)
    while any(at < len(prompt) for at, prompt in zip(done, prompts)):
        runs, expected = [], []
        for i, prompt in enumerate(prompts):
            new = prompt[done[i] : done[i] + int(random.integers(1, 8))]
            if new:
                runs.append(Run(new, done[i], tables[i], len(new), adapter=adapters[i]))
                expected.append(wanted[i][done[i] : done[i] + len(new)])
                done[i] += len(new)
        close(batch.step(runs), np.concatenate(expected))
    runs = [Run(prompt, 0, table, 1) for prompt, table in zip(prompts, tables)]
    assert np.array_equal(batch.step(runs), plain.step(runs))
    for index in (-1, 4):
        with pytest.raises(UsageError, match=f"adapter {index} is not one of 3"):
            batch.step([replace(runs[0], adapter=index)])
    with pytest.raises(UsageError, match="adapter 1 is not one of 0"):
        plain.step([replace(runs[0], adapter=1)])


def test_answers_of_generate(adapted, alone):
    session = alone.session(adapter="wide")
    answers = {
        name: alone.generate("hello w1", max_tokens=12, raw=True, adapter=name)
        for name in (None, *RANKS)
    }
    for name, answer in answers.items():
        tokens = alone.encode("hello w1", raw=True)
        list(answer)
        for token in answer.tokens:
            assert token == adapted.logits(tokens, name)[-1].argmax()
            tokens.append(token)
    drawn = [list(s) for s in alone.samples("hello", 2, adapter="head", seed=3, temperature=2.0)]
    again = alone.generate("hello", adapter="head", seed=4, temperature=2.0)
    assert drawn[1] == list(again)
    list(alone.generate("hello w1", max_tokens=12, raw=True, session=session))
    close(session.fork().append([5])[0], adapted.logits([*session.tokens, 5], "wide")[-1])
    assert list(session.tokens[-3:]) == answers["wide"].tokens[8:11]
    greedy = {
        name: tuple(alone.beams("hello w1", 1, max_tokens=12, raw=True, adapter=name)[0].tokens)
        for name in answers
    }
    assert len(set(greedy.values())) == len(answers)
    for name, answer in answers.items():
        assert list(greedy[name][:12]) == [*answer.tokens, *alone.config.eos_ids][:12]
    with pytest.raises(UsageError, match="the session is not of adapter 'head'"):
        alone.generate("hello", session=session, adapter="head")
    with pytest.raises(UsageError, match="has no adapter 'none'; it has plain, wide, head"):
        alone.generate("hello", adapter="none")


def test_pages_are_of_one_adapter(alone, engine):
    """The same long prompt at the same time and afterwards: only equal adapters share pages."""
    prompt = np.random.default_rng().integers(2, CONFIG.vocab_size, 40).tolist()
    names = [None, *RANKS, None, *RANKS]
    tickets = [engine.submit(Request(prompt, max_tokens=8, adapter=name)) for name in names]
    found = [[t for event in ticket for t in event.tokens] for ticket in tickets]
    for name, tokens in zip(names, found):
        session = alone.session(adapter=name)
        row, expected = session.append(prompt)[0], []
        while len(expected) < 8 and (token := int(row.argmax())) not in CONFIG.eos_ids:
            expected.append(token)
            row = session.append([token])[0]
        assert tokens == expected
    assert [ticket.reused > 0 for ticket in tickets] == [False] * 4 + [True] * 4
    ticket = engine.submit(Request(prompt, max_tokens=90, adapter="head", keep=5))
    tokens = [token for event in ticket for token in event.tokens]
    longer = Generation(
        *(alone.session(adapter="head"), prompt, alone.tokenizer, Sampler()),
        *(alone.config.eos_ids, 90, Statistics()),
        keep=5,
    )
    list(longer)
    assert tokens == longer.tokens
    with pytest.raises(UsageError, match="no adapter 'other'"):
        engine.submit(Request([5], adapter="other"))


def test_served(alone, engine):
    served = Served("tiny", engine).with_adapters()
    with (
        running(State(served)) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
    ):
        listed = {model.id: getattr(model, "parent", None) for model in client.models.list()}
        assert listed == {"tiny": None, **dict.fromkeys(RANKS, "tiny")}
        for name in listed:
            adapter = None if name == "tiny" else name
            answer = client.completions.create(
                model=name, prompt="hello w1", max_tokens=9, temperature=0
            )
            texts = alone.generate("hello w1", max_tokens=9, raw=True, adapter=adapter)
            assert (answer.model, answer.choices[0].text) == (name, "".join(texts))
        messages = [{"role": "user", "content": "hello"}]
        chat = client.chat.completions.create(
            model="wide", messages=messages, temperature=0, max_tokens=9
        )
        texts = alone.generate("hello", max_tokens=9, adapter="wide")
        assert chat.choices[0].message.content == "".join(texts)
        with pytest.raises(openai.NotFoundError, match="no model 'x'; there are tiny, plain") as e:
            client.completions.create(model="x", prompt="a")
        assert e.value.code == "model_not_found"


def test_files_of_prompts(adapted, alone, tmp_path, capsys):
    lines = [{"id": str(name), "prompt": "hello", "adapter": name} for name in RANKS]
    lines += [{"id": "None", "prompt": "hello"}, {"id": "x", "prompt": "a", "adapter": "x"}]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    files = [str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl")]
    options = ["--weights", "f32", "--threads", "2", "--max-tokens", "9", "--raw", "--quiet"]
    options += [f"--adapter={name}={folder}" for name, folder in adapted.folders.items()]
    assert main(["batch", adapted.path, *files, *options]) == 1
    found = {x["id"]: x for x in map(json.loads, (tmp_path / "out.jsonl").open())}
    for name in (None, *RANKS):
        texts = alone.generate("hello", max_tokens=9, raw=True, adapter=name)
        assert found[str(name)]["text"] == "".join(texts)
    assert "no adapter 'x'" in found["x"]["error"]


def test_a_conversation(alone):
    conversation = Conversation(alone, adapter="head")
    text = "".join(conversation.ask("hello", max_tokens=5))
    assert text == "".join(alone.generate("hello", max_tokens=5, adapter="head"))


FUSED = {
    "phi3": ["model.layers.0.self_attn.qkv_proj", "model.layers.2.mlp.gate_up_proj"],
    "gpt2": ["transformer.h.0.attn.c_attn", "transformer.h.1.mlp.c_proj"],
    "gpt-neox": ["gpt_neox.layers.0.attention.query_key_value"],
    "cohere": ["model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.k_proj"],
    "deepseek3": [
        *(f"model.layers.1.self_attn.{m}_proj" for m in ("q_b", "o")),
        "model.layers.0.self_attn.kv_a_proj_with_mqa",
        "model.layers.2.mlp.shared_experts.up_proj",
    ],
    "qwen2-moe": ["model.layers.0.mlp.gate", "model.layers.0.mlp.shared_expert_gate"],
}
"""Modules whose rows have another order in the decoder, are fused, or are of special layers."""


@pytest.mark.rotate(6)
@pytest.mark.parametrize("case", FUSED)
def test_other_architectures(tmp_path, case):
    folder = write(tmp_path / "m", case)
    source = HuggingFaceWeights(folder)
    shapes = source.config.weight_shapes()
    tensors = {t.name: t for t in source.architecture.hf_tensors(source.config)}
    modules = {}
    for rank, module in enumerate(FUSED[case], 1):
        parts = tensors[f"{module}.weight"].parts
        modules[module] = (sum(shapes[p][0] for p in parts), shapes[parts[0]][1], rank)
    write_adapter(tmp_path / "a", modules, lora_alpha=0.25)
    adapters = {"other": str(tmp_path / "a"), "a": str(tmp_path / "a")}
    model = load(str(folder), weights="f32", threads=2, adapters=adapters)
    merged = load(str(folder), weights="f32", threads=2, lora=adapters["a"]).logits(TOKENS)
    close(model.logits(TOKENS, "a"), merged)
    assert np.abs(model.logits(TOKENS) - merged).max() > 1e-3 * np.ptp(merged)


def test_prompts_on_images(tmp_path):
    """In pieces that end within an image, alone and in a batch."""
    folder = str(tiny_vision.write(tmp_path / "m"))
    shapes = HuggingFaceWeights(Path(folder)).config.weight_shapes()
    modules = {m: (*shapes[f"{m}.weight"], 3) for m in RANKS["plain"] if f"{m}.weight" in shapes}
    for seed, name in enumerate("ab"):
        write_adapter(tmp_path / name, modules, seed, lora_alpha=0.25)
    adapters = {name: str(tmp_path / name) for name in "ab"}
    merged = load(folder, weights="f32", threads=2, lora=adapters["b"])
    ids = merged.tokenizer.encode(f"{tiny_vision.IMAGE} hello", add_special_tokens=False)
    ids, pictures = merged.placed(ids, [tiny_vision.picture("wide")])
    reference = merged.session()
    expected = [reference.append(ids, 1, pictures)[0].copy(), reference.append([5])[0]]
    session = load(folder, weights="f32", threads=2, adapters=adapters).session(adapter="b")
    for begin in range(0, len(ids), 7):
        found = session.append(ids[begin : begin + 7], 1, pictures)
    close(found[0], expected[0])
    close(session.append([5])[0], expected[1])
    others = [Run(ids, 0, [i, i + 3], 1, pictures, adapter=i) for i in range(2)]
    found = batch_of(folder, adapters).step([*others, Run(ids, 0, [2, 5], 1, pictures, adapter=2)])
    close(found[2], expected[0])
    assert np.abs(found[0] - found[2]).max() > 0.01


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--adapter", "a"], "an adapter is 'a'; expects NAME=FOLDER"),
        (["--adapter", "a=b", "--adapter", "a=c"], "two adapters have the name 'a'"),
        (["m=x", "--adapter", "m=b"], "a model and an adapter have the name 'm'"),
        (["m=x", "n=y", "--adapter", "a=b"], "adapters are of one model, but 2 are given"),
        (["{path}", "--adapter", "a=/none"], "expects a folder of PEFT"),
    ],
)
def test_wrong_options(adapted, options, message, capsys):
    given = [each.format(path=adapted.path) for each in options]
    assert main(["serve", "--port", "0", *given]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("case", ["llama", "phi3", "gpt2", "falcon", "qwen2-moe", "deepseek3"])
def test_matrices_that_requests_may_adapt(tmp_path, case):
    """Each that is accepted is a parameter of the graph; others are refused by name."""
    source = HuggingFaceWeights(write(tmp_path / "m", case))
    shapes = source.config.weight_shapes()
    taken = refused = 0
    for i, tensor in enumerate(source.architecture.hf_tensors(source.config)):
        first = shapes[tensor.parts[0]]
        if len(first) != 2 or tensor.matrices or not tensor.name.endswith(".weight"):
            continue
        module = tensor.name.removesuffix(".weight")
        rows = sum(shapes[part][0] for part in tensor.parts)
        write_adapter(tmp_path / str(i), {module: (rows, first[1], 2)})
        adapter = read_adapter(tmp_path / str(i))
        if any(word in tensor.parts[0] for word in ("embed", "experts", "k_b_proj")):
            message = f"adapts '{module}', which requests cannot choose"
            with pytest.raises(ModelError, match=message):
                StackedAdapters(source, [adapter])
            refused += 1
            continue
        stacked = StackedAdapters(source, [adapter])
        storage = Storage(changes=stacked.changes)
        names = {p.name for p in Transformer(source.config, storage).parameters()}
        for part in tensor.parts:
            assert f"{part.removesuffix('.weight')}.lora_A" in names
            assert f"{part.removesuffix('.weight')}.lora_B" in names
        taken += 1
    assert taken > 4
    assert refused > 0
