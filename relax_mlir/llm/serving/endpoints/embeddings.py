"""`/v1/embeddings`: vectors of texts."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from relax_mlir.llm.serving.engines import Embedder
from relax_mlir.llm.serving.errors import refused
from relax_mlir.llm.serving.fields import Body

FIELDS = ("model", "input", "encoding_format", "dimensions", "user")
MOST_TEXTS = 2048


def embeddings(body: Body, name: str, embedder: Embedder) -> dict[str, Any]:
    """The response for a body; raises ApiError, and UsageError of the model's own checks."""
    body.only(FIELDS)
    form = body.choice("encoding_format", ("float", "base64"), "float")
    texts = _texts(body)
    rows, tokens = embedder.embed(texts)
    body.integer("dimensions", rows.shape[1], rows.shape[1])  # the model has no others
    data = [
        {"object": "embedding", "index": index, "embedding": _encoded(row, form)}
        for index, row in enumerate(rows)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": name, "usage": usage}


def _texts(body: Body) -> Sequence[str | Sequence[int]]:
    """A text, its tokens, or an array of either."""
    value = body.get("input")
    if isinstance(value, str) or (isinstance(value, list) and _are_tokens(value)):
        value = [value]
    if not isinstance(value, list) or not value:
        raise body.refuse("input", "a string, its tokens, or an array of either")
    if len(value) > MOST_TEXTS:
        raise refused(f"'input' has {len(value)} texts; expects {MOST_TEXTS} at most", "input")
    for text in value:
        if not (isinstance(text, str) or _are_tokens(text)) or not text:
            raise refused("'input' has what is neither a text nor tokens, or empty", "input")
    return value


def _are_tokens(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(token, int) and not isinstance(token, bool) for token in value)
    )


def _encoded(row: np.ndarray, form: str) -> Any:
    values = np.ascontiguousarray(row, "<f4")
    return values.tolist() if form == "float" else base64.b64encode(values.tobytes()).decode()
