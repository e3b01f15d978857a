"""Log-probabilities of tokens."""

import numpy as np

from relax_mlir.llm.batching.request import TokenLogprobs
from relax_mlir.llm.generation.filters import top_k_indices


def token_logprobs(logits: np.ndarray, token: int, count: int) -> TokenLogprobs:
    """Those of a token and of the `count` most probable ones, in the model's distribution.

    Of equal ones the lower id comes first.
    """
    shifted = logits.astype(np.float64) - logits.max()
    logprobs = shifted - np.log(np.exp(shifted).sum())
    best = top_k_indices(logits, count) if count else np.empty(0, np.int64)
    best = best[np.argsort(-logprobs[best], kind="stable")]
    top = tuple((int(each), float(logprobs[each])) for each in best)
    return TokenLogprobs(token, float(logprobs[token]), top)
