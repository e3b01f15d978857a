"""The server's page to chat, in Chromium: an answer as it comes, stopping, errors."""

import pytest
from chromium import chromium, missing
from scripted_engine import ScriptedEngine, ScriptedModel, running, state_of, wait_until

from relax_mlir.llm.serving.limits import Access

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
    pytest.mark.rotate(2, together=True),
]
MODEL = "() => document.getElementById('model').value"


@pytest.fixture
def engine(tmp_path):
    return ScriptedEngine(ScriptedModel(tmp_path))


def said(browser, role):
    texts = "(role) => [...document.querySelectorAll('.' + role)].map((turn) => turn.textContent)"
    return browser.run(texts, role)


def ask(browser, question):
    browser.call(browser.page.fill, "#prompt", question)
    browser.call(browser.page.press, "#prompt", "Enter")


def is_idle(browser):
    return browser.run("() => !document.getElementById('send').disabled")


def test_a_conversation(engine):
    engine.says = "<b>hello</b> & world"
    browser = chromium()
    browser.console.clear()
    with running(state_of(engine)) as url:
        try:
            browser.open(url)
            wait_until(lambda: browser.run(MODEL) == "tiny")
            ask(browser, "what?")
            wait_until(lambda: is_idle(browser) and said(browser, "assistant") == [engine.says])
            assert "tokens read" in browser.run(
                "() => document.getElementById('status').textContent"
            )
            ask(browser, "and then?")
            wait_until(lambda: said(browser, "assistant") == [engine.says] * 2)
            prompt = engine.model.tokenizer.decode(
                engine.requests[1].prompt, skip_special_tokens=False
            )
            assert prompt.count(engine.says) == 1
            assert prompt.count("what?") == prompt.count("and then?") == 1
            wait_until(lambda: is_idle(browser))
            engine.pause = 10
            ask(browser, "more")
            wait_until(lambda: len(engine.running) == 1)
            browser.call(browser.page.click, "#stop")
            wait_until(lambda: is_idle(browser) and not engine.running)
            assert engine.cancelled == 1
            engine.full = True
            ask(browser, "more")
            wait_until(lambda: said(browser, "error") == ["1 request waits already"])
            browser.call(browser.page.click, "#new")
            assert said(browser, "user") == []
        finally:
            browser.leave()
    assert [text for text in browser.console if "Failed to load" not in text] == []


def test_a_key(engine):
    browser = chromium()
    with running(state_of(engine, access=Access(keys=["secret"]))) as url:
        try:
            browser.open(url)
            status = "() => document.getElementById('status').textContent"
            wait_until(lambda: "API key is missing" in browser.run(status))
            browser.call(browser.page.click, "summary")
            browser.call(browser.page.fill, "#key", "secret")
            browser.call(browser.page.press, "#key", "Tab")
            wait_until(lambda: browser.run(MODEL) == "tiny")
            assert browser.run(status) == ""
        finally:
            browser.leave()
