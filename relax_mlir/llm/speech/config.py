"""The configuration of a Whisper model, from the JSON files of its folder."""

from dataclasses import dataclass
from pathlib import Path

from relax_mlir.errors import ModelError
from relax_mlir.llm.formats.fields import Fields
from relax_mlir.llm.formats.model_files import quoted

MAX_LAYERS = 256
MAX_CONTEXT = 1 << 16
ACTIVATION = "gelu"
LATEST_FIRST = "max_initial_timestamp_index"


@dataclass(frozen=True)
class Features:
    """How sound becomes a log-mel spectrogram: `mels` bands of frames, one each `hop` samples."""

    mels: int
    rate: int
    hop: int
    length: int
    """Samples that one Fourier transform takes."""
    samples: int
    """Of a window, which the encoder takes at once."""

    @property
    def frames(self) -> int:
        """Frames of a window."""
        return self.samples // self.hop


@dataclass(frozen=True)
class Tokens:
    """Tokens with a meaning; `languages` by their codes."""

    start: int
    end: int
    no_timestamps: int
    languages: dict[str, int]
    tasks: dict[str, int]
    suppressed: tuple[int, ...]
    suppressed_first: tuple[int, ...]
    """Those that no text begins with."""
    latest_first: int | None
    """The greatest first timestamp, in steps."""

    @property
    def first_timestamp(self) -> int:
        """The token of second 0; those of later times follow it."""
        return self.no_timestamps + 1


@dataclass(frozen=True)
class WhisperConfig:
    """Sizes of both stacks. Source: arXiv 2212.04356; Hugging Face's `WhisperConfig`."""

    features: Features
    tokens: Tokens
    vocab_size: int
    size: int
    encoder_layers: int
    encoder_heads: int
    encoder_inner: int
    decoder_layers: int
    decoder_heads: int
    decoder_inner: int
    source_positions: int
    target_positions: int
    scales_embedding: bool
    ties_head: bool

    @property
    def seconds_of_step(self) -> float:
        """Seconds from one timestamp to the next."""
        return self.features.samples / self.features.rate / self.source_positions


def is_whisper(folder: Path) -> bool:
    """Whether a folder says that its model is one."""
    path = folder / "config.json"
    return path.is_file() and Fields.read_json(path).values.get("model_type") == "whisper"


def read_config(folder: Path) -> WhisperConfig:
    """Reads the files of a folder; raises ModelError for what is missing, or not supported."""
    fields = Fields.read_json(folder / "config.json")
    if fields.values.get("model_type") != "whisper":
        kind = quoted(fields.values.get("model_type"))
        raise fields.refuse(f"is of a model of type {kind}; speech needs 'whisper'")
    activation = fields.text("activation_function", ACTIVATION)
    if activation != ACTIVATION:
        raise fields.refuse(f"'activation_function' is {quoted(activation)}; 'gelu' is supported")
    features = _features(Fields.read_json(folder / "preprocessor_config.json"))
    config = WhisperConfig(
        features=features,
        tokens=_tokens(fields, Fields.read_json(folder / "generation_config.json")),
        vocab_size=fields.integer("vocab_size"),
        size=fields.integer("d_model"),
        encoder_layers=fields.integer("encoder_layers"),
        encoder_heads=fields.integer("encoder_attention_heads"),
        encoder_inner=fields.integer("encoder_ffn_dim"),
        decoder_layers=fields.integer("decoder_layers"),
        decoder_heads=fields.integer("decoder_attention_heads"),
        decoder_inner=fields.integer("decoder_ffn_dim"),
        source_positions=fields.integer("max_source_positions"),
        target_positions=fields.integer("max_target_positions"),
        scales_embedding=fields.flag("scale_embedding", False),
        ties_head=fields.flag("tie_word_embeddings", True),
    )
    _check(config, fields)
    return config


def _check(config: WhisperConfig, fields: Fields) -> None:
    for name in ("encoder_heads", "decoder_heads"):
        if config.size % getattr(config, name):
            heads = getattr(config, name)
            raise fields.refuse(f"'d_model' is {config.size}; expects a multiple of {heads} heads")
    if max(config.encoder_layers, config.decoder_layers) > MAX_LAYERS:
        raise fields.refuse(f"has more than {MAX_LAYERS} layers")
    if max(config.source_positions, config.target_positions) > MAX_CONTEXT:
        raise fields.refuse(f"has more than {MAX_CONTEXT} positions")
    mels = fields.integer("num_mel_bins", config.features.mels)
    if mels != config.features.mels:
        raise fields.refuse(f"'num_mel_bins' is {mels}; the front end makes {config.features.mels}")
    if config.features.frames != 2 * config.source_positions:
        raise fields.refuse(
            f"'max_source_positions' is {config.source_positions}; a window of "
            f"{config.features.frames} frames needs {config.features.frames / 2:g}"
        )
    tokens = config.tokens
    known = [tokens.start, tokens.end, *tokens.languages.values(), *tokens.tasks.values()]
    known += [*tokens.suppressed, *tokens.suppressed_first]
    last = max(*known, tokens.first_timestamp + config.source_positions)
    if last >= config.vocab_size:
        raise fields.refuse(f"needs token {last}; the last one is {config.vocab_size - 1}")


def _features(fields: Fields) -> Features:
    rate = fields.integer("sampling_rate", 16000)
    features = Features(
        mels=fields.integer("feature_size", 80),
        rate=rate,
        hop=fields.integer("hop_length", 160),
        length=fields.integer("n_fft", 400),
        samples=fields.integer("chunk_length", 30) * rate,
    )
    if features.length % 2 or not 0 < features.hop <= features.length <= features.samples:
        raise fields.refuse(
            f"'n_fft' is {features.length} and 'hop_length' {features.hop}; expects an even "
            "length, and a hop that is not longer"
        )
    return features


def _tokens(fields: Fields, generation: Fields) -> Tokens:
    """The tokens that `generation_config.json` names; raises ModelError without them."""
    end = generation.id("eos_token_id")
    end = fields.id("eos_token_id") if end is None else end
    start = generation.id("decoder_start_token_id")
    start = fields.id("decoder_start_token_id") if start is None else start
    no_timestamps = generation.id("no_timestamps_token_id")
    if end is None or start is None or no_timestamps is None:
        raise generation.refuse(
            "expects 'eos_token_id', 'decoder_start_token_id' and 'no_timestamps_token_id'"
        )
    languages = generation.table("lang_to_id")
    tasks = generation.table("task_to_id")
    latest = generation.values.get(LATEST_FIRST)
    return Tokens(
        start=start,
        end=end,
        no_timestamps=no_timestamps,
        languages={_code(name): languages.integer(name) for name in languages.values},
        tasks={name: tasks.integer(name) for name in tasks.values},
        suppressed=generation.ids("suppress_tokens"),
        suppressed_first=generation.ids("begin_suppress_tokens"),
        latest_first=None if latest is None else generation.count(LATEST_FIRST, 0),
    )


def _code(token: str) -> str:
    """`en` of `<|en|>`."""
    return token.removeprefix("<|").removesuffix("|>")


def language_token(config: WhisperConfig, language: str) -> int:
    """The token of a language; raises ModelError with those that the model has."""
    tokens = config.tokens.languages
    if language not in tokens:
        known = ", ".join(sorted(tokens)) or "none: it knows one language only"
        raise ModelError(f"no language {quoted(language)}; the model has {known}")
    return tokens[language]
