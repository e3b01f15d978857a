"""Answers in data sets of Ray, by actors that load a model once."""

import pytest
from tiny_models import random_weights, write_gguf

ray = pytest.importorskip("ray")
pyarrow = pytest.importorskip("pyarrow")
data = pytest.importorskip("ray.data")

from relax_mlir.errors import UsageError  # noqa: E402
from relax_mlir.llm import load  # noqa: E402
from relax_mlir.llm.ray import Answerer  # noqa: E402

PROMPTS = ["he ll 12w"[i % 9 :] + "hello" * (i % 7) for i in range(50)]


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    return str(write_gguf(tmp_path_factory.mktemp("model") / "tiny.gguf", random_weights()))


@pytest.fixture(scope="module")
def alone(path):
    return load(path, weights="f32", threads=1)


@pytest.fixture(scope="module")
def answerer(path) -> Answerer:
    return Answerer(path, max_sequences=4, weights="f32", threads=1)


def test_a_data_set_has_the_answers_of_generate(path, alone):
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        data.DataContext.get_current().enable_progress_bars = False
        rows = [{"key": i, "prompt": text, "seed": i} for i, text in enumerate(PROMPTS)]
        defaults = {"raw": True, "temperature": 0.8, "max_tokens": 9}
        answered = data.from_items(rows, override_num_blocks=7).map_batches(
            Answerer,
            batch_format="pyarrow",
            batch_size=8,
            compute=data.ActorPoolStrategy(size=2),
            num_cpus=1,
            fn_constructor_args=[path, defaults],
            fn_constructor_kwargs={"weights": "f32", "threads": 1},
        )
        given = answered.take_all()
    finally:
        ray.shutdown()
    assert sorted(row["key"] for row in given) == list(range(50))
    for row in given:
        text = PROMPTS[row["key"]]
        answer = alone.generate(text, max_tokens=9, raw=True, temperature=0.8, seed=row["key"])
        assert row["text"] == "".join(answer)
        assert (row["prompt"], row["error"]) == (text, None)
        assert row["tokens"] == len(answer.tokens)
        assert row["prompt_tokens"] == len(alone.encode(text, raw=True))


def test_fields_and_errors_of_rows(answerer, alone):
    batch = pyarrow.table(
        {
            "messages": [
                [{"role": "user", "content": "hello", "name": None}],
                None,
                None,
                [{"role": "user", "content": "he", "name": "x"}],
            ],
            "prompt": [None, "hello", None, None],
            "max_tokens": pyarrow.array([7, -1, 3, None], pyarrow.int32()),
            "other": [1.5, None, 2.5, 3.5],
        }
    )
    rows = answerer(batch).to_pylist()
    chat = [{"role": "user", "content": "hello"}]
    assert rows[0]["text"] == "".join(alone.generate(chat, max_tokens=7))
    assert "max_tokens is -1" in rows[1]["error"]
    assert "expects either a prompt or messages" in rows[2]["error"]
    assert [row["text"] is None for row in rows] == [False, True, True, False]
    assert [row["other"] for row in rows] == [1.5, None, 2.5, 3.5]


@pytest.mark.parametrize("count", [0, 1, 17])
def test_batches_of_any_size(answerer, count):
    batch = pyarrow.table({"prompt": pyarrow.array(["h"] * count, pyarrow.string())})
    answered = answerer(batch)
    assert answered.num_rows == count
    assert answered.schema.field("tokens").type == pyarrow.int64()
    assert answered.column("error").null_count == count


def test_rows_without_a_prompt(answerer):
    rows = answerer(pyarrow.table({"other": [1, 2]})).to_pylist()
    assert [row["other"] for row in rows] == [1, 2]
    assert all("expects either a prompt or messages" in row["error"] for row in rows)


def test_batches_that_are_refused(answerer):
    with pytest.raises(UsageError, match="of type dict; expects batch_format='pyarrow'"):
        answerer({"prompt": ["h"]})
    with pytest.raises(UsageError, match="have a column 'text' already"):
        answerer(pyarrow.table({"prompt": ["h"], "text": ["h"]}))


@pytest.mark.parametrize(
    ("defaults", "message"),
    [
        ({"temprature": 1.0}, "unknown field 'temprature'"),
        ({"max_tokens": "9"}, "max_tokens is of type str; expects an integer"),
        ({"prompt": "h"}, "defaults have 'prompt'; expects it in rows"),
    ],
)
def test_defaults_that_are_wrong(path, defaults, message):
    with pytest.raises(UsageError, match=message):
        Answerer(path, defaults, weights="f32", threads=1)
