"""What models that read images compute of prompts, compared with what is known of them."""

from collections.abc import Sequence

import numpy as np

from relax_mlir.llm.decoder.pictures import Picture
from relax_mlir.llm.generation.generation import Generation, Statistics
from relax_mlir.llm.generation.model import LanguageModel
from relax_mlir.llm.generation.sampling import Sampler
from relax_mlir.llm.generation.session import Session


def check_logits(
    model: LanguageModel, ids: Sequence[int], pictures: Sequence[Picture], want: np.ndarray
) -> Session:
    """Runs a prompt at once and in pieces; returns the session of these.

    `want` has the logits after the last tokens.
    """
    tolerance = 1e-5 * want.std()
    got = model.session(len(ids)).append(ids, len(want), pictures)
    np.testing.assert_allclose(got, want, atol=tolerance)
    session = model.session(len(ids))
    for begin in range(0, len(ids), 7):
        got = session.append(ids[begin : begin + 7], 1, pictures)
    np.testing.assert_allclose(got[0], want[-1], atol=tolerance)
    return session


def greedy_tokens(
    model: LanguageModel, text: str, images: Sequence[np.ndarray], steps: int
) -> list[int]:
    """The likeliest tokens after a prompt; the one that ends an answer is none of them."""
    ids, pictures = model.placed(model.tokenizer.encode(text, add_special_tokens=False), images)
    sampler, statistics = Sampler(logit_bias={1: -np.inf}), Statistics()
    answer = Generation(
        model.session(), ids, model.tokenizer, sampler, (), steps, statistics, pictures=pictures
    )
    list(answer)
    return answer.tokens
