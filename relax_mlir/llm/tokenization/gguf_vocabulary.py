"""The keys of a GGUF file for the tokenizer of a Hugging Face folder.

Source: GGUF specification, `tokenizer.ggml.*`.
"""

import json
from pathlib import Path
from typing import Any

from relax_mlir.errors import ModelError
from relax_mlir.llm.formats.gguf_file import CONTROL_TOKEN
from relax_mlir.llm.modules.config import DecoderConfig
from relax_mlir.llm.tokenization.chat import hugging_face_chat_template
from relax_mlir.llm.tokenization.tokenizer import (
    ENDS,
    PRE_TOKENIZERS,
    USER_DEFINED_TOKEN,
    Tokenizer,
)

NORMAL_TOKEN, UNUSED_TOKEN = 1, 5


def vocabulary_of(folder: Path, config: DecoderConfig) -> dict[str, Any]:
    """The keys; raises ModelError for a tokenizer that a GGUF file cannot state."""
    tokenizer = Tokenizer.from_hugging_face(folder)
    where = folder / "tokenizer.json"
    state = json.loads(tokenizer.inner.to_str())
    model = state["model"]
    if model.get("type") != "BPE" or model.get("byte_fallback"):
        raise ModelError(f"{where}: is no byte-level BPE, which alone can be converted")
    rule, prefix = _rule_of(where, state)
    if tokenizer.vocab_size > config.vocab_size:
        raise ModelError(
            f"{where}: has {tokenizer.vocab_size} tokens, but the model {config.vocab_size}"
        )
    special = {token["id"]: token["special"] for token in state["added_tokens"]}
    tokens = [f"[PAD{i}]" for i in range(config.vocab_size)]
    kinds = [UNUSED_TOKEN] * config.vocab_size
    for token, id in tokenizer.inner.get_vocab(with_added_tokens=True).items():
        tokens[id], kinds[id] = token, NORMAL_TOKEN
    for id, is_special in special.items():
        kinds[id] = CONTROL_TOKEN if is_special else USER_DEFINED_TOKEN
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    keys: dict[str, Any] = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": rule,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.add_space_prefix": prefix,
    }
    framed = tokenizer.encode("a")
    for end, text in zip(ENDS, (tokenizer.bos_token, tokenizer.eos_token), strict=True):
        if text is not None and (end_id := tokenizer.id_of(text)) is not None:
            keys[f"tokenizer.ggml.{end}_token_id"] = end_id
            outer = framed[:1] if end == "bos" else framed[-1:]
            keys[f"tokenizer.ggml.add_{end}_token"] = outer == [end_id]
    if (template := hugging_face_chat_template(folder)) is not None:
        keys["tokenizer.chat_template"] = template
    return keys


def _rule_of(where: Path, state: dict[str, Any]) -> tuple[str, bool]:
    """The name of the rule that splits text into words, and whether a space comes before it."""
    wanted = state["pre_tokenizer"]
    for rule, build in PRE_TOKENIZERS.items():
        for prefix in (False, True):
            if json.loads(build(prefix).__getstate__()) == wanted:
                return rule, prefix
    known = ", ".join(PRE_TOKENIZERS)
    raise ModelError(
        f"{where}: splits text by a rule that has no name in GGUF files; known are {known}"
    )
