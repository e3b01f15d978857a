"""Log probabilities of tokens in OpenAI's two forms."""

import math
import re
from codecs import getincrementaldecoder
from collections.abc import Sequence
from typing import Any

from tokenizers.pre_tokenizers import ByteLevel

from relax_mlir.llm.batching.request import TokenLogprobs
from relax_mlir.llm.tokenization.tokenizer import REPLACEMENT, Tokenizer

LEAST = -9999.0
"""What OpenAI has for tokens of probability 0, as JSON has no infinities."""
BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def _byte_of_character() -> dict[str, int]:
    """The byte that each character of byte-level BPE means, in GPT-2's order."""
    printable = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
    table = {chr(b): b for b in printable}
    others = [b for b in range(256) if b not in printable]
    table.update({chr(256 + i): b for i, b in enumerate(others)})
    assert table.keys() == set(ByteLevel.alphabet())
    return table


_BYTES = _byte_of_character()


class TokenTexts:
    """The bytes and the text of single tokens, which may be part of a character."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def bytes(self, token: int) -> bytes:
        """The bytes of a token within a text; none for ids without a token."""
        name = self._tokenizer.inner.id_to_token(token)
        if name is None:
            return b""
        once = self._decode([token])
        text = self._decode([token, token])[len(once) :]  # a first space may be dropped
        if REPLACEMENT not in text:
            return text.encode()
        if byte := BYTE.fullmatch(name):
            return bytes([int(byte[1], 16)])
        known = [_BYTES.get(character) for character in name]
        return bytes(byte for byte in known if byte is not None) or text.encode()

    def text(self, token: int) -> str:
        """The text of a token; of one that is part of a character, its bytes as OpenAI has them."""
        code = self.bytes(token)
        try:
            return code.decode() if code else f"token:{token}"
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in code)

    def _decode(self, tokens: Sequence[int]) -> str:
        return self._tokenizer.decode(tokens, skip_special_tokens=False)


def chat_logprobs(texts: TokenTexts, tokens: Sequence[TokenLogprobs]) -> list[dict[str, Any]]:
    """The `content` of `logprobs` in a chat."""
    result = []
    for token in tokens:
        entry = _entry(texts, token.token, token.logprob)
        entry["top_logprobs"] = [_entry(texts, id, logprob) for id, logprob in token.top]
        result.append(entry)
    return result


def _entry(texts: TokenTexts, token: int, logprob: float) -> dict[str, Any]:
    code = list(texts.bytes(token))
    return {"token": texts.text(token), "logprob": finite(logprob), "bytes": code}


class CompletionLogprobs:
    """The `logprobs` of a completion, part by part; `with_top` has alternatives to each token."""

    def __init__(self, texts: TokenTexts, with_top: bool) -> None:
        self._texts = texts
        self._with_top = with_top
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._offset = 0

    def object(self, tokens: Sequence[TokenLogprobs]) -> dict[str, Any]:
        """The object for the next tokens."""
        texts = self._texts
        tops = [{texts.text(id): finite(value) for id, value in token.top} for token in tokens]
        return {
            "tokens": [texts.text(token.token) for token in tokens],
            "token_logprobs": [finite(token.logprob) for token in tokens],
            "top_logprobs": tops if self._with_top else None,
            "text_offset": [self._pass(token.token) for token in tokens],
        }

    def _pass(self, token: int) -> int:
        """The count of characters before a token, which is the next one."""
        offset = self._offset
        self._offset += len(self._decoder.decode(self._texts.bytes(token)))
        return offset


def finite(logprob: float) -> float:
    """A logprob as JSON can state it."""
    return logprob if math.isfinite(logprob) else LEAST
