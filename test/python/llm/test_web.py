"""Models for the web: tokenizers and chat templates as data, and the folder, run in Node."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from tiny_models import ALPHABET, CONFIG, SPECIAL, TEMPLATE, random_weights, write_gguf, write_hf
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from relax_mlir import llm
from relax_mlir.errors import ModelError
from relax_mlir.llm.tokenization.chat import ChatTemplate
from relax_mlir.llm.tokenization.tokenizer import PRE_TOKENIZERS, Tokenizer
from relax_mlir.llm.web import export
from relax_mlir.llm.web.patterns import to_javascript
from relax_mlir.llm.web.tokens import describe_tokenizer
from relax_mlir.llm.web.turns import describe_template, render
from relax_mlir.tools.relax_llm import main

NODE = shutil.which("node")
WEB = Path(__file__).parents[3] / "web"
DOCS = Path(__file__).parents[3] / "docs"
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")
CHATML = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nDefault<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
STRIPPED = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}"
    "{% endif %}[{{ m.role }}]{{ m.content | trim }}{% if m.role == 'assistant' %}{{ eos_token }}"
    "{% endif %}{% endfor %}[assistant]"
)


def node(script: str, *arguments: object) -> object:
    """What a script prints as JSON; WEB is where the loader is."""
    head = "const WEB = process.argv[1]; const [, , ...given] = process.argv;\n"
    command = [NODE, "--input-type=module", "-e", head + script, str(WEB), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def trained(rule: str, seed: int, **changes: bool) -> Tokenizer:
    """A tokenizer with the words of a rule, trained on pages of the documentation."""
    inner = tokenizers.Tokenizer(models.BPE(ignore_merges=rule == "llama-bpe"))
    inner.pre_tokenizer = PRE_TOKENIZERS[rule](changes.get("prefix", False))
    inner.decoder = decoders.ByteLevel()
    if rule == "qwen2":
        inner.normalizer = normalizers.NFC()
    alphabet = ALPHABET if seed % 2 else [each for each in ALPHABET if each not in "\u0100\u0105Z"]
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1500, initial_alphabet=alphabet, show_progress=False
    )
    pages = sorted(DOCS.glob("*.md"))[seed::5]
    inner.train_from_iterator([page.read_text() for page in pages], trainer)
    special = [AddedToken(text, special=True, normalized=False) for text in (*SPECIAL, "<|a|>b")]
    inner.add_tokens([*special, AddedToken("caf\u00e9 plain", normalized=True), "<|a|>"])
    if changes.get("frame"):
        inner.post_processor = processors.TemplateProcessing(
            [SPECIAL[0], "$A", SPECIAL[1]],
            special_tokens=[(each, inner.token_to_id(each)) for each in SPECIAL],
        )
    return Tokenizer(inner, None, None)


PIECES = [
    *(
        "hello",
        " world",
        "'s",
        "'LL",
        "'\u017f",
        "\u017f",
        "don't",
        "1234567",
        "\u00bd\u0663",
        "\n",
        "\r\n \n",
    ),
    *(
        "   ",
        "\t",
        "\u0085",
        "\ufeff",
        "\u00a0",
        "\u2003",
        "\u3000",
        "e\u0301",
        "caf\u00e9 plain",
        "cafe\u0301 plain",
    ),
    *(
        "<|begin|>",
        "<|im_end|>",
        "<|a|>b",
        "<|a|>",
        "<|begin|",
        "\u4f60\u597d",
        "\U0001f600",
        "\U0001f468\u200d\U0001f469",
    ),
    *(
        "\u0000",
        "\u0007",
        "\u007f",
        "\u00ad",
        "\u0e01\u0e33",
        "\u0915\u094d",
        "\u1e9e\u00df",
        "\U00010ffff",
        "Z",
        "...",
        "!?",
        "-->",
    ),
    *(
        "a" * 40,
        "aaaa ",
        " \u212a'\u212a",
        "\u2028",
        "\u200b",
        "\ud7ff",
        "\ue000",
        "_x",
        "x_y",
        "{}[]()",
    ),
]


def random_text(rng: random.Random) -> str:
    def piece() -> str:
        kind = rng.random()
        if kind < 0.6:
            return rng.choice(PIECES)
        if kind < 0.8:
            return "".join(chr(rng.randrange(32, 127)) for _ in range(rng.randrange(6)))
        code = rng.choice((0x250, 0x3000, 0xD800, 0xFFFF, 0x2FFFF))
        return chr(rng.randrange(code)) if code <= 0xD800 else chr(rng.randrange(0xE000, code))

    return "".join(piece() for _ in range(rng.randrange(12)))


@needs_node
@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("gpt-2", {"prefix": True}),
        ("smollm", {"frame": True}),
        ("llama-bpe", {}),
        ("qwen2", {}),
    ],
)
def test_tokenizer(rule: str, changes: dict, tmp_path: Path) -> None:
    """Ids, texts, and texts of parts of the ids are those of the package `tokenizers`."""
    rng = random.Random(f"{rule}{random.randrange(1 << 30)}")
    tokenizer = trained(rule, rng.randrange(5), **changes)
    texts = ["", "a" * 5000, " " * 300, *(random_text(rng) for _ in range(1500))]
    assigned = [each for each in texts if _is_assigned(each)]
    (tmp_path / "texts.json").write_text(json.dumps(assigned))
    (tmp_path / "tokenizer.json").write_text(json.dumps(describe_tokenizer(tokenizer)))
    script = """
      import { readFileSync } from "node:fs";
      const { Tokenizer } = await import(`${WEB}/tokenizer.js`);
      const read = (name) => JSON.parse(readFileSync(`${given[0]}/${name}`));
      const tokenizer = new Tokenizer(read("tokenizer.json"));
      console.log(JSON.stringify(read("texts.json").map((text) => {
        const ids = tokenizer.encode(text), plain = tokenizer.encode(text, { addSpecial: false });
        const all = tokenizer.decode(ids, { skipSpecial: false });
        return [ids, plain, tokenizer.decode(ids), all, tokenizer.decode(ids.slice(1, 4))];
      })));
    """
    for text, actual in zip(assigned, node(script, tmp_path), strict=True):
        ids = tokenizer.encode(text)
        plain = tokenizer.encode(text, add_special_tokens=False)
        decoded = tokenizer.decode(ids), tokenizer.decode(ids, skip_special_tokens=False)
        assert actual == [ids, plain, *decoded, tokenizer.decode(ids[1:4])], ascii(text)


def _is_assigned(text: str) -> bool:
    """Whether no character is one that versions of Unicode may differ on."""
    import unicodedata

    return not any(unicodedata.category(each) == "Cn" for each in text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: setattr(t, "model", models.WordPiece({"a": 0})), "the model is 'WordPiece'"),
        (
            lambda t: setattr(t, "model", models.BPE({"a": 0}, [], unk_token="a")),
            "unk_token is 'a'",
        ),
        (lambda t: setattr(t, "model", models.BPE({}, [], byte_fallback=True)), "byte_fallback"),
        (lambda t: setattr(t, "decoder", decoders.Fuse()), "the decoder is {'type': 'Fuse'}"),
        (lambda t: setattr(t, "normalizer", normalizers.Lowercase()), "normalizer is 'Lowercase'"),
        (lambda t: setattr(t, "pre_tokenizer", pre_tokenizers.Whitespace()), "'Whitespace'"),
        (
            lambda t: setattr(
                t, "pre_tokenizer", pre_tokenizers.Split(tokenizers.Regex("a"), "removed")
            ),
            "behavior of a split is 'Removed'",
        ),
        (
            lambda t: setattr(t, "post_processor", processors.BertProcessing(("a", 0), ("b", 1))),
            "post-processor is 'BertProcessing'",
        ),
        (lambda t: t.add_tokens([AddedToken("q", lstrip=True)]), "token 'q' with lstrip is True"),
    ],
)
def test_tokenizers_that_are_refused(change, message: str) -> None:
    tokenizer = trained("smollm", 1)
    change(tokenizer.inner)
    with pytest.raises(ModelError, match="accepted") as error:
        describe_tokenizer(tokenizer)
    assert message in str(error.value)


def test_patterns() -> None:
    assert to_javascript(r"(?i:'s|k)x", "t") == "(?:'[sS\u017f]|[kK\u212a])x"
    assert (
        to_javascript(r"[^\s\-a]\S\d\-\/", "t") == r"[^\p{White_Space}\-a]\P{White_Space}\p{Nd}-\/"
    )
    assert (
        to_javascript(r"\s+(?!\S)|\p{N}{1,3}", "t")
        == r"\p{White_Space}+(?!\P{White_Space})|\p{N}{1,3}"
    )
    for pattern in ("a++", "a?+", "(?x)a", r"\w", "[a&&b]", "[[:alpha:]]", r"\1", "(?i:\u00e9)"):
        with pytest.raises(ModelError, match="accepted are groups"):
            to_javascript(pattern, "t")


@pytest.mark.parametrize("source", [TEMPLATE, CHATML, STRIPPED])
def test_templates(source: str) -> None:
    template = ChatTemplate(source, "<s>", "</s>")
    turns = describe_template(template, "model")
    assert ("system" in turns["start"]) == ("raise" not in source)
    contents = ["", " a ", "{{ b }}", "\n", "<|im_end|>"]
    messages = [
        {"role": role, "content": each}
        for role, each in zip(("user", "assistant") * 3, contents, strict=False)
    ]
    assert render(turns, messages) == template.render(messages)


@pytest.mark.parametrize(
    "source",
    [
        "{% for m in messages %}{{ loop.index }}{{ m.content }}{% endfor %}",
        "{{ messages[-1].content }}",
        "{% for m in messages %}{{ m.content | upper }}{% endfor %}",
    ],
)
def test_templates_that_are_refused(source: str) -> None:
    with pytest.raises(ModelError):
        describe_template(ChatTemplate(source), "model")


RUN = """
  const { load, RelaxError } = await import(`${WEB}/llm.js`);
  const seen = [];
  const model = await load(given[0], { progress: (state) => seen.push(state) });
  const refused = async (action) => {
    try { await action(); } catch (error) {
      if (!(error instanceof RelaxError)) throw error;
      return error.message;
    }
  };
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> tuple[Path, Path]:
    """A tiny model, and its folder for the web."""
    root = tmp_path_factory.mktemp("web")
    path = write_hf(root / "model", random_weights())
    (path / "chat_template.jinja").write_text(TEMPLATE)
    patch = pytest.MonkeyPatch()
    patch.setattr(export, "CHUNK_BYTES", 10007)
    try:
        assert main(["export-web", str(path), "-o", str(root / "site")]) == 0
    finally:
        patch.undo()
    return path, root / "site"


@needs_node
def test_generation(site) -> None:
    """Tokens and texts are those of the native decoder: prompts, a conversation, full caches."""
    path, folder = site
    model = llm.load(str(path))
    script = """
      const tokens = [];
      for (const [prompt, options] of JSON.parse(given[1])) {
        const answer = model.generate(prompt, options);
        const text = await answer.text();
        tokens.push([text, answer.tokens, answer.stopReason]);
      }
      const session = model.session();
      const ask = [{ role: "user", content: "hello" }];
      const first = model.generate(ask, { session, maxTokens: 4 });
      const text = await first.text();
      const longer = [...ask, { role: "assistant", content: text }, ...ask];
      const again = model.generate(longer, { session, maxTokens: 4 });
      await again.text();
      const logits = Array.from(await model.session().append(model.tokenizer.encode("hello 12")));
      const last = seen.at(-1);
      const reused = again.statistics.reusedTokens;
      console.log(JSON.stringify({ tokens, again: again.tokens, reused, logits,
        loaded: last.loaded === last.total, files: seen.length }));
    """
    cases = [
        ["hello", {"raw": True, "maxTokens": 8}],
        ["hello world", {"maxTokens": 20}],
        ["12", {"raw": True, "maxTokens": None}],
        ["hello", {"raw": True, "maxTokens": 9, "repetitionPenalty": 1.5}],
    ]
    actual = node(RUN + script, folder, json.dumps(cases))
    assert actual["loaded"]
    assert actual["files"] > len(list(folder.glob("weights-*.bin"))) > 10
    for (prompt, options), case in zip(cases, actual["tokens"], strict=True):
        answer = model.generate(
            prompt,
            raw=options.get("raw", False),
            max_tokens=options["maxTokens"],
            repetition_penalty=options.get("repetitionPenalty", 1.0),
        )
        assert case == ["".join(answer), answer.tokens, answer.stop_reason]
    assert actual["reused"] > 4
    expected = model.logits(model.tokenizer.encode("hello 12"))[-1]
    np.testing.assert_allclose(actual["logits"], expected, rtol=1e-4, atol=1e-5)


@needs_node
def test_what_the_loader_refuses(site, tmp_path) -> None:
    script = """
      const session = model.session(4);
      console.log(JSON.stringify([
        await refused(() => model.session(65)),
        await refused(() => session.append([])),
        await refused(() => session.append([1, 2, 3, 4, 5])),
        await refused(() => session.append([9999])),
        await refused(() => session.truncate(1)),
        await refused(() => model.generate("a", { maxTokens: -1 })),
        await refused(() => model.generate("a", { temperature: -1 })),
        await refused(() => model.generate([{ role: "assistant", content: "" }])),
        await refused(() => model.generate([])),
        await refused(() => model.generate("\\ud800")),
        await refused(() => model.generate("a", { stop: "" }).text()),
        await load("/nowhere").catch((error) => error.code),
      ]));
    """
    assert node(RUN + script, site[1]) == [
        "capacity is 65; expects 1 to 64, the context",
        "no tokens are given; expects one or more",
        "5 new tokens do not fit after 0 in a context of 4",
        f"token 9999 is not in the vocabulary of {CONFIG.vocab_size} tokens",
        "length is 1; the session has 0 tokens",
        "maxTokens is -1; expects an integer >= 0, or null",
        "temperature is -1; expects a number >= 0",
        *[
            f"{why}; expects an optional system message, then user and assistant in turn, "
            "up to user"
            for why in ["the last message is not of role user"] * 2
        ],
        "the text cannot be encoded: it is not a string of valid Unicode",
        "a stop text is empty; expects one character or more",
        "ENOENT",
    ]


@needs_node
@pytest.mark.parametrize("change", ["short", "long", "missing", "version"])
def test_damaged_folders(change: str, site, tmp_path) -> None:
    folder = shutil.copytree(site[1], tmp_path / "site")
    manifest = json.loads((folder / "manifest.json").read_text())
    first = folder / manifest["weights"][0]["file"]
    if change == "short":
        first.write_bytes(first.read_bytes()[:-1])
    elif change == "long":
        first.write_bytes(first.read_bytes() + b"1")
    elif change == "missing":
        manifest["weights"].pop()
    else:
        manifest["version"] = 99
    (folder / "manifest.json").write_text(json.dumps(manifest))
    script = """
      const { load, RelaxError } = await import(`${WEB}/llm.js`);
      const error = await load(given[0]).catch((error) => error);
      console.log(JSON.stringify([error instanceof RelaxError, error.message]));
    """
    size = manifest["weights"][0]["bytes"]
    expected = {
        "short": f"weights-000.bin has not the {size} bytes of manifest.json",
        "long": f"weights-000.bin has not the {size} bytes of manifest.json",
        "missing": "there are fewer weights than the decoder takes",
        "version": "manifest.json has version 99, but this loader reads 1",
    }
    assert node(script, folder) == [True, expected[change]]


@needs_node
def test_sampling() -> None:
    """Draws follow the probabilities of float64; filters keep what they say; seeds repeat."""
    logits = [0.5, 2.0, -1.0, 2.0, 1.0]
    script = """
      const { Sampler, RelaxError } = await import(`${WEB}/llm.js`);
      const logits = Float32Array.from(JSON.parse(given[0]));
      const counts = (options) => {
        const sampler = new Sampler(options), all = Array(logits.length).fill(0);
        for (let draw = 0; draw < 20000; draw++) all[sampler.sample(logits)]++;
        return all;
      };
      const draws = (seed) => {
        const sampler = new Sampler({ temperature: 1, seed });
        return Array.from({ length: 50 }, () => sampler.sample(logits));
      };
      const refused = (values) => {
        try { new Sampler().sample(Float32Array.from(values)); }
        catch (error) { return error.message; }
      };
      console.log(JSON.stringify({
        plain: counts({ temperature: 1, seed: 1 }), cold: counts({ temperature: 0.5, seed: 2 }),
        topK: counts({ temperature: 1, topK: 3, seed: 3 }),
        topP: counts({ temperature: 1, topP: 0.4, seed: 4 }),
        greedy: new Sampler().sample(logits),
        penalized: new Sampler({ repetitionPenalty: 3 }).sample(logits, [1, 1]),
        same: `${draws(7)}` === `${draws(7)}`, differs: `${draws(7)}` !== `${draws(8)}`,
        refused: [refused([1, NaN]), refused([-Infinity]), refused([])],
      }));
    """
    actual = node(script, json.dumps(logits))
    weights = np.exp(np.array(logits))
    only = np.array([0, 1, 0, 1, 1]), np.array([0, 1, 0, 1, 0])
    expected = {
        "plain": weights,
        "cold": weights**2,
        "topK": weights * only[0],
        "topP": weights * only[1],
    }
    for name, values in expected.items():
        shares = np.array(actual[name]) / 20000
        np.testing.assert_allclose(shares, values / values.sum(), atol=0.02)
        assert not shares[values == 0].any()
    assert (actual["greedy"], actual["penalized"]) == (1, 3)
    assert actual["same"]
    assert actual["differs"]
    assert actual["refused"][0] == "the largest logit is NaN; expects a finite number"
    assert actual["refused"][1] == "the largest logit is -Infinity; expects a finite number"


def test_what_export_refuses(tmp_path, monkeypatch, capsys) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", random_weights())
    assert main(["export-web", str(path), "-o", str(tmp_path / "a"), "--target", "x86-64"]) == 2
    assert "pages take one of WebAssembly" in capsys.readouterr().err
    monkeypatch.setattr(export, "MOST_BYTES", 1000)
    assert main(["export-web", str(path), "-o", str(tmp_path / "a")]) == 1
    assert "all memory of a WebAssembly module is 2^32" in capsys.readouterr().err
    monkeypatch.setattr(export, "MOST_BYTES_OF_TENSOR", 1000)
    assert main(["export-web", str(path), "-o", str(tmp_path / "a")]) == 1
    assert "fewer bits (--weights q4_1) take less" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
