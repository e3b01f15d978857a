"""The command line: output, messages and exit statuses."""

import io
import json
import subprocess
import sys

import pytest
from tiny_models import CONFIG, random_weights, write_gguf, write_hf

from relax_mlir.llm.generation.session import Session
from relax_mlir.llm.measurement.benchmark import Plan, measure, table
from relax_mlir.tools.relax_llm import main


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    return str(write_gguf(tmp_path_factory.mktemp("cli") / "tiny.gguf", random_weights()))


def test_help_is_quick_and_loads_nothing_heavy():
    program = (
        "import sys; from relax_mlir.tools import relax_llm\n"
        "try: relax_llm.main(['generate', '--help'])\n"
        "except SystemExit as done: assert not done.code\n"
        "heavy = {'numpy', 'torch_mlir', 'llvmlite', 'gguf', 'tokenizers'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_generate(tiny, capsys):
    assert main(["generate", tiny, "hello", "--raw", "--max-tokens", "6", "--threads", "1"]) == 0
    out, err = capsys.readouterr()
    assert out.endswith("\n")
    assert "prompt 1 tokens" in err
    assert "stopped by length" in err


def test_generate_reads_the_prompt_from_standard_input(tiny, capsys, monkeypatch):
    options = ["--raw", "--max-tokens", "6", "--temperature", "1.5", "--seed", "3", "-O", "0"]
    main(["generate", tiny, "hello", *options])
    expected = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO("hello"))
    assert main(["generate", tiny, "-", *options]) == 0
    assert capsys.readouterr().out == expected


def test_chat_remembers_until_it_is_reset(tiny, capsys, monkeypatch):
    lines = "hello\n\n1\n/reset\nhello\n/exit\nnever read\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    assert main(["chat", tiny, "--max-tokens", "3"]) == 0
    out, err = capsys.readouterr()
    first, second, third = err.splitlines()
    assert "from the cache" not in first
    assert "from the cache" in second
    assert out.count("\n") >= 3
    assert "from the cache" in third  # the begin of the template


def say(monkeypatch, capsys, model: str, lines: list[str], *options: str) -> tuple[str, list[str]]:
    """What a conversation prints, and its lines on standard error."""
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    assert main(["chat", model, "--max-tokens", "2", *options]) == 0
    out, err = capsys.readouterr()
    return out, err.splitlines()


def test_chat_goes_on_when_the_context_is_full(tiny, capsys, monkeypatch):
    _, err = say(monkeypatch, capsys, tiny, ["1 " * 80, *["1 1 1"] * 4])
    assert f"tokens, and the context has {CONFIG.max_context}; ask a shorter one" in err.pop(0)
    told = [line for line in err if "omitted" in line]
    assert told[0] == "the context is full: 1 question at the beginning omitted; " + (
        "/reset starts a new conversation"
    )
    assert len(err) == 4 + len(told)


def test_chat_commands(tiny, capsys, monkeypatch, tmp_path):
    file = tmp_path / "said.json"
    lines = ["/help", "hello", "1", "/undo", f"/save {file}", "/usr/bin", "/undo", "/undo", "/undo"]
    lines += ["/rest", "/save", f"/save {tmp_path}/none/said.json", "hello"]
    out, err = say(monkeypatch, capsys, tiny, lines, "--system", "1 2")
    help_, rest = err[:6], err[6:]
    known = ["/image", "/reset", "/undo", "/save", "/help", "/exit"]
    assert [line.split()[0] for line in help_] == known
    answers = [line for line in rest if "prompt" in line]
    assert len(answers) == 4
    assert [line for line in rest if line not in answers] == [
        "there is no question to undo",
        "unknown command '/rest'; did you mean '/reset'?; /help lists them",
        "name the file: /save FILE",
        f"cannot write '{tmp_path}/none/said.json': no such file or directory",
    ]
    system, question, answer = json.loads(file.read_text())
    assert system == {"role": "system", "content": "1 2"}
    assert question == {"role": "user", "content": "hello"}
    assert out.startswith(answer["content"] + "\n")


def test_only_the_text(tiny, capsys, monkeypatch):
    out, err = say(monkeypatch, capsys, tiny, ["hello", "1 1 1", "1 1 1", "1 1 1"], "--quiet")
    assert err == []
    assert main(["generate", tiny, "hello", "--max-tokens", "2", "--quiet"]) == 0
    assert capsys.readouterr() == (out.split("\n")[0] + "\n", "")


def test_json_and_stop(tiny, capsys):
    command = ["generate", tiny, "1", "--raw", "--seed", "2", "--temperature", "2", "--json"]
    assert main([*command, "--max-tokens", "9"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["stop_reason"] == "length"
    assert len(whole["tokens"]) == 9
    assert whole["statistics"]["steps"] == 8
    assert whole["statistics"]["prompt_rate"] > 0
    middle = whole["text"][3:6]
    assert main([*command, "--stop", "no such text", "--stop", middle]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["stop_reason"] == "stop"
    assert found["text"] == whole["text"][: whole["text"].index(middle)]


def test_samples_and_biases(tiny, capsys):
    options = ["--temperature", "9", "--max-tokens", "4", "--logit-bias", "5=999", "--samples", "2"]
    assert main(["generate", tiny, "hello", "--raw", "--json", *options]) == 0
    assert [each["tokens"] for each in json.loads(capsys.readouterr().out)] == [[5] * 4] * 2


def test_a_system_message_comes_first(tiny, capsys):
    assert main(["generate", tiny, "hello", "--system", "1 2 1 2", "--json"]) == 0
    longer = json.loads(capsys.readouterr().out)["statistics"]["prompt_tokens"]
    assert main(["generate", tiny, "hello", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["statistics"]["prompt_tokens"] < longer


def test_an_interrupt_stops_the_turn_only(tiny, capsys, monkeypatch):
    append, steps = Session.append, []

    def interrupted(session, ids, rows=1, pictures=()):
        steps.append(len(ids))
        if len(steps) == 3:
            raise KeyboardInterrupt
        return append(session, ids, rows)

    monkeypatch.setattr(Session, "append", interrupted)
    monkeypatch.setattr("sys.stdin", io.StringIO("hello\nhello\n"))
    assert main(["chat", tiny, "--max-tokens", "4"]) == 0
    lines = capsys.readouterr().err.splitlines()
    first, second = (line for line in lines if "peak memory" in line)  # without warnings
    assert "generation 1 steps" in first, lines
    assert "from the cache" in second


def test_an_interrupt_ends_generate(tiny, capsys, monkeypatch):
    def interrupted(session, ids, rows=1, pictures=()):
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "append", interrupted)
    assert main(["generate", tiny, "hello"]) == 130


def test_inspect(tiny, capsys):
    assert main(["inspect", tiny]) == 0
    out = capsys.readouterr().out
    assert "head_dim             16" in out
    assert "in each layer" in out
    assert "allocations          0" in out


def test_bench(tiny, capsys):
    options = ["--threads", "1", "--pp", "3,17", "--tg", "2", "--context", "0,5", "--rounds", "2"]
    assert main(["bench", tiny, *options, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [row["case"] for row in results["results"]] == ["pp3", "pp17", "tg2@0", "tg2@5"]
    assert all(len(row["seconds"]["relax-mlir"]) == 2 for row in results["results"])
    assert all(row["rates"]["relax-mlir"] > 0 for row in results["results"])
    assert "pp17" in table(results)


def test_programs_take_turns():
    calls = []

    class Fake:
        version = "1"

        def __init__(self, name):
            self.name = name

        def prepare(self, case):
            calls.append((self.name, "prepare", str(case)))

        def run(self, case):
            calls.append((self.name, "run", str(case)))

    results = measure([Fake("a"), Fake("b")], Plan([1], [4], 0, [], 2))
    warm = [("prepare", "pp4"), ("run", "pp4")]
    first = [(name, *call) for name in "ab" for call in warm + warm]
    second = [(name, *call) for name in "ab" for call in warm]
    assert calls == first + second
    assert "ratio to b" in table(results)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["generate", "nothing", "hi"], 2, "no model 'nothing': it is neither a file nor a folder"),
        (["generate", "{tiny}", "hi", "--threads", "0"], 2, "--threads is 0; expects 1 or more"),
        (["generate", "{tiny}", "hi", "--context", "65"], 2, "context is 65; expects 1 to 64"),
        (["generate", "{tiny}", "hi", "-O", "7"], 2, "unknown optimisation level 7"),
        (["generate", "{tiny}", "hi", "--weights", "q4"], 2, "unknown weights 'q4'; accepted"),
        (["generate", "{tiny}", "hi", "--target", "z80"], 2, "unknown target 'z80'"),
        (["generate", "{tiny}", "hi", "--top-p", "0"], 2, "top_p is 0.0; expects a number > 0"),
        (["generate", "{tiny}", "hi", "--min-p", "2"], 2, "min_p is 2.0; expects a number >= 0"),
        (["generate", "{tiny}", "hi", "--logit-bias", "999=1"], 2, "the vocabulary has"),
        (["generate", "{tiny}", "hi", "--draft-tokens", "2"], 2, "needs --draft or --lookup"),
        (["generate", "{tiny}", "hi", "--lookup", "--draft-tokens", "0"], 2, "draft tokens is 0"),
        (["generate", "{tiny}", "hi", "--grammar", "{folder}/none"], 2, "cannot read"),
        (["generate", "{tiny}", "hi", "--grammar", "{damaged}"], 2, "the grammar is wrong"),
        (["generate", "{tiny}", "hi", "--json-schema", "{damaged}"], 2, "the JSON schema is wrong"),
        (["generate", "{tiny}", "hi", "--samples", "0"], 2, "the count of samples is 0"),
        (["generate", "{tiny}", "1 " * 80, "--raw"], 2, "new tokens do not fit after 0"),
        (["generate", "{damaged}", "hi"], 1, "is no GGUF file"),
        (["generate", "{tiny}", "hi", "--stop", ""], 2, "a stop text is empty"),
        (["generate", "{tiny}", "hi", "--raw", "--system", "x"], 2, "exclude each other"),
        (["generate", "{without}", "hi", "--system", "x"], 2, "takes no --system"),
        (["chat", "{without}"], 2, "has no chat template; use relax-llm generate"),
        (["chat", "{tiny}", "--temperature", "-1"], 2, "temperature is -1.0"),
        (["chat", "{tiny}", "--context-shift", "--keep", "-1"], 2, "keep is -1"),
        (["bench", "{tiny}", "--pp", "65"], 2, "the cases need a context of 576 tokens"),
        (["bench", "{tiny}", "--rounds", "0"], 2, "--rounds is 0; expects 1 or more"),
        (["bench", "{folder}", "--pp", "1,0"], 2, "--pp is 0; expects 1 or more"),
    ],
)
def test_messages(tmp_path, capsys, tiny, arguments, status, message):
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"no model")
    drop = ("tokenizer.chat_template",)
    without = write_gguf(tmp_path / "without.gguf", random_weights(), drop=drop)
    folder = write_hf(tmp_path / "folder", random_weights())
    paths = {"tiny": tiny, "damaged": damaged, "without": without, "folder": folder}
    assert main([argument.format(**paths) for argument in arguments]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("relax-llm: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["sing"],
        ["generate"],
        ["bench", "--threads", "1,x"],
        ["chat", "--sing"],
        ["chat", "--logit-bias", "x=1"],
    ],
)
def test_wrong_command_lines(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: relax-llm" in capsys.readouterr().err
