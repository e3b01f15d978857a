"""Chat templates come from anywhere: none hangs, takes all memory, or shows a traceback."""

import os
import time
from pathlib import Path

import pytest

from relax_mlir.errors import ModelError
from relax_mlir.llm.tokenization import isolated
from relax_mlir.llm.tokenization.chat import ChatTemplate

MESSAGES = [{"role": "user", "content": "hi"}]
LOOP = "{% set r = range(99999) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (LOOP, "the chat template takes more than 1 s"),
        ("{{ 'x' * 9999999999 }}", "the chat template takes too much memory"),
        ("{{ '%9999999999d' | format(1) }}", "the chat template takes too much memory"),
        ("{{ messages.__class__.__mro__ }}", "the chat template refuses the messages: .*unsafe"),
        ("{{ raise_exception('no\\nsuch role') }}", "refuses the messages: no such role$"),
        ("{{ messages[5].content }}", "refuses the messages: "),
        ("{{ 1 // 0 }}", "refuses the messages: "),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "refuses the messages: .*recursion"),
        ("{% include 'other' %}", "refuses the messages: "),
    ],
)
def test_templates_that_cannot_be_used(source, message, monkeypatch):
    monkeypatch.setattr(isolated, "SECONDS", 1)
    begin = time.monotonic()
    with pytest.raises(ModelError, match=message) as caught:
        ChatTemplate(source).render(MESSAGES)
    assert time.monotonic() - begin < 20
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "source", ["{% for", "{{ " + "(" * 5000 + ")" * 5000 + " }}", "{{ 1 | x }}"]
)
def test_templates_that_cannot_be_read(source):
    with pytest.raises(ModelError, match="the chat template cannot be read"):
        ChatTemplate(source)


def children() -> set[str]:
    """The processes that this one has started and not waited for."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_a_template_leaves_nothing_behind():
    before = children()
    found = ChatTemplate("{{ messages[0].content }}\ud800").render(MESSAGES)
    assert found == "hi\ud800"
    assert children() == before
