"""Writes `Inputs/whisper.npz`: what `transformers` computes of the tiny Whisper model.

    python test/python/llm/whisper_reference.py

Needs `transformers` and PyTorch; `test_whisper.py` compares with its output.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from tiny_whisper import CONTEXT, RATE, sound, write
from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration
from transformers.generation.logits_process import (
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
    WhisperTimeStampLogitsProcessor,
)

CASES = {
    f"{seed}_{seconds}": (seed, seconds)
    for seed, seconds in enumerate((0.3, 0.77, 0.97, 0.95, 0.01))
}


def text_of(model: WhisperForConditionalGeneration, features: torch.Tensor, timed: bool) -> list:
    """Greedy tokens under the rules of `transformers`, at most half of a context."""
    config = model.generation_config
    prompt = [257, 259, 262] + ([] if timed else [263])
    rules = [
        SuppressTokensLogitsProcessor(config.suppress_tokens),
        SuppressTokensAtBeginLogitsProcessor(config.begin_suppress_tokens, len(prompt)),
    ]
    if timed:
        rules.append(WhisperTimeStampLogitsProcessor(config, len(prompt)))
    ids = torch.tensor([prompt])
    for _ in range(CONTEXT // 2):
        scores = model(features, decoder_input_ids=ids).logits[:, -1].float()
        for rule in rules:
            scores = rule(ids, scores)
        token = int(scores.argmax())
        if token == config.eos_token_id:
            break
        ids = torch.cat([ids, torch.tensor([[token]])], 1)
    return ids[0, len(prompt) :].numpy()


def main() -> None:
    """Spectrograms, states of the encoder, logits, and texts with and without timestamps."""
    found = {}
    for name, (seed, seconds) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            path = write(Path(folder), seed)
            model = WhisperForConditionalGeneration.from_pretrained(
                path, dtype=torch.float32
            ).eval()
            front = WhisperFeatureExtractor.from_pretrained(path)
        given = front(sound(seconds, seed), sampling_rate=RATE, return_tensors="pt")
        features = given.input_features
        found[f"{name}/features"] = features[0].numpy()
        ids = torch.tensor([[257, 259, 262, 263, 5, 9, 200, 17]])
        with torch.no_grad():
            found[f"{name}/encoded"] = model.model.encoder(features).last_hidden_state[0].numpy()
            found[f"{name}/logits"] = model(features, decoder_input_ids=ids).logits[0].numpy()
            for timed in (False, True):
                found[f"{name}/{'timed' if timed else 'plain'}"] = text_of(model, features, timed)
            language = model.detect_language(features)
        found[f"{name}/language"] = language.numpy()
        print(name, found[f"{name}/plain"], found[f"{name}/timed"], language)
    np.savez_compressed(Path(__file__).parent / "Inputs" / "whisper.npz", **found)


main()
