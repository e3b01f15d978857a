"""Embeddings and transcriptions of models that offer them."""

import io
import json
from base64 import b64decode

import numpy as np
import openai
import pytest
from scripted_engine import running

from relax_mlir.errors import UsageError
from relax_mlir.llm.serving.engines import Served
from relax_mlir.llm.serving.limits import Limits, State
from relax_mlir.llm.speech.transcript import Segment, Transcript


class Lengths:
    """Maps a text to its length and to a third of it, which float32 rounds."""

    def embed(self, texts):
        if "refused" in texts:
            raise UsageError("a text is refused")
        lengths = [len(text) for text in texts]
        return np.array([[n, n / 3] for n in lengths], np.float32), sum(lengths)


class Writer:
    def transcribe(self, audio, language, prompt):
        if not audio.startswith(b"RIFF"):
            raise UsageError("the recording is no WAV file")
        given = f" {len(audio)} {language} {prompt}"
        segments = Segment(0, 1.2345, " one"), Segment(3599.9996, 7325.5, given)
        return Transcript(segments, "de", 7325.5)


@pytest.fixture(scope="module")
def client():
    models = {
        "lengths": Served("lengths", embedder=Lengths()),
        "writer": Served("writer", transcriber=Writer()),
    }
    with running(State(models, Limits(audio_bytes=3_000_000))) as url:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            yield client


def test_embeddings(client):
    for value, lengths in (
        ("abc", [3]),
        (["a", "bcd"], [1, 3]),
        ([[5, 6], [7]], [2, 1]),
        ([1], [1]),
    ):
        for form in ("base64", "float"):
            answer = client.embeddings.create(model="lengths", input=value, encoding_format=form)
            rows = [
                np.frombuffer(b64decode(each.embedding), "<f4")
                if isinstance(each.embedding, str)
                else np.array(each.embedding, np.float32)
                for each in answer.data
            ]
            expected = np.array([[n, n / 3] for n in lengths], np.float32)
            np.testing.assert_array_equal(np.stack(rows), expected)
            assert [each.index for each in answer.data] == list(range(len(lengths)))
            assert answer.usage.prompt_tokens == sum(lengths)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input": []}, "'input' is an array of 0"),
        ({"input": [""]}, "neither a text nor tokens, or empty"),
        ({"input": [{}]}, "neither a text nor tokens, or empty"),
        ({"input": "refused"}, "a text is refused"),
        ({"input": ["a"] * 2049}, "has 2049 texts; expects 2048"),
        ({"input": "a", "dimensions": 3}, "'dimensions' is 3; expects an integer from 2 to 2"),
    ],
)
def test_wrong_embeddings(client, options, message):
    with pytest.raises(openai.BadRequestError, match=message):
        client.embeddings.create(model="lengths", **options)
    with pytest.raises(openai.NotFoundError, match="'lengths' generates no text"):
        client.completions.create(model="lengths", prompt="a")


def test_transcriptions(client):
    create = client.audio.transcriptions.create
    for size in (4, 2_000_000):
        sound = ("a.wav", io.BytesIO(b"RIFF".ljust(size)))
        answer = create(model="writer", file=sound, language="fr", prompt="names")
        assert answer.text == f"one {size} fr names"
    sound = ("a.wav", b"RIFF")
    assert create(model="writer", file=sound, response_format="text") == "one 4 None None\n"
    assert create(model="writer", file=sound, response_format="srt") == (
        "1\n00:00:00,000 --> 00:00:01,234\none\n\n2\n01:00:00,000 --> 02:02:05,500\n4 None None\n\n"
    )
    assert create(model="writer", file=sound, response_format="vtt").startswith(
        "WEBVTT\n\n1\n00:00:00.000 --> "
    )
    verbose = create(model="writer", file=sound, response_format="verbose_json")
    assert (verbose.language, float(verbose.duration)) == ("de", 7325.5)
    assert [segment.text for segment in verbose.segments] == [" one", " 4 None None"]


def test_wrong_transcriptions(client):
    create = client.audio.transcriptions.create
    with pytest.raises(openai.BadRequestError, match="no WAV file"):
        create(model="writer", file=("a.wav", b"no"))
    with pytest.raises(openai.BadRequestError, match="'response_format' is 'xml'"):
        create(model="writer", file=("a.wav", b"RIFF"), response_format="xml")
    with pytest.raises(openai.APIStatusError, match="larger than 3000000 bytes") as caught:
        create(model="writer", file=("a.wav", b"RIFF".ljust(3_000_001)))
    assert caught.value.status_code == 413
    with pytest.raises(openai.NotFoundError, match="'lengths' has no transcriptions"):
        create(model="lengths", file=("a.wav", b"RIFF"))


def test_what_models_offer(client):
    answer = client.models.with_raw_response.list()
    offers = {each["id"]: each["capabilities"] for each in json.loads(answer.text)["data"]}
    assert offers == {"lengths": ["embeddings"], "writer": ["transcriptions"]}
