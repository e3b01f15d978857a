"""Files of prompts: answers, errors of single lines, and runs that follow one that was killed."""

import json
import signal
import subprocess
import sys
import time

import pytest
from tiny_models import random_weights, write_gguf

from relax_mlir.errors import UsageError
from relax_mlir.llm import load
from relax_mlir.llm.offline.journal import Journal
from relax_mlir.tools.relax_llm import main

OPTIONS = ["--weights", "f32", "--threads", "1", "--max-tokens", "9", "--quiet", "--raw"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    return str(write_gguf(tmp_path_factory.mktemp("offline") / "tiny.gguf", random_weights()))


def run(tiny, folder, lines, *options: str) -> tuple[int, dict]:
    """Answers lines; returns the exit status, and the answers by id."""
    prompts, output = folder / "prompts.jsonl", folder / "out.jsonl"
    prompts.write_text("\n".join(json.dumps(x) if isinstance(x, dict) else x for x in lines))
    status = main(["batch", tiny, str(prompts), "-o", str(output), *OPTIONS, *options])
    return status, answers(output) if output.exists() else {}


def answers(path) -> dict:
    """The answers of a file by id; each id is there once."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    by_id = {each["id"]: each for each in found}
    assert len(by_id) == len(found)
    return by_id


def test_answers_are_those_of_generate(tiny, tmp_path):
    texts = ["hello", "1 2", "world w", "h"]
    lines = [
        *({"id": text, "prompt": text} for text in texts),
        "",
        {"prompt": "hello", "temperature": 2, "seed": 5, "max_tokens": 3, "stop": "zz"},
        {"id": "chat", "messages": [{"role": "user", "content": "hello"}], "raw": False},
    ]
    status, found = run(tiny, tmp_path, lines)
    model = load(tiny, weights="f32")
    for text in texts:
        assert found[text]["text"] == "".join(model.generate(text, max_tokens=9, raw=True))
    drawn = model.generate("hello", max_tokens=3, raw=True, temperature=2, seed=5)
    assert found[6]["text"] == "".join(drawn)
    assert found["chat"]["text"] == "".join(model.generate("hello", max_tokens=9))
    assert found["chat"]["prompt_tokens"] == len(model.encode("hello"))
    assert status == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "the line is no JSON"),
        ("[" * 100_000, "the line is no JSON"),
        ("[1]", "the line is list; expects an object"),
        ('{"id": [1], "prompt": "h"}', "the id is neither a string nor an integer"),
        ({"prompt": "h", "colour": 1}, "unknown field 'colour'; accepted are id, prompt"),
        ({"id": 1}, "expects either a prompt or messages"),
        ({"prompt": "h", "messages": []}, "expects either a prompt or messages"),
        ({"prompt": 3}, "prompt is of type int; expects a string"),
        ({"prompt": "h", "max_tokens": True}, "max_tokens is of type bool; expects an integer"),
        ('{"prompt": "h", "temperature": NaN}', "temperature is nan"),
        ({"prompt": "h", "temperature": 10**400}, "temperature is inf; expects a number >= 0"),
        ({"prompt": "h", "logit_bias": {"1": 10**400}}, "logit_bias of token 1 is inf; expects"),
        ({"prompt": "h", "top_k": -(10**400)}, "0000...0000"),
        ({"prompt": "h", "logit_bias": {"x": 1}}, "expects an object from ids of tokens"),
        ({"prompt": "1 " * 99}, "the prompt has"),
        ({"prompt": "\ud800"}, "the text cannot be encoded"),
        ({"messages": [{"role": "user", "content": {}}]}, "a message has a content '{}'"),
    ],
)
def test_an_error_is_that_of_its_line(tiny, tmp_path, line, message):
    status, found = run(tiny, tmp_path, [{"id": "good", "prompt": "h"}, line])
    assert status == 1
    [wrong] = [each for id, each in found.items() if id != "good"]
    assert message in wrong["error"]
    assert found["good"]["tokens"] > 0


def test_what_is_answered_stays(tiny, tmp_path):
    lines = [{"id": i, "prompt": "hello"} for i in range(5)]
    run(tiny, tmp_path, lines[:3])
    output = tmp_path / "out.jsonl"
    before = output.read_bytes()
    with output.open("ab") as file:
        file.write(b'{"id": 4, "te')  # what a killed run leaves
    status, found = run(tiny, tmp_path, lines)
    assert (status, found.keys()) == (0, set(range(5)))
    assert output.read_bytes().startswith(before)


def test_two_lines_of_one_id(tiny, tmp_path, capsys):
    status, found = run(tiny, tmp_path, [{"id": 2, "prompt": "h"}, {"prompt": "h"}])
    assert (status, found) == (2, {})
    assert "two lines have the id 2" in capsys.readouterr().err


def test_an_output_that_is_no_journal(tiny, tmp_path, capsys):
    (tmp_path / "out.jsonl").write_text("text\n")
    assert main(["batch", tiny, __file__, "-o", str(tmp_path / "out.jsonl")]) == 2
    assert "line 1: is no answer" in capsys.readouterr().err
    assert (tmp_path / "out.jsonl").read_text() == "text\n"


def test_two_runs_on_one_output(tmp_path):
    with Journal(tmp_path / "out"), pytest.raises(UsageError, match="written by another process"):
        Journal(tmp_path / "out")


def test_a_killed_run_goes_on(tiny, tmp_path):
    """Nothing is lost or answered twice."""
    count = 1500
    prompts, output = tmp_path / "prompts.jsonl", tmp_path / "out.jsonl"
    prompts.write_text("\n".join(json.dumps({"prompt": "h" * (i % 40 + 1)}) for i in range(count)))
    command = ["batch", tiny, str(prompts), "-o", str(output), *OPTIONS]
    tool = [sys.executable, "-m", "relax_mlir.tools.relax_llm", *command]
    process = subprocess.Popen(tool)
    deadline = time.monotonic() + 60
    while not (output.exists() and output.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = output.read_bytes().count(b"\n")
    assert 0 < done < count
    assert main(command) == 0
    assert answers(output).keys() == set(range(1, count + 1))
