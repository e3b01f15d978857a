"""Writes `Inputs/sentencepiece_models.json`: small models, and ids and texts of theirs.

    python test/python/llm/sentencepiece_models.py

Needs the package `sentencepiece`, which trains the models on pages of `docs/`.
`test_piece_folders.py` compares with its output.
"""

import base64
import io
import json
import random
import tempfile
from pathlib import Path

OUTPUT = Path(__file__).parent / "Inputs" / "sentencepiece_models.json"
PAGES = ("symbolic_shapes.md", "patterns.md", "serving.md")
RULES = {
    "e\u0301": "\u00e9",  # of two characters
    "\u0301": "",
    "\uff21": "A",
    "\uff21\u0308": "\u00c4",
    "\u3000": " ",
    "\t": " ",
    "\u00bd": " 1/2 ",
    "\u00a8": " \u0308",
    "Q": "q",
    "\uff1c": "<",
    "\uff0f": "/",
    "\uff1e": ">",
    "fi": "\u00a7",
}
MODELS: dict[str, dict] = {
    "unigram": {
        "model_type": "unigram",
        "normalization_rule_tsv": RULES,
        "user_defined_symbols": ["<ud>", "ab cd", "Q\u3000"],
        "control_symbols": ["<ctl>"],
    },
    "unigram-bytes": {
        "model_type": "unigram",
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "split_by_whitespace": False,
        "vocab_size": 480,
    },
    "bpe": {
        "model_type": "bpe",
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "add_dummy_prefix": False,
        "user_defined_symbols": ["\n\n", "\u2581\u2581", "<b>"],
        "vocab_size": 480,
    },
    "bpe-rules": {"model_type": "bpe", "normalization_rule_tsv": RULES},
}
CHARACTERS = (
    *(
        "abdefilmnorstu    ",
        "e\u0301\u0308\uff21\u3000\u00bd\u00a8Qfi\uff1c\uff1e\uff0f",
        "\u2581 _",
    ),
    *(
        "\u65e5\u672c\u304b\u3099\ud55c\u1112\u1161\u11ab",
        "\x00\x01\t\n\r\x7f\x85\u2028\u00a0\ufeff",
    ),
    *("\U0001f600\U0001f468\u200d\U0001f469\ufe0f", "\ud7ff\ue000\uffff\ufffd\U0010ffff"),
)
WORDS = ("<ud>", "ab cd", "Q\u3000", "<unk>", "<0x41>", "<b>", "\n\n", "tensor", "the", " memory ")
EDGES = ("", " ", "   ", "\u2581", " \u2581 ", "a" * 300, " " * 300, "e\u0301" * 50, "\u0301")


def texts(count: int, seed: int) -> list[str]:
    """Texts of all kinds of characters, words and runs; none has a control token."""
    generator = random.Random(seed)

    def part() -> str:
        return generator.choice(
            [generator.choice(WORDS), generator.choice(generator.choice(CHARACTERS))]
        )

    return [
        *EDGES,
        *("".join(part() for _ in range(generator.randrange(25))) for _ in range(count)),
    ]


def main() -> None:
    """Trains the models."""
    import sentencepiece

    pages = Path(__file__).parents[3] / "docs"
    lines = [x for page in PAGES for x in (pages / page).open() if x.strip()]
    found = {}
    for name, options in MODELS.items():
        options = {"vocab_size": 260, **options}
        with tempfile.TemporaryDirectory() as folder:
            if rules := options.pop("normalization_rule_tsv", None):
                path = Path(folder) / "rules.tsv"
                codes = [
                    [" ".join(f"{ord(c):X}" for c in x) for x in rule] for rule in rules.items()
                ]
                path.write_text("".join("\t".join(rule) + "\n" for rule in codes))
                options["normalization_rule_tsv"] = str(path)
            out = io.BytesIO()
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines), model_writer=out, minloglevel=2, **options
            )
        model = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
        chosen = texts(120, seed=len(name))
        ids = [model.encode(text) for text in chosen]
        found[name] = {
            "model": base64.b64encode(out.getvalue()).decode(),
            "ids": ids,
            "decoded": [model.decode(each) for each in ids],
        }
    OUTPUT.write_text(json.dumps(found, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
