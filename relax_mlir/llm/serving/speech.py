"""A Whisper model as `/v1/audio/transcriptions` uses it."""

from threading import Lock

from relax_mlir.errors import UsageError
from relax_mlir.llm.speech.audio import read_audio
from relax_mlir.llm.speech.model import Whisper
from relax_mlir.llm.speech.transcriber import Transcriber
from relax_mlir.llm.speech.transcript import Transcript


class Recordings:
    """Transcribes one recording at a time: see `engines.Transcriber`."""

    def __init__(self, model: Whisper) -> None:
        self._model, self._lock = model, Lock()

    def transcribe(self, audio: bytes, language: str | None, prompt: str | None) -> Transcript:
        """The text of a WAVE file's bytes; raises UsageError for another one, and for a prompt."""
        if prompt:
            raise UsageError("'prompt' is not supported: windows are decoded without text before")
        config = self._model.config
        known = config.tokens.languages
        if language is not None and language not in known:
            raise UsageError(f"'language' is no code that the model has: {', '.join(known)}")
        sound = read_audio(audio, config.features.rate)
        with self._lock:
            return Transcriber(self._model).transcribe(sound, language=language)
