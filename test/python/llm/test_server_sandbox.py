"""The process that renders templates and compiles grammars."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from scripted_engine import wait_until

from relax_mlir.errors import ModelError
from relax_mlir.llm.serving import sandbox as module
from relax_mlir.llm.serving.sandbox import Sandbox
from relax_mlir.llm.tokenization.chat import ChatTemplate

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %}"
    "{{ tools | tojson }}{{ add_generation_prompt }}"
)
# 2 ** 18 alternatives.
LARGE = json.dumps(
    {
        "allOf": [
            {
                "anyOf": [
                    {"type": "string", "pattern": f"^{i}.*"},
                    {"type": "integer", "multipleOf": i + 2},
                ]
            }
            for i in range(18)
        ]
    }
)


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox() as sandbox:
        yield sandbox


def test_templates_are_rendered_as_here(sandbox):
    here = ChatTemplate(TEMPLATE, "<s>", "</s>")
    there = sandbox.template(here)
    assert there.takes_tools
    messages = [{"role": "user", "content": "ä🙂 \n" * 1000}]
    for options in ({}, {"tools": [{"a": [1, None]}]}, {"add_generation_prompt": False}):
        assert there.render(messages, **options) == here.render(messages, **options)
    with ThreadPoolExecutor(8) as pool:
        texts = [f"text {i}" for i in range(20)]
        rendered = pool.map(lambda text: there.render([{"role": "u", "content": text}]), texts)
        assert list(rendered) == [f"<s>u:{text}nullTrue" for text in texts]


def test_templates_are_refused_as_here(sandbox):
    for source in ("{{ messages.__class__.__mro__ }}", "{{ raise_exception('no') }}"):
        template = ChatTemplate(source)
        with pytest.raises(ModelError) as here:
            template.render([])
        with pytest.raises(ModelError) as there:
            sandbox.template(template).render([])
        assert str(there.value) == str(here.value)


def test_grammars(sandbox):
    for _ in range(2):
        sandbox.check("json", '{"type": "object"}')
        sandbox.check("gbnf", 'root ::= "a" | "b"')
        for kind, text, message in (
            ("json", '{"type": "nothing"}', "the JSON schema is wrong: "),
            ("json", "5", "the JSON schema is wrong: expects an object"),
            ("gbnf", "root ::= (", "the grammar is wrong: "),
        ):
            with pytest.raises(ModelError, match=message):
                sandbox.check(kind, text)


def test_grammars_that_are_too_large(monkeypatch):
    monkeypatch.setattr(module, "GRAMMAR_SECONDS", 1)
    begin = time.monotonic()
    with pytest.raises(ModelError, match=r"the grammar takes more than 1 s"):
        module._done({"grammar": "json", "text": LARGE})
    assert time.monotonic() - begin < 10


def test_the_process_starts_again_and_ends_with_its_parent():
    with Sandbox() as sandbox:
        template = sandbox.template(ChatTemplate("hello"))
        assert template.render([]) == "hello"
        process = sandbox._process
        for harmless in (signal.SIGTERM, signal.SIGINT):
            process.send_signal(harmless)
        assert template.render([]) == "hello"
        process.kill()
        process.wait()
        assert template.render([]) == "hello"
        last = sandbox._process
        assert last.pid != process.pid
        last.stdin.close()
        wait_until(lambda: last.poll() is not None)
        folder = Path(sandbox._folder.name)
        assert os.stat(folder).st_mode & 0o077 == 0
    assert not folder.exists()
