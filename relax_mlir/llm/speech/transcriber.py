"""Texts of recordings: windows, greedy decoding, timestamps, languages.

Source: arXiv 2212.04356, §2.3 and §4.5; `transcribe.py` of its code.
"""

from collections.abc import Callable

import numpy as np

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.speech.config import language_token
from relax_mlir.llm.speech.model import Whisper, Window
from relax_mlir.llm.speech.timestamps import Piece, Rules, cut, pieces, whole
from relax_mlir.llm.speech.transcript import Segment, Transcript

TASKS = ("transcribe", "translate")
Tell = Callable[[str], object]


class Transcriber:
    """Transcribes with one model, one recording at a time."""

    def __init__(self, model: Whisper) -> None:
        self.model = model

    def transcribe(
        self,
        sound: np.ndarray,
        *,
        language: str | None = None,
        task: str = "transcribe",
        timed: bool = True,
        tell: Tell = lambda text: None,
    ) -> Transcript:
        """The text of samples float32[n], at the model's rate.

        Without a `language` code, the first window tells it. The `task` "translate" gives English.
        Text is without parts if it is not `timed`. `tell` is given text as it is decoded.

        Raises ModelError for a language or a task that the model has not.
        """
        config = self.model.config
        sound = np.asarray(sound, np.float32)
        if sound.ndim != 1 or not np.isfinite(sound).all():
            raise UsageError("expects finite samples of one channel")
        mel = self.model.spectrogram(sound)
        features = config.features
        total, begin, segments = len(sound) // features.hop, 0, list[Segment]()
        prompt: list[int] | None = None
        while prompt is None or begin < total:
            window = self.model.encode(mel[:, begin : begin + features.frames])
            if prompt is None:
                if language is None and config.tokens.languages:
                    language = self._language(window)
                prompt = self._prompt(language, task, timed)
            text = self._decode(window, prompt, timed, tell)
            length, steps = min(features.frames, total - begin), None
            parts = [whole(text, config.tokens)]
            if timed:
                retained, steps = cut(text, config.tokens)
                parts = list(pieces(retained, config.tokens))
            segments += [self._segment(piece, begin, length) for piece in parts]
            begin += steps * 2 if steps else features.frames  # two frames a step
        return Transcript(tuple(segments), language, len(sound) / features.rate)

    def languages(self, sound: np.ndarray) -> dict[str, float]:
        """The probability of each language of the first window, by code."""
        mel = self.model.spectrogram(np.asarray(sound, np.float32))
        window = self.model.encode(mel[:, : self.model.config.features.frames])
        return self._probabilities(window)

    def _probabilities(self, window: Window) -> dict[str, float]:
        tokens = self.model.config.tokens
        logits = self.model.step(window, [tokens.start])[0].astype(np.float64)
        window.length = 0
        codes = list(tokens.languages)
        scores = logits[[tokens.languages[code] for code in codes]]
        weights = np.exp(scores - scores.max())
        return dict(zip(codes, (weights / weights.sum()).tolist()))

    def _language(self, window: Window) -> str:
        result = self._probabilities(window)
        return max(result, key=result.__getitem__)

    def _prompt(self, language: str | None, task: str, timed: bool) -> list[int]:
        config = self.model.config
        tokens, prompt = config.tokens, [config.tokens.start]
        if task not in TASKS:
            raise UsageError(f"no task {task!r}; expects one of {', '.join(TASKS)}")
        if language is not None:
            prompt.append(language_token(config, language))
        if tokens.tasks:
            if task not in tokens.tasks:
                raise ModelError(f"the model has no task '{task}'")
            prompt.append(tokens.tasks[task])
        elif task != "transcribe":
            raise ModelError(f"the model has no task '{task}'")
        return prompt if timed else [*prompt, tokens.no_timestamps]

    def _decode(self, window: Window, prompt: list[int], timed: bool, tell: Tell) -> list[int]:
        """Tokens of a window's text, without the one that ends it; at most half of a context."""
        config = self.model.config
        rules, text, new = Rules(config.tokens, timed), list[int](), prompt
        stream = self.model.tokenizer.stream()
        for _ in range(min(config.target_positions // 2, config.target_positions - len(prompt))):
            logits = self.model.step(window, new)[-1]
            token = int(rules.apply(logits, text).argmax())
            if token == config.tokens.end:
                break
            text.append(token)
            new = [token]
            if token < config.tokens.first_timestamp:
                tell(stream.push(token))
        tell(stream.flush())
        return text

    def _segment(self, piece: Piece, begin: int, length: int) -> Segment:
        config = self.model.config
        offset = begin * config.features.hop / config.features.rate
        rest = length * config.features.hop / config.features.rate
        step = config.seconds_of_step
        end = rest if piece.end is None else piece.end * step
        text = self.model.tokenizer.decode(piece.tokens)
        return Segment(offset + piece.start * step, offset + end, text, piece.tokens)
