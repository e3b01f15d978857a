"""A tokenizer as data for `web/tokenizer.js`.

    {"tokens": [text, ...], "merges": [left, right, ...], "normalizer": null | "NFC" | ...,
     "added": [{id, text, special, normalized}], "steps": [...], "ignore_merges": bool,
     "before": [id, ...], "after": [id, ...]}

A step splits pieces of text: {"kind": "split", "pattern": text} isolates matches; {"kind": "bytes",
"pattern": text | null, "prefix": bool} adds a space to the front of a piece that has none, if
`prefix`, splits it, and writes bytes as characters. Ids in "merges" are pairs, best first.

Source: the format of `tokenizer.json`, of the package `tokenizers`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from relax_mlir.errors import ModelError
from relax_mlir.llm.tokenization.tokenizer import Tokenizer
from relax_mlir.llm.web.patterns import to_javascript

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The words of the pre-tokenizer `ByteLevel`."""
_UNSUPPORTED = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")
_ALONE = ("single_word", "lstrip", "rstrip")


def describe_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """The data of a tokenizer; raises ModelError for what `web/tokenizer.js` does not have."""
    return _Reader(tokenizer.where, json.loads(tokenizer.inner.to_str())).describe()


class _Reader:
    """Reads the content of a `tokenizer.json`."""

    def __init__(self, where: str, data: Mapping[str, Any]) -> None:
        self._where, self._data = where, data

    def describe(self) -> dict[str, Any]:
        model, added = self._data["model"], self._data["added_tokens"]
        if model.get("type") != "BPE":
            self._refuse("model", model.get("type"), "BPE")
        for key in _UNSUPPORTED:
            if model.get(key):
                self._refuse(f"model's {key}", model[key], "none")
        if model.get("byte_fallback"):
            self._refuse("model's byte_fallback", True, "false")
        if (self._data["decoder"] or {}).get("type") != "ByteLevel":
            self._refuse("decoder", self._data["decoder"], "ByteLevel")
        before, after = self._frame(self._data["post_processor"])
        return {
            "tokens": self._tokens(model["vocab"]),
            "merges": list(self._merges(model["vocab"], model["merges"])),
            "added": [self._added(each) for each in added],
            "normalizer": self._normalizer(self._data["normalizer"]),
            "steps": list(self._steps(self._data["pre_tokenizer"])),
            "ignore_merges": bool(model.get("ignore_merges")),
            "before": before,
            "after": after,
        }

    def _refuse(self, what: str, value: object, accepted: str) -> NoReturn:
        raise ModelError(f"{self._where}: the {what} is {value!r}; accepted: {accepted}")

    def _tokens(self, vocab: Mapping[str, int]) -> list[str | None]:
        """Texts by ids; None for ids of no token."""
        tokens: list[str | None] = [None] * (max(vocab.values(), default=-1) + 1)
        for text, id in vocab.items():
            tokens[id] = text
        return tokens

    def _merges(self, vocab: Mapping[str, int], merges: Sequence[Any]) -> Iterator[int]:
        for merge in merges:
            left, right = merge.split(" ") if isinstance(merge, str) else merge
            yield vocab[left]
            yield vocab[right]

    def _added(self, token: Mapping[str, Any]) -> dict[str, Any]:
        for key in _ALONE:
            if token.get(key):
                self._refuse(f"token {token['content']!r} with {key}", True, "false")
        keys = ("id", "special", "normalized")
        return {"text": token["content"], **{key: token[key] for key in keys}}

    def _normalizer(self, normalizer: Mapping[str, Any] | None) -> str | None:
        if normalizer is None or normalizer == {"type": "Sequence", "normalizers": []}:
            return None
        if normalizer["type"] not in FORMS:
            self._refuse("normalizer", normalizer["type"], f"none, {', '.join(FORMS)}")
        return normalizer["type"]

    def _steps(self, step: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
        kind = step["type"] if step else None
        if step and kind == "Sequence":
            for each in step["pretokenizers"]:
                yield from self._steps(each)
        elif step and kind == "ByteLevel":
            pattern = to_javascript(GPT2, self._where) if step["use_regex"] else None
            yield {"kind": "bytes", "pattern": pattern, "prefix": step["add_prefix_space"]}
        elif step and kind == "Digits":
            yield {"kind": "split", "pattern": r"\p{N}" + "+" * (not step["individual_digits"])}
        elif step and kind == "Split" and "Regex" in step["pattern"]:
            if step["behavior"] != "Isolated" or step["invert"]:
                self._refuse("behavior of a split", step["behavior"], "Isolated, not inverted")
            yield {"kind": "split", "pattern": to_javascript(step["pattern"]["Regex"], self._where)}
        else:
            self._refuse("pre-tokenizer", kind, "Sequence, ByteLevel, Digits, Split by a Regex")

    def _frame(self, processor: Mapping[str, Any] | None) -> tuple[list[int], list[int]]:
        """The ids before and after every text."""
        if processor is None or processor["type"] == "ByteLevel":
            return [], []
        if processor["type"] == "Sequence":
            frames = [self._frame(each) for each in processor["processors"]]
            before = [id for frame in reversed(frames) for id in frame[0]]
            return before, [id for frame in frames for id in frame[1]]
        if processor["type"] != "TemplateProcessing":
            self._refuse("post-processor", processor["type"], "ByteLevel, TemplateProcessing")
        parts: tuple[list[int], list[int]] = [], []
        is_after = False
        for item in processor["single"]:
            if "Sequence" in item:
                is_after = True
                continue
            name = item["SpecialToken"]["id"]
            parts[is_after].extend(processor["special_tokens"][name]["ids"])
        return parts
