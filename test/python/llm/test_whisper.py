"""Whisper against `transformers`, on a tiny model: see `whisper_reference.py`."""

import json
import wave
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import tiny_whisper
from safetensors.numpy import save_file
from tiny_whisper import ID, RATE, STEPS, sound

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.llm.serving.speech import Recordings
from relax_mlir.llm.speech.audio import read_audio, resampled
from relax_mlir.llm.speech.config import read_config
from relax_mlir.llm.speech.model import Whisper
from relax_mlir.llm.speech.subtitles import srt
from relax_mlir.llm.speech.timestamps import Rules, cut, pieces, whole
from relax_mlir.llm.speech.transcriber import Transcriber
from relax_mlir.llm.speech.transcript import Segment
from relax_mlir.tools.relax_llm import main

KNOWN = dict(np.load(Path(__file__).parent / "Inputs" / "whisper.npz"))
CASES = sorted({name.split("/")[0] for name in KNOWN})


@pytest.fixture(scope="module")
def model_of(tmp_path_factory: pytest.TempPathFactory):
    @cache
    def load(seed: int) -> Whisper:
        return Whisper.load(tiny_whisper.write(tmp_path_factory.mktemp("whisper"), seed), threads=2)

    return load


@pytest.mark.parametrize("case", CASES)
def test_numbers_of_a_window(model_of, case: str) -> None:
    seed, seconds = case.split("_")
    model, want = model_of(int(seed)), {k.split("/")[1]: v for k, v in KNOWN.items() if case in k}
    mel = model.spectrogram(sound(float(seconds), int(seed)))[:, : 2 * STEPS]
    np.testing.assert_allclose(mel, want["features"], atol=2e-5)
    window = model.encode(mel)
    ids = [257, 259, 262, 263, 5, 9, 200, 17]
    spread = want["logits"].std()
    logits = [
        model.step(window, ids[:5]),
        model.step(window, ids[5:6]),
        model.step(window, ids[6:]),
    ]
    np.testing.assert_allclose(np.concatenate(logits), want["logits"], atol=1e-4 * spread)


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_texts_of_a_window(model_of, case: str, timed: bool) -> None:
    """Texts of recordings of one window, as far as the first window goes."""
    seed, seconds = case.split("_")
    want = KNOWN[f"{case}/{'timed' if timed else 'plain'}"].tolist()
    told: list[str] = []
    given = sound(float(seconds), int(seed))
    model = model_of(int(seed))
    found = Transcriber(model).transcribe(given, language="de", timed=timed, tell=told.append)
    tokens = model.config.tokens
    kept, steps = cut(want, tokens)
    parts = list(pieces(kept, tokens))
    if not timed:
        parts, steps = [whole(want, tokens)], None
    assert [s.tokens for s in found.segments[: len(parts)]] == [p.tokens for p in parts]
    if not steps or 2 * steps >= len(given) // 160:
        assert len(found.segments) == len(parts)
        assert "".join(told) == model.tokenizer.decode(
            [t for t in want if t < tokens.first_timestamp]
        )
    for segment, part in zip(found.segments, parts):
        assert segment.start == pytest.approx(part.start / STEPS)


def test_long_recordings_are_windows_one_after_another(model_of) -> None:
    """Each window begins where the last pair of timestamps of the one before is."""
    model = model_of(0)
    whole = sound(4.3, 7)
    found = Transcriber(model).transcribe(whole, language="fr")
    mel, begin, want = model.spectrogram(whole), 0, []
    while begin < 430:
        window = model.encode(mel[:, begin : begin + 2 * STEPS])
        text, new = [], [257, 260, 262]
        rules = Rules(model.config.tokens, True)
        while len(text) < tiny_whisper.CONTEXT // 2:
            token = int(rules.apply(model.step(window, new)[-1], text).argmax())
            if token == ID["<|endoftext|>"]:
                break
            text, new = [*text, token], [token]
        kept, steps = cut(text, model.config.tokens)
        want += [part.tokens for part in pieces(kept, model.config.tokens)]
        begin += 2 * steps if steps else 2 * STEPS
    assert [segment.tokens for segment in found.segments] == want
    assert len(want) > 4
    assert found.seconds == pytest.approx(4.3)
    assert found.text == "".join(segment.text for segment in found.segments).strip()


@pytest.mark.parametrize("case", CASES)
def test_languages(model_of, case: str) -> None:
    seed, seconds = case.split("_")
    model, given = model_of(int(seed)), sound(float(seconds), int(seed))
    weights = Transcriber(model).languages(given)
    likeliest = max(weights, key=weights.__getitem__)
    assert model.config.tokens.languages[likeliest] == KNOWN[f"{case}/language"][0]
    assert sum(weights.values()) == pytest.approx(1)
    assert Transcriber(model).transcribe(given).language == likeliest


def test_a_recording_without_samples(model_of) -> None:
    found = Transcriber(model_of(0)).transcribe(np.zeros(0, np.float32), language="en", timed=False)
    assert len(found.segments) == 1
    assert found.seconds == 0


@pytest.mark.parametrize("text", [[], [9], [270], [270, 5, 6, 280], [270, 5, 280, 280, 7],
                                  [270, 5, 280, 280, 7, 290], [264, 264], [265, 8, 9]])  # fmt: skip
def test_timestamps_come_in_pairs_and_do_not_go_back(model_of, text: list[int]) -> None:
    tokens = model_of(0).config.tokens
    first = tokens.first_timestamp
    scores = Rules(tokens, True).apply(np.zeros(315, np.float32), text)
    allowed = set(np.flatnonzero(np.isfinite(scores)).tolist())
    assert tokens.no_timestamps not in allowed
    assert not allowed & set(tokens.suppressed)
    times = [token for token in text if token >= first]
    if not text:
        assert allowed == set(range(first, first + 21))
    if times:
        assert all(token >= times[-1] for token in allowed if token >= first)
    if len(text) > 1 and text[-1] >= first and text[-2] < first:
        assert all(token >= tokens.end for token in allowed)
    if len(text) > 1 and min(text[-2:]) >= first:
        assert max(allowed) < first


def test_parts_and_what_is_left_to_the_next_window(model_of) -> None:
    tokens = model_of(0).config.tokens
    first = tokens.first_timestamp
    text = [first, 5, 6, first + 10, first + 10, 7, first + 30, first + 32, 8, 9]
    kept, steps = cut(text, tokens)
    assert steps == 30
    assert [(p.start, p.end, p.tokens) for p in pieces(kept, tokens)] == [
        (0, 10, (5, 6)), (10, 30, (7,))]  # fmt: skip
    assert cut([first, 5, first + 9, first + 9, 6, first + 20], tokens)[1] is None
    assert cut([first, 5], tokens) == ([first, 5], None)


def write_wave(path: Path, samples: np.ndarray, rate: int, width: int) -> Path:
    """Samples float64[n, channels] in -1 to 1, as integers of `width` bytes."""
    top = 2.0 ** (8 * width - 1)
    values = np.clip(np.round(samples * top), -top, top - 1).astype(np.int64)
    values = values + 128 if width == 1 else values
    data = values.reshape(-1, 1).astype("<i8").view(np.uint8)[:, :width].tobytes()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(data)
    return path


@pytest.mark.parametrize(("width", "channels"), [(1, 1), (2, 1), (2, 2), (3, 1), (4, 3)])
def test_wave_files(tmp_path: Path, width: int, channels: int) -> None:
    samples = np.random.default_rng(width).uniform(-1, 0.99, (137, channels))
    path = write_wave(tmp_path / "x.wav", samples, RATE, width)
    for source in (path, path.read_bytes()):
        got = read_audio(source, RATE)
        np.testing.assert_allclose(got, samples.mean(1), atol=2.0 ** (1 - 8 * min(width, 3)))


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 48000])
def test_resampling_keeps_tones(rate: int) -> None:
    seconds, tones = 0.5, (120.0, 700.0, 0.4 * min(rate, RATE))
    time, want = (np.arange(int(seconds * r)) / r for r in (rate, RATE))
    given, wanted = (sum(np.sin(2 * np.pi * f * t) for f in tones) for t in (time, want))
    got = resampled(given.astype(np.float32), rate, RATE)
    assert abs(len(got) - len(wanted)) <= 1
    inner = slice(400, 7500)
    np.testing.assert_allclose(got[inner], wanted[inner], atol=5e-3)


def test_tones_above_the_lower_rate_vanish() -> None:
    time = np.arange(24000) / 48000
    got = resampled(np.sin(2 * np.pi * 11000 * time).astype(np.float32), 48000, RATE)
    assert np.abs(got[400:7500]).max() < 1e-3


def test_files_that_are_no_recordings(tmp_path: Path) -> None:
    (tmp_path / "x.wav").write_bytes(b"RIFF____WAVEnothing")
    with pytest.raises(UsageError, match=r"x\.wav: cannot be read: .*expects a WAVE file"):
        read_audio(tmp_path / "x.wav", RATE)
    with pytest.raises(UsageError, match="cannot be read"):
        read_audio(tmp_path / "none.wav", RATE)
    with pytest.raises(UsageError, match="the recording: cannot be read"):
        read_audio(b"", RATE)


@pytest.mark.parametrize(
    ("file", "key", "value", "message"),
    [
        ("config", "model_type", "bart", "type 'bart'; speech needs 'whisper'"),
        ("config", "activation_function", "relu", "'relu'; 'gelu' is supported"),
        ("config", "decoder_attention_heads", 7, "expects a multiple of 7 heads"),
        ("config", "num_mel_bins", 80, "the front end makes 16"),
        ("config", "max_source_positions", 51, "a window of 100 frames needs 50"),
        ("config", "vocab_size", 300, "needs token 314; the last one is 299"),
        ("generation_config", "no_timestamps_token_id", None, "expects 'eos_token_id'"),
        ("preprocessor_config", "n_fft", 401, "expects an even length"),
    ],
)
def test_configurations_that_are_refused(
    tmp_path: Path, file: str, key: str, value: object, message: str
) -> None:
    folder = tiny_whisper.write(tmp_path)
    path = folder / f"{file}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(ModelError, match=message):
        read_config(folder)


def test_weights_that_are_missing_or_of_another_shape(tmp_path: Path) -> None:
    folder, weights = tiny_whisper.write(tmp_path), tiny_whisper.weights()
    name = "model.decoder.layers.1.encoder_attn.k_proj.weight"
    save_file({**weights, name: weights[name][:-1].copy()}, folder / "model.safetensors")
    with pytest.raises(ModelError, match=rf"{name}' has shape \(39, 40\); expects \(40, 40\)"):
        Whisper.load(folder)
    del weights[name]
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError, match=f"has no weight '{name}'"):
        Whisper.load(folder)


def test_what_cannot_be_transcribed(model_of) -> None:
    transcriber = Transcriber(model_of(0))
    with pytest.raises(ModelError, match="no language 'xx'; the model has de, en, fr"):
        transcriber.transcribe(sound(0.1), language="xx")
    with pytest.raises(UsageError, match="no task 'sing'"):
        transcriber.transcribe(sound(0.1), task="sing")
    with pytest.raises(UsageError, match="finite samples"):
        transcriber.transcribe(np.array([np.nan], np.float32))


def test_subtitles() -> None:
    text = srt([Segment(0, 1.5, " Hello", ()), Segment(3661.0424, 3662, " there", ())])
    assert text == (
        "1\n00:00:00,000 --> 00:00:01,500\nHello\n\n2\n01:01:01,042 --> 01:01:02,000\nthere\n\n"
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("files")
    path = write_wave(folder / "x.wav", sound(2.2, 5)[:, None] * 3, RATE, 2)
    return str(tiny_whisper.write(folder / "model", 0)), str(path)


def test_the_command_line(model_of, files: tuple[str, str], capsys) -> None:
    model, audio = files
    want = Transcriber(model_of(0)).transcribe(read_audio(Path(audio), RATE), language="en")
    assert main(["transcribe", model, audio, "--language", "en", "--srt"]) == 0
    assert capsys.readouterr().out == srt(want.segments)
    assert main(["transcribe", model, audio, "--language", "en", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["language"] == "en"
    assert [part["text"] for part in found["segments"]] == [s.text for s in want.segments]
    assert main(["transcribe", model, audio, "--no-timestamps"]) == 0
    plain = Transcriber(model_of(0)).transcribe(read_audio(Path(audio), RATE), timed=False)
    assert capsys.readouterr().out == "".join(s.text for s in plain.segments) + "\n"


def test_command_lines_that_fail(files: tuple[str, str], capsys) -> None:
    model, audio = files
    assert main(["transcribe", model, f"{model}/config.json"]) == 2
    assert "expects a WAVE file" in capsys.readouterr().err
    assert main(["transcribe", model, audio, "--language", "xx"]) == 1
    assert "no language 'xx'" in capsys.readouterr().err
    assert main(["transcribe", str(Path(model).parent), audio]) == 1
    assert "config.json" in capsys.readouterr().err


def test_recordings_of_the_server(model_of, files: tuple[str, str]) -> None:
    audio = Path(files[1]).read_bytes()
    server = Recordings(model_of(0))
    found = server.transcribe(audio, "en", None)
    want = Transcriber(model_of(0)).transcribe(read_audio(audio, RATE), language="en")
    assert (found.text, found.language, found.seconds) == (want.text, "en", want.seconds)
    assert found.segments == want.segments
    with pytest.raises(UsageError, match="'language' is no code"):
        server.transcribe(audio, "xx", None)
    with pytest.raises(UsageError, match="'prompt' is not supported"):
        server.transcribe(audio, None, "as before")
